"""What tests that look at a program from outside share: a list of them, checks, and waiting.

Nothing is waited for by time: whoever waits looks again until something is there, up to an
end that says what never came.
"""
import time

PATIENCE = 300  # seconds until something that must happen has happened
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
    """What `happened` gives, as soon as it is something; `what` may be asked at the end."""
    end = time.monotonic() + PATIENCE
    while not (found := happened()):
        if time.monotonic() >= end:
            raise AssertionError(f"it never came: {what() if callable(what) else what}")
        time.sleep(0.01)
    return found
