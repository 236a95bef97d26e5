#!/usr/bin/env python3
"""Measure a store in its own process with redis-benchmark.

    stored_NAME ROW      NAME: weft, redis

The build makes a link to this file for each NAME that is installed.  The store runs on the first
core, redis-benchmark on the second: 50 connections, 16 requests in flight on each, over TCP.  The
result is the CPU time of the store per request, after a warm-up run.
"""
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from served import CORE, answers, client, each_ns, free_port, pinned, until

PROGRAMS = Path(sys.argv[0]).absolute().parent
WARM, REQUESTS = 200_000, 2_000_000
WAIT_S = 20


class Store:
    """A running store that listens on `port`."""

    def __init__(self, name):
        self.port = free_port()
        self.process = subprocess.Popen(pinned(CORE, *getattr(self, f"words_{name}")()),
                                        stdout=subprocess.DEVNULL)
        until(lambda: answers(self.port), f"{name} listens")

    def words_weft(self):
        return (PROGRAMS.parent / "prefix" / "bin" / "weft", "store", "--listen",
                f"tcp://127.0.0.1:{self.port}")

    def words_redis(self):
        return ("redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "",
                "--appendonly", "no")

    def cpu_ns(self):
        """CPU time of all its threads: the clock of clock_getcpuclockid(3)."""
        return time.clock_gettime_ns((~self.process.pid << 3) | 2)

    def stop(self):
        self.process.terminate()
        self.process.wait(WAIT_S)


def get_p16(store):
    """CPU time of a GET that finds 3 bytes."""
    def run(count):
        client("redis-benchmark", "-p", store.port, "-P", 16, "-c", 50, "-n", count, "-t", "get",
               "-q")
        return count
    client("redis-cli", "-p", store.port, "SET", "key:__rand_int__", "xxx")
    run(WARM)
    return each_ns(store, lambda: run(REQUESTS))


MEASURES = {"store.get.p16.cpu": get_p16}


def main():
    name, row = Path(sys.argv[0]).name.removeprefix("stored_"), sys.argv[1]
    store = Store(name)
    try:
        print(f"{MEASURES[row](store):.3f}")
    finally:
        store.stop()


if __name__ == "__main__":
    main()
