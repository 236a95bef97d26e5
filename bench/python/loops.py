"""The loop to measure: asyncio, uvloop or weft.

It is the loop that users get: made by the package's own new_event_loop(), without debug mode.
"""
import importlib
import sys


def new_loop(name):
    """A loop of that package; exits if new_event_loop() returns a loop of another package."""
    loop = importlib.import_module(name).new_event_loop()
    found = type(loop).__module__.partition(".")[0]
    if found != name:
        sys.exit(f"{name}.new_event_loop() returned a loop of {found}")
    if loop.get_debug():
        sys.exit("the loop is in debug mode")
    return loop
