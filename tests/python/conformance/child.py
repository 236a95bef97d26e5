"""Run tests on a loop in this process, and report each step: `child.py LOOP IDS-FILE FD`.

Writes one JSON line to FD for the start, each result and the end of each test.  So the
reader knows which test ran if this process hangs or dies.
"""
import contextlib
import faulthandler
import json
import os
import resource
import signal
import sys
import unittest
import warnings

import loop_swap

INFO_MAX = 3000  # characters of a traceback, from its end


class Teller(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def tell(self, event, test=None, info="", **more):
        case = getattr(test, "test_case", test)  # a subtest counts for its test
        line = {"event": event, "id": case.id() if case else "", "info": info[-INFO_MAX:], **more}
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()

    def trace(self, test, error):
        if isinstance(test, unittest.TestCase):
            return self._exc_info_to_string(error, test)
        return f"{test.id()}: {error[1]!r}"

    def startTest(self, test):
        super().startTest(test)
        self.tell("start", test)

    def stopTest(self, test):
        super().stopTest(test)
        self.tell("stop", test)

    def addSuccess(self, test):
        self.tell("pass", test)

    def addError(self, test, err):
        self.tell("error", test, self.trace(test, err))

    def addFailure(self, test, err):
        self.tell("fail", test, self.trace(test, err))

    def addSkip(self, test, reason):
        if not hasattr(test, "test_case"):
            self.tell("skip", test, reason)

    def addExpectedFailure(self, test, err):
        self.tell("pass", test)

    def addUnexpectedSuccess(self, test):
        self.tell("fail", test, "it is marked as an expected failure, and passes")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            self.tell("fail" if failed else "error", test, self.trace(subtest, err))


def main(name, ids_file, fd):
    faulthandler.enable()  # a hanging test is ended with SIGABRT, which prints its stack
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A shell's background job ignores SIGINT; the tests of Ctrl-C would hang.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    loop_swap.swap(name)
    with open(ids_file) as listing:
        ids = json.load(listing)
    if name != loop_swap.STOCK:
        with contextlib.suppress(ImportError):
            loop_swap.swap_close_loop()
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromName(i) for i in ids)
    with os.fdopen(int(fd), "w") as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        teller = Teller(out)
        suite.run(teller)
        teller.tell("done", made=loop_swap.made)


# Guarded, because a test that spawns a process with multiprocessing imports this file
# again.
if __name__ == "__main__":
    main(*sys.argv[1:])
