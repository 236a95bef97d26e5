"""A pytest plugin: replaces the loop of a suite, selects its tests, and reports each step.

    SUITE_LOOP=weft SUITE_IDS=FILE SUITE_FD=N python3 -m pytest -p suite_plugin ...

FILE is a JSON list of the tests to run.  The lines written to fd N are those of
../conformance/runs.py.  Without SUITE_FD no test runs, and the list of all tests is written
to FILE.
"""
import faulthandler
import json
import os
import signal
import sys

import loop_swap
import pytest

LOOP, IDS = os.environ["SUITE_LOOP"], os.environ["SUITE_IDS"]
OUT = os.fdopen(int(os.environ["SUITE_FD"]), "w") if "SUITE_FD" in os.environ else None
INFO_MAX = 3000  # characters of a traceback, from its end

faulthandler.enable()
signal.signal(signal.SIGINT, signal.default_int_handler)
if LOOP != "uvloop":
    sys.modules["uvloop"] = None  # packages that use uvloop if it is installed must not do so
loop_swap.swap(LOOP)


def tell(event, test="", info="", **more):
    OUT.write(json.dumps({"event": event, "id": test, "info": info[-INFO_MAX:], **more}) + "\n")
    OUT.flush()


def pytest_collection_modifyitems(items):
    if not OUT:
        with open(IDS, "w") as listing:
            json.dump([item.nodeid for item in items], listing)
        items.clear()
        return
    with open(IDS) as listing:
        wanted = set(json.load(listing))
    items[:] = [item for item in items if item.nodeid in wanted]


def pytest_runtest_logstart(nodeid):
    tell("start", nodeid)


def pytest_runtest_logfinish(nodeid):
    tell("stop", nodeid)


def pytest_runtest_logreport(report):
    if report.when == "call" or not report.passed:
        status = {"passed": "pass", "skipped": "skip"}.get(
            report.outcome, "fail" if report.when == "call" else "error")
        tell(status, report.nodeid, report.longreprtext if report.failed else "")


def pytest_sessionfinish(session, exitstatus):
    if exitstatus in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = 0  # already reported
    if OUT:
        tell("done", made=loop_swap.made)
