#!/usr/bin/env python3
"""Check that a recording is a well-formed Chrome trace and contains what the program did.

    check.py RECORD     run the program RECORD and check its output
    check.py --self-test    plant errors in a small trace and check that each is found
"""
import json
import subprocess
import sys
from collections import defaultdict

PHASES = {"timers", "inbox", "threadlets", "wait", "done", "immediates", "closing",
          "microtasks"}


class Fault(Exception):
    """An error in a trace."""


def must(condition, text):
    if not condition:
        raise Fault(text)


def nanoseconds(us):
    return round(us * 1000)


def spans_of(events):
    """The spans of each track as (begin, end, event), in the order of the file."""
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            begin = nanoseconds(event["ts"])
            tracks[event["tid"]].append((begin, begin + nanoseconds(event["dur"]), event))
    return tracks


def check_fields(events):
    pids = set()
    for event in events:
        for field in ("ph", "pid", "tid", "name", "ts"):
            must(field in event, f"no {field} in {event}")
        must(event["ph"] in "MXisf", f"an unknown kind in {event}")
        must(event["ts"] >= 0 and event.get("dur", 0) >= 0, f"a time below zero in {event}")
        must(("dur" in event) == (event["ph"] == "X"), f"dur in {event}")
        must(0 <= event["tid"] < 2 ** 31, f"a track out of range in {event}")
        pids.add(event["pid"])
    must(len(pids) == 1, "more than one process")
    must(events[0]["name"] == "process_name" and events[0]["args"]["name"], "no process")
    must(events[-1]["name"] == "dropped_events", "it does not say what was dropped")


def check_names(events):
    names = [e["tid"] for e in events if e["name"] == "thread_name"]
    must(len(names) == len(set(names)), "a track has two names")
    used = {e["tid"] for e in events if e["ph"] != "M"}
    must(used <= set(names), "a track has no name")


def check_nesting(events):
    """Spans of a track are nested or disjoint, in the order of their ends."""
    for track, spans in spans_of(events).items():
        ends = [end for _, end, _ in spans]
        must(ends == sorted(ends), f"track {track} goes back")
        stack = []
        ordered = sorted(enumerate(spans), key=lambda s: (s[1][0], -s[1][1], -s[0]))
        for _, (begin, end, event) in ordered:
            while stack and stack[-1] <= begin:
                stack.pop()
            must(not stack or end <= stack[-1], f"spans overlap on track {track}: {event}")
            if end > begin:
                stack.append(end)


def check_flows(events):
    """Each arrow has two ends, forward in time, and each end is inside a span of its
    track."""
    spans = spans_of(events)
    ends = defaultdict(list)
    for event in events:
        if event["ph"] in "sf":
            ends[event["id"]].append(event)
    for number, pair in ends.items():
        must([e["ph"] for e in pair] == ["s", "f"], f"arrow {number} has not two ends")
        must(pair[0]["ts"] <= pair[1]["ts"], f"arrow {number} goes back")
        must(pair[0]["name"] == pair[1]["name"], f"arrow {number} has two names")
        must(pair[1].get("bp") == "e", f"arrow {number} ends at the next span")
        for event in pair:
            at = nanoseconds(event["ts"])
            must(any(begin <= at <= end for begin, end, _ in spans[event["tid"]]),
                 f"an end of arrow {number} lies in no span")
    return ends


def check_form(events):
    check_fields(events)
    check_names(events)
    check_nesting(events)
    return check_flows(events)


def counts_of(events):
    counts = defaultdict(int)
    for event in events:
        counts[event["ph"], event["name"].split(" ")[0]] += 1
    return counts


