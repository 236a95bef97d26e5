"""Run a list of tests in child processes, and record the result of each.

A child writes one JSON line when a test starts, for its result, and when it stops.  If a
child hangs or dies, that is recorded for the test that ran, and a new child continues with
the rest; between two tests it is recorded under an id of its own (`... (after ID)`).  So
each requested test has one of these results, the worst one that was seen:

    pass skip fail error hang crash, or unrun if even a new child did not reach the test

Each child leads its own session, which is killed with it: no test leaves a process behind.
"""
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

CHILD = Path(__file__).with_name("child.py")
RANK = ["unrun", "pass", "skip", "fail", "error", "hang", "crash"]
LAST_WORDS = 5  # seconds for a hanging child to print its stack
SAID_MAX = 3000  # characters of its output

Result = namedtuple("Result", "status info")


class Child:
    """One process with tests, and its results so far."""

    def __init__(self, start, ids, timeout, folder):
        self.results, self.current, self.last = {}, None, None
        self.done, self.hung, self.made, self.timeout = False, False, 0, timeout
        listing, self.said = Path(folder, "ids"), Path(folder, "said")
        listing.write_text(json.dumps(ids))
        self.pipe, theirs = os.pipe()
        self.unread = b""
        with open(self.said, "wb") as said:
            self.process = subprocess.Popen(
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, pass_fds=(theirs,),
                start_new_session=True, **{"cwd": folder} | start(str(listing), str(theirs)))
        os.close(theirs)

    def run(self):
        """Follow the process to its end, however it ends."""
        end = os.pidfd_open(self.process.pid)
        poll = select.poll()
        poll.register(end, select.POLLIN)
        poll.register(self.pipe, select.POLLIN)
        try:
            self.follow(poll, end)
        finally:
            # The process is not reaped yet, so its session id cannot be reused.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            os.close(end)
            os.close(self.pipe)

    def follow(self, poll, end):
        deadline = time.monotonic() + self.timeout
        while True:
            left = deadline - time.monotonic()
            ready = dict(poll.poll(max(left, 0) * 1000))
            if not ready and self.hung:
                return
            if not ready:
                self.hung = True
                self.process.send_signal(signal.SIGABRT)
                deadline = time.monotonic() + LAST_WORDS
            if self.pipe in ready and not self.take():
                poll.unregister(self.pipe)
            elif self.pipe in ready and not self.hung:
                deadline = time.monotonic() + self.timeout
            elif end in ready:
                return

    def take(self):
        """Read and record reported lines; return False at the end."""
        data = os.read(self.pipe, 65536)
        *lines, self.unread = (self.unread + data).split(b"\n")
        for line in lines:
            self.note(json.loads(line))
        return bool(data)

    def note(self, told):
        event, test = told["event"], told["id"]
        if event == "start":
            self.current = test
        elif event == "stop":
            self.current, self.last = None, test
        elif event == "done":
            self.done, self.made = True, told["made"]
        else:
            worsen(self.results, test, Result(event, told["info"]))

    def fate(self):
        """(id, result) to record for the end of the process; None if it ended well."""
        status = self.process.returncode
        if self.done and status == 0:
            return None
        # Threads left by a failed test can keep a process alive; the failure is already
        # recorded.
        if self.done and self.hung and not all_good(self.results):
            return None
        how, said = "hang" if self.hung else "crash", last_words(self.said)
        test = self.current or f"(after {self.last or 'its start'})"
        return test, Result(how, f"{said}\nended with status {status}")


def last_words(path):
    """The end of the output; from the start of a fatal error, if there is one."""
    said = path.read_text(errors="replace")
    fatal = said.rfind("Fatal Python error")
    return said[-SAID_MAX:] if fatal < 0 else said[fatal:fatal + SAID_MAX]


def all_good(results):
    return all(result.status in ("pass", "skip") for result in results.values())


def worsen(results, test, result):
    if test not in results or RANK.index(result.status) > RANK.index(results[test].status):
        results[test] = result


def spread(results, ids):
    """Copy the result of the setup of a class or module to its tests."""
    for place in [i for i in results if i.startswith(("setUpClass (", "setUpModule ("))]:
        inside = place[place.index("(") + 1:-1] + "."
        hit = [i for i in ids if i.startswith(inside) and i not in results]
        result = results.pop(place)
        results.update(dict.fromkeys(hit, result) if hit else {place: result})


def on_loop(loop):
    """Returns the function that starts a child with unittest tests on a loop."""
    return lambda listing, fd: {"args": [sys.executable, str(CHILD), loop, listing, fd]}


def run(start, ids, timeout, owner):
    """Run tests of `owner`; return ({id: Result}, number of loops made).

    start(listing, fd) returns the arguments of Popen for a child that reads its tests from
    a JSON file and reports to fd.
    """
    results, made, left = {}, 0, list(ids)
    while left:
        with tempfile.TemporaryDirectory(prefix="weft-conformance-",
                                         ignore_cleanup_errors=True) as folder:
            child = Child(start, left, timeout, folder)
            child.run()
            fate = child.fate()
        spread(child.results, left)
        made += child.made
        for test, result in child.results.items():
            worsen(results, test, result)
        if fate:
            test, result = fate
            worsen(results, test if test in ids else f"{owner} {test}", result)
        before, left = len(left), [i for i in left if i not in results]
        if child.done or len(left) == before:
            break
    return {i: Result("unrun", "") for i in left} | results, made
