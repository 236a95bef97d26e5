#!/usr/bin/env python3
"""Run the tests of the Python loop, or look for what they leak.

    tests/python/run.py [-k PATTERN]... [-v] [--slowest N] [--again N]
    tests/python/run.py -R 3:3 [-k PATTERN]...
    tests/python/run.py --self-test

--again N gives a test that fails another chance, since some wait for other processes on a
machine that may be busy: it must pass N times, alone, and is named.

-R WARM:COUNTED runs each test so often before and while it counts: objects that the garbage
collector knows, weak references, blocks and bytes of memory, open descriptors, threads, and
in a Python that can tell, references.  A test leaks if one of them grows in every counted
run, and does so again when it is counted once more; of blocks and bytes, if it grows also in
the long run, and by more than on the stock loop: Python has caches, and leaks of its own.
What happens in other processes is not seen, so tests that only look at such are left out.
WEFT_TEST_LOOP says which loop is tested (house.py).
"""
import argparse
import array
import ctypes
import faulthandler
import fnmatch
import gc
import importlib
import os
import subprocess
import sys
import threading
import time
import unittest
import warnings
import weakref
from pathlib import Path

sys.dont_write_bytecode = True  # no folder of it among the sources
FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

LIMIT = 300  # seconds for one test: after that it hangs
ROUNDS = 3  # times that a leak must show in a row
ENVIRONMENT = {  # of a process that counts: freed memory must not look used
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0"
                      ":glibc.malloc.arena_max=1"}


def flatten(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from flatten(each)
        else:
            yield each


def collect(patterns):
    """Every test of the files beside this one whose name contains or matches a pattern."""
    loader = unittest.TestLoader()
    for path in sorted(FOLDER.glob("*_test.py")):
        for test in flatten(loader.loadTestsFromModule(importlib.import_module(path.stem))):
            name = test.id()
            if not patterns or any(p in name or fnmatch.fnmatch(name, p) for p in patterns):
                yield test


# --- once each ---------------------------------------------------------------

class Result(unittest.TextTestResult):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.times = []

    def startTest(self, test):
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        self.times.append([time.monotonic(), test.id()])
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        self.times[-1][0] = time.monotonic() - self.times[-1][0]
        faulthandler.cancel_dump_traceback_later()


def is_unsteady(test, again):
    """Whether a test that has failed passes so many times alone."""
    if again == 0 or any(run_silently(test) for _ in range(again)):
        return False
    print(f"unsteady: {test.id()} passes alone")
    return True


def run_once(tests, verbose, slowest, again):
    runner = unittest.TextTestRunner(verbosity=2 if verbose else 1, resultclass=Result)
    runner.warnings = None  # those that main() has chosen stay
    result = runner.run(unittest.TestSuite(tests))
    for seconds, name in sorted(result.times, reverse=True)[:slowest]:
        print(f"{seconds:8.3f} s  {name}")
    failed = {getattr(test, "test_case", test).id(): getattr(test, "test_case", test)
              for test, _ in result.failures + result.errors}
    return (result.wasSuccessful() or
            bool(failed) and all([is_unsteady(test, again) for test in failed.values()]))


# --- leaks -------------------------------------------------------------------

class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
                .split()]


TELL = getattr(ctypes.CDLL(None), "mallinfo2", None)
if TELL:
    TELL.restype = Mallinfo2


def used_bytes():
    """What malloc has given out; 0 with a C library that does not tell."""
    if TELL is None:
        return 0
    told = TELL()
    return told.uordblks + told.hblkhd


COUNTS = {
    "objects": lambda: len(gc.get_objects()),
    "weak references": lambda: sum(isinstance(each, weakref.ReferenceType)
                                   for each in gc.get_objects()),
    "blocks": sys.getallocatedblocks,
    "bytes": used_bytes,
    "descriptors": lambda: len(os.listdir("/proc/self/fd")),
    "threads": threading.active_count,
    "references": getattr(sys, "gettotalrefcount", int),
}
# Those that also grow as long as Python fills its caches, and at its own leaks; and the least
# growth in a run that is more than that.
RESTLESS = {"blocks": 0.75, "bytes": 24}
SETTLE_RUNS, SLOPE_RUNS, SLOPES = 40, 20, 6


def count_into(row):
    """Write the counts into an array, which does not grow by it."""
    for _ in range(3):
        gc.collect()
    for i, count in enumerate(COUNTS.values()):
        row[i] = count()


def run_silently(test):
    """Run a new test like this one; what went wrong, or None."""
    result = unittest.TestResult()
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    type(test)(test._testMethodName).run(result)
    faulthandler.cancel_dump_traceback_later()
    wrong = result.errors + result.failures
    return wrong[0][1] if wrong else None


def growth(test, counted):
    """By how much each count has grown in each of so many runs."""
    rows = [array.array("q", [0] * len(COUNTS)) for _ in range(counted + 1)]
    count_into(rows[0])  # what counting itself needs the first time
    count_into(rows[0])
    for row in rows[1:]:
        run_silently(test)
        count_into(row)
    return {name: [after[i] - before[i] for before, after in zip(rows, rows[1:])]
            for i, name in enumerate(COUNTS)}


