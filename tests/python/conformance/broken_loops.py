"""Loops with one fault each; a run on them must find it."""
import asyncio
import atexit
import os
import signal
import unittest

Stock = asyncio.SelectorEventLoop


class Dropping(Stock):
    """The first callback of call_later is never called."""
    dropped = False

    def call_later(self, delay, callback, *args, context=None):
        handle = super().call_later(delay, callback, *args, context=context)
        if not Dropping.dropped:
            Dropping.dropped = True
            handle.cancel()
        return handle


class Early(Stock):
    """Timers do not wait."""

    def call_later(self, delay, callback, *args, context=None):
        return super().call_later(0, callback, *args, context=context)


class Refusing(Stock):
    """A call that must work raises."""

    def call_later(self, *_args, **_named):
        raise TypeError("not today")


class Aborting(Stock):
    """The process dies."""

    def call_later(self, *_args, **_named):
        os.abort()


class Leaving(Stock):
    """The process exits with status 0, but too early."""

    def call_later(self, *_args, **_named):
        os._exit(0)


class Hanging(Stock):
    """A call does not return."""

    def call_later(self, *_args, **_named):
        while True:
            signal.pause()


class Dying(Stock):
    """The process dies after all tests have passed."""
    armed = False

    def __init__(self):
        super().__init__()
        if not Dying.armed:
            Dying.armed = True
            atexit.register(os.abort)


class Skipping:
    """Its tests skip themselves, which they do not on asyncio's own loop."""

    def __init__(self):
        raise unittest.SkipTest("not with this loop")


def new_stock():
    """No fault."""
    return Stock()
