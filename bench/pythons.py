#!/usr/bin/env python3
"""Measure asyncio loops, all with the same Python and the same scripts.

    py_NAME ROW      NAME: weft, uvloop, asyncio (its own loop)

The build makes a link to this file for each NAME that is installed.  Rows of callbacks measure
their own CPU time, on the first core (python/schedule.py), and py.subprocess its own wall time, on
both cores (python/spawn.py).  For an echo server (python/echo.py) on the first core, the result is
its CPU time per message.  The clients on the second core (py_client.c) have 32 connections with one
message in flight on each.  Connecting and a warm-up run are not included.
"""
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from served import CORE, OTHER_CORE, SKIPPED, certify, each_ns, pinned

PROGRAMS = Path(sys.argv[0]).absolute().parent
SCRIPTS = Path(__file__).resolve().parent / "python"
PYTHON = "/usr/bin/python3"  # the system's, for which its uvloop package is built
CONNECTIONS = 32
WAIT_S, PATIENCE_S = 20, 120


def environment():
    """The environment without other Python settings, and with the build's package `weft`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return kept | {"PYTHONPATH": str(PROGRAMS.parent / "python")}


def script(name, *words):
    return [PYTHON, "-B", SCRIPTS / name, *words]


def printed(command):
    """The number that a script prints."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=PATIENCE_S, env=environment(), check=False)
    if done.returncode != 0:
        sys.exit(f"{command[-1]}: {done.stderr.strip()}")
    return float(done.stdout)


# --- echo --------------------------------------------------------------------

class Server:
    """A running echo.py that listens on `port`."""

    def __init__(self, *words):
        self.process = subprocess.Popen(pinned(CORE, *script("echo.py", *words)),
                                        stdout=subprocess.PIPE, text=True, env=environment())
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"echo.py: exit {self.process.wait(WAIT_S)}")
        self.port = int(line)

    def cpu_ns(self):
        """CPU time of all its threads: the clock of clock_getcpuclockid(3)."""
        return time.clock_gettime_ns((~self.process.pid << 3) | 2)

    def stop(self):
        self.process.terminate()
        self.process.wait(WAIT_S)


class Clients:
    """A running py_client, which continues with its next part at each go_on()."""

    def __init__(self, *words):
        self.process = subprocess.Popen(pinned(OTHER_CORE, PROGRAMS / "py_client", *words),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hear(self, word):
        if self.process.stdout.readline().strip() != word:
            sys.exit(f"py_client: exit {self.process.wait(WAIT_S)}")

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def stop(self):
        self.process.terminate()
        self.process.wait(WAIT_S)


def measure_clients(server, clients, count):
    def run():
        clients.go_on()
        clients.hear("done")
        return count
    clients.hear("warm")
    return each_ns(server, run)


def measure_served(name, folder, way, *load):
    words = (way, folder) if way == "tls" else (way,)
    server = Server(name, *words)
    try:
        clients = Clients("tls" if way == "tls" else "plain", server.port, CONNECTIONS, *load)
        try:
            return measure_clients(server, clients, load[-1])
        finally:
            clients.stop()
    finally:
        server.stop()


def echo(way, message_bytes, count):
    """CPU time of the server per message, for `count` messages."""
    def measure(name, _row):
        if not (PROGRAMS / "py_client").exists():
            print("py_client is not built: it needs OpenSSL", file=sys.stderr)
            sys.exit(SKIPPED)
        with tempfile.TemporaryDirectory() as folder:
            if way == "tls":
                certify(Path(folder))
            return measure_served(name, folder, way, message_bytes, count)
    return measure


# --- rows --------------------------------------------------------------------

def schedule(name, row):
    return printed(pinned(CORE, *script("schedule.py", name, row)))


def spawn(name, _row):
    return printed(script("spawn.py", name))


MEASURES = {
    "py.call_soon.batch": schedule,
    "py.call_soon.chain": schedule,
    "py.sleep0.1": schedule,
    "py.sleep0.100": schedule,
    "py.future_wake": schedule,
    "py.timer_cancel": schedule,
    "py.threadsafe": schedule,
    "py.echo.protocol.1k.cpu": echo("protocol", 1024, 100_000),
    "py.echo.streams.1k.cpu": echo("streams", 1024, 80_000),
    "py.echo.sock.1k.cpu": echo("sock", 1024, 50_000),
    "py.echo.protocol.100k.cpu": echo("protocol", 100 * 1024, 20_000),
    "py.echo.tls.1k.cpu": echo("tls", 1024, 40_000),
    "py.subprocess": spawn,
}


def main():
    name, row = Path(sys.argv[0]).name.removeprefix("py_"), sys.argv[1]
    print(f"{MEASURES[row](name, row):.3f}")


if __name__ == "__main__":
    main()
