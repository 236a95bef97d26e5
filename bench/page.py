#!/usr/bin/env python3
"""Write the page of results, docs/bench/README.md, and its plots, from docs/bench/results.jsonl.

    bench/page.py               write the page and the plots
    bench/page.py --add FILE    first put the results of FILE into results.jsonl: lines saved by
                                `./dev bench --json`, which replace those of the same row and peer
    bench/page.py --check       write nothing; report what differs; exit status 1 if anything does
    bench/page.py --self-test   plant each difference and find it

The page has every row and peer of rows.py.  Those without a result are "not measured".  --check
also compares README.md: where a table there names a row, the line must end as on the page.
"""
import argparse
import json
import sys
import tempfile
import textwrap
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import plot
import rows
import run

FOLDER = Path("docs/bench")
HEAD = ("| row | weft | peer | its value | ratio | quartiles | bar |\n"
        "|---|---:|---|---:|---:|---|---:|")
TOP = """# Benchmarks

`bench/page.py` wrote this page from [`results.jsonl`](results.jsonl). It has every row of
`./dev bench`, also those that miss their bar.

Measured on two virtual cores, on several machines. A row and a peer are measured in nine pairs of
runs, weft and peer one after the other. The values are medians. The ratio is the median of the
nine ratios, and is above 1 if weft is better, whatever the unit; `quartiles` are its first and
third. The bar is the minimum ratio that we set ourselves, or for rows without a peer the limit of
the value; "missed" marks rows below it. "Not measured" marks rows without a result on these
machines.

To measure, run `./dev bench --json >new.jsonl`, or `./dev bench FILTER --json` for some rows. Then
`bench/page.py --add new.jsonl` updates this page.

`./dev bench --instructions` counts the instructions per operation of the rows that are pure CPU
work, and of their peers in C, C++ and Python. Counts do not depend on the machine's speed or load.
Those of weft are stored in `bench/instructions.json`; `./dev test` fails if one has grown by more
than 3 %.
"""

# The groups of rows, by the first word of their names, in the order of the page.
GROUPS = {
    "timer": ("Timers",
        "Start and stop a timer, move a timer, and fire a timer, while 100,000 or a "
        "million others are armed. CPU time per operation."),
    "post": ("Posts",
        "Calls handed to a loop by one other thread, or by two. Wall time per call."),
    "wake": ("Waking a loop",
        "Two loops on two cores that wake each other in turn: while they spin, and while "
        "they sleep in the kernel. Wall time per round trip."),
    "turn": ("Loop iterations",
        "One iteration of a loop with one callback and no events; `turn.metrics` compares "
        "a loop that measures itself with one that does not."),
    "echo": ("Echo servers",
        "CPU time of an echo server per message of 64 bytes, with callbacks or "
        "threadlets, on 64, 512 or 1,000 connections, on io_uring or epoll."),
    "udp": ("Datagrams",
        "CPU time of a UDP echo server per message of 64 bytes."),
    "conn": ("Idle connections",
        "Resident memory of a connection that waits: a threadlet without a buffer, a "
        "threadlet with 4 KiB on its stack, a callback. `conn.idle.100k` is the CPU time "
        "of one of 100,000 connections, from its start to its end."),
    "stream": ("Queued writes",
        "CPU time of a write in a queue of a million, compared with as many in queues of "
        "a thousand."),
    "loop": ("Loops",
        "Create and free a loop, without and with an iteration in between; the memory of "
        "an idle loop."),
    "watch": ("Watches",
        "Memory of a watch on a descriptor."),
    "threadlet": ("Threadlets",
        "Pass control to another threadlet; start a threadlet and wait for its end. CPU "
        "time. `threadlet.memory.1e6` is the resident memory of one of a million "
        "threadlets."),
    "chan": ("Channels",
        "A value of 8 bytes from one threadlet to another: on one loop (CPU time), or "
        "from one loop to another (wall time). `deep`: with three more frames on either "
        "stack."),
    "mutex": ("Locks",
        "Lock and unlock a mutex that no other code wants."),
    "sleep": ("Sleeping",
        "10,000 threadlets that each sleep 1 ms, a hundred times: wall time, divided by "
        "the ideal of 100 ms."),
    "work": ("Thread pools",
        "A call on a thread of a pool and back. Wall time."),
    "promise": ("Promises",
        "Handlers of a chain of a million promises, or of chains of a thousand; creating "
        "and settling one; one of a thousand promises in `all`, settled before or after "
        "that call. CPU time, V8's own threads included."),
    "microtask": ("Microtasks",
        "A microtask that queues the next one. CPU time."),
    "timeout": ("Timeouts",
        "Set and clear a timer with an ID. CPU time."),
    "js": ("Scripts",
        "The same scripts with `weft run` and with Node: set and clear a timeout, fire "
        "one of a million timeouts, start and end the program with an empty script."),
    "dag": ("Graphs",
        "Wall time per step of nearly empty steps: a chain, a fan, layers of random "
        "edges; `dag.diamond` is the time of a whole graph of four steps."),
    "http": ("HTTP",
        "A server in a process of its own: CPU time per request for a short text or a "
        "file of 100 KB, replies per second to pipelined requests, the latency of "
        "requests among 10,000 idle peers and 1,000 that send one byte per second, and "
        "the throughput at twice the peak load. `http.parse` is the parser alone."),
    "admin": ("The admin endpoint",
        "CPU time per HTTP request while a client reads the events of the dashboard, "
        "compared with an unused endpoint."),
    "store": ("The embedded store",
        "CPU time of the store per GET, 16 in flight on each of 50 connections."),
    "tls": ("TLS",
        "CPU time of a server per full handshake, and per record of 16 KB."),
    "redis": ("Redis client",
        "GET of short texts on one connection: with a hundred in flight, or one; `rtt`: "
        "through a proxy that delays all bytes by half a millisecond each way."),
    "demo": ("The demo",
        "Replies per second, each a graph with a hundred Redis calls that are 1 ms away: "
        "one loop and the CPU pool, or blocking threads."),
    "py": ("Python",
        "asyncio loops with the same Python: CPU time per operation, or per message of an "
        "echo server with 32 connections (1 KB, 100 KB); wall time of a child process."),
}


