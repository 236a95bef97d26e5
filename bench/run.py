#!/usr/bin/env python3
"""Measure weft side by side with its peers.

    bench/run.py --build DIR [FILTER] [--json | --markdown] [--pairs N]
                 [--svg DIR] [--check] [--against OTHER]
    bench/run.py --from FILE ...    show results saved from --json, without measuring
    bench/run.py --self-test        measure programs whose values are known

A row and a peer are measured in pairs, weft and peer one after the other; the order alternates.
Each pair gives a ratio, which is above 1 if weft is better, whatever the unit.  The output has
the median and the quartiles of the ratios and the medians of the values.  FILTER is a part of a
row's name, or a pattern (`*.1e6`).  --against compares each row with the same program of OTHER,
the directory of another build, instead of the peers; a row that is slower by more than 2 % is
below its bar.  Exit status 1: a program failed, or, with --check, a bar was missed.  Only the
standard library is used.
"""
import argparse
import contextlib
import fnmatch
import io
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import plot
import rows
from rows import Peer, Row

PAIRS, TIMEOUT_S = 9, 300
BEFORE = 0.98  # the bar of --against
SKIPPED = 77  # exit status
HEAD = ("row", "weft", "peer", "its value", "ratio", "quartiles", "bar", "")


class Skipped(Exception):
    """A program reports that its row cannot be measured here."""


class Failed(Exception):
    """A program could not be run, or did not print a number."""


