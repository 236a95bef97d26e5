#!/usr/bin/env python3
"""Measure scripts with `weft run` and with Node.

    js_NAME ROW      NAME: weft, node

The build makes a link to this file for each NAME that is installed.  js.start is the time from
the start of the program to its end, with an empty script, in microseconds; the other rows measure
themselves (js/rows.js).
"""
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = Path(sys.argv[0]).absolute().parent
SCRIPTS = Path(__file__).resolve().parent / "js"
STARTS = 15
PATIENCE = 120

COMMANDS = {
    "js_weft": [PROGRAMS.parent / "prefix" / "bin" / "weft", "run"],
    "js_node": [shutil.which("node") or "node"],
}


def run(command, *words):
    """Run the command; returns its output."""
    done = subprocess.run([*command, *words], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def measure_start(command):
    """Without pipes and without a shell, so that only the program is measured."""
    words = [str(word) for word in (*command, SCRIPTS / "empty.js")]
    taken = []
    for _ in range(STARTS):
        begin = time.perf_counter()
        _, status = os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)
        taken.append(time.perf_counter() - begin)
        if status != 0:
            sys.exit(f"{words[0]}: status {status}")
    return statistics.median(taken) * 1e6


def main():
    command, row = COMMANDS[Path(sys.argv[0]).name], sys.argv[1]
    if row == "js.start":
        print(measure_start(command))
    else:
        print(run(command, SCRIPTS / "rows.js", row).strip())


if __name__ == "__main__":
    main()
