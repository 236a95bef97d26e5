#!/usr/bin/env python3
"""Run DAG files with `weft dag` and check its behavior from outside.

    tests/dag/run.py WEFT [--nodes N] [WORD]    the tests whose names contain WORD

Every process that a test starts has the test's tag in its environment.  At the end of the test
none of them may be left.  No test waits for a fixed time: it waits for a file to appear.
"""
import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ among the sources
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "outside"))
from seen import PATIENCE, TESTS, check, equal, test, wait_until  # noqa: E402


class Place:
    """A folder with a DAG file, and runs of it."""

    def __init__(self, weft, folder, tag):
        self.weft, self.folder, self.tag = weft, Path(folder), tag
        self.file = self.folder / "x.dag"

    def write(self, text, name="x.dag"):
        (self.folder / name).write_text(text)

    def read(self, name):
        path = self.folder / name
        return path.read_text() if path.exists() else None

    def environment(self):
        return {**os.environ, "WEFT_TEST_TAG": self.tag, "LC_ALL": "C.UTF-8"}

    def start(self, *words, **more):
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen([self.weft, "dag", *map(str, words)], text=True,
                                stdin=subprocess.DEVNULL, env=self.environment(), **more)

    def end(self, process, status=0):
        out, err = process.communicate(timeout=PATIENCE)
        check(f"status {process.returncode}, not {status}\n{out}{err}",
              process.returncode == status)
        return out, err

    def run(self, *words, status=0):
        """Run x.dag.  Returns its standard output and error."""
        return self.end(self.start("run", self.file, *words), status)

    def left(self):
        """The processes of this test."""
        found = []
        mark = f"WEFT_TEST_TAG={self.tag}".encode()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes())
        return found

    def check_none_left(self):
        """Killed processes may take a moment to disappear."""
        wait_until("nothing is left", lambda: not self.left())


# --- runs ---------------------------------------------------------------------

@test
def values_go_from_node_to_node(place):
    place.write("""
        input greeting = hello
        node names
            run     printf 'ann\\nbob\\n\\ncy'
            output  lines
        node greet each names
            run     echo "$greeting <$item>"
        node all
            needs   greet
            env     WHO="for $greeting"
            run     echo "$greet" | tr '\\n' '|'; echo "$WHO"
        node count
            stdin   names
            run     wc -l
    """)
    out, _ = place.run("greeting=hi there")
    equal(sorted(out.split("\n")),
          ["", "all: hi there <ann>|hi there <bob>|hi there <>|hi there <cy>|for hi there",
           "count: 4"])
    check("the state is gone", not (place.folder / "x.dag.state").exists())


@test
def a_script_stops_at_the_first_command_that_fails(place):
    place.write("node a\nrun touch one\nrun false\nrun touch two\n")
    _, err = place.run(status=1)
    check(err, "a: failed" in err and "exit status 1" in err)
    check("the first line", (place.folder / "one").exists())
    check("the third line", not (place.folder / "two").exists())


@test
def the_last_line_of_standard_error_says_why(place):
    place.write("node a\nrun echo first >&2; echo the reason >&2; exit 7\n")
    _, err = place.run("--quiet", status=1)
    equal(err.split("\n")[:2], ["a: first", "a: the reason"])
    check(err, re.search(r"weft: a: failed, .* s: exit status 7: the reason\n", err))


@test
def after_a_failure_nothing_begins_but_with_keep_going_all_that_can(place):
    place.write("""
        node bad
            run exit 1
        node behind
            after bad
            run touch behind
        node aside
            run touch aside
            priority -1
        node last
            after aside
            run touch last
    """)
    for _ in range(20):  # a fast command could finish before the run has stopped it
        _, err = place.run("--jobs", 1, status=1)
        check(err, "0 done, 1 failed, 0 skipped, 3 not begun" in err)
    _, err = place.run("--keep-going", status=1)
    check(err, "2 done, 1 failed, 0 skipped, 1 not begun" in err)
    check("last ran", (place.folder / "last").exists())
    check("behind did not", not (place.folder / "behind").exists())


