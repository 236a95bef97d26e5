#!/usr/bin/env python3
"""Run one example; check its output and its exit status.

    tests/examples/run.py PROGRAM

Most examples end by themselves: their output is compared.  Servers get requests and are
then ended with SIGTERM.
"""
import contextlib
import re
import signal
import sys
import tempfile
from pathlib import Path

from harness import check, start, finish, reserve, listen, ask
from networks import (echo, serve, echo_callback, relay, netcat, frames, handoff, proxy,
                      udp_time, ask_time, mirrors, own_loop, own_main, secure, starttls)
from protocols import (tunnel, transfer, redis_ping, shop, https, files, chat, fetch, hiredis,
                       cache_aside)

# The outputs, as regular expressions that match the whole text.
SAYS = {
    "abort": r"near: success\nfar: canceled\nasleep: canceled\nthe answer is near's\n",
    "ask": r"done\nthere are only 40 cents\n",
    "child": r"hello\ntimed out: ending it\n",
    "embed": r"(still here.*\n)*",
    "embed_js": r"answer: 42\ninterrupted\n",
    "fanout": r"near: 300\nfar: timed out\nmiddle: 250\n",
    "hello": r"(tick (\d)\ntock \2\n){3}",
    "latency": r"200 sleeps, late by \d+\.\d{3} ms, 1 of 100 by \d+\.\d{3} ms\n",
    "order": r"0\. .*\n1\. .*\n2\. .*\n2a\. .*\n2b\. .*\n3\. .*\n4\. .*\n5\. .*\n",
    "pipeline": "".join(f"{i * i}\n" for i in range(1, 11)),
    "post": r"10000100000\n",
    "promise": r"1422\n",
    "ranking": r"post 0: 210\npost 1: 350\npost 0: 30\npost 1: 50\n",
    "report": r"threadlet loader failed: load settings: no such file \(WEFT_ENOENT\)\n",
    "spread": r"500500\n",
    "store": r"\+OK\r?\n:42\r?\n",
    "sum": r"499999500000\n",
    "ticks": r"tick 1\ntick 2\ntick 3\n",
    "timers": r"(tick \d, due at \d+\n)+clear: 0\n",
    "traps": r"a delay: returned\na deadline: slept\n10 values, the other ran 0 times\n"
             r"a yield, the other ran 1 times\n",
}


# Examples with time limits of their own: on a busy machine they may give up early.
HASTY = ("child", "fanout", "ranking")


def du(program):
    """A tree with a wide folder and a deep one; a folder that is not there."""
    with tempfile.TemporaryDirectory() as folder:
        deep = Path(folder)
        for i in range(100):
            Path(folder, "wide", str(i)).mkdir(parents=True)
            Path(folder, "wide", str(i), "file").write_bytes(b"x" * i)
            deep = deep / "deep"
        deep.mkdir(parents=True)
        (deep / "file").write_bytes(b"x" * 100000)
        (deep / "link").symlink_to("file")
        check("the sum", finish(start(program, folder)) == "104950 bytes\n")
        out = finish(start(program, f"{folder}/nothing"))
        check(out, out == f"{folder}/nothing: not found\n0 bytes\n")


def checks(program):
    """One service is up, of one only the replica, one is down; then the file is empty, and
    then it is not there."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        good = f"tcp://127.0.0.1:{listen(stack).getsockname()[1]}"
        bad = f"tcp://127.0.0.1:{reserve(stack)}"
        file = Path(folder, "services")
        file.write_text(f"web {good}\nmail {bad} {good}\nprint {bad}\n")
        out = finish(start(program, str(file), "2"))
        once = r"node .*connection refused\nweb: up\nmail: only the replica is up\n" \
            "print: down\n"
        check(out, re.fullmatch(once * 2 + "2 runs, 2 failed, 2 retries\n", out))
        file.write_text("")
        out = finish(start(program, str(file), "2"))
        check(out, out == "2 runs, 0 failed, 0 retries\n")
        file.unlink()
        out = finish(start(program, str(file), "1"))
        check(out, "not found" in out and "1 runs, 1 failed, 0 retries\n" in out)


def listing(program):
    """The names in a directory; the reason if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("one", "two", ".hidden"):
            Path(folder, name).touch()
        out = finish(start(program, folder))
        check(out, sorted(out.splitlines()) == ["one", "two"])
        out = finish(start(program, f"{folder}/nothing"), 1)
        check(out, "opendir " in out and "not found" in out)


