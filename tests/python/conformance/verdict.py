"""Judge the results of a run, with a list of exempt tests.

The list must be correct: a test on it must not pass, must not be one that asyncio's own
loop skips as well, and must exist.  It never excuses a crash.
"""
import sys

ALLOWED_MAX = 15  # tests for all of test_asyncio
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


def read_allowed(path):
    """{test: reason} of the lines for this version of Python."""
    allowed = {}
    with open(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            test, _, reason = line.strip().partition(" ")
            if not reason.strip():
                sys.exit(f"{path}:{number}: {test} is left out without a reason")
            test, _, version = test.partition("@")
            if version in ("", VERSION):
                allowed[test] = reason.strip()
    if len(allowed) > ALLOWED_MAX:
        sys.exit(f"{path}: {len(allowed)} tests are left out, more than {ALLOWED_MAX}")
    return allowed


def module_of(test):
    """`test_events` of `test.test_asyncio.test_events.Class.test_name`."""
    parts = test.split(".")
    return parts[2] if len(parts) > 2 else test


def judge(results, allowed, stock_skips):
    """[(test, complaint)] about the results."""
    complaints = []
    for test, result in sorted(results.items()):
        if result.status == "crash":
            complaints.append((test, "crash"))
        elif test not in allowed:
            if result.status == "skip" and test not in stock_skips:
                complaints.append((test, "skip, which asyncio's own loop does not"))
            elif result.status not in ("pass", "skip"):
                complaints.append((test, result.status))
        elif result.status == "pass":
            complaints.append((test, "is on the list, but passes: take it off"))
        elif test in stock_skips:
            complaints.append((test, "is on the list, but asyncio's own loop skips it too"))
    return complaints


def judge_list(results, allowed, elsewhere):
    """[(test, complaint)] about the list; elsewhere has the modules that were not run."""
    return [(test, "is on the list, but does not exist") for test in sorted(allowed)
            if test not in results and module_of(test) not in elsewhere]