@test
def a_node_is_tried_again_then_goes_on_without_if_it_may(place):
    place.write("""
        node flaky
            run echo x >> tries; [ $(wc -l < tries) -ge 3 ]
            retries 2  backoff 1ms
        node never
            run echo y >> other; false
            retries 1  optional "a default"
        node lines
            run false
            output lines  optional "1\\n2"
        node each1 each lines
            run echo "<$item>"
        node all
            needs never each1
            run echo "$never $each1"
    """)
    out, err = place.run()
    equal(out, "all: a default <1>\nall: <2>\n")
    equal(place.read("tries"), "x\n" * 3)
    equal(place.read("other"), "y\n" * 2)
    check(err, "it will be tried again" in err and "the run continues without it" in err)


@test
def conditions_skip_nodes_and_those_behind_find_nothing(place):
    place.write("""
        input mode = debug
        node fast  when $mode = release
            run echo fast
        node slow  when $mode != release
            run echo slow
        node some
            run echo no
        node off  when $some  needs some
            run echo off
        node items each off2
            run echo never
        node off2  when ""
            run echo never
            output lines
        node all
            needs fast slow off items
            run echo "[$fast] [$slow] [$off] [$items]"
    """)
    out, err = place.run()
    equal(out, "all: [] [slow] [] []\n")
    check(err, " 3 skipped" in err)
    out, _ = place.run("mode=release")
    equal(out, "all: [fast] [] [] []\n")


@test
def folders_are_found_from_where_the_file_is(place):
    place.write("input where = b\nnode a\nrun pwd\nnode c\nrun pwd\ndir a/$where\n"
                "node d\nrun pwd\ndir /\n")
    (place.folder / "a" / "b").mkdir(parents=True)
    out, _ = place.run()
    here = os.path.realpath(place.folder)
    equal(sorted(out.split("\n")), ["", f"a: {here}", f"c: {here}/a/b", "d: /"])
    _, err = place.run("where=z", status=1)
    check(err, "there is no directory" in err)


@test
def what_is_too_large_for_a_variable_goes_by_standard_input(place):
    place.write("""
        node large
            run head -c 3000000 /dev/zero | tr '\\0' x
        node wrong
            needs large
            run :
            optional
        node right
            stdin large
            run wc -c
        node unread
            stdin large
            run echo no
    """)
    out, err = place.run()
    equal(sorted(out.split("\n")), ["", "right: 3000001", "unread: no"])
    check(err, "pass large values by stdin" in err)


@test
def an_output_has_a_bound_and_is_a_text(place):
    place.write("node a\nrun yes\noutput text\nnode b\nrun printf 'a\\0b'\noutput text\n")
    _, err = place.run("--keep-going", status=1)
    check(err, "the output is larger than 16777216 bytes" in err)
    check(err, "the output contains a zero byte" in err)


@test
def what_stays_in_the_background_is_not_waited_for(place):
    place.write("node a\nrun (while [ ! -e go ]; do sleep 0.02; done; touch late) &\n"
                "run echo here\n")
    out, _ = place.run()
    equal(out, "a: here\n")
    place.write("", "go")
    wait_until("it ends by itself", lambda: (place.folder / "late").exists())
    place.check_none_left()


# --- values are data ------------------------------------------------------------

@test
def values_are_never_commands(place):
    bad = ["$(touch pwned)", "`touch pwned`", "; touch pwned", "' ; touch pwned ; '",
           '" ; touch pwned ; "', "-n", "a  b", "$HOME", "\\", "*", "| touch pwned",
           "&& touch pwned", "$item", "${IFS}", "%s%n", "\x1b[31m"]
    place.write("""
        input list
        input one
        node echoed each list
            run printf '%s\\n' "$item"
        node again each echoed
            run printf '%s\\n' "$item" "$one" > "out.$$"; cat "out.$$"; rm "out.$$"
            env E=x$item
            dir .
        node all
            needs again
            run printf '%s\\n' "$again" > all
    """)
    one = "line one\nline two; touch pwned"
    place.end(place.start("run", place.file, "list=" + "\n".join(bad), "one=" + one))
    equal(place.read("all"), "".join(f"{item}\n{one}\n" for item in bad))
    equal(sorted(entry.name for entry in place.folder.iterdir()), ["all", "x.dag"])


@test
def only_inputs_of_the_file_can_be_set(place):
    place.write("input a\nnode x\nrun echo $a\n")
    for words, said in ((["LD_PRELOAD=x"], "has no input LD_PRELOAD"), (["a"], "NAME=VALUE"),
                        ([], "the input a has no value")):
        _, err = place.end(place.start("run", place.file, *words), 2)
        check(err, said in err)


# --- concurrency ------------------------------------------------------------------

