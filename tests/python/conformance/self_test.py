"""Plant faults, and check that a run finds each one.

The faults are those of broken_loops.py, with a handful of tests; and lists of exempt tests
that are wrong.
"""
import concurrent.futures
import contextlib
import io
import tempfile
from pathlib import Path

import run
import runs
import verdict

PLACE = "test.test_asyncio.test_events.EPollEventLoopTests"
TESTS = [f"{PLACE}.{name}" for name in (
    "test_call_later", "test_call_soon", "test_run_until_complete")]
USES_TIMER, NO_TIMER, MEASURES = TESTS
TIMEOUT = 8  # seconds; only hanging tests take this long
JOBS = 4  # hanging ones among them only wait

# The loop, and the expected results; tests that are not listed pass.
PLANTS = [
    ("asyncio", {}),
    ("broken_loops:new_stock", {}),
    ("broken_loops:Dropping", {USES_TIMER: "hang", MEASURES: "hang"}),
    ("broken_loops:Early", {MEASURES: "fail"}),
    ("broken_loops:Refusing", {USES_TIMER: "error", MEASURES: "error"}),
    ("broken_loops:Aborting", {USES_TIMER: "crash", MEASURES: "crash"}),
    ("broken_loops:Leaving", {USES_TIMER: "crash", MEASURES: "crash"}),
    ("broken_loops:Hanging", {USES_TIMER: "hang", MEASURES: "hang"}),
    ("broken_loops:Dying", {f"{PLACE} (after {MEASURES})": "crash"}),
    ("broken_loops:Skipping", dict.fromkeys(TESTS, "skip")),
    ("broken_loops:missing", dict.fromkeys(TESTS, "unrun")
     | {f"{PLACE} (after its start)": "crash"}),
]


def plant_loops():
    """Complaints about faults that were not found."""
    wrong, seen = [], set()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        found = list(pool.map(lambda plant: runs.run(
            runs.on_loop(plant[0]), TESTS, TIMEOUT, PLACE), PLANTS))
    for (loop, expected), (results, made) in zip(PLANTS, found):
        got = {test: result.status for test, result in results.items()}
        want = dict.fromkeys(TESTS, "pass") | expected
        if got != want:
            wrong.append(f"{loop}: {results}")
        if bool(made) != (loop != "asyncio") and not expected:
            wrong.append(f"{loop}: {made} loops were made")
        # A skip that asyncio's own loop does not have is one of the complaints.
        if {test for test, _ in verdict.judge(results, {}, set())} != set(expected):
            wrong.append(f"{loop}: the verdict is wrong")
        seen.update(got.values())
    if seen != set(runs.RANK):
        wrong.append(f"statuses that no plant has: {set(runs.RANK) - seen}")
    return wrong


def plant_lists():
    """A list with tests that pass, that are skipped anyway, or that do not exist."""
    wrong = []
    results = {test: runs.Result(status, "") for test, status in zip(
        TESTS, ("pass", "skip", "crash"))}
    why = dict.fromkeys(TESTS, "a reason")
    found = [test for test, _ in verdict.judge(results, why, {NO_TIMER})]
    if found != sorted(TESTS):
        wrong.append(f"of a dishonest list only this was found: {found}")
    results = dict.fromkeys(TESTS, runs.Result("fail", ""))
    if verdict.judge(results, why, set()) or verdict.judge_list(results, why, set()):
        wrong.append("an honest list is complained of")
    if verdict.judge_list({}, why, {"test_events"}):
        wrong.append("a list is complained of whose tests were not to be run")
    if len(verdict.judge_list({}, why, set())) != len(TESTS):
        wrong.append("tests that do not exist can be left out")
    return wrong


def read(text):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listing:
        listing.write(text)
        listing.flush()
        try:
            return verdict.read_allowed(listing.name)
        except SystemExit:
            return None


def plant_files():
    """Files that must be refused: a line without a reason, too many lines."""
    wrong = []
    taken = read(f"# comment\n\na.b.c  why\nd.e.f@{verdict.VERSION}  why so\ng.h.i@2.7  why\n")
    if taken != {"a.b.c": "why", "d.e.f": "why so"}:
        wrong.append(f"a list was read as {taken}")
    if read("a.b.c\n") is not None:
        wrong.append("a test is left out without a reason")
    if read("".join(f"a.b.c{n}  why\n" for n in range(verdict.ALLOWED_MAX + 1))) is not None:
        wrong.append("too many tests are left out")
    return wrong


def plant_run():
    """The status of a whole run: 0 on asyncio's own loop, 1 with a fault."""
    wrong = []
    with tempfile.TemporaryDirectory(prefix="weft-conformance-") as folder:
        listing = Path(folder, "skips.txt")
        listing.write_text("test.test_asyncio.test_context.DecimalContextTest"
                           ".test_asyncio_task_decimal_context  it passes\n")
        for words, status in ((["asyncio"], 0), (["broken_loops:Skipping"], 1),
                              (["asyncio", "--allow", str(listing)], 1)):
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                got = run.run(run.parse([*words, "--match", "test_context"]))
            if got != status:
                wrong.append(f"the status of {words} is {got}\n{said.getvalue()}")
    return wrong


def main():
    run.all_modules()  # exits if the tests are not installed
    wrong = plant_loops() + plant_lists() + plant_files() + plant_run()
    for line in wrong:
        print(f"conformance self-test: {line}")
    print(f"conformance self-test: {len(PLANTS)} loops, {len(wrong)} complaints")
    return 1 if wrong else 0
