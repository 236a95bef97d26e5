"""Plant differences, and check that each is found: in programs and in suites."""
import tempfile
from pathlib import Path

import runs
import suites

PATIENCE = 6  # seconds; only hanging programs take this long

# The loop, the program, and the expected finding; None if there must be none.
PLANTS = [
    ("asyncio", "planted_loops", None),
    ("planted_loops:install_same", "planted_loops", None),
    ("planted_loops:install_differing", "planted_loops", "sees something else"),
    ("planted_loops:install_grumbling", "planted_loops", "something is not right"),
    ("planted_loops:install_aborting", "planted_loops", "ends with status"),
    ("planted_loops:install_hanging", "planted_loops", "hangs"),
    ("planted_loops:install_nothing", "planted_loops", "ran on a loop of asyncio"),
    ("planted_loops:missing", "planted_loops", "ends with status"),
    ("planted_loops:install_same", "planted_loops:broken_main", "goes wrong"),
    ("planted_loops:install_same", "planted_loops:missing", "ends with status"),
]

TESTS = '''
import asyncio, unittest

def test_nothing():
    pass

def test_that_fails_everywhere():
    assert False

class Tests(unittest.IsolatedAsyncioTestCase):
    async def test_peer(self):
        def answer(reader, writer):
            peer.set_result(writer.get_extra_info("peername"))
            writer.close()
        peer = asyncio.get_running_loop().create_future()
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            self.assertTrue(await peer)
            writer.close()
'''
PLACE = "planted_test.py::"
PEER = f"{PLACE}Tests::test_peer"
# The loop, the exempt tests, and the expected findings.  A child that dies or hangs does not
# report that it made loops: that is a finding for "suite".
SUITE_PLANTS = [
    ("asyncio", {}, set()),
    ("planted_loops:Same", {}, set()),
    ("planted_loops:Differing", {}, {PEER}),
    ("planted_loops:Differing", {PEER: "why"}, set()),
    ("planted_loops:Same", {PEER: "why"}, {PEER}),
    ("planted_loops:Same", {f"{PLACE}none": "why"}, {f"{PLACE}none"}),
    ("planted_loops:Aborting", {PEER: "why"}, {PEER, "suite"}),
    ("planted_loops:Hanging", {}, {PEER, "suite"}),
]


def plant_programs(compare):
    wrong = []
    with tempfile.TemporaryDirectory(prefix="weft-programs-") as folder:
        for loop, program, words in PLANTS:
            found = compare(loop, program, {"folder": folder}, patience=PATIENCE)
            if words is None and found or words and not any(words in each for each in found):
                wrong.append(f"{program} on {loop}: {found}")
    return wrong


def plant_suites():
    wrong = []
    with tempfile.TemporaryDirectory(prefix="weft-suite-") as folder:
        Path(folder, "planted_test.py").write_text(TESTS)
        for loop, left_out, expected in SUITE_PLANTS:
            suite = suites.Suite(None, ["."], ["planted_test.py"], {}, 2, left_out)
            found, line = suites.Run(suite, folder, loop, timeout=PATIENCE).compare()
            if {test for test, _ in found} != expected or "1 fail there" not in line:
                wrong.append(f"the suite on {loop}: {found} {line}")
        suite = suites.Suite(None, ["."], ["planted_test.py"], {}, 3, {})
        found, _ = suites.Run(suite, folder, "asyncio").compare()
        if not found:
            wrong.append("a suite that hardly passes is taken for good")
    return wrong


def plant_verdicts():
    """The possible results of a test, on asyncio's loop and on ours."""
    wrong = []
    for there, here, bad in (("pass", "skip", True), ("skip", "pass", False),
                             ("fail", "hang", False), ("fail", "crash", True),
                             ("skip", "unrun", True), ("pass", "pass", False)):
        found = suites.judge({"t": runs.Result(there, "")}, {"t": runs.Result(here, "")}, {})
        if bool(found) != bad:
            wrong.append(f"{there} on asyncio's own loop, here {here}: {found}")
    if not suites.judge({"t": runs.Result("pass", "")}, {}, {}):
        wrong.append("a test that is not there is not missed")
    return wrong


def main(compare):
    wrong = plant_programs(compare) + plant_verdicts() + plant_suites()
    for line in wrong:
        print(f"programs self-test: {line}")
    print(f"programs self-test: {len(PLANTS) + len(SUITE_PLANTS)} plants, "
          f"{len(wrong)} complaints")
    return 1 if wrong else 0