MEET = """
        node n{0}
            run touch here.{0}
            run while [ $(ls here.* | wc -l) -lt 3 ]; do sleep 0.01; done
"""


@test
def so_many_commands_run_at_once_as_jobs_says(place):
    place.write("".join(MEET.format(i) for i in range(3)))
    place.run("--jobs", 3)
    place.write("".join(f"node n{i}\nrun mkdir busy; rmdir busy\n" for i in range(20)))
    place.run("--jobs", 1)


@test
def a_limit_holds_for_those_that_name_it(place):
    place.write("limit one = 1\n" + "".join(
        f"node n{i}\nrun mkdir busy; rmdir busy\nlimit one\n" for i in range(20))
        + "".join(MEET.format(f"m{i}") for i in range(3)))
    place.run("--jobs", 4)


@test
def of_those_that_wait_the_highest_priority_goes_first(place):
    place.write("node first\nrun while [ ! -e go ]; do sleep 0.01; done\npriority 9\n"
                + "".join(f"node n{i}\nrun echo {i} >> log\npriority {i % 8}\n"
                          for i in range(24)))
    process = place.start("run", "--jobs", 1, place.file)
    wait_until("all wait", lambda: place.left())
    place.write("", "go")
    place.end(process)
    order = [int(line) for line in place.read("log").split()]
    equal(order, sorted(range(24), key=lambda i: (-(i % 8), i)))


@test
def a_high_priority_goes_before_those_that_have_waited_longer(place):
    place.write("node gate\nrun :\npriority 9\n"
                + "".join(f"node low{i}\nrun echo low >> log\n" for i in range(4))
                + "".join(f"node high{i}\nafter gate\nrun echo high >> log\npriority 5\n"
                          for i in range(3)))
    place.run("--jobs", 1)
    equal(place.read("log").split(), ["low"] + ["high"] * 3 + ["low"] * 3)


# --- timeouts and signals ---------------------------------------------------------

STUBBORN = """
        node stubborn
            run trap '' TERM; touch begun; while :; do sleep 0.05; done
"""
POLITE = """
        node polite
            run sh -c 'trap "sleep 0.1; touch cleaned; exit" TERM; touch begun
            run while :; do sleep 0.02; done'
"""


@test
def a_timeout_ends_all_of_a_process_group(place):
    place.write("""
        node a
            run (trap '' TERM; while :; do sleep 0.05; done) & sleep 1000 &
            run (sleep 1000 &)
            run while :; do sleep 0.05; done
            timeout 100ms
    """)
    _, err = place.run(status=1)
    check(err, "a: failed" in err and "timed out" in err)
    place.check_none_left()


@test
def a_timeout_does_not_count_the_wait_for_a_job(place):
    place.write("node a\nrun sleep 2.5\npriority 1\n"
                "node b\nrun touch b\ntimeout 2s\n")
    place.run("--jobs", 1)


@test
def the_deadline_ends_all(place):
    place.write(POLITE + "node b\nafter polite\nrun touch b\n")
    _, err = place.run("--deadline", "1s", status=1)
    check(err, "timed out" in err)
    check("cleaned up", (place.folder / "cleaned").exists()
          or not (place.folder / "begun").exists())
    check("b did not run", not (place.folder / "b").exists())
    place.check_none_left()


@test
def the_first_signal_gives_a_grace(place):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        place.write(POLITE + "node b\nafter polite\nrun touch b\n")
        process = place.start("run", place.file)
        wait_until("it runs", lambda: (place.folder / "begun").exists())
        process.send_signal(number)
        _, err = place.end(process, 128 + number)
        check(err, "polite: ended early" in err)
        check("cleaned up", (place.folder / "cleaned").exists())
        check("b did not run", not (place.folder / "b").exists())
        place.check_none_left()
        for name in ("begun", "cleaned"):
            (place.folder / name).unlink()


@test
def the_second_signal_kills(place):
    place.write(STUBBORN)
    process = place.start("run", "--grace", "1h", place.file)
    wait_until("it runs", lambda: (place.folder / "begun").exists())
    process.send_signal(signal.SIGINT)
    line = process.stderr.readline()
    check(line, "a second signal kills them" in line)
    process.send_signal(signal.SIGINT)
    place.end(process, 130)
    place.check_none_left()


@test
def who_does_not_listen_is_killed_after_the_grace(place):
    place.write(STUBBORN)
    process = place.start("run", "--grace", "50ms", place.file)
    wait_until("it runs", lambda: (place.folder / "begun").exists())
    process.send_signal(signal.SIGINT)
    place.end(process, 130)
    place.check_none_left()