def observed(program):
    """The admin endpoint counts the requests of the service; cross-site requests are
    refused."""
    with contextlib.ExitStack() as stack:
        doors = [listen(stack) for _ in range(2)]
        fds, ports = [d.fileno() for d in doors], [d.getsockname()[1] for d in doors]
        process = start(program, *(f"fd:{fd}" for fd in fds), fds=fds)
        for _ in range(3):
            check("hello", ask(ports[0], "GET", "/hello")[2] == b"hello\n")
        metrics = ask(ports[1], "GET", "/metrics")[2].decode()
        check(metrics, "\nhello_served_total 3\n" in metrics)
        check("page", ask(ports[1], "GET", "/")[2].startswith(b"<!doctype html>"))
        other = {"Sec-Fetch-Site": "cross-site"}
        check("403", ask(ports[1], "GET", "/metrics", headers=other)[0] == 403)
        process.send_signal(signal.SIGTERM)
        finish(process)


def shutdown(program):
    """All jobs that were accepted before the signal are finished after it."""
    process = start(program)
    lines = [process.stdout.readline() for _ in range(5)]
    process.send_signal(signal.SIGTERM)
    text = "".join(lines) + finish(process)
    done = [int(n) for n in re.findall(r"^job (\d+): done$", text, re.M)]
    check(text, done == list(range(1, len(done) + 1)) and len(done) >= 5)
    check(text, "ending: got a signal\n" in text and text.endswith("\nbye\n"))
    check(text, len(text.splitlines()) == len(done) + 2)


def build(weft, flags, libs):
    """A DAG file that builds other examples."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(__file__).resolve().parents[2] / "examples" / "build.dag"
        copy = Path(folder, "examples")
        copy.mkdir()
        for path in [file, *file.parent.glob("*.c")]:
            Path(copy, path.name).write_bytes(path.read_bytes())
        out = finish(start(weft, "dag", "run", "--quiet", str(copy / "build.dag"),
                           f"out={folder}/out", f"flags={flags}", f"libs={libs}"))
        check(out, re.fullmatch(r"count: 3\nsize: \d+ bytes\n", out))
        for name in ("hello", "sum", "pipeline"):
            check(name, re.fullmatch(SAYS[name], Path(folder, "out", name + ".out").read_text()))


def main(args):
    name = Path(args[0]).name
    if name == "weft":
        build(*args)
        return
    servers = {"echo": echo, "echo_ops": echo, "serve": serve, "proxy": proxy, "relay": relay,
               "echo_callback": echo_callback, "shutdown": shutdown, "udp_time": udp_time,
               "secure": secure, "files": files, "chat": chat, "fetch": fetch, "https": https,
               "hiredis": hiredis, "cache_aside": cache_aside, "observed": observed,
               "listing": listing, "ask_time": ask_time, "netcat": netcat, "frames": frames,
               "handoff": handoff, "starttls": starttls, "du": du, "mirrors": mirrors,
               "own_loop": own_loop, "own_main": own_main, "checks": checks, "tunnel": tunnel,
               "transfer": transfer, "redis_ping": redis_ping, "shop": shop}
    if name in servers:
        servers[name](args[0])
    else:
        for _ in range(5 if name in HASTY else 1):
            out = finish(start(args[0]))
            if re.fullmatch(SAYS[name], out):
                return
        check(out, False)


if __name__ == "__main__":
    main(sys.argv[1:])
