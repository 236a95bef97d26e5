#!/usr/bin/env python3
"""The output and exit status of `weft eval`, `weft run`, and a misused `weft`.

    tests/js/command.py WEFT
"""
import subprocess
import sys
import tempfile
from pathlib import Path

PATIENCE = 300  # seconds

# For each script: the exit status, stdout, and the start of stderr.
EVALS = {
    "6 * 7": (0, "42\n", ""),
    "'text'": (0, "text\n", ""),
    "undefined": (0, "", ""),
    "null": (0, "null\n", ""),
    "true": (0, "true\n", ""),
    "0.1": (0, "0.1\n", ""),
    "-0": (0, "-0\n", ""),
    "2n ** 70n": (0, "1180591620717411303424n\n", ""),
    "[1,{a:2}]": (0, "[ 1, { a: 2 } ]\n", ""),
    "[true, null, undefined]": (0, "[ true, null, undefined ]\n", ""),
    "Promise.resolve([1, { a: 2 }])": (0, "[ 1, { a: 2 } ]\n", ""),
    "let x = 1; x += 1": (0, "2\n", ""),
    "var y = 3; globalThis.y": (0, "3\n", ""),
    "process.argv.length": (0, "2\n", ""),
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


# For each command line: the exit status, and the start of stdout and of stderr.
COMMANDS = {
    "frob": (2, "", "weft: unknown verb: frob\n\nusage: weft VERB"),
    "": (2, "", "usage: weft VERB"),
    "--frob": (2, "", "weft: unknown option: --frob\n\nusage: weft VERB"),
    "--help": (0, "usage: weft VERB", ""),
    "run": (2, "", "weft run: FILE.js is missing\n\nusage: weft run FILE.js"),
    "eval": (2, "", "weft eval: CODE is missing\n\nusage: weft eval CODE"),
    "run --help": (0, "usage: weft run FILE.js", ""),
    "eval --help": (0, "usage: weft eval CODE", ""),
    "run --frob": (2, "", "weft run: unknown option --frob; to run a file of that name, "
                          "use ./--frob\n\nusage: weft run FILE.js"),
    "store --frob": (2, "", "weft store: --frob: unknown option"),
    "demo --frob": (2, "", "weft demo: --frob: unknown option"),
    "top --frob": (2, "", "weft top: --frob: unknown option\n\nusage: weft top"),
    "dag --frob": (2, "", "weft dag: --frob: unknown option\n\nusage: weft dag"),
    "dag frob x": (2, "", "weft dag: frob: unknown command\n\nusage: weft dag"),
    "dag run": (2, "", "weft dag: run: FILE is missing\n\nusage: weft dag"),
    "dag check --jobs 3 x": (2, "", "weft dag: --jobs: check has no such option\n\nusage:"),
    "dag run --jobs": (2, "", "weft dag: --jobs: the value N is missing\n\nusage: weft dag"),
    "dag run --jobs 1x f": (2, "", "weft dag: --jobs: the value must be a number from 1 to 10000"),
    "dag run --grace 3 f": (2, "", "weft dag: --grace: the value must be a number above 0 with"),
    "store --bulk-max 3x": (2, "", "weft store: --bulk-max: the value must be a number of bytes"),
    "store --clients-max 0": (2, "", "weft store: --clients-max: the value must be a number from "
                                     "1 to 2147483647\n\nusage: weft store"),
    "store word": (2, "", "weft store: unexpected argument\n\nusage: weft store"),
    "demo --port 70000": (2, "", "weft demo: --port: the value must be a number from 0 to 65535"),
    "demo word": (2, "", "weft demo: unexpected argument\n\nusage: weft demo"),
    "top --period 3": (2, "", "weft top: --period: the value must be a number from 250 to 10000"),
    "dag --help": (0, "usage: weft dag run", ""),
    "dag run --help": (0, "usage: weft dag run", ""),
    "demo --help": (0, "usage: weft demo", ""),
    "store --help": (0, "usage: weft store", ""),
    "top --help": (0, "usage: weft top", ""),
}


def check_command(weft, words, want):
    done = subprocess.run([weft, *words.split()], capture_output=True, text=True,
                          timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False)
    begins = [text[:len(start)] if start else text
              for text, start in ((done.stdout, want[1]), (done.stderr, want[2]))]
    got = (done.returncode, *begins)
    if got != want:
        print(f"weft {words}:\n  {got}, wanted {want}")
    return got == want


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
    results += [check_command(weft, words, want) for words, want in COMMANDS.items()]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