def pairs(table):
    """Each row with each of its peers, or with None."""
    for row in table:
        for peer in row.peers or (None,):
            yield row, peer


def key_of(result):
    return result["bench"], result["peer"]


def name_of(row, peer):
    return row.name, peer.name if peer else "-"


def read(path):
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def merge(table, old, new):
    """The results, new ones instead of old ones, in the order of the table; those of other rows
    last."""
    found = {key_of(r): r for r in [*old, *new]}
    order = [key for key in (name_of(*pair) for pair in pairs(table)) if key in found]
    return [found[key] for key in [*order, *(key for key in found if key not in order)]]


def markdown(row, peer, result):
    """The line of the page for a row and a peer."""
    bar = peer.bar if peer else row.bar
    if result:
        texts = run.cells({**result, "bar": bar}, row)
        missed = ", missed" if texts[7] == "BELOW" else ""
        cells = [*texts[1:6], texts[6] + missed]
    else:
        limit = "" if bar is None else run.number(bar)
        sign = "at most " if row.better == "lower" else "at least "
        bar = limit and (f"{limit}x" if peer else sign + limit)
        cells = ["not measured", peer.name if peer else "-", "", "", "", bar]
    return "| " + " | ".join((f"`{row.name}`", *cells)) + " |"


def page(table, groups, results):
    """(the text of the page, its lines of rows)."""
    found = {key_of(r): r for r in results}
    plotted = {r["bench"].split(".")[0] for r in results if r["ratio"] is not None}
    parts, lines = [TOP], []
    for group, (title, text) in groups.items():
        mine = [markdown(*pair, found.get(name_of(*pair))) for pair in pairs(table)
                if pair[0].name.split(".")[0] == group]
        lines += mine
        image = f"![{title}: ratios]({group}.svg)\n\n" if group in plotted else ""
        above = f"## {title}\n\n{textwrap.fill(text, 100)}\n\n{image}"
        parts.append(above + "\n".join([HEAD, *mine]) + "\n")
    return "\n".join(parts), lines


def write(root, table, groups):
    folder = root / FOLDER
    results = read(folder / "results.jsonl")
    (folder / "README.md").write_text(page(table, groups, results)[0], encoding="utf-8")
    for old in folder.glob("*.svg"):
        old.unlink()
    plot.write(folder, results)


def check_rows(table, groups, results):
    """Yield a message for each row that the page or the results cannot have."""
    there = {name_of(*pair) for pair in pairs(table)}
    names = {row.name.split(".")[0] for row in table}
    for key in (key_of(r) for r in results):
        if key not in there:
            yield f"{FOLDER}/results.jsonl: rows.py has no row {key[0]} with the peer {key[1]}"
    for group in sorted(names - groups.keys()):
        yield f"bench/page.py: no text for the rows {group}.*"
    for group in sorted(groups.keys() - names):
        yield f"bench/page.py: there are no rows {group}.*"


