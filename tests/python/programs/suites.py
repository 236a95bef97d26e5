"""Test suites of packages, on a loop and on asyncio's own: tests that pass there must pass
here.

A suite is upstream's: from Debian's source package with the library next to it, or from a
binary package that contains its tests.  A test that fails on asyncio's own loop proves
nothing and is only counted.  A test that differs runs again alone, because suites depend on
timing.  Tests of behavior that is not guaranteed may be exempt, with a reason; they must
not pass.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import runs
import sources

HERE = Path(__file__).resolve().parent
STOCK = "asyncio"
TIMEOUT = 90  # seconds for one test
COLLECT = 120  # seconds to collect all tests
RANK = ["pass", "skip", "fail", "error", "hang", "unrun", "crash"]
AGAIN, AGAIN_MAX = 3, 20  # how often a test must pass alone; for at most how many tests

# Debian's source package, folders in it for PYTHONPATH, arguments of pytest, environment
# variables, the minimum number of tests that pass (a suite that hardly runs proves
# nothing), and {exempt test: reason}.
Suite = namedtuple("Suite", "source path words variables least left_out")

OWN_METHODS = "wants recv and send of a subclass of socket to be called, not of its descriptor"
EXPLICIT = "tests/legacy/test_client_server.py::{}ClientServerTests::test_explicit_socket"

SUITES = {
    "websockets": Suite("python-websockets", ["src", "."], ["tests/asyncio", "tests/legacy"],
                        {"WEBSOCKETS_TESTS_TIMEOUT_FACTOR": "10"}, 900,
                        {EXPLICIT.format(""): OWN_METHODS, EXPLICIT.format("Secure"): OWN_METHODS}),
    # Ignored are tests with processes that watch files, or with a package that Debian
    # lacks.
    "uvicorn": Suite("python-uvicorn", ["."], [
        "-p", "anyio.pytest_plugin", "-p", "pytest_mock", "-W", "ignore", "tests",
        "--ignore=tests/supervisors", "--ignore=tests/middleware/test_wsgi.py"], {}, 700, {}),
    "tornado": Suite(None, [], ["-o", "python_files=*_test.py", "-o", "python_classes=",
                                "--pyargs", "tornado.test"], {}, 1000, {}),
}


class Run:
    """An unpacked suite."""

    def __init__(self, suite, folder, loop, jobs=2, timeout=TIMEOUT):
        self.suite, self.folder, self.loop = suite, Path(folder), loop
        self.jobs, self.timeout = jobs, timeout

    def popen(self, loop, **variables):
        """Arguments of Popen for pytest, without the user's settings."""
        path = [*(str(self.folder / part) for part in self.suite.path), str(HERE),
                str(HERE.parent / "conformance"), os.environ.get("PYTHONPATH", "")]
        return {"args": [sys.executable, "-m", "pytest", "-q", "-p", "suite_plugin", "-p",
                         "no:cacheprovider", *self.suite.words],
                "cwd": self.folder,
                "env": os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path)),
                                     "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "",
                                     "PYTHONDONTWRITEBYTECODE": "1",
                                     "SUITE_LOOP": loop} | self.suite.variables | variables}

    def collect(self):
        with tempfile.NamedTemporaryFile(suffix=".json") as listing:
            done = subprocess.run(**self.popen(STOCK, SUITE_IDS=listing.name), timeout=COLLECT,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False)
            if done.returncode:
                raise RuntimeError(f"pytest finds no tests: {done.stdout}{done.stderr}")
            return json.load(listing)

    def run(self, loop, ids):
        return runs.run(lambda listing, fd: self.popen(loop, SUITE_IDS=listing, SUITE_FD=fd),
                        ids, self.timeout, "suite")

    def compare(self):
        """[(test, error)], and a line with the numbers of tests."""
        ids = self.collect()
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            stock, here = pool.map(lambda loop: self.run(loop, ids), (STOCK, self.loop))
        self.repeat(stock[0], here[0])
        wrong = judge(stock[0], here[0], self.left_out())
        passed = sum(result.status == "pass" for result in stock[0].values())
        if passed < self.suite.least:
            wrong.append(("suite", f"only {passed} tests pass on asyncio's own loop"))
        # uvicorn uses uvloop by itself where it can, without our factory.
        if self.loop not in (STOCK, "uvloop") and not here[1]:
            wrong.append(("suite", f"not one loop was made by {self.loop}"))
        failed = [test for test, result in stock[0].items()
                  if result.status not in ("pass", "skip")]
        return wrong, f"{len(ids)} tests, {passed} pass on asyncio's own loop, " \
            f"{len(failed)} fail there"

    def left_out(self):
        return {} if self.loop == STOCK else self.suite.left_out

    def repeat(self, stock, here):
        """A test that differs may pass alone, but then every time."""
        differ = [test for test, _ in judge(stock, here, self.left_out())
                  if test in here and here[test].status in ("fail", "error", "hang")]
        if len(differ) > AGAIN_MAX:
            return
        for test in differ:
            alone = [self.run(self.loop, [test])[0] for _ in range(AGAIN)]
            if all(map(runs.all_good, alone)):
                print(f"unsteady: {test} passes alone", flush=True)
                here.update(alone[0])


def judge(stock, here, left_out):
    """[(test, error)]: a crash, or a result worse than on asyncio's own loop."""
    wrong = []
    for test in sorted(here.keys() | stock.keys()):
        there = stock.get(test, runs.Result("pass", "")).status
        status, info = here.get(test, runs.Result("unrun", ""))
        worse = RANK.index(status) > RANK.index(there) and there in ("pass", "skip")
        if status == "crash" or (worse and test not in left_out):
            wrong.append((test, f"{there} on asyncio's own loop, here {status}\n{info}"))
        elif test in left_out and not worse:
            wrong.append((test, "is left out, but is as good as on asyncio's own loop"))
    return wrong + [(test, "is left out, but does not exist")
                    for test in left_out if test not in here]


def compare(name, loop, cache):
    """[(test, error)] and a line for the suite of that name."""
    suite = SUITES[name]
    if suite.source:
        return Run(suite, sources.get(cache, suite.source), loop).compare()
    with tempfile.TemporaryDirectory(prefix="weft-suite-") as folder:
        return Run(suite, folder, loop).compare()
