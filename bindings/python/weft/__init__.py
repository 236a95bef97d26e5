"""An asyncio event loop on weft.

    import weft
    weft.run(main())

Programs need not change: `weft.run` is asyncio.run with this loop, `new_event_loop` is a
loop factory for asyncio.Runner, and `install` makes asyncio create this loop by default.
"""
import asyncio

from ._core import version as __version__
from ._loop import Loop
from ._transport import SocketTransport

__all__ = ("EventLoopPolicy", "Loop", "SocketTransport", "install", "metrics",
           "new_event_loop", "run", "serve_admin")


def new_event_loop(*, backend=None, watchdog=None):
    """Create a loop.

    backend: "uring", "epoll" or "poll"; default: $WEFT_BACKEND, else epoll.
    watchdog: seconds; a callback that blocks the loop longer is reported with its stack.
    """
    return Loop(backend=backend, watchdog=watchdog)


def run(main, *, debug=None, backend=None, watchdog=None):
    """Run a coroutine as asyncio.run() does, on a weft loop."""
    if asyncio._get_running_loop() is not None:
        raise RuntimeError("weft.run() cannot be called from a running event loop")

    def factory():
        return new_event_loop(backend=backend, watchdog=watchdog)

    with asyncio.Runner(debug=debug, loop_factory=factory) as runner:
        return runner.run(main)


def metrics(loop=None):
    """The metrics of a loop, as a dict: turns, wakes, timers, descriptors, ...

    Rates (turns_per_s, callbacks_per_s) and times (turn, lag) cover the last ten seconds.
    Each call enables measuring them for the next minute; they are None while nothing has
    been measured, as in the first call.
    """
    return _weft_loop(loop)._metrics()


def serve_admin(address="tcp://127.0.0.1:0", *, loop=None, token=None, title=None):
    """Serve weft's admin endpoint (page, /metrics, /debug/...) on the loop, until it is closed.

    Returns the address, with the port that the system chose.  Without a token only clients
    on this machine are served.
    """
    return _weft_loop(loop)._open_admin(address, token, title)


def _weft_loop(loop):
    loop = asyncio.get_running_loop() if loop is None else loop
    if not isinstance(loop, Loop):
        raise TypeError(f"a weft loop is required, not {loop!r}")
    return loop


def __getattr__(name):
    # Python 3.14 warns when policies are accessed, so the class is created on first use.
    if name == "EventLoopPolicy":
        from ._policy import EventLoopPolicy
        globals()[name] = EventLoopPolicy
        return EventLoopPolicy
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def install():
    """Make asyncio create weft loops, in the whole program."""
    from ._policy import EventLoopPolicy, set_policy
    set_policy(EventLoopPolicy())
