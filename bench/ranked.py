#!/usr/bin/env python3
"""Measure the demo: feeds per second, by a graph on one loop or by 8 blocking threads.

    ranked_NAME ROW      NAME: weft, threads

Both are `weft demo` with its own store 1 ms away, without the built-in load, and with a hundred
candidates; only the request path differs.  The service and wrk may use both cores.  wrk keeps
more requests in flight than 8 threads can serve.  The result is the number of requests per second
that were answered with a feed.
"""
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the source tree

PROGRAMS = Path(sys.argv[0]).absolute().parent
WAIT_S = 20
WARM_S, SECONDS = 1, 3
WAYS = {"weft": ("/feed/7", 32), "threads": ("/threads/7", 16)}  # path, connections


def rate(url, connections, seconds):
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s",
                           url], capture_output=True, text=True, timeout=60)
    replies = re.search(r"(\d+) requests in ([\d.]+)(m?s)", done.stdout)
    if done.returncode != 0 or not replies:
        sys.exit(f"wrk: {done.stdout}{done.stderr}")
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
    took = float(replies[2]) * (0.001 if replies[3] == "ms" else 1)
    return (int(replies[1]) - (int(refused[1]) if refused else 0)) / took


def main():
    name = Path(sys.argv[0]).name.removeprefix("ranked_")
    path, connections = WAYS[name]
    weft = PROGRAMS.parent / "prefix" / "bin" / "weft"
    demo = subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", weft, "demo", "--port", "0", "--quiet", "--load", "0",
         "--compare", "0", "--delay-us", "1000", "--fan-out", "100"],
        stdout=subprocess.PIPE, text=True)
    try:
        url = demo.stdout.readline().split()[1].rstrip("/") + path
        rate(url, connections, WARM_S)
        print(f"{rate(url, connections, SECONDS):.3f}")
    finally:
        demo.terminate()
        demo.wait(WAIT_S)


if __name__ == "__main__":
    main()
