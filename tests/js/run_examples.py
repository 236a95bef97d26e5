#!/usr/bin/env python3
"""Run the scripts of examples/js; check their output and exit status.

    tests/js/run_examples.py WEFT [NAME...]
"""
import difflib
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/js"
PATIENCE = 300  # seconds

SAYS = {
    "abort_timeout": """\
by hand: AbortError: This operation was aborted
by time: TimeoutError: The operation was aborted due to timeout
by either: TimeoutError: The operation was aborted due to timeout
with a reason: Error: we are closing
""",
    "async_await": """\
total: 9
RangeError: no price for stone
fulfilled 2
rejected no price for stone
first: quick
any: 4
""",
    "async_queue": """\
took 1
took 4
took 9
took 16
took 25
took 36
sum 91 - never far ahead: true
""",
    "errors": """\
ConfigError: cannot read the settings because of SyntaxError
error event: Error: reported by hand
unhandled: rejected
error event: TypeError: thrown by a timer
handled after all
the program goes on to its end
""",
    "event_target": """\
20 -> 22
the first change
22 -> 45
it is 22
it is 18
""",
    "modules": """\
Hello, weft!
Guten Tag, weft!
languages: [ 'en', 'de' ]
20 km are 12.43 miles
[Module: null prototype] {
  name: 'units',
  toMiles: [Function: toMiles]
}
late.js is loaded when it is asked for, and once
late, in 2 languages
the same module: true
missing: true
""",
    "performance_marks": """\
at least as long as it slept: true true
the parts fit in the whole: true
[ 'begin', 'loaded' ]
left: []
observed measure "loading" { files: 3 }
observed measure "all of it" null
""",
    "pool": """\
[
  { value: 0 },
  { value: 10 },
  { value: 20 },
  { error: 'task 3 failed' },
  { value: 40 },
  { value: 50 },
  { value: 60 },
  { value: 70 }
]
at most at a time: 3
""",
    "rate_limiter": "".join(f"call {i}\n" for i in range(10))
                    + "ten calls took three spans: true\n",
    "text_coding": """\
19 code units, 18 characters, 25 bytes
Uint8Array(6) [ 110, 97, 195, 175, 118, 101 ]
true
true
a\N{REPLACEMENT CHARACTER}b
TypeError
{ read: 2, written: 3 } Uint8Array(4) [ 97, 195, 169, 0 ]
""",
    "timers": """\
the script runs first
a microtask: as soon as it has ended
an immediate: in this turn of the loop
hello, timer
a timeout of 20 ms
beat 1
beat 2
beat 3
""",
}


def check(weft, name):
    """Run one example; return whether its output is as expected."""
    done = subprocess.run([weft, "run", EXAMPLES / f"{name}.js"], capture_output=True,
                          encoding="utf-8", timeout=PATIENCE, check=False)
    if done.returncode == 0 and done.stdout == SAYS[name] and not done.stderr:
        return True
    print(f"{name}: status {done.returncode}")
    print("\n".join(difflib.unified_diff(SAYS[name].splitlines(), done.stdout.splitlines(),
                                         "should", "does", lineterm="")))
    print(done.stderr)
    return False


def main(weft, *names):
    untold = {path.stem for path in EXAMPLES.glob("*.js")} ^ set(SAYS)
    if untold:
        sys.exit(f"not known here, or not there: {untold}")
    if not all([check(weft, name) for name in names or SAYS]):
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
