"""Run a list of tests in child processes, and know the fate of each.

A child tells by one JSON line each when a test starts, what becomes of it, and when it stops.
A child that hangs or dies is charged to the test that ran, and a new child goes on with the
rest; between two tests it is charged to the place, by an id of its own (`... (after ID)`).
So each test that was asked for has one of these, the worst that was seen of it:

    pass skip fail error hang crash, or unrun if even a new child did not come to it

Each child leads a session of its own, which is ended with it: no test leaves a process.
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
LAST_WORDS = 5  # seconds that a hanging child has to say where it hangs
SAID_MAX = 3000  # characters of what it said

Result = namedtuple("Result", "status info")


class Child:
    """One process with tests, and what it has told so far."""

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
        """Follow it to its end, however it comes."""
        end = os.pidfd_open(self.process.pid)
        poll = select.poll()
        poll.register(end, select.POLLIN)
        poll.register(self.pipe, select.POLLIN)
        try:
            self.follow(poll, end)
        finally:
            # It is not reaped yet, so the number of its session is still its own.
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
        """Take in what was told; false at the end of it."""
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
        """(id, result) to charge for the way in which it ended, if it was no good end."""
        status = self.process.returncode
        if self.done and status == 0:
            return None
        # Threads that a failed test has left can keep a process; that is told already.
        if self.done and self.hung and not all_good(self.results):
            return None
        how, said = "hang" if self.hung else "crash", last_words(self.said)
        test = self.current or f"(after {self.last or 'its start'})"
        return test, Result(how, f"{said}\nended with status {status}")


def last_words(path):
    """The end of what was said; of a fatal error the beginning, where its last call is."""
    said = path.read_text(errors="replace")
    fatal = said.rfind("Fatal Python error")
    return said[-SAID_MAX:] if fatal < 0 else said[fatal:fatal + SAID_MAX]


def all_good(results):
    return all(result.status in ("pass", "skip") for result in results.values())


def worsen(results, test, result):
    if test not in results or RANK.index(result.status) > RANK.index(results[test].status):
        results[test] = result


def spread(results, ids):
    """What befell the setup of a class or module befell its tests."""
    for place in [i for i in results if i.startswith(("setUpClass (", "setUpModule ("))]:
        inside = place[place.index("(") + 1:-1] + "."
        hit = [i for i in ids if i.startswith(inside) and i not in results]
        result = results.pop(place)
        results.update(dict.fromkeys(hit, result) if hit else {place: result})


def on_loop(loop):
    """How to start a child with tests of unittest on a loop."""
    return lambda listing, fd: {"args": [sys.executable, str(CHILD), loop, listing, fd]}


def run(start, ids, timeout, owner):
    """({id: Result}, how many loops were made) of tests that belong to the owner.

    start(listing, fd) says how: the arguments of Popen, for a child that reads its tests from a
    JSON file and tells what happens to fd.
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
