#!/usr/bin/env python3
"""Run real programs on a loop and on asyncio's own, and compare their observations.

    tests/python/programs/run.py [--cache FOLDER] LOOP [NAME ...]
    tests/python/programs/run.py --packages
    tests/python/programs/run.py --self-test

LOOP is a module with install() (`weft`, `uvloop`), or `asyncio`.  NAME is a program or a
suite of the tables below, or `programs` or `suites` for all of a kind; the default is all.
The status is 1 if anything differs; it is 77 if nothing differs, but something was skipped
because a package is missing.  Programs use servers of their own.  Suites are the tests of
packages; sources that are not installed are downloaded to FOLDER (build/python-suites),
once.
"""
import argparse
import concurrent.futures
import difflib
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "conformance"))

import runs  # noqa: E402
import servers  # noqa: E402
import sources  # noqa: E402
import suites  # noqa: E402

SKIP = 77
STOCK = "asyncio"
PATIENCE = 800  # seconds for a program
LAST_WORDS = 5  # seconds for a hanging program to print its stack
SHOWN_MAX = 10  # findings of a suite that are printed with their tracebacks

# The needs of each: Debian's package, and the module, command or file to detect it by.
PYTEST = {"python3-pytest": "pytest"}
OPENSSL = {"openssl": "/usr/bin/openssl"}
PROGRAMS = {
    "aiohttp": {"python3-aiohttp": "aiohttp", **OPENSSL},
    "uvicorn": {"python3-uvicorn": "uvicorn", "python3-httpx": "httpx",
                "python3-websockets": "websockets", **OPENSSL},
    "websockets": {"python3-websockets": "websockets", **OPENSSL},
    "redis": {"python3-redis": "redis", "redis-server": "/usr/bin/redis-server", **OPENSSL},
    "asyncpg": {"python3-asyncpg": "asyncpg",
                "postgresql": "/usr/lib/postgresql/*/bin/postgres",
                "util-linux": "/usr/bin/setpriv", **OPENSSL},
    "anyio": {"python3-anyio": "anyio", "python3-httpx": "httpx", **OPENSSL},
}
SUITES = {
    "websockets-suite": {**PYTEST, "python3-werkzeug": "werkzeug"},
    "uvicorn-suite": {**PYTEST, "python3-anyio": "anyio", "python3-pytest-mock": "pytest_mock",
                      "python3-httpx": "httpx", "python3-websockets": "websockets",
                      "python3-wsproto": "wsproto", "python3-httptools": "httptools",
                      "python3-trustme": "trustme", "python3-dotenv": "dotenv",
                      "python3-yaml": "yaml", "python3-typing-extensions": "typing_extensions"},
    "tornado-suite": {**PYTEST, "python3-tornado": "tornado.test"},
}
SERVERS = {"redis": "redis", "asyncpg": "postgres"}


def is_there(sign):
    if sign.startswith("/"):
        return any(Path("/").glob(sign[1:]))
    try:
        return importlib.util.find_spec(sign) is not None
    except ImportError:
        return False


def missing(name):
    return [package for package, sign in (PROGRAMS | SUITES)[name].items() if not is_there(sign)]


class Program:
    """One program on one loop, in a process that leads its own session."""

    def __init__(self, loop, module, world, patience=PATIENCE):
        self.loop, self.patience = loop, patience
        self.folder = tempfile.TemporaryDirectory(prefix="weft-program-")
        place = Path(self.folder.name)
        (place / "world.json").write_text(json.dumps(world | {"folder": self.folder.name}))
        self.out, self.said = place / "out.json", place / "said"
        with open(self.said, "wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "on_loop.py"), loop, module,
                 str(place / "world.json"), str(self.out)], stdin=subprocess.DEVNULL,
                stdout=said, stderr=said, cwd=place, start_new_session=True)

    def wait(self):
        """Whether the program ended by itself; all processes that it started are killed."""
        end = os.pidfd_open(self.process.pid)
        poll = select.poll()
        poll.register(end, select.POLLIN)
        ended = bool(poll.poll(self.patience * 1000))
        if not ended:
            self.process.send_signal(signal.SIGABRT)
            poll.poll(LAST_WORDS * 1000)
        # The process is not reaped yet, so its session id cannot be reused.
        os.killpg(self.process.pid, signal.SIGKILL)
        os.close(end)
        self.process.wait()
        return ended

    def result(self):
        """The observations, and errors that do not depend on a comparison."""
        with self.folder:
            ended = self.wait()
            said = runs.last_words(self.said)
            if not ended or self.process.returncode or not self.out.exists():
                how = f"ends with status {self.process.returncode}" if ended else "hangs"
                return [], [f"{how}\n{said}"]
            found = json.loads(self.out.read_text())
        wrong = [f"goes wrong at {what}: {value}" for what, value in found["wrong"]]
        kind = self.loop.partition(":")[0]
        if found["kind"].partition(".")[0] != kind:
            wrong.append(f"ran on a loop of {found['kind']}")
        return [json.dumps(line) for line in found["seen"]], wrong