@test
def those_that_have_ended_leave_no_zombies(place):
    place.write("".join(f"node n{i}\nrun :\n" for i in range(50))
                + "node last\nafter " + " ".join(f"n{i}" for i in range(50))
                + "\nrun touch begun; while [ ! -e go ]; do sleep 0.01; done\n")
    process = place.start("run", place.file)
    wait_until("the last one runs", lambda: (place.folder / "begun").exists())
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    equal(len(children), 1)
    place.write("", "go")
    place.end(process)


@test
def a_reader_that_goes_away_ends_nothing(place):
    place.write("node a\nrun while [ ! -e go ]; do sleep 0.01; done\n"
                "run for i in 1 2 3; do echo $i; done; touch done\n")
    process = place.start("run", place.file)
    process.stdout.close()
    place.write("", "go")
    equal(process.wait(PATIENCE), 0)
    process.stderr.close()
    check("it went on", (place.folder / "done").exists())


# --- resuming -----------------------------------------------------------------------

RESUMED = """
        input mode = a
        node list
            run echo list >> log; printf '1\\n2\\n3\\n'
            output lines
        node step each list
            run echo "step $item" >> log
            run [ "$item" != 2 ] || [ -e fixed ] || [ $mode = b ]
            run echo "v$item"
        node gather
            needs step
            run echo gather >> log; echo "$step" | tr '\\n' ' '
        node aside
            run echo aside >> log
"""


def log(place):
    lines = (place.read("log") or "").split("\n")[:-1]
    (place.folder / "log").unlink(missing_ok=True)
    return sorted(lines)


@test
def a_resumed_run_does_only_what_is_left(place):
    place.write(RESUMED)
    place.run("--keep-going", status=1)
    equal(log(place), ["aside", "list", "step 1", "step 2", "step 3"])
    _, err = place.run("--resume", "--keep-going", status=1)
    equal(log(place), ["step 2"])
    check(err, "step[1]: done by the last run" in err)
    place.write("", "fixed")
    out, err = place.run("--resume")
    equal(log(place), ["gather", "step 2"])
    check(err, "4 restored from the last run" in err)
    equal(out, "gather: v1 v2 v3 \n")
    check("its state is gone", not (place.folder / "x.dag.state").exists())
    place.run("--resume")
    equal(log(place), ["aside", "gather", "list", "step 1", "step 2", "step 3"])


@test
def what_has_changed_is_run_again_with_all_behind_it(place):
    place.write(RESUMED)
    place.run("--keep-going", status=1)
    log(place)
    place.write(RESUMED.replace("3\\n'", "4\\n'"))
    place.run("--resume", "--keep-going", status=1)
    equal(log(place), ["list", "step 1", "step 2", "step 4"])
    place.write(RESUMED.replace("v$item", "w$item"))
    place.run("--resume", "--keep-going", status=1)
    equal(log(place), ["step 1", "step 2", "step 3"])
    place.end(place.start("run", "--resume", place.file, "mode=b"))
    equal(log(place), ["aside", "gather", "list", "step 1", "step 2", "step 3"])


@test
def a_node_that_only_comes_after_what_has_changed_is_run_again(place):
    text = ("node a\nrun echo a >> log\nnode b\nafter a\nrun echo b >> log\n"
            "node c\nafter b\nrun false\n")
    place.write(text)
    place.run(status=1)
    equal(log(place), ["a", "b"])
    place.write(text.replace("false", "true"))
    place.run("--resume")
    equal(log(place), [])
    place.write(text)
    place.run(status=1)
    equal(log(place), ["a", "b"])
    place.write(text.replace("echo a", "echo  a"))
    place.run("--resume", status=1)
    equal(log(place), ["a", "b"])


@test
def a_run_that_is_not_resumed_takes_nothing(place):
    place.write(RESUMED)
    place.run("--keep-going", status=1)
    log(place)
    place.run("--keep-going", status=1)
    equal(log(place), ["aside", "list", "step 1", "step 2", "step 3"])


