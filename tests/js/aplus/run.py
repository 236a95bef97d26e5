#!/usr/bin/env python3
"""Run the Promises/A+ conformance suite on the promises of scripts, inside the adapter.

    tests/js/aplus/run.py WEFT FOLDER

Installs the suite from npm into FOLDER, with the versions of package-lock.json (only the
suite: harness.js replaces its dependencies), makes one script of its unchanged files, and
runs it with `weft run`; then once more with a planted mistake, which it must find.  Exit
77: no npm, or its registry is not reachable.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parents[1]))
import npm  # noqa: E402

TESTS = 872
PATIENCE = 300  # seconds


def install(folder):
    """Return the folder of the suite; install it first if it is missing."""
    suite = folder / "node_modules/promises-aplus-tests/lib/tests"
    if not (suite / "2.3.4.js").exists():
        npm.install(HERE, folder)
    return suite


def bundle(suite, script):
    """Write one script: the sources of the files, then the harness."""
    parts = ["const files = { __proto__: null };\n"]
    for path in sorted(suite.rglob("*.js")):
        name = path.relative_to(suite).with_suffix("").as_posix()
        parts.append(f"files[{json.dumps(name)}] = {json.dumps(path.read_text())};\n")
    script.write_text("".join(parts) + (HERE / "harness.js").read_text())


def run(weft, script, *words):
    done = subprocess.run([weft, "run", script, *words], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    found = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M)
    if not found:
        sys.exit(f"status {done.returncode}\n{done.stdout}{done.stderr}")
    print(*words, found[0])
    return int(found[1]), int(found[2]), done.returncode, done.stdout + done.stderr


def main(weft, folder):
    folder = Path(folder)
    script = folder / "suite.js"
    bundle(install(folder), script)
    passed, failed, status, text = run(weft, script)
    if (passed, failed, status) != (TESTS, 0, 0):
        sys.exit(text)
    passed, failed, status, text = run(weft, script, "planted")
    if not failed or status != 1:
        sys.exit(f"the planted mistake was not found: {text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
