#!/usr/bin/env python3
"""What `weft eval` and `weft run` print, and end with.

    tests/js/command.py WEFT
"""
import subprocess
import sys
import tempfile
from pathlib import Path

PATIENCE = 120  # seconds

# What is evaluated: the status, what is printed, how what is told begins.
EVALS = {
    "6 * 7": (0, "42\n", ""),
    "'text'": (0, "text\n", ""),
    "undefined": (0, "", ""),
    "throw new Error('lost')": (1, "", "Uncaught Error: lost\n"),
    "Promise.resolve(8)": (0, "8\n", ""),
    "Promise.reject(new Error('lost'))": (1, "", "Uncaught Error: lost\n"),
    "Promise.reject('only text')": (1, "", "Uncaught only text\n"),
    "Promise.reject({})": (1, "", "Uncaught [object Object]\n"),
    "Promise.reject()": (1, "", "Uncaught undefined\n"),
    "(async () => { await 1; throw new TypeError('late') })()":
        (1, "", "Uncaught TypeError: late\n"),
    "(async () => { await new Promise((r) => setTimeout(r, 5)); return 'waited' })()":
        (0, "waited\n", ""),
    "(async () => { await 1; process.exit(4) })()": (4, "", ""),
    "new Promise(() => setTimeout(() => process.exit(5), 1))": (5, "", ""),
    "new Promise(() => {})": (0, "", ""),
    "throw { get message() { process.exit(3) }, __proto__: Error.prototype }": (3, "", ""),
    "throw Object.defineProperty(new Error('x'), 'message', { get() { process.exit(3) } })":
        (3, "", ""),
    "void setTimeout(() => { throw Object.defineProperty(new Error('x'), 'message',"
    " { get() { process.exit(3) } }) }, 1)": (3, "", ""),
    "Promise.reject(Object.defineProperty(new Error('x'), 'message',"
    " { get() { process.exit(3) } }))": (3, "", ""),
    "import('FOLDER/x.mjs').then((m) => m.default)": (0, "x\n", ""),
    "import('FOLDER/in/../none/.././x.mjs').then((m) => m.default)": (0, "x\n", ""),
    "import('./x.mjs').then((m) => m.default)": (0, "inner\n", ""),
    "import('../x.mjs').then((m) => m.default)": (0, "x\n", ""),
    "import('./deep/../../x.mjs').then((m) => m.default)": (0, "x\n", ""),
    "import('../../NAME/x.mjs').then((m) => m.default)": (0, "x\n", ""),
    "import('../../NAME/in/../../NAME/in/x.mjs').then((m) => m.default)": (0, "inner\n", ""),
}


def check(weft, code, want, folder):
    code = code.replace("FOLDER", str(folder)).replace("NAME", folder.name)
    done = subprocess.run([weft, "eval", code], cwd=folder / "in", capture_output=True, text=True,
                          timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False)
    told = done.stderr[:len(want[2])] if want[2] else done.stderr
    got = (done.returncode, done.stdout, told)
    if got != want:
        print(f"weft eval {code!r}:\n  {got}, wanted {want}\n{done.stderr}")
    return got == want


def main(weft):
    weft = Path(weft).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        (folder / "x.mjs").write_text("export default 'x';\n")
        (folder / "in" / "x.mjs").write_text("export default 'inner';\n")
        results = [check(weft, code, want, folder) for code, want in EVALS.items()]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