def check_contents(events, flows):
    names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    counts = counts_of(events)
    arrows = defaultdict(int)
    for pair in flows.values():
        arrows[pair[0]["name"]] += 1

    must(sum("(first)" in n or "(second)" in n for n in names) == 2, f"loops: {names}")
    must(sum("(player)" in n for n in names) == 1, "the player is not there")
    must(sum("(child" in n or ".c:" in n for n in names) >= 10, "children have no tracks")
    must(any(n.startswith("weft-cpu ") for n in names), "threads of the pool have no track")
    must(any(n.startswith("thread ") for n in names), "the plain thread has no track")
    # The plain thread makes 100 posts that post again, and posts one node.
    # The ten children make one each, which post again: 110 more.  And the last one.  The
    # other posts start threadlets or belong to the graph.
    must(arrows["post"] >= 100 + 1 + 10 + 110 + 1, f"arrows of posts: {dict(arrows)}")
    must(arrows["work"] >= 5, f"arrows of work: {dict(arrows)}")
    # a-b, a-c, b-list, c-list, list-each 4 times, each-last; three runs.
    must(arrows["edge"] == 3 * 9, f"arrows of edges: {dict(arrows)}")
    for name, count in (("a", 3), ("b", 3), ("c", 3), ("list", 3), ("each", 12), ("last", 3)):
        must(sum(e["name"] == name and e.get("cat") == "dag" for e in events) == count,
             f"steps of {name}")
    must(counts["X", "turn"] > 3 and counts["X", "wait"] > 3, "no turns, or no waits")
    must(counts["X", "threadlets"] > 3 and counts["X", "inbox"] > 3, "no phases")
    must(counts["X", "sleep"] >= 10 and counts["X", "ready"] >= 10, "no waits of threadlets")
    must(counts["i", "begin"] >= 11 and counts["i", "end"] >= 11, "no begins, or no ends")
    must(events[-1]["args"]["count"] == 0, "something was dropped")


def record(program, *args):
    done = subprocess.run([program, *args], stdout=subprocess.PIPE, check=True, timeout=250)
    return json.loads(done.stdout.decode("utf-8"))


def check(program):
    events = record(program)
    check_contents(events, check_form(events))
    few = record(program, "40000")
    check_form(few)
    must(few[-1]["args"]["count"] > 0, "nothing was dropped, for all its little memory")
    print(f"{len(events)} events are in order, and {len(few)} of a full recording")


# --- planted errors ------------------------------------------------------------

def sample():
    at = {"pid": 1, "tid": 1}
    return [
        {"ph": "M", "pid": 1, "tid": 0, "ts": 0, "name": "process_name", "args": {"name": "p"}},
        {"ph": "M", "name": "thread_name", "ts": 0, "args": {"name": "loop"}, **at},
        {"ph": "X", "name": "inner", "ts": 1.5, "dur": 0.5, **at},
        {"ph": "X", "name": "outer", "ts": 1.0, "dur": 2.0, **at},
        {"ph": "s", "name": "post", "id": 1, "ts": 1.5, **at},
        {"ph": "f", "name": "post", "id": 1, "ts": 2.5, "bp": "e", **at},
        {"ph": "M", "pid": 1, "tid": 0, "ts": 0, "name": "dropped_events", "args": {"count": 0}},
    ]


def plant(index, **changes):
    events = sample()
    events[index].update(changes)
    return events


def self_test():
    check_form(sample())
    faults = {
        "overlap": plant(2, dur=3.0), "order": plant(2, ts=2.0, dur=3.0),
        "no name": plant(1, tid=2), "flow back": plant(4, ts=2.9),
        "outside": plant(5, ts=9.0), "one end": sample()[:5] + sample()[6:],
        "pid": plant(3, pid=2), "below zero": plant(2, ts=-1.0), "kind": plant(2, ph="B"),
        "no tail": sample()[:-1], "binding": plant(5, bp="n"),
    }
    for name, events in faults.items():
        try:
            check_form(events)
        except Fault:
            continue
        raise SystemExit(f"not found: {name}")
    print(f"{len(faults)} planted faults are found")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        check(sys.argv[1])


try:
    main()
except Fault as fault:
    sys.exit(f"trace: {fault}")
