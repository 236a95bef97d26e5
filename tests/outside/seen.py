"""Shared by tests that drive a program from outside: a list of tests, checks, and waiting.

No test waits for a fixed time.  wait_until() polls a condition and fails with a description
if it never becomes true.
"""
import time

PATIENCE = 300  # seconds until an expected event must have happened
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def check(what, good):
    if not good:
        raise AssertionError(what)


def equal(got, want):
    check(f"{got!r} is not {want!r}", got == want)


def wait_until(what, happened):
    """Poll `happened` until its result is true, and return that.  `what` is the text of
    the failure, or a function that makes it."""
    end = time.monotonic() + PATIENCE
    while not (found := happened()):
        if time.monotonic() >= end:
            raise AssertionError(f"it never came: {what() if callable(what) else what}")
        time.sleep(0.01)
    return found
