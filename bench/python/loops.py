"""The loop that a script was asked for: asyncio, uvloop or weft.

What is measured is what its users get: the loop as its own new_event_loop() makes it, without
debugging.
"""
import importlib
import sys


def new_loop(name):
    """A loop of that package, and of no other in its place."""
    loop = importlib.import_module(name).new_event_loop()
    found = type(loop).__module__.partition(".")[0]
    if found != name:
        sys.exit(f"asked for a loop of {name}, got one of {found}")
    if loop.get_debug():
        sys.exit("the loop is in debug mode")
    return loop
