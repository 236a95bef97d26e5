#!/usr/bin/env python3
"""Run the Promises/A+ conformance suite on the promises of weft, inside Node.

    tests/napi/run.py CC SOURCE LIBRARY FOLDER

Compiles the addon with CC and the shared LIBRARY, installs the suite from npm into FOLDER,
with the versions of package-lock.json, and runs it: with calls from outside of the loop and
from inside, and with a planted mistake, which it must find.  Exit 77: no Node, no Node
headers, no npm, or its registry is not reachable.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))
import npm  # noqa: E402

TESTS = 872
PATIENCE = 600  # seconds for a whole run
TEST_MS = "120000"  # milliseconds for one test: the suite's default of 200 fails on a busy machine


def find_headers(node):
    """Find this Node's headers: next to it, or in the system's folders."""
    for folder in (Path(node).resolve().parent.parent / "include/node",
                   Path("/usr/include/node"), Path("/usr/include/nodejs/src")):
        if (folder / "node_api.h").exists():
            return folder
    return npm.skip("no headers of Node here")


def compile_addon(cc, source, library, folder, headers):
    addon = folder / "weft.node"
    subprocess.run([cc, "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared",
                    "-fPIC", "-DNODE_GYP_MODULE_NAME=weft", f"-I{source}/include",
                    "-isystem", headers, HERE / "addon.c", library,
                    f"-Wl,-rpath,{Path(library).parent}", "-o", addon], check=True)
    return addon


def run_suite(node, folder, addon, **more):
    """Run the suite; return the numbers of tests that pass and fail, and the output."""
    cli = folder / "node_modules/promises-aplus-tests/lib/cli.js"
    words = [node, cli, "adapter.js", "--reporter", "dot"]
    if "WEFT_PLANT" in more:
        words += ["--grep", "2.2.4"]
    else:
        words += ["--timeout", TEST_MS]
    done = subprocess.run(words, env={**os.environ, "WEFT_ADDON": str(addon), **more},
                          cwd=HERE, capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    counts = [int(found[1]) if found else 0 for found in
              (re.search(rf"^\s*(\d+) {what}", done.stdout, re.M)
               for what in ("passing", "failing"))]
    return *counts, f"status {done.returncode}\n{done.stdout}{done.stderr}"


def main(cc, source, library, folder):
    node = npm.find("node")
    headers = find_headers(node)
    folder = Path(folder)
    npm.install(HERE, folder)
    addon = compile_addon(cc, source, library, folder, headers)
    for calls in ("far", "near"):
        passing, failing, text = run_suite(node, folder, addon, WEFT_CALLS=calls)
        print(f"{calls}: {passing} passing, {failing} failing")
        if (passing, failing) != (TESTS, 0) or not text.startswith("status 0\n"):
            sys.exit(text)
    passing, failing, text = run_suite(node, folder, addon, WEFT_CALLS="far", WEFT_PLANT="1")
    print(f"planted: {passing} passing, {failing} failing")
    if not failing:
        sys.exit(f"the planted mistake was not found: {text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
