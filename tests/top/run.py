#!/usr/bin/env python3
"""Run weft top in a terminal (tmux): what it shows, what keys do, and what it leaves behind.

    tests/top/run.py WEFT PROGRAM [WORD]    the tests whose names contain WORD

No test waits for a fixed time: it waits for a text on the screen, or for a file.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ among the sources
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "outside"))
from seen import PATIENCE, TESTS, check, equal, test, wait_until  # noqa: E402


class Place:
    """A folder, a program with an admin endpoint, and a terminal."""

    def __init__(self, weft, program, folder):
        self.weft, self.program, self.folder = weft, program, Path(folder)
        self.socket = self.folder / "window.sock"
        self.running = None

    # --- the program ---

    def start(self, address=None, *words):
        self.running = subprocess.Popen(
            [self.program, address or f"unix:{self.socket}", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wait_until("the window is open", lambda: self.connects(address))
        return self.running

    def connects(self, address):
        check("the program runs", self.running.poll() is None)
        with contextlib.suppress(OSError):
            if address:
                host, port = address.removeprefix("tcp://").split(":")
                socket.create_connection((host, int(port))).close()
            else:
                with socket.socket(socket.AF_UNIX) as one:
                    one.connect(str(self.socket))
            return True
        return False

    def stop(self):
        if self.running:
            self.running.kill()
            self.running.wait()
        self.running = None

    # --- the terminal ---

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-u", "-S", str(self.folder / "tmux"), "-f", "/dev/null",
                               *words], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "TMUX": "",
                                   "WEFT_TOKEN": ""})
        check(f"tmux {words}: {done.stderr}", done.returncode == 0)
        return done.stdout

    def open(self, columns=100, rows=30):
        """A shell in a terminal of that size."""
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows),
                  "env", "PS1=ready> ", "ENV=", "NO_COLOR=", f"PATH={os.environ['PATH']}",
                  "sh", "-i")
        self.tmux("set", "-g", "status", "off")
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        self.see("ready>")
        self.type(f"cd {self.folder}; stty -g >before; clear")
        wait_until("before", lambda: self.read("before"))

    def type(self, text):
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def press(self, *keys):
        for key in keys:
            self.tmux("send-keys", key)

    def lines(self):
        return self.tmux("capture-pane", "-p").split("\n")

    def screen(self):
        return "\n".join(self.lines())

    def see(self, pattern):
        """Wait until the screen matches `pattern`.  Returns the match."""
        found = []

        def look():
            found[:] = [re.search(pattern, self.screen(), re.M)]
            return found[0]
        wait_until(lambda: f"{pattern!r} on\n{self.screen()}", look)
        return found[0]

    def unsee(self, pattern):
        wait_until(lambda: f"{pattern!r} gone from\n{self.screen()}",
                   lambda: not re.search(pattern, self.screen(), re.M))

    def flag(self, name):
        return self.tmux("display", "-p", f"#{{{name}}}").strip()

    def read(self, name):
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    # --- weft top ---

    def top(self, *words, before=""):
        (self.folder / "status").unlink(missing_ok=True)
        self.type(f"{before} {self.weft} top {' '.join(words) or self.socket}; echo $? >status")

    def watch(self, *words, before="", **size):
        """Start the program, and weft top; wait until it shows everything."""
        self.start()
        self.open(**size)
        self.top(*words, before=before)
        self.see(r"^cpu +\d")

    def table(self):
        """The rows of the table, below the first header."""
        lines = self.lines()[4:-2]
        return [line for line in lines if line.strip()]

    def check_ended(self, status):
        """It ends with that status."""
        wait_until(lambda: f"the end\n{self.screen()}", lambda: self.read("status"))
        equal(self.read("status").strip(), str(status))

    def check_restored(self, status):
        """It has ended with that status, and the terminal is restored."""
        self.check_ended(status)
        self.see("ready>")
        self.check_terminal()
        self.type("stty -g >after")
        wait_until("after", lambda: self.read("after"))
        equal(self.read("after"), self.read("before"))

    def check_terminal(self):
        equal(self.flag("alternate_on"), "0")
        equal(self.flag("cursor_flag"), "1")
        equal(self.flag("wrap_flag"), "1")

    def once(self, *words, status=0, **environment):
        done = subprocess.run([self.weft, "top", *map(str, words)], capture_output=True,
                              text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "WEFT_TOKEN": "",
                                   **environment})
        check(f"status {done.returncode}\n{done.stdout}{done.stderr}",
              done.returncode == status)
        return done.stdout if status == 0 else done.stderr

    def close(self):
        self.stop()
        with contextlib.suppress(AssertionError):
            self.tmux("kill-server")


# --- display ------------------------------------------------------------------

@test
def it_draws_loops_values_and_threadlets(place):
    place.watch()
    equal(place.flag("alternate_on"), "1")
    equal(place.flag("cursor_flag"), "0")
    place.see(r"weft top  the program  pid \d+  up ")
    place.see(r"^ *# *\*?LOOP .*BUSY .*LAG99")
    place.see(r"weft-0 .* \d+%")
    place.see(r"^requests_total +[\d.]+k? +\d")
    place.see(r"^temperature +42\.5 +-")
    place.see(r"^waiting +[\d.]+m?s +sleep .*alpha ")
    check("keys", place.lines()[29].startswith("q quit"))


@test
def keys_show_one_table_after_the_other(place):
    place.watch()
    place.see(r"^\[1 loops 2\]")
    place.press("Tab")
    place.see(r"\[2 threadlets \d+\]")
    place.see("SPAWNED AT")
    place.press("Tab")
    place.see(r"\[3 values 2\]")
    place.press("Tab")
    place.see(r"\[1 loops 2\]")
    place.press("BTab")
    place.see(r"\[3 values 2\]")
    place.press("2")
    place.see(r"\[2 threadlets")


@test
def rates_move(place):
    place.watch("--period", "250", str(place.socket))
    place.press("3")
    first = place.see(r"^requests_total +(\S+) +(\d\S*)")[1]
    wait_until("another value", lambda: place.see(r"^requests_total +(\S+)")[1] != first)


def by_column(place, name):
    """Sort by the column `name`."""
    for _ in range(20):
        now = place.see(r"  by ([A-Z0-9/# ]+?)(, reversed)?$")[1]
        if now == name:
            return
        place.press("s")
        place.unsee(f"  by {now}$")
    check(f"there is {name}", False)


def names(place):
    return re.findall(r"(alpha|beta|Gamma-ray|worker|crowd-\d\d)", "\n".join(place.table()))


@test
def rows_are_sorted_by_columns_both_ways(place):
    place.watch(rows=100)
    place.press("2")
    place.see(r"\[2 threadlets .*  by STATE$")
    by_column(place, "NAME")
    wait_until("by name", lambda: len(names(place)) == 64 and names(place) == sorted(names(place)))
    place.press("r")
    place.see("by NAME, reversed")
    wait_until("reversed", lambda: len(names(place)) == 64
               and names(place) == sorted(names(place), reverse=True))
    place.press("<")
    place.unsee("by NAME")
    place.press(">")
    place.see("by NAME")


@test
def rows_are_filtered_by_what_is_typed(place):
    place.watch()
    place.press("2")
    place.see(r"\[2 threadlets")
    place.press("/")
    place.see(r"^/_ ")
    place.press("G", "A", "m", "x", "BSpace")
    place.see(r"^/gam_ ")
    place.see(r"/gam: 1 of \d+")
    wait_until("one row", lambda: len(place.table()) == 1 and "Gamma-ray" in place.table()[0])
    place.press("Enter")
    place.see("^q quit")
    check("it is kept", "/gam: 1 of" in place.screen())
    place.press("Escape")
    place.unsee("/gam")
    place.see("alpha")
    place.press("/", "q", "Escape")  # in the filter, q is a letter
    place.see("alpha")


@test
def rows_scroll(place):
    place.watch(rows=20)
    place.press("2")
    place.see(r"\[2 threadlets")
    by_column(place, "NAME")
    wait_until("by name", lambda: "crowd-00" in place.screen())
    place.press("End")
    place.see("worker")
    place.unsee("crowd-00")
    place.press("Home")
    place.see("crowd-00")
    first = names(place)[0]
    place.press("PPage", "Down")
    wait_until("one row on", lambda: names(place)[0] != first)
    place.press("NPage")
    wait_until("a page on", lambda: "crowd-00" not in names(place))


@test
def every_size_from_40_by_10_is_drawn(place):
    place.watch()
    for columns, rows in ((40, 10), (200, 60), (80, 24), (40, 10), (1, 1), (41, 10)):
        place.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        if columns < 40:
            continue
        place.see(r"\A weft top")
        place.see(r"^q quit  h help  Tab view")
        wait_until("the last line", lambda: place.lines()[rows - 1].startswith("q quit"))
        place.see(r"^.*LOOP .*LAG99")
        place.see(r"weft-0 +.*\d%")
    place.press("2")
    place.see(r"^STATE +\*WAITED +NAME")
    place.press("/", "b", "e", "t")
    place.see(r"^waiting +\S+s +beta")
    place.press("Enter")
    place.see(r"/bet: ")
    place.press("q")
    place.check_restored(0)


@test
def help_is_shown_and_goes(place):
    place.watch(rows=12)
    place.press("h")
    place.see("^weft top monitors a")
    place.press("Down")
    place.unsee("^weft top monitors a")
    place.press("Escape")
    place.see("LAG99")


@test
def a_pause_holds_the_picture(place):
    place.watch("--period", "250", str(place.socket))
    place.press("p")
    place.see(r"\A PAUSED")
    held = place.screen()
    place.press("3")
    place.see(r"\[3 values")
    place.press("1")
    place.see(r"\[1 loops")
    equal(place.screen(), held)
    place.press("p")
    place.unsee("PAUSED")
    place.unsee(re.escape(re.search(r"up \S+", held)[0]))


@test
def the_period_changes_while_it_runs(place):
    place.watch()
    place.see("each 1s")
    place.press("-")
    place.see(r"each 0\.5s")
    place.press("+", "+")
    place.see("each 2s")
    check("no trouble", "trying" not in place.screen())


# --- files ----------------------------------------------------------------------

@test
def threadlets_are_written_to_a_file(place):
    place.watch()
    place.press("d")
    name = place.see(r"threadlets: \S+ bytes are in (weft-\d+-threadlets-\S+\.txt)")[1]
    check("alpha", "alpha" in place.read(name))
    equal((place.folder / name).stat().st_mode & 0o777, 0o600)


@test
def a_trace_is_written_to_a_file(place):
    place.watch()
    place.press("t")
    place.see("recording a trace|trace: ")
    found = place.see(r"trace: \S+ bytes are in (weft-\d+-trace-\S+\.json)")
    events = json.loads(place.read(found[1]))
    check("turns of loops", any(e.get("cat") == "loop" for e in events))
    place.press("q")
    place.check_restored(0)


@test
def a_file_that_cannot_be_written_is_reported(place):
    (place.folder / "gone").mkdir()
    place.start()
    place.open()
    place.type("cd gone; rmdir ../gone")
    place.top()
    place.see(r"^cpu +\d")
    place.press("d")
    place.see("threadlets: weft-.*No such file")
    place.press("q")
    wait_until("the end", lambda: place.flag("alternate_on") == "0")


# --- foreign texts ----------------------------------------------------------------

@test
def names_cannot_speak_to_the_terminal(place):
    place.watch(columns=240)
    title = place.flag("pane_title")
    place.press("2")
    place.see(r"evil\?\]0;owned\?\?\[2J\?\[H\?31m")
    place.see(r"na\u00efve +\d")
    place.see(r"\u540d\u524d +\d")
    place.see(r"flip\S* +\d")
    place.see(r"bad\S+ +\d")
    equal(place.flag("pane_title"), title)
    lines = [line for line in place.table() if line.startswith("waiting")]
    check("columns stay in their places", len(lines) > 10)
    place.press("3")
    place.see(r"of \?\[31mthe room\?\[2J")
    check("the head is there", place.screen().startswith(" weft top"))


@test
def a_terminal_without_utf8_gets_ascii(place):
    place.watch(before="LC_ALL=C")
    place.press("2")
    place.see(r"na\?+ve +\d")
    check("ASCII", place.screen().isascii())


@test
def colours_can_be_turned_off(place):
    place.watch()
    place.press("2")
    place.see("running|ready")
    wait_until("colours", lambda: "\033[32m" in place.tmux("capture-pane", "-p", "-e")
               or "\033[33m" in place.tmux("capture-pane", "-p", "-e"))
    place.press("q")
    place.check_restored(0)
    place.top(before="NO_COLOR=1")
    place.see(r"^cpu +\d")
    place.press("2")
    place.see("running|ready")
    check("none", not re.search(r"\033\[(\d+;)*3[0-7]m", place.tmux("capture-pane", "-p", "-e")))


# --- exit, signals, reconnecting --------------------------------------------------

@test
def q_restores_the_terminal(place):
    place.watch()
    place.press("q")
    place.check_restored(0)


@test
def signals_restore_the_terminal(place):
    place.start()
    place.open()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP,
                   signal.SIGSEGV, signal.SIGABRT):
        place.top()
        place.see(r"^cpu +\d")
        os.kill(pid_of(place), number)
        place.check_restored(128 + number)
        (place.folder / "after").unlink()
        place.type("clear")


def pid_of(place):
    """The process ID of weft top, which is a child of the shell."""
    shell = place.flag("pane_pid")
    found = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    equal(len(found), 1)
    return int(found[0])


@test
def control_c_ends_it(place):
    place.watch()
    place.press("C-c")
    wait_until("the end", lambda: place.flag("alternate_on") == "0")
    place.check_terminal()


@test
def stopped_it_gives_the_terminal_back_and_takes_it_again(place):
    place.watch()
    place.press("C-z")
    place.see("ready>")
    place.check_terminal()
    place.type("stty -g >meanwhile")
    wait_until("meanwhile", lambda: place.read("meanwhile"))
    equal(place.read("meanwhile"), place.read("before"))
    place.type("fg; echo $? >status")
    place.see(r"\A weft top")
    place.see(r"^q quit")
    equal(place.flag("alternate_on"), "1")
    place.press("q")
    wait_until("the end", lambda: place.flag("alternate_on") == "0")
    place.check_terminal()


@test
def a_program_that_ends_is_reported_and_found_again(place):
    place.watch()
    before = place.see(r"pid (\d+)")[1]
    place.stop()
    place.see(r"; trying again  \(.*window\.sock\)")
    check("what was known is still there", "requests_total" in place.screen())
    place.start()
    place.see(rf"pid (?!{before} )\d+")
    place.unsee("trying again")
    place.see(r"^cpu +\d")
    place.press("q")
    place.check_restored(0)


@test
def a_program_that_is_not_there_yet_is_waited_for(place):
    place.open()
    place.top()
    place.see("trying again")
    place.start()
    place.see(r"^cpu +\d")
    place.stop()
    place.see("trying again")
    place.press("q")
    place.check_restored(0)


# --- --once, and arguments ----------------------------------------------------------

@test
def once_it_prints_all_tables_as_text(place):
    place.start()
    for words in ((place.socket, "--once"), (f"unix:{place.socket}",)):
        text = place.once(*words)
        check("no sequences", not re.search(r"[^\n\x20-\x7e\u00a0-\uffff]", text))
        for pattern in (r"weft top  the program", r"^cpu +[\d.]+%", r"weft-0 .*\d+%",
                        r"^requests_total +\S+ +\d", r"^waiting .* alpha ", r"crowd-59"):
            check(f"{pattern} in\n{text}", re.search(pattern, text, re.M))
    check("COLUMNS", max(map(len, place.once(place.socket, COLUMNS="60").split("\n"))) <= 60)


@test
def a_dumb_terminal_gets_text(place):
    place.start()
    place.open(columns=160, rows=120)
    place.top(before="TERM=dumb")
    place.see("crowd-59")
    place.check_ended(0)
    equal(place.flag("alternate_on"), "0")


@test
def tcp_and_a_token_are_for_whoever_has_them(place):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    place.start(f"tcp://127.0.0.1:{port}", "secret")
    check("refused", "a token is required; pass --token" in place.once(port, status=1))
    check("wrong", "the token is wrong" in place.once(port, "--token", "x", status=1))
    check("known", "the program" in place.once(port, "--token", "secret"))
    check("known", "the program" in place.once(f"http://127.0.0.1:{port}/", WEFT_TOKEN="secret"))


@test
def an_action_that_is_not_possible_is_reported(place):
    check("refused", "window.sock" in place.once(place.socket, status=1))
    check("usage", "usage:" in place.once("--period", "3", status=2))
    check("usage", "usage:" in place.once("--what", status=2))
    check("usage", "usage:" in place.once("a:1", "b:1", status=2))
    check("usage", "not a URL" in place.once("nothing", status=2))
    check("help", "usage: weft top" in place.once("--help"))
    place.start()
    check("404", "it has no such page" in
          place.once(f"http+unix://{str(place.socket).replace('/', '%2F')}/none", status=1))


def run(test_, weft, program):
    with tempfile.TemporaryDirectory(prefix="weft-top-") as folder:
        place = Place(weft, program, folder)
        try:
            test_(place)
        except Exception as error:  # report it, and run the next test
            screen = ""
            with contextlib.suppress(Exception):
                screen = place.screen().rstrip() if place.folder.joinpath("tmux").exists() else ""
            print(f"FAILED {test_.__name__}: {error}\n{screen}", flush=True)
            return False
        finally:
            place.close()
    print(f"ok {test_.__name__}", flush=True)
    return True


def main():
    weft, program = (str(Path(word).resolve()) for word in sys.argv[1:3])
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    if not shutil.which("tmux"):
        print("tmux is not there")
        return 77
    chosen = [one for one in TESTS if word in one.__name__]
    return 0 if chosen and all([run(one, weft, program) for one in chosen]) else 1


if __name__ == "__main__":
    sys.exit(main())