def check_files(folder, text, results):
    """Yield a message for each file that differs from what write() makes."""
    with tempfile.TemporaryDirectory() as name:
        made = {path.name: path.read_text() for path in plot.write(Path(name), results)}
    made["README.md"] = text
    for path in sorted({*made, *(p.name for p in folder.glob("*.svg"))}):
        full = folder / path
        if (full.read_text() if full.is_file() else None) != made.get(path):
            yield f"{FOLDER}/{path}: differs from the results: run bench/page.py"


def check_readme(readme, table, lines):
    """Yield a message for each row in README.md that differs from the page."""
    names = {f"`{row.name}`" for row in table}
    shown = 0
    for number, line in enumerate(readme.read_text().splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and names.intersection(cells):
            shown += 1
            if not line.endswith(tuple(lines)):
                yield f"README.md:{number}: differs from {FOLDER}/README.md"
    if not shown:
        yield "README.md:1: shows no row of the benchmarks"


def findings(root, table, groups):
    folder = root / FOLDER
    results = read(folder / "results.jsonl")
    text, lines = page(table, groups, results)
    return [*check_rows(table, groups, results), *check_files(folder, text, results),
            *check_readme(root / "README.md", table, lines)]


# --- the self-test -----------------------------------------------------------

BOTH = (rows.Peer("them", "theirs", 2), rows.Peer("we", "b", None))
TABLE = (rows.Row("a.x", "ns", "ours", BOTH),
         rows.Row("a.z", "ns", "ours", (rows.Peer("them", "theirs", 3),)),
         rows.Row("b.y", "bytes", "ours", bar=9))
SAMPLE_GROUPS = {"a": ("A", "Rows."), "b": ("B", "More.")}
RESULT = {"bench": "a.x", "weft": 2.0, "unit": "ns", "peer": "them", "peer_value": 3.0,
          "ratio": 1.5, "q1": 1.4, "q3": 1.6, "runs": 9, "bar": 1}
LINE = "| `a.x` | 2 ns | them | 3 ns | 1.5x | [1.4..1.6] | 2x, missed |"
UNMEASURED = ["| `a.x` | not measured | we |  |  |  |  |",
              "| `a.z` | not measured | them |  |  |  | 3x |",
              "| `b.y` | not measured | - |  |  |  | at most 9 |"]


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


PLANTED = [
    ("differs from the results", lambda root: change(root / FOLDER / "README.md", "2 ns", "1 ns")),
    ("differs from the results", lambda root: (root / FOLDER / "a.svg").unlink()),
    ("differs from the results", lambda root: (root / FOLDER / "c.svg").write_text("")),
    ("README.md:2: differs", lambda root: change(root / "README.md", "3 ns", "4 ns")),
    ("shows no row", lambda root: change(root / "README.md", "`a.x`", "a.x")),
    ("has no row a.w", lambda root: change(root / FOLDER / "results.jsonl", "a.x", "a.w")),
]


def self_test():
    bad = []
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / FOLDER).mkdir(parents=True)

        def fresh():
            kept = merge(TABLE, [{**RESULT, "weft": 9.0}], [RESULT])
            (root / FOLDER / "results.jsonl").write_text(
                "".join(json.dumps(r) + "\n" for r in kept))
            (root / "README.md").write_text(f"A table:\n| what {LINE}\n")
            write(root, TABLE, SAMPLE_GROUPS)

        fresh()
        bad += [f"in a clean tree: {text}" for text in findings(root, TABLE, SAMPLE_GROUPS)]
        written = (root / FOLDER / "README.md").read_text().splitlines()
        bad += [f"not on the page: {line}" for line in [LINE, *UNMEASURED] if line not in written]
        for message, plant in PLANTED:
            fresh()
            plant(root)
            if not any(message in text for text in findings(root, TABLE, SAMPLE_GROUPS)):
                bad.append(f"not found: {message}")
        fresh()
        for groups, message in (({"a": ("A", "")}, "no text for the rows b"),
                                ({**SAMPLE_GROUPS, "c": ("C", "")}, "there are no rows c")):
            if not any(message in text for text in findings(root, TABLE, groups)):
                bad.append(f"not found: {message}")
    print("\n".join([*bad, f"page self-test: {len(PLANTED) + 2} planted, {len(bad)} wrong"]))
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", type=Path, metavar="FILE")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    if options.self_test:
        return self_test()
    if options.check:
        found = findings(root, rows.ROWS, GROUPS)
        print("\n".join(found), end="\n" if found else "")
        return 1 if found else 0
    if options.add:
        path = root / FOLDER / "results.jsonl"
        kept = merge(rows.ROWS, read(path), read(options.add))
        path.write_text("".join(json.dumps(r) + "\n" for r in kept), encoding="utf-8")
    write(root, rows.ROWS, GROUPS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
