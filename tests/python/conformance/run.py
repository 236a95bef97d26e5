#!/usr/bin/env python3
"""Run CPython's own tests of asyncio, test.test_asyncio, on another loop.

    tests/python/conformance/run.py [OPTIONS] LOOP
    tests/python/conformance/run.py --self-test

LOOP is `weft`, `uvloop`, any module with new_event_loop, `module:callable`, or `asyncio`,
the reference.  The tests are those of the Python that runs this script (Debian:
libpython3.11-testsuite; without it, exit 77).  The status is 0 if every test passes that
asyncio's own loop passes.  `--allow FILE` lists tests that are exempt, each with its
reason; these must not pass.  A crash is never allowed.  `--self-test` runs some tests on
loops with planted faults.
"""
import argparse
import collections
import concurrent.futures
import json
import sys
import time
import unittest
from pathlib import Path

import loop_swap
import runs
import verdict

SKIP = 77
SHOWN_MAX = 25  # complaints that are printed with their tracebacks
# Tests of the private parts of asyncio's own classes.
WHITEBOX = ("test_base_events", "test_selector_events", "test_unix_events",
            "test_proactor_events", "test_windows_events", "test_windows_utils")
# The same tests as EPollEventLoopTests, with a selector that other loops do not have.
OTHER_SELECTORS = ("PollEventLoopTests", "SelectEventLoopTests")
# The modules that use a loop most, without the many variants of futures and tasks.
QUICK = ("test_buffered_proto", "test_context", "test_events", "test_locks", "test_runners",
         "test_sendfile", "test_server", "test_sock_lowlevel", "test_ssl", "test_sslproto",
         "test_streams", "test_subprocess", "test_taskgroups", "test_threads", "test_timeouts",
         "test_waitfor")


def flatten(tests):
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def all_modules():
    try:
        import test.test_asyncio
    except ImportError:
        print("skipped: this Python has no test.test_asyncio")
        sys.exit(SKIP)
    return sorted(path.stem for path in Path(test.test_asyncio.__file__).parent.glob("test_*.py"))


def choose(options, names):
    if options.quick:
        names = [name for name in names if name in QUICK]
    if options.no_whitebox:
        names = [name for name in names if name not in WHITEBOX]
    if options.match:
        names = [name for name in names if any(part in name for part in options.match)]
    return names


def collect(names):
    """{class: ids}, the modules that skip themselves, and complaints about those that
    fail."""
    classes, skipped, complaints = {}, [], []
    for name in names:
        try:
            tests = unittest.defaultTestLoader.loadTestsFromName(f"test.test_asyncio.{name}")
        except unittest.SkipTest:
            skipped.append(name)
            continue
        for test in flatten(tests):
            kind = type(test)
            if kind.__name__ == "_FailedTest":
                complaints.append((name, "cannot be imported"))
            elif kind.__name__ not in OTHER_SELECTORS:
                owner = f"{kind.__module__}.{kind.__qualname__}"
                classes.setdefault(owner, []).append(test.id())
    return classes, skipped, complaints


def count(results):
    counts = collections.Counter(result.status for result in results.values())
    return ", ".join(f"{counts[status]} {status}" for status in runs.RANK[1:] + ["unrun"]
                     if counts[status])


def run_classes(options, classes):
    """({id: Result}, number of loops made); prints a line for each class."""
    results, made = {}, 0

    def run_class(owner):
        start = time.monotonic()
        found = runs.run(runs.on_loop(options.loop), classes[owner], options.timeout, owner)
        return owner, *found, time.monotonic() - start

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        # Classes with many tests first, so that long runs do not begin last.
        order = sorted(classes, key=lambda owner: -len(classes[owner]))
        for done in concurrent.futures.as_completed(pool.submit(run_class, o) for o in order):
            owner, found, loops, seconds = done.result()
            results.update(found)
            made += loops
            name = owner.removeprefix("test.test_asyncio.")
            print(f"{seconds:6.1f} s  {name:60}  {count(found)}", flush=True)
    return results, made


def run_again(options, results, allowed):
    """A test that failed may pass alone, each time: then it is printed as unsteady, but
    passes."""
    failed = [test for test in sorted(results) if test not in allowed
              and results[test].status in ("fail", "error", "hang")]
    for test in failed if options.again else ():
        alone = [runs.run(runs.on_loop(options.loop), [test], options.timeout, test)[0]
                 for _ in range(options.again)]
        if all(map(runs.all_good, alone)):
            print(f"unsteady: {test} passes alone")
            results.update(alone[0])


def stock_skips(options, results):
    """The skipped tests that asyncio's own loop skips, too."""
    skipped = collections.defaultdict(list)
    for test, result in results.items():
        if result.status == "skip":
            skipped[test.rpartition(".")[0]].append(test)
    if options.loop == loop_swap.STOCK:
        return {test for tests in skipped.values() for test in tests}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda owner: runs.run(runs.on_loop(loop_swap.STOCK), skipped[owner],
                                                options.timeout, owner)[0], skipped)
        return {test for part in found for test, result in part.items()
                if result.status == "skip"}


def report(options, results, complaints):
    by_module = collections.defaultdict(dict)
    for test, result in results.items():
        by_module[verdict.module_of(test)][test] = result
    print()
    for module in sorted(by_module):
        print(f"{module:24}  {count(by_module[module])}")
    for number, (test, why) in enumerate(complaints):
        print(f"\n{test}: {why}")
        if number < SHOWN_MAX and test in results:
            print(results[test].info.rstrip())
    print(f"\n{options.loop} on Python {sys.version.split()[0]}: {len(results)} tests: "
          f"{count(results)}; {len(complaints)} complaints")
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"loop": options.loop, "python": sys.version, "complaints": complaints,
                       "tests": results}, out, indent=1)


def run(options):
    allowed = verdict.read_allowed(options.allow) if options.allow else {}
    known = all_modules()
    names = choose(options, known)
    classes, skipped, complaints = collect(names)
    print(f"modules that skip themselves: {', '.join(skipped) or 'none'}")
    results, made = run_classes(options, classes)
    run_again(options, results, allowed)
    elsewhere = set(known) - set(names)
    complaints += verdict.judge(results, allowed, stock_skips(options, results))
    complaints += verdict.judge_list(results, allowed, elsewhere)
    if options.loop != loop_swap.STOCK and made == 0:
        complaints.append((options.loop, "not one loop was made by it"))
    report(options, results, complaints)
    return 1 if complaints or not results else 0


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("loop", nargs="?", help="asyncio, uvloop, weft, module:callable")
    parser.add_argument("--match", action="append", help="only modules with this in their name")
    parser.add_argument("--no-whitebox", action="store_true", help="not the inside of asyncio")
    parser.add_argument("--quick", action="store_true", help="what uses a loop most")
    parser.add_argument("--jobs", type=int, default=2, help="classes at a time (2)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a test (60)")
    parser.add_argument("--again", type=int, default=0, metavar="N",
                        help="what fails may pass alone, N times (0)")
    parser.add_argument("--allow", metavar="FILE", help="tests that may be left out")
    parser.add_argument("--json", metavar="FILE", help="all results, with tracebacks")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args(words)
    if not options.loop and not options.self_test:
        parser.error("which loop?")
    return options


if __name__ == "__main__":
    settings = parse(sys.argv[1:])
    if settings.self_test:
        import self_test
        sys.exit(self_test.main())
    sys.exit(run(settings))