@test
def a_run_that_was_killed_can_be_resumed(place):
    place.write("node a\nrun echo a >> log\n"
                "node b\nafter a\nrun touch begun; echo b >> log\n"
                "run while [ ! -e go ]; do sleep 0.01; done\n")
    process = place.start("run", place.file)
    wait_until("b runs", lambda: (place.folder / "begun").exists())
    process.kill()
    process.wait()
    place.write("", "go")
    place.end(process, -signal.SIGKILL)
    place.check_none_left()
    equal(log(place), ["a", "b"])
    place.run("--resume")
    equal(log(place), ["b"])


@test
def two_runs_do_not_share_a_state(place):
    place.write("node a\nrun touch begun; while [ ! -e go ]; do sleep 0.01; done\n")
    first = place.start("run", place.file)
    wait_until("it runs", lambda: (place.folder / "begun").exists())
    _, err = place.run("--resume", status=2)
    check(err, "is in use by another run" in err)
    second = place.start("run", place.file)
    line = second.stderr.readline()
    check(line, "this run cannot be resumed" in line)
    place.write("", "go")
    place.end(first)
    place.end(second)


# --- check, dot, trace, and output ----------------------------------------------------

@test
def mistakes_are_reported_as_compilers_report_them(place):
    place.write("node a\n  run x\n  timeout 3\n  needs b\n")
    for verb in ("check", "run", "dot", "trace"):
        out, err = place.end(place.start(verb, place.file), 2)
        equal(out, "")
        equal(err, f"{place.file}:3:11: the timeout must be a number above 0 with us, ms, "
              f"s, m or h\n{place.file}:4:9: there is no node b\n")
    _, err = place.end(place.start("check", place.folder / "none.dag"), 2)
    check(err, "none.dag: No such file" in err)


@test
def wrong_arguments_are_reported_with_the_usage(place):
    place.write("node a\nrun :\n")
    for words in ([], ["fly", place.file], ["run"], ["run", "--fly", place.file],
                  ["run", "--jobs", "0", place.file], ["run", place.file, "--jobs"],
                  ["run", "--deadline", "3", place.file], ["check"], ["dot", "--json"]):
        out, err = place.end(place.start(*words), 2)
        equal(out, "")
        check(err, "usage: weft dag" in err)
    out, _ = place.end(place.start("--help"))
    check(out, out.startswith("usage: weft dag"))


@test
def a_graph_is_drawn_and_its_run_traced(place):
    place.write("dag g\nnode a\nrun :\nnode b\nafter a\nrun :\n")
    out, _ = place.end(place.start("check", place.file))
    equal(out, f"{place.file}: 2 nodes\n")
    out, _ = place.end(place.start("dot", place.file))
    check(out, out.startswith('digraph "g" {') and '"a" -> "b"' in out)
    out, _ = place.end(place.start("dot", "--json", place.file))
    check(out, json.loads(out))
    place.end(place.start("trace", place.file))
    place.end(place.start("trace", "-o", place.folder / "o.json", place.file))
    place.run("--trace", place.folder / "t.json")
    for name in ("x.dag.trace.json", "o.json", "t.json"):
        events = json.loads(place.read(name))["traceEvents"]
        equal([e["name"] for e in events if e["ph"] == "X"], ["a", "b"])


@test
def quiet_is_quiet(place):
    place.write("node a\nrun echo said\nnode b\nrun echo err >&2\nafter a\n")
    equal(place.run("--quiet"), ("a: said\n", "b: err\n"))


