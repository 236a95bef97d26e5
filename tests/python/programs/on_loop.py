"""Run one program on a loop in this process: `on_loop.py LOOP PROGRAM WORLD-FILE OUT-FILE`.

The loop is installed as a user would install it, with install() of its module.  The output
file gets the program's observations, the errors that asyncio logged, and the kind of loop.
"""
import asyncio
import faulthandler
import importlib
import json
import logging
import signal
import sys

from scene import Scene


class Complaints(logging.Handler):
    """Errors that asyncio logs: an exception was never retrieved, a callback failed."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.heard = []

    def emit(self, record):
        self.heard.append(record.getMessage().split("\n")[0])


def install(loop):
    """Install a loop, named as a module with install(), or as module:callable."""
    if loop != "uvloop":
        sys.modules["uvloop"] = None  # packages that use uvloop if it is installed must not do so
    if loop != "asyncio":
        module, _, name = loop.partition(":")
        getattr(importlib.import_module(module), name or "install")()


def main(loop, program, world_file, out_file):
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    install(loop)
    complaints = Complaints()
    logging.getLogger("asyncio").addHandler(complaints)
    unraisable = []
    sys.unraisablehook = lambda hook: unraisable.append(repr(hook.exc_value))
    with open(world_file) as world:
        scene = Scene(json.load(world))
    kind, (module, _, name) = None, program.partition(":")

    async def run():
        nonlocal kind
        kind = type(asyncio.get_running_loop()).__module__
        await getattr(importlib.import_module(module), name or "main")(scene)

    asyncio.run(run())
    scene.note("complaints", complaints.heard)
    scene.note("unraisable", unraisable)
    with open(out_file, "w") as out:
        json.dump({"kind": kind, "seen": scene.seen, "wrong": scene.wrong}, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