def tell(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


# --- measuring ---------------------------------------------------------------

def call(program, row):
    """The number that `program` prints for `row`."""
    try:
        done = subprocess.run([str(program), row], capture_output=True, text=True,
                              timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Failed(f"{program.name} {row}: {e}") from e
    if done.returncode == SKIPPED:
        raise Skipped(f"{row} is left out: {program.name}: {done.stderr.strip()}")
    if done.returncode != 0:
        raise Failed(f"{program.name} {row}: exit {done.returncode}: {done.stderr.strip()}")
    try:
        value = float(done.stdout)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise Failed(f"{program.name} {row}: printed {done.stdout.strip()!r}")
    return value


def measure_pairs(weft, peer, row, pairs):
    """The values of both, from `pairs` pairs."""
    ours, theirs = [], []
    for i in range(pairs):
        both = [(weft, ours), (peer, theirs)]
        for program, values in both if i % 2 == 0 else reversed(both):
            values.append(call(program, row))
    return ours, theirs


def ratios(row, ours, theirs):
    """One ratio per pair; above 1 if weft is better."""
    if row.better == "lower":
        return [b / a for a, b in zip(ours, theirs)]
    return [a / b for a, b in zip(ours, theirs)]


def short(value):
    """A number, rounded to four significant digits."""
    return None if value is None else float(f"{value:.4g}")


def result(row, peer, ours, theirs):
    """One line of results, with or without a peer."""
    middle = q1 = q3 = None
    if peer:
        q1, middle, q3 = statistics.quantiles(ratios(row, ours, theirs), n=4,
                                              method="inclusive")
    return {"bench": row.name, "weft": short(statistics.median(ours)), "unit": row.unit,
            "peer": peer.name if peer else "-",
            "peer_value": short(statistics.median(theirs)) if peer else None,
            "ratio": short(middle), "q1": short(q1), "q3": short(q3), "runs": len(ours),
            "bar": peer.bar if peer else row.bar}


def below(r, row):
    """Whether a result misses its bar."""
    if r["bar"] is None:
        return False
    if r["ratio"] is not None:
        return r["ratio"] < r["bar"]
    return r["weft"] > r["bar"] if row.better == "lower" else r["weft"] < r["bar"]


class Session:
    """One run: its programs, and what failed or was missing."""

    def __init__(self, programs, pairs):
        self.programs, self.pairs = programs, pairs
        self.failed, self.missing = False, {}

    def there(self, row, program):
        """Whether a program was built; records the row if not."""
        if (self.programs / program).exists():
            return True
        self.missing.setdefault(program, []).append(row.name)
        return False

    def measure(self, row, peer):
        """A result, or None."""
        weft = self.programs / row.weft
        try:
            if peer:
                return result(row, peer, *measure_pairs(
                    weft, self.programs / peer.program, row.name, self.pairs))
            return result(row, None, [call(weft, row.name) for _ in range(self.pairs)], [])
        except (Skipped, Failed) as e:
            tell(e)
            self.failed = self.failed or isinstance(e, Failed)
            return None

    def run(self, table):
        """Yield the results of all rows that can be measured."""
        for row in table:
            if not self.there(row, row.weft):
                continue
            for peer in row.peers or (None,):
                if peer and not self.there(row, peer.program):
                    continue
                r = self.measure(row, peer)
                if r:
                    yield r
        for program, names in self.missing.items():
            tell(f"{program} is not built: left out {', '.join(dict.fromkeys(names))}")


# --- showing -----------------------------------------------------------------

def number(value):
    """1234.5 as 1,234 and 0.01234 as 0.0123."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def cells(r, row):
    """A result as strings, in the order of HEAD."""
    bar = "" if r["bar"] is None else number(r["bar"])
    if r["ratio"] is None:
        shown = ("-", "", "", "")
        bar = bar and f"{'at most' if row.better == 'lower' else 'at least'} {bar}"
    else:
        shown = (r["peer"], f'{number(r["peer_value"])} {r["unit"]}', f'{number(r["ratio"])}x',
                 f'[{number(r["q1"])}..{number(r["q3"])}]')
        bar = bar and f"{bar}x"
    verdict = "" if r["bar"] is None else "BELOW" if below(r, row) else "ok"
    return (r["bench"], f'{number(r["weft"])} {r["unit"]}', *shown, bar, verdict)


def print_table(lines):
    lines = [HEAD] + lines
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    for line in lines:
        texts = [text.ljust(width) if i in (0, 2, 5, 7) else text.rjust(width)
                 for i, (text, width) in enumerate(zip(line, widths))]
        print("  ".join(texts).rstrip())


def print_markdown(lines):
    print("| row | weft | peer | its value | ratio | quartiles | bar |")
    print("|---|---:|---|---:|---:|---|---:|")
    for line in lines:
        bar = f"{line[6]}, missed" if line[7] == "BELOW" else line[6]
        print("| " + " | ".join((f"`{line[0]}`", *line[1:6], bar)) + " |")


def show(results, by_name, options):
    """Print results in the requested form; returns whether any misses its bar."""
    kept = []
    for r in results:
        kept.append(r)
        if options.json:
            print(json.dumps(r), flush=True)
        elif sys.stderr.isatty():
            tell(" ".join(text for text in cells(r, by_name[r["bench"]]) if text))
    lines = [cells(r, by_name[r["bench"]]) for r in kept]
    if options.markdown:
        print_markdown(lines)
    elif not options.json:
        print_table(lines)
    if options.svg:
        for path in plot.write(options.svg, kept):
            tell(f"wrote {path}")
    return any(below(r, by_name[r["bench"]]) for r in kept)


# --- the command -------------------------------------------------------------

def chosen(table, pattern):
    if not pattern:
        return list(table)
    if any(ch in pattern for ch in "*?["):
        return [row for row in table if fnmatch.fnmatchcase(row.name, pattern)]
    return [row for row in table if pattern in row.name]


def programs_of(build):
    """The directory of a build's benchmark programs."""
    return build / "programs" if (build / "programs").is_dir() else build


def against(table, other):
    """The rows, each with the program of another build as its only peer."""
    programs = programs_of(other).resolve()
    return [row._replace(peers=(Peer("before", str(programs / row.weft), BEFORE),))
            for row in table]


def kept_results(path, names):
    """Results from a file of --json lines."""
    with path.open(encoding="utf-8") as f:
        return [r for r in map(json.loads, filter(str.strip, f)) if r["bench"] in names]


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", metavar="FILTER")
    parser.add_argument("--build", type=Path, metavar="DIR", default=Path("build/bench"))
    parser.add_argument("--from", type=Path, metavar="FILE", dest="file")
    parser.add_argument("--pairs", type=int, metavar="N", default=PAIRS)
    parser.add_argument("--svg", type=Path, metavar="DIR")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--against", type=Path, metavar="OTHER")
    parser.add_argument("--self-test", action="store_true")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--markdown", action="store_true")
    options = parser.parse_args(words)
    if options.pairs < PAIRS:
        parser.error(f"at least {PAIRS} pairs")
    return options


def run(words, table=rows.ROWS):
    """The command; returns its exit status."""
    options = parse(words)
    if options.self_test:
        return self_test()
    table = chosen(table, options.filter)
    if not table:
        tell(f"no row is called {options.filter}")
        return 2
    if options.against:
        table = against(table, options.against)
    by_name = {row.name: row for row in table}
    session = Session(programs_of(options.build), options.pairs)
    results = kept_results(options.file, by_name) if options.file else session.run(table)
    missed = show(results, by_name, options)
    return 1 if session.failed or (options.check and missed) else 0


# --- the self-test -----------------------------------------------------------

# Prints its next number at each call, and records the call.
FAKE = """#!/bin/sh
cd "$(dirname "$0")"
echo {name} "$1" >>calls
n=$(($(cat {name}.count 2>/dev/null || echo 0) + 1))
echo $n >{name}.count
[ "$1" != bad.row ] || exit 3
[ "$1" != no.row ] || {{ echo "too small" >&2; exit 77; }}
[ "$1" != bad.text ] || {{ echo nothing; exit 0; }}
set -- {values}
shift $(((n - 1) % {count}))
echo "$1"
"""


def fake(folder, name, values):
    path = folder / name
    path.write_text(FAKE.format(name=name, values=" ".join(map(str, values)),
                                count=len(values)))
    path.chmod(0o755)


def silently(words, table):
    """The status of a command and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(words, table)
    return status, out.getvalue(), err.getvalue()


def expect(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: {got!r}, should be {want!r}")


def check_figures(folder, build):
    """Median, quartiles, direction, order of calls and format of a line."""
    table = (Row("t.lower", "ns", "ours", (Peer("them", "theirs", 2),)),
             Row("t.higher", "1/s", "ours", (Peer("them", "theirs", 0.1),), better="higher"))
    status, out, _ = silently([*build, "--json"], table)
    lines = [json.loads(line) for line in out.splitlines()]
    expect("status", status, 0)
    # Ratios 2, 2.5, ... 6: the median is 4, the quartiles are 3 and 5.
    expect("lower", lines[0], {
        "bench": "t.lower", "weft": 10.0, "unit": "ns", "peer": "them", "peer_value": 40.0,
        "ratio": 4.0, "q1": 3.0, "q3": 5.0, "runs": 9, "bar": 2})
    expect("higher", [lines[1][key] for key in ("ratio", "q1", "q3")], [0.25, 0.2, 0.3333])
    calls = (folder / "calls").read_text().split("\n")[:6]
    expect("order", [line.split()[0] for line in calls],
           ["ours", "theirs", "theirs", "ours", "ours", "theirs"])


def check_bars(build):
    """A row below its bar is reported, and fails only with --check."""
    table = (Row("t.good", "ns", "ours", (Peer("them", "theirs", 4),)),
             Row("t.bad", "ns", "ours", (Peer("them", "theirs", 4.1),)),
             Row("t.big", "bytes", "ours", bar=9), Row("t.small", "bytes", "ours", bar=10))
    status, out, _ = silently(build, table)
    expect("verdicts", [line.split()[-1] for line in out.splitlines()[1:]],
           ["ok", "BELOW", "BELOW", "ok"])
    expect("no check", status, 0)
    expect("check", silently([*build, "--check"], table)[0], 1)
    expect("check of the good", silently([*build, "t.good", "--check"], table)[0], 0)
    status, out, _ = silently([*build, "--json", "t.big"], table)
    expect("no peer", [json.loads(out)[key] for key in ("peer", "ratio", "weft", "bar")],
           ["-", None, 10.0, 9])


def check_trouble(build):
    """Programs that fail, print no number, or are not built."""
    peers = (Peer("them", "theirs", 1),)
    table = (Row("bad.row", "ns", "ours", peers), Row("bad.text", "ns", "ours", peers),
             Row("t.gone", "ns", "nobody", peers), Row("t.good", "ns", "ours", peers))
    status, out, err = silently([*build, "--json"], table)
    expect("failed", status, 1)
    expect("the rest is measured", len(out.splitlines()), 1)
    for text in ("exit 3", "'nothing'", "nobody is not built: left out t.gone"):
        expect(text, text in err, True)
    expect("left out", silently([*build, "--json", "t.*"], table)[0], 0)
    status, _, err = silently([*build, "no.row"], (Row("no.row", "ns", "ours"),))
    expect("skipped", (status, "no.row is left out: ours: too small" in err), (0, True))
    expect("no such row", silently([*build, "none"], table)[0], 2)


def check_forms(folder, build):
    """Markdown, plots, and results saved in a file."""
    table = (Row("a.x", "ns", "ours", (Peer("<them>", "theirs", 1),)),
             Row("a.y", "ns", "theirs", (Peer("them", "ours", 1),)),
             Row("b.z", "bytes", "ours", bar=99))
    kept = folder / "kept"
    kept.write_text(silently([*build, "--json"], table)[1])
    again = ["--from", str(kept), "--svg", str(folder / "svg"), "--markdown"]
    status, out, _ = silently(again, table)
    expect("kept", (status, len(out.splitlines())), (0, 5))
    expect("missed", "| 1x, missed |" in out, True)
    expect("plots", [p.name for p in (folder / "svg").iterdir()], ["a.svg"])
    picture = ElementTree.parse(folder / "svg" / "a.svg").getroot()
    bars = [e.get("class") for e in picture.iter() if e.tag.endswith("rect")]
    expect("bars", bars, ["bar", "behind"])


def check_against(folder, build):
    """Another build replaces the peers."""
    other = folder / "other"
    other.mkdir()
    fake(other, "ours", [11])
    table = (Row("t.lower", "ns", "ours", (Peer("them", "theirs", 2),)), Row("t.big", "ns", "ours"))
    status, out, _ = silently([*build, "--json", "--against", str(other)], table)
    expect("against", [(line["bench"], line["peer"], line["ratio"], line["bar"])
                       for line in map(json.loads, out.splitlines())],
           [("t.lower", "before", 1.1, BEFORE), ("t.big", "before", 1.1, BEFORE)])
    fake(other, "ours", [9])
    expect("slower", silently([*build, "--check", "--against", str(other)], table)[0], 1)


def self_test():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "programs").mkdir()
        build = ["--build", str(folder)]

        def fresh():
            for path in (folder / "programs").iterdir():
                path.unlink()
            fake(folder / "programs", "ours", [10])
            fake(folder / "programs", "theirs", [60, 20, 55, 25, 50, 30, 45, 35, 40])

        for check in (lambda: check_figures(folder / "programs", build),
                      lambda: check_bars(build), lambda: check_trouble(build),
                      lambda: check_forms(folder, build),
                      lambda: check_against(folder, build)):
            fresh()
            check()
    print("bench: self-test passed")
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