def slope(test, name):
    """By how much a count grows in a run, when it has had the time to settle."""
    rows = [array.array("q", [0] * len(COUNTS)) for _ in range(2)]
    for row, runs in zip(rows, (SETTLE_RUNS, SLOPE_RUNS)):
        for _ in range(runs):
            run_silently(test)
        count_into(row)
    at = list(COUNTS).index(name)
    return (rows[1][at] - rows[0][at]) / SLOPE_RUNS


def on_stock(measure):
    """The same with the loop of asyncio."""
    import house
    tested, house.LOOP = house.LOOP, "asyncio"
    try:
        return measure()
    finally:
        house.LOOP = tested


def is_leak(test, name):
    """Of a count that Python itself does not leave alone: whether it grows for good, and by
    more than it does on the stock loop."""
    import house
    least = RESTLESS[name]
    if house.LOOP == "asyncio":
        return False
    for _ in range(SLOPES):
        grown = slope(test, name)
        if grown < least:
            return False
    return grown > on_stock(lambda: slope(test, name)) * 1.5 + least


def find_leak(test, warm, counted):
    """Each count that has grown in every counted run, in every round."""
    for _ in range(warm):
        wrong = run_silently(test)
        if wrong:
            return wrong
    leaks = {}
    for _ in range(ROUNDS):
        leaks = {name: each for name, each in growth(test, counted).items() if min(each) > 0}
        if not leaks:
            return {}
    return {name: each for name, each in leaks.items()
            if name not in RESTLESS or is_leak(test, name)}


def run_for_leaks(tests, warm, counted, verbose):
    bad = ran = 0
    for test in tests:
        if getattr(test, "outside", False):
            continue
        ran += 1
        if verbose:
            print(test.id(), flush=True)
        leak = find_leak(test, warm, counted)
        if isinstance(leak, str):
            print(f"{test.id()} fails:\n{leak}", flush=True)
        for name, each in leak.items() if isinstance(leak, dict) else ():
            print(f"{test.id()} leaks {name}: {each}", flush=True)
        bad += bool(leak)
    print(f"{ran} tests, {bad} of them leak or fail")
    return bad == 0


# --- the self-test -----------------------------------------------------------

class Planted(unittest.TestCase):
    """One leak of each kind, and a test without any; on the stock loop, none at all."""

    kept = []

    def keep(self, make):
        import house
        if house.LOOP == "planted":
            self.kept.append(make())

    def none(self):
        self.assertEqual(bytes(1000), bytes(1000))

    def objects(self):
        self.keep(list)

    def weak_references(self):
        self.keep(lambda: weakref.ref(type(self), print))

    def blocks(self):
        self.keep(lambda: b"a small object" * 2 + bytes([len(self.kept) % 256]))

    def bytes(self):
        self.keep(lambda: bytes(100_000))

    def descriptors(self):
        self.keep(lambda: os.dup(0))

    def threads(self):
        def start():
            end = threading.Event()
            threading.Thread(target=end.wait, daemon=True).start()
            return end
        self.keep(start)


def self_test():
    """Whether each planted leak is found, and none where none is."""
    import house
    house.LOOP = "planted"
    missed = [] if not find_leak(Planted("none"), 3, 3) else ["none"]
    for name in COUNTS:
        planted = name.replace(" ", "_")
        if hasattr(Planted, planted) and name not in find_leak(Planted(planted), 3, 3):
            missed.append(name)
    print(f"wrong about: {', '.join(missed)}" if missed else "every planted leak is found")
    return not missed


# --- the command -------------------------------------------------------------

def again_to_count():
    """Start anew with a malloc that tells the truth, and be its status."""
    if all(os.environ.get(name) == value for name, value in ENVIRONMENT.items()):
        return
    done = subprocess.run([sys.executable, __file__, *sys.argv[1:]],
                          env={**os.environ, **ENVIRONMENT}, check=False)
    sys.exit(done.returncode if done.returncode >= 0 else 1)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-k", action="append", default=[], dest="patterns")
    parser.add_argument("-v", action="store_true", dest="verbose")
    parser.add_argument("-R", dest="leaks")
    parser.add_argument("--slowest", type=int, default=0)
    parser.add_argument("--again", type=int, default=0)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.leaks or options.self_test:
        again_to_count()
    import house
    try:
        house.new_loop().close()
    except ImportError as wrong:
        print(f"no loop to test: {wrong}")
        sys.exit(77 if house.LOOP == "uvloop" else 1)
    sys.unraisablehook = house.note_unraisable
    faulthandler.enable()
    warnings.simplefilter("error", ResourceWarning)
    warnings.filterwarnings("error", ".*was never awaited", RuntimeWarning)
    tests = [] if options.self_test else list(collect(options.patterns))
    gc.collect()
    gc.freeze()  # what is there by now is not looked at again and again
    if options.self_test:
        good = self_test()
    elif options.leaks:
        warm, counted = map(int, options.leaks.split(":"))
        good = run_for_leaks(tests, warm, counted, options.verbose)
    else:
        good = run_once(tests, options.verbose, options.slowest, options.again)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
