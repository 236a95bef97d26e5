#!/usr/bin/env python3
"""Run scripts that check themselves: each must exit with 0, with "ok" as its last line.

    tests/js/run_checks.py WEFT NAME...

NAME is a script of tests/js/scripts.
"""
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent / "scripts"
PATIENCE = 300  # seconds
# That a script may cause.
REPORTS = ["weft: a checkpoint has run 100,000 microtasks and has not ended"]


def main(weft, *names):
    for name in names:
        done = subprocess.run([weft, "run", SCRIPTS / f"{name}.js"], capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        errors = [line for line in done.stderr.splitlines() if line not in REPORTS]
        if done.returncode or errors or done.stdout.splitlines()[-1:] != ["ok"]:
            sys.exit(f"{name}: status {done.returncode}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main(*sys.argv[1:])