def compare(loop, module, world, jobs=2, patience=PATIENCE):
    """The errors of the loop, or of the program."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        (expected, bad), (seen, wrong) = pool.map(
            lambda each: Program(each, module, world, patience).result(), (STOCK, loop))
    if bad:
        return [f"on asyncio's own loop {module} {each}" for each in bad]
    if not expected:
        return [f"{module} sees nothing"]
    if seen and seen != expected:
        wrong.append("sees something else\n" + "\n".join(
            line[:1000] for line in difflib.unified_diff(expected, seen, "asyncio", loop, n=1,
                                                         lineterm="")))
    return wrong


def run_programs(loop, names):
    """Return the number of programs that differ."""
    bad = 0
    with servers.Servers() as around:
        around.certificate()
        for name in names:
            if name in SERVERS:
                getattr(around, SERVERS[name])()
            # Two at a time, but not both on one server.
            wrong = compare(loop, f"{name}_program", around.world, 1 if name in SERVERS else 2)
            print(f"{name}: {'; '.join(wrong) or 'the same'}", flush=True)
            bad += bool(wrong)
    return bad


def run_suites(loop, names, cache):
    """Return the numbers of suites that differ, and that are not available."""
    bad = left = 0
    for name in names:
        try:
            wrong, line = suites.compare(name.removesuffix("-suite"), loop, cache)
        except sources.Unavailable as error:
            print(f"{name}: skipped: {error}", flush=True)
            left += 1
            continue
        print(f"{name}: {line}, {len(wrong)} differ", flush=True)
        for number, (test, why) in enumerate(wrong):
            shown = why if number < SHOWN_MAX else why.partition("\n")[0]
            print(f"  {test}: {shown}")
        bad += bool(wrong)
    return bad, left


def run(options):
    groups = {"programs": list(PROGRAMS), "suites": list(SUITES)}
    chosen = [each for name in options.names or groups for each in groups.get(name, [name])]
    there = []
    for name in chosen:
        if name not in PROGRAMS | SUITES:
            sys.exit(f"there is no {name}: {', '.join(PROGRAMS | SUITES)}")
        if lack := missing(name):
            print(f"{name}: skipped: there is no {', '.join(lack)}")
        else:
            there.append(name)
    bad = run_programs(options.loop, [name for name in there if name in PROGRAMS])
    more, left = run_suites(options.loop, [name for name in there if name in SUITES],
                            options.cache)
    if bad + more:
        return 1
    return SKIP if left or len(there) < len(chosen) else 0


def show_packages():
    for name, needs in (PROGRAMS | SUITES).items():
        print(f"{name:18} {' '.join(needs)}")
    print(f"\n{'all':18} {' '.join(sorted({p for n in (PROGRAMS | SUITES).values() for p in n}))}")
    return 0


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("loop", nargs="?", help="asyncio, uvloop, weft")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs and suites")
    parser.add_argument("--cache", metavar="FOLDER", help="where source packages are kept",
                        default=HERE.parents[2] / "build" / "python-suites")
    parser.add_argument("--packages", action="store_true", help="say which are needed")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args(words)
    if not (options.loop or options.packages or options.self_test):
        parser.error("which loop?")
    return options


if __name__ == "__main__":
    settings = parse(sys.argv[1:])
    if settings.packages:
        sys.exit(show_packages())
    if settings.self_test:
        import planted
        sys.exit(planted.main(compare))
    sys.exit(run(settings))
