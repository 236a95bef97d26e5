"""Replace the event loop of code that uses asyncio's own.

A loop is named by a module that has new_event_loop (`weft`, `uvloop`), by
`module:callable`, or by `asyncio`, which changes nothing.  Installing a policy would not be
enough:

  1. Each module of test_asyncio resets the policy to the default one when it ends, so the
     factory of the default policy is replaced.
  2. Half of the relevant tests make their loop with asyncio.SelectorEventLoop, with or without
     a selector, so that name is replaced too, and accepts any argument.  From 3.13 on the same
     is true for asyncio.EventLoop.
  3. The tests' own close_loop uses an attribute that only loops of asyncio's classes have.

Private attributes of a loop are not emulated: tests of `loop._selector` and the like are
white-box tests.
"""
import asyncio
import asyncio.unix_events
import importlib

STOCK = "asyncio"
made = 0  # number of loops of the named kind since swap()


def factory_of(name):
    module, _, path = name.partition(":")
    found = importlib.import_module(module)
    for part in (path or "new_event_loop").split("."):
        found = getattr(found, part)
    return found


def swap(name):
    """From now on each new loop is one of the named kind."""
    if name == STOCK:
        return
    factory = factory_of(name)  # before the change: its module may derive from the replaced classes

    def make():
        global made
        made += 1
        return factory()

    class Swapped:
        def __new__(cls, *_args, **_named):
            return make()

    policy = getattr(asyncio.unix_events, "_UnixDefaultEventLoopPolicy", None) \
        or asyncio.unix_events._DefaultEventLoopPolicy
    policy._loop_factory = staticmethod(make)
    asyncio.SelectorEventLoop = Swapped
    if hasattr(asyncio, "EventLoop"):
        asyncio.EventLoop = Swapped


def swap_close_loop():
    """Let test_asyncio close loops that have no _default_executor."""
    from test.test_asyncio import utils
    close_stock = utils.TestCase.close_loop

    def close_loop(loop):
        if hasattr(loop, "_default_executor"):
            close_stock(loop)
            return
        if not loop.is_closed():
            loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    utils.TestCase.close_loop = staticmethod(close_loop)
