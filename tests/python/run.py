#!/usr/bin/env python3
"""Run the tests of the Python loop, or search for leaks in them.

    tests/python/run.py [-k PATTERN]... [-v] [--slowest N] [--again N]
    tests/python/run.py -R 3:3 [-k PATTERN]...
    tests/python/run.py --self-test

--again N gives a failed test another chance, because some tests wait for other processes on
a machine that may be busy: the test must pass N times, alone, and its name is printed.

-R WARM:COUNTED runs each test WARM times, and then COUNTED times while it counts: objects
known to the garbage collector, weak references, blocks and bytes of memory, open
descriptors, threads, and references in a Python that counts them.  A test leaks if one of
the counts grows in every counted run, and grows again when it is repeated.  Blocks and
bytes must also grow in the long run, and by more than on the stock loop: Python has caches,
and leaks of its own.  Leaks in other processes are not detected, so tests that only observe
such processes are skipped.  WEFT_TEST_LOOP selects the tested loop (house.py).
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

sys.dont_write_bytecode = True  # no __pycache__ among the sources
FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

LIMIT = 300  # seconds for one test: after that it counts as hanging
ROUNDS = 3  # times in a row that a leak must show
ENVIRONMENT = {  # of a counting process: freed memory must not appear as used
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0"
                      ":glibc.malloc.arena_max=1"}


def flatten(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from flatten(each)
        else:
            yield each


def collect(patterns):
    """Every test of the files in this folder whose name contains or matches a pattern."""
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
    """Whether a test that has failed passes `again` times, alone."""
    if again == 0 or any(run_silently(test) for _ in range(again)):
        return False
    print(f"unsteady: {test.id()} passes alone")
    return True


def run_once(tests, verbose, slowest, again):
    runner = unittest.TextTestRunner(verbosity=2 if verbose else 1, resultclass=Result)
    runner.warnings = None  # keep the filters that main() has set
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
    """The bytes allocated with malloc; 0 if the C library does not report them."""
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
# Counts that also grow while Python fills its caches, and through its own leaks; and the
# smallest growth per run that is more than that.
RESTLESS = {"blocks": 0.75, "bytes": 24}
SETTLE_RUNS, SLOPE_RUNS, SLOPES = 40, 20, 6


def count_into(row):
    """Write the counts into an array, which does not grow by that."""
    for _ in range(3):
        gc.collect()
    for i, count in enumerate(COUNTS.values()):
        row[i] = count()


def run_silently(test):
    """Run a new instance of this test; return its error, or None."""
    result = unittest.TestResult()
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    type(test)(test._testMethodName).run(result)
    faulthandler.cancel_dump_traceback_later()
    wrong = result.errors + result.failures
    return wrong[0][1] if wrong else None


def growth(test, counted):
    """The growth of each count in each of `counted` runs."""
    rows = [array.array("q", [0] * len(COUNTS)) for _ in range(counted + 1)]
    count_into(rows[0])  # the memory that counting itself needs the first time
    count_into(rows[0])
    for row in rows[1:]:
        run_silently(test)
        count_into(row)
    return {name: [after[i] - before[i] for before, after in zip(rows, rows[1:])]
            for i, name in enumerate(COUNTS)}


def slope(test, name):
    """The growth of a count per run, after it has had time to settle."""
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
    """For a count that Python itself changes: whether it grows permanently, and by more
    than on the stock loop."""
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
    """One leak of each kind, and a test without any; none of them on the stock loop."""

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
    """Whether each planted leak is found, and none in the test without one."""
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
    """Run again with a malloc that keeps no freed memory, and exit with the status of
    that run."""
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
    gc.freeze()  # existing objects are not scanned by each collection
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
