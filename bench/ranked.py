#!/usr/bin/env python3
"""Measure the demo: feeds per second, by a graph on one loop or by 8 threads that block.

    ranked_NAME ROW      NAME: weft, threads

Both are `weft demo` with its own store 1 ms away, no load of its own, and a hundred candidates;
what differs is the path.  The service has both cores, and so has wrk, which keeps more requests
under way than 8 threads can serve.  Shown are the requests answered with a feed.
"""
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # no folder of it among the sources

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
