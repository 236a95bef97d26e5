"""An asyncio event loop on weft.

    import weft
    weft.run(main())

Programs need not change: `weft.run` is asyncio.run with this loop, `new_event_loop` is a
loop factory for asyncio.Runner, and `install` makes it the loop that asyncio makes.
"""
import asyncio

from ._core import version as __version__
from ._loop import Loop
from ._transport import SocketTransport

__all__ = ("EventLoopPolicy", "Loop", "SocketTransport", "install", "metrics",
           "new_event_loop", "run", "serve_admin")


def new_event_loop(*, backend=None, watchdog=None):
    """Make a loop.

    backend: "uring", "epoll" or "poll"; without, what $WEFT_BACKEND says, else epoll.
    watchdog: seconds; a callback that holds the loop longer is reported with its stack.
    """
    return Loop(backend=backend, watchdog=watchdog)


def run(main, *, debug=None, backend=None, watchdog=None):
    """Run a coroutine as asyncio.run() does, on a loop of weft."""
    if asyncio._get_running_loop() is not None:
        raise RuntimeError("weft.run() cannot be called from a running event loop")

    def factory():
        return new_event_loop(backend=backend, watchdog=watchdog)

    with asyncio.Runner(debug=debug, loop_factory=factory) as runner:
        return runner.run(main)


def metrics(loop=None):
    """What a loop did and is at, as a dict: turns, wakes, timers, descriptors, ...

    Rates (turns_per_s, callbacks_per_s) and times (turn, lag) cover the last ten seconds.
    A reading has them measured for the next minute; they are None while nothing has been
    measured, so in the first reading.
    """
    return _weft_loop(loop)._metrics()


def serve_admin(address="tcp://127.0.0.1:0", *, loop=None, token=None, title=None):
    """Serve weft's window (page, /metrics, /debug/...) on the loop, until it is closed.

    Returns the address, with the port that the system chose.  Without a token only peers
    of this machine are answered.
    """
    return _weft_loop(loop)._open_admin(address, token, title)


def _weft_loop(loop):
    loop = asyncio.get_running_loop() if loop is None else loop
    if not isinstance(loop, Loop):
        raise TypeError(f"a loop of weft was expected, not {loop!r}")
    return loop


def __getattr__(name):
    # Python 3.14 warns of policies where they are named, so they are made when asked for.
    if name == "EventLoopPolicy":
        from ._policy import EventLoopPolicy
        globals()[name] = EventLoopPolicy
        return EventLoopPolicy
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def install():
    """Have asyncio make loops of weft, in the whole program."""
    from ._policy import EventLoopPolicy, set_policy
    set_policy(EventLoopPolicy())
