#!/usr/bin/env python3
"""Count instructions per operation, by callgrind, of the rows that are pure CPU work.

    bench/instructions.py --build DIR [FILTER] [--json]
    bench/instructions.py --build DIR --check    compare with instructions.json
    bench/instructions.py --build DIR --store    write instructions.json
    bench/instructions.py --self-test

Unlike times, these counts depend neither on the machine nor on what else it does.  They do depend
on the compiler, so instructions.json has weft's counts for each compiler that was used.  --check
fails if a count has grown by more than 3 %.  A change that is worth more instructions stores the
new counts in the same commit.  FILTER is as for run.py.

Programs run with counted.c preloaded, so that they need not know about callgrind.
"""
import argparse
import concurrent.futures
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import pythons
import rows
import run

STORED = Path(__file__).resolve().parent / "instructions.json"
COUNTED_NS = 1e15  # as in counted.c
GROWTH_MAX = 1.03
TIMEOUT_S = 600


def compiler():
    """What identifies the compiler: its version and the processor."""
    version = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True)
    return f"{version.stdout.splitlines()[0]}, {os.uname().machine}"


# --- counting ----------------------------------------------------------------

def last_count(folder):
    """The last count of a program: callgrind numbers its files PID.1, PID.2 ..."""
    files = [path for path in folder.iterdir() if path.suffix]
    last = max(files, key=lambda path: int(path.suffix[1:]))
    return int(re.search(r"^totals: (\d+)", last.read_text(), re.MULTILINE)[1])


def command(programs, program, row):
    """What measures `row`: the program, or for a loop of Python the script that it starts."""
    if program.startswith("py_"):
        return [pythons.PYTHON, "-B", str(pythons.SCRIPTS / "schedule.py"), program[3:], row]
    return [str(programs / program), row]


def count(programs, program, row):
    """Instructions per operation of `program`, measuring `row`."""
    with tempfile.TemporaryDirectory() as name:
        words = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no",
                 f"--callgrind-out-file={name}/%p", *command(programs, program, row)]
        environment = os.environ | {"LD_PRELOAD": str(programs / "libcounted.so"),
                                    "PYTHONHASHSEED": "0",
                                    "PYTHONPATH": str(programs.parent / "python")}
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S,
                              env=environment, check=False)
        if done.returncode != 0:
            raise run.Failed(f"{program} {row}: exit {done.returncode}: {done.stderr.strip()}")
        return last_count(Path(name)) / (COUNTED_NS / float(done.stdout))


def programs_of_row(row):
    """Weft's program, then those of the peers that callgrind can run, with their names."""
    return [("weft", row.weft)] + [(peer.name, peer.program) for peer in row.peers
                                   if peer.program not in ("rows_go", "rows_node")]


def measure(programs, table, every_peer):
    """{row: {name: instructions per operation}}"""
    jobs = [(row.name, name, program) for row in table
            for name, program in programs_of_row(row)
            if name == "weft" or (every_peer and (programs / program).exists())]
    results = {row.name: {} for row in table}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = pool.map(lambda job: count(programs, job[2], job[0]), jobs)
        for (row, name, _), value in zip(jobs, counted):
            results[row][name] = round(value, 1)
    return results


# --- showing and comparing ---------------------------------------------------

def show(results, as_json):
    for row, values in results.items():
        if as_json:
            print(json.dumps({"bench": row, "instructions": values}))
            continue
        ours = values["weft"]
        print(f"{row:26} {ours:10,.1f}", *(f"  {name} {value:,.1f} ({value / ours:.3g}x)"
                                           for name, value in values.items() if name != "weft"))


def complaints(results, stored):
    """A line for each row that has grown, or has no stored count."""
    for row, values in results.items():
        now, before = values["weft"], stored.get(row)
        if before is None:
            yield f"{row}: no stored count; it is {now:,.1f}"
        elif now > before * GROWTH_MAX:
            yield f"{row}: {now:,.1f} instructions per operation, stored are {before:,.1f}"


def check(results, stored, key):
    """The exit status."""
    if key not in stored:
        run.tell(f"instructions.json has no counts for {key}: nothing to compare")
        return 0
    found = list(complaints(results, stored[key]))
    for line in found:
        run.tell(line)
    if found:
        run.tell("if they are worth it: bench/instructions.py --store")
    return 1 if found else 0


def store(results, stored, key):
    stored.setdefault(key, {}).update({row: values["weft"] for row, values in results.items()})
    STORED.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")


# --- the command -------------------------------------------------------------

def self_test():
    stored = {"cc": {"a": 100.0, "b": 10.0}}
    same = {"a": {"weft": 102.9}, "b": {"weft": 9.0, "them": 30.0}}
    grown = {"a": {"weft": 103.1}, "b": {"weft": 10.0}}
    new = {"c": {"weft": 1.0}}
    cases = [(same, "cc", 0), (grown, "cc", 1), (new, "cc", 1), (grown, "other", 0)]
    for results, key, want in cases:
        with contextlib.redirect_stderr(io.StringIO()):
            got = check(results, stored, key)
        if got != want:
            sys.exit(f"self-test: {results} with {key}: {got}, should be {want}")
    with tempfile.TemporaryDirectory() as name:
        for file, total in (("7", 5), ("7.9", 20), ("7.10", 1234)):
            Path(name, file).write_text(f"events: Ir\ntotals: {total}\n")
        if last_count(Path(name)) != 1234:
            sys.exit("self-test: the last count is not found")
    print("instructions: self-test passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", metavar="FILTER")
    parser.add_argument("--build", type=Path, metavar="DIR", default=Path("build/bench"))
    parser.add_argument("--json", action="store_true")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--check", action="store_true")
    form.add_argument("--store", action="store_true")
    form.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    table = run.chosen((row for row in rows.ROWS if row.name in rows.COUNTED), options.filter)
    if not table:
        sys.exit(f"bench: no counted row is called {options.filter}")
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    key = compiler()
    if options.check and key not in stored:
        table = []  # there is nothing to compare
    results = measure(run.programs_of(options.build).resolve(), table,
                      not (options.check or options.store))
    if options.check:
        return check(results, stored, key)
    if options.store:
        return store(results, stored, key)
    return show(results, options.json)


if __name__ == "__main__":
    sys.exit(main())
