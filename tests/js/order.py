#!/usr/bin/env python3
"""Compare the output of scripts under `weft run` with their output under Node.

    tests/js/order.py WEFT [NAME...]

NAME is a script of tests/js/scripts, or "ends": small programs whose exit status is
compared, too.  Default: all.  Node runs each one as a module, as weft does.  Exit 77: there
is no Node of version 20 or later.

Not compared, because the contracts differ:
  - timers are numbers in weft, as in HTML, and objects in Node; timers nested deeper than
    five levels wait 4 ms (check_timer_*.js);
  - events where Node departs from the DOM standard (check_events.js);
  - the lines of stacks: engines name and number positions in their own ways;
  - `for await` that is left by break: QuickJS does not wait for the end of the generator;
  - the console's output for proxies with traps, and for iterators of maps and sets, which
    only an engine can inspect.
"""
import difflib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent / "scripts"
PATIENCE = 300  # seconds
PLACE = re.compile(r"^ +(at .*|\.\.\. \d+ lines matching cause stack trace \.\.\.)$")
COMPARED = ("order_jobs", "order_timers", "order_random", "events", "abort", "performance", "text",
            "console_values", "console_format")
LINES_MIN = 600  # guards against comparing nothing with nothing

ENDS = {
    "an empty program": "",
    "an error at the top": "console.log(1); throw new Error('x'); console.log(2)",
    "an error that is no Error": "throw 'text'",
    "a rejection": "setTimeout(() => console.log('never'), 20); Promise.reject(new Error('x'))",
    "a rejection without a reason": "Promise.reject()",
    "a rejection handled at once": "Promise.reject(1).catch(() => console.log('caught'))",
    "a rejection handled by a job":
        "const p = Promise.reject(1); Promise.resolve().then(() => p.catch(() => {}))",
    "a rejection handled by a tick":
        "const p = Promise.reject(1); process.nextTick(() => p.catch(() => {}))",
    "a rejection handled too late":
        "const p = Promise.reject(1); setTimeout(() => p.catch(() => {}), 1)",
    "a rejection of a chain":
        "Promise.reject(1).then(() => {}).finally(() => console.log('finally'))",
    "a rejection in an async function": "(async () => { await null; null.x })()",
    "a rejection inside of all":
        "Promise.all([Promise.reject(1), Promise.reject(2)]).catch(() => {})",
    "a rejection in a timer":
        "setTimeout(async () => { throw 1 }, 1); setTimeout(() => console.log('never'), 50)",
    "a promise that stays pending": "new Promise(() => {}).then(() => console.log('never'))",
    "an error in a timer":
        "setTimeout(() => { throw new Error('x') }, 1); setTimeout(() => console.log('never'), 50)",
    "an error in an immediate":
        "setImmediate(() => { throw 1 }); setTimeout(() => console.log('never'), 50)",
    "an error in a microtask":
        "queueMicrotask(() => { throw new Error('x') }); "
        "setTimeout(() => console.log('never'), 50)",
    "an error in a tick":
        "process.nextTick(() => { throw 1 }); setTimeout(() => console.log('never'), 50)",
    "an error that is caught": "try { null.x } catch (e) { console.log(e instanceof TypeError) }",
    "a syntax error": "let let = ;",
    "an import of what is not there": "import './nothing.js'",
    "a name that is not there": "import { nothing } from './other.mjs'",
    "an import that fails later": "import('./nothing.js').catch(() => console.log('caught'))",
    "exit": "console.log(1); process.exit(3); console.log(2)",
    "exit without a number": "process.exitCode = 4; process.exit()",
    "exit in a job":
        "Promise.resolve().then(() => process.exit(5)).then(() => console.log('never'))",
    "exit in a timer": "setInterval(() => process.exit(6), 1)",
    "exit past try and finally":
        "try { process.exit(7) } catch { console.log(1) } finally { console.log(2) }",
    "a code for the end": "process.exitCode = 8; setTimeout(() => console.log('last'), 1)",
    "a code and an error": "process.exitCode = 9; setTimeout(() => { throw 1 }, 1)",
    "await at the top": "console.log(await new Promise((r) => setTimeout(r, 5, 'waited')))",
    "a rejection at the top": "await Promise.reject(new RangeError('x'))",
    "a timer that is cleared keeps nothing":
        "clearTimeout(setTimeout(() => {}, 1e8)); console.log(1)",
    "arguments": "console.log(process.argv.slice(2))",
    "the name of the file":
        "console.log(import.meta.url.endsWith('/program.mjs'), process.argv.length)",
}


def tidy(text):
    """Remove the lines of stacks, which differ between engines."""
    return [line for line in text.splitlines() if not PLACE.match(line)]


def run(program, *words, cwd):
    done = subprocess.run([*program, *words], cwd=cwd, capture_output=True, text=True,
                          timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False)
    return done.returncode, tidy(done.stdout), done.stderr


def compare(what, weft, node):
    """Return the number of equal lines, or -1 if the outputs differ."""
    if weft[:2] == node[:2]:
        return len(node[1])
    print(f"not the same: {what}: status {weft[0]}, under Node {node[0]}")
    for line in difflib.unified_diff(node[1], weft[1], "node", "weft", lineterm=""):
        print(line)
    print(weft[2])
    return -1


def compare_text(weft, what, text, folder, *words):
    script = folder / "program.mjs"
    script.write_text(text)
    return compare(what, run([weft, "run"], script, *words, cwd=folder),
                   run(["node"], script, *words, cwd=folder))


def main(weft, *names):
    version = shutil.which("node") and subprocess.run(
        ["node", "--version"], capture_output=True, text=True, check=True).stdout
    if not version or int(version[1:].split(".")[0]) < 20:
        print("skipped: no Node of version 20 or later here")
        sys.exit(77)
    weft = Path(weft).resolve()
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "other.mjs").write_text("export const something = 1;\n")
        for name in names or (*COMPARED, "ends"):
            if name == "ends":
                lines += [compare_text(weft, what, text, folder, "one", "two words")
                          for what, text in ENDS.items()]
            else:
                lines.append(compare_text(weft, name, (SCRIPTS / f"{name}.js").read_text(), folder))
    total = sum(count for count in lines if count > 0)
    print(f"{total} lines are the same")
    if -1 in lines or (not names and total < LINES_MIN):
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