def on_terminal(place, columns, *words, inputs=()):
    """Run it on a terminal.  Returns all output.  `go` is created as soon as the node is shown."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = place.start("run", *words, place.file, *inputs, stderr=slave)
    os.close(slave)
    seen = b""
    with contextlib.suppress(OSError):
        while more := os.read(master, 4096):
            seen += more
            if b" the_" in seen:
                place.write("", "go")
    os.close(master)
    out = process.stdout.read()
    process.stdout.close()
    equal(process.wait(PATIENCE), 0)
    return out, seen.decode()


@test
def on_a_terminal_there_is_a_bar_in_one_line(place):
    place.write("dag d\nnode the_node_that_runs_for_a_very_long_time_and_longer\n"
                "run while [ ! -e go ]; do sleep 0.02; done; echo out; echo err >&2\n"
                + "".join(f"node n{i}\nrun :\n" for i in range(5)))
    for columns in (40, 120):
        out, seen = on_terminal(place, columns)
        (place.folder / "go").unlink()
        check(out, out.endswith("longer: out\n"))
        drawn = [part for part in re.split(r"\r|\n", seen) if part.startswith("[")]
        check(seen, drawn and all(part.endswith("\x1b[K") for part in drawn))
        longest = max(len(part) - 3 for part in drawn)
        check(seen, longest < columns and (longest == 39 or columns > 40))
        check(seen, any("/6 " in part and " the_" in part for part in drawn))
        check(seen, "_longer: err\r\n" in seen)
        check(seen, re.search(r"(\n|\r\x1b\[K)weft: d: 6 done, 0 failed, 0 skipped; .* s\r\n$",
                              seen))
    _, seen = on_terminal_quiet(place)
    check(seen, "[" not in seen.replace("[K", ""))


@test
def the_bar_is_cut_by_cells_and_shows_no_control_characters(place):
    place.write("input list\nnode the_node each list\n"
                "run while [ ! -e go ]; do sleep 0.02; done\n")
    item = "\u65e5" * 12 + "\x1b[31m" + "\u65e5" * 8
    _, seen = on_terminal(place, 60, inputs=[f"list={item}"])
    drawn = [part[:-3] for part in re.split(r"\r|\n", seen) if part.startswith("[")]
    check(seen, any("\u65e5" in part for part in drawn))
    for part in drawn:
        check(part, len(part) + part.count("\u65e5") <= 59 and "\x1b" not in part)


def on_terminal_quiet(place):
    place.write("", "go")
    return on_terminal(place, 80, "--quiet")


@test
def many_nodes_are_run(place):
    count = place.nodes
    place.write("".join(f"node n{i}\nrun echo {i} >> log\n"
                        + (f"after n{i - 7} n{i // 2}\n" if i >= 14 else "")
                        for i in range(count)))
    _, err = place.run("--quiet")
    position = {int(line): k for k, line in enumerate(place.read("log").split())}
    equal(len(position), count)
    for i in range(14, count):
        check(f"the order of {i}", position[i] > position[i - 7]
              and position[i] > position[i // 2])


# --- Redis ----------------------------------------------------------------------------

def answer(peer, commands):
    """A minimal server that echoes the last argument."""
    with peer, peer.makefile("rb") as lines:
        while head := lines.readline():
            words = []
            for _ in range(int(head[1:])):
                words.append(lines.read(int(lines.readline()[1:]) + 2)[:-2])
            if words[0].upper() in (b"HELLO", b"CLIENT"):
                peer.sendall(b"-ERR unknown command\r\n")
                continue
            commands.append(words)
            if words[0] == b"LIST":
                peer.sendall(b"*2\r\n$1\r\na\r\n:7\r\n")
            elif words[0] == b"FAIL":
                peer.sendall(b"-ERR no way\r\n")
            else:
                peer.sendall(b"$%d\r\n%s\r\n" % (len(words[-1]), words[-1]))


@test
def commands_of_redis_are_words_whatever_is_in_them(place):
    place.write("""
        input key = "a b\\r\\nFLUSHALL"
        node list
            redis LIST
            output lines
        node one each list
            redis ECHO "$key" "<$item>"
        node bad
            redis FAIL
            optional "default"
        node all
            needs one bad
            run echo "$one $bad"
    """.replace("\\r", ""))
    server = socket.create_server(("127.0.0.1", 0))
    commands = []

    def serve():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(server.accept()[0], commands),
                                 daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    address = f"redis://127.0.0.1:{server.getsockname()[1]}"
    process = place.start("run", "--redis", address, place.file)
    out, err = process.communicate(timeout=PATIENCE)
    server.close()
    if "built without Redis" in err:
        equal(process.returncode, 1)
        return
    equal((process.returncode, out), (0, "all: <a>\nall: <7> default\n"))
    check(err, "no way" in err)
    equal([w for w in commands if w[0] == b"ECHO"],
          [[b"ECHO", b"a b\nFLUSHALL", b"<a>"], [b"ECHO", b"a b\nFLUSHALL", b"<7>"]])


def main(weft, *words):
    nodes = 10000
    if words[:1] == ("--nodes",):
        nodes, words = int(words[1]), words[2:]
    failed = 0
    for function in TESTS:
        if words and words[0] not in function.__name__:
            continue
        with tempfile.TemporaryDirectory() as folder:
            place = Place(os.path.abspath(weft), folder, os.path.basename(folder))
            place.nodes = nodes
            begin = time.monotonic()
            try:
                function(place)
                place.check_none_left()
                print(f"ok {function.__name__} {time.monotonic() - begin:.1f} s", flush=True)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"FAILED {function.__name__}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
