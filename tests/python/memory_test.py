"""Allocations that fail, at every point of whole scenarios (starve.py).

At some points, Python's own code loses an error, leaves a loop marked as running, or leaks
an object.  So the same scenario also runs on the stock loop, and ours must not be worse: no
more stalls and leaks than there, no other exceptions, and a loop is never left marked as
running.
"""
import json
import os
import unittest

from house import Child, LOOP, LoopCase, certificate

try:
    import _testcapi
except ImportError:
    _testcapi = None

# For some scenarios every point takes too long; WEFT_TEST_DEEP runs all points.
STRIDES = {"callbacks": 1, "readers": 1, "sockets": 1, "streams": 1, "datagrams": 1, "served": 3,
           "secure": 3, "processes": 5}
# The leaks that are allowed above those of stock: at which points Python itself leaks is
# random.
SLACK = {"objects": 12, "descriptors": 3, "threads": 0, "children": 2}
KNOWN = {"done", "MemoryError", "ConnectionResetError", "SystemError"}


@unittest.skipUnless(hasattr(_testcapi, "set_nomemory"), "this Python cannot be starved")
class Starving(LoopCase):
    outside = True

    def start(self, scenario, loop):
        stride = 1 if os.environ.get("WEFT_TEST_DEEP") else STRIDES[scenario]
        return Child(f"import starve; starve.sweep({scenario!r}, {stride})", loop=loop,
                     options=("-X", "faulthandler", "-W", "ignore"), certificate=certificate()[0])

    def finish(self, child):
        status, out, told = child.end()
        self.assertEqual(status, 0, told)
        return json.loads(out)

    @staticmethod
    def kept(outcome, what):
        before, after = outcome["before"][what], outcome["after"][what]
        if isinstance(after, dict):
            return sum(after.values()) - sum(before.values())
        return after - before

    def check(self, scenario):
        with self.start(scenario, LOOP) as mine, self.start(scenario, "asyncio") as theirs:
            got, stock = self.finish(mine), self.finish(theirs)
        said = f"{got}\n--- stock ---\n{stock}"
        self.assertGreater(got["outcomes"]["MemoryError"], 5, said)
        if LOOP == "asyncio":
            return
        self.assertNotIn("stuck", got["outcomes"], said)
        self.assertLessEqual(got["outcomes"].get("stalled", 0),
                             stock["outcomes"].get("stalled", 0), said)
        self.assertLessEqual(set(got["outcomes"]), KNOWN | set(stock["outcomes"]), said)
        for what, slack in SLACK.items():
            self.assertLessEqual(self.kept(got, what),
                                 max(self.kept(stock, what), 0) + slack, f"{what}: {said}")

    def test_a_loop_that_only_calls_back_is_starved(self):
        self.check("callbacks")

    def test_a_loop_with_readers_is_starved(self):
        self.check("readers")

    def test_a_loop_with_raw_sockets_is_starved(self):
        self.check("sockets")

    def test_a_loop_with_transports_is_starved(self):
        self.check("streams")

    def test_a_loop_with_tls_is_starved(self):
        self.check("secure")

    def test_a_loop_with_a_server_is_starved(self):
        self.check("served")

    def test_a_loop_with_datagrams_is_starved(self):
        self.check("datagrams")

    @unittest.skipIf(LOOP == "asyncio", "a thread that is starved at its start is waited for")
    def test_a_loop_with_processes_is_starved(self):
        """Not compared with the stock loop, which starts a thread for each process."""
        with self.start("processes", LOOP) as mine:
            got = self.finish(mine)
        self.assertGreater(got["outcomes"]["MemoryError"], 5, got)
        self.assertNotIn("stuck", got["outcomes"], got)
        # asyncio waits for a process whose exit was not reported to it, on every loop.
        self.assertLess(got["outcomes"].get("stalled", 0), sum(got["outcomes"].values()) / 6, got)
        self.assertLessEqual(self.kept(got, "children"), 5, got)
        self.assertEqual(self.kept(got, "threads"), 0, got)
