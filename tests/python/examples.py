#!/usr/bin/env python3
"""Run the examples of examples/python, and compare their output.

    examples.py     needs the package in PYTHONPATH
"""
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "examples/python"
LIMIT_S = 60


def start(name, *args):
    return subprocess.Popen([sys.executable, FOLDER / name, *args], stdout=subprocess.PIPE,
                            text=True)


def said(program, pattern):
    """Match the next line of the program's output; return the pattern's group."""
    line = program.stdout.readline()
    found = re.fullmatch(pattern, line.rstrip("\n"))
    assert found, f"{line!r} is not {pattern!r}"
    return found[1]


def end(program, number):
    program.send_signal(number)
    rest, _ = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 0, program.returncode
    return rest


def ask(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=LIMIT_S) as reply:
        return reply.read()


def hello_says_hello():
    program = start("hello.py")
    text, _ = program.communicate(timeout=LIMIT_S)
    assert (text, program.returncode) == ("hello weft\n", 0), (text, program.returncode)


def echo_returns_what_it_is_sent():
    program = start("echo.py")
    text, _ = program.communicate(timeout=LIMIT_S)
    assert (text, program.returncode) == ("warp\nweft\n", 0), (text, program.returncode)


def server_that_is_asked_to_end_answers_accepted_requests():
    program = start("shutdown.py")
    port = int(said(program, r"serving at (\d+)"))
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as peer:
        peer.sendall(b"you\n")
        # A client is accepted once the server has a task for it; the reply to another shows
        # that.
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as other:
            other.sendall(b"other\n")
            assert other.makefile().readline() == "hello other\n"
        rest = end(program, signal.SIGTERM)
        assert peer.makefile().readline() == "hello you\n"
    assert rest == "all is answered\n", rest


def web_application_answers_and_has_an_admin_endpoint():
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        return "aiohttp is not here"
    program = start("web.py", "0")
    port = said(program, r"serving at (\d+)")
    admin = said(program, r"admin endpoint at tcp://127\.0\.0\.1:(\d+)")
    assert json.loads(ask(port, "/hello/weft")) == {"hello": "weft"}
    assert json.loads(ask(port, "/turns"))["turns"] > 0
    assert b"weft_loop_turns_total" in ask(admin, "/metrics")
    assert end(program, signal.SIGINT) == "bye\n"
    return None


def main():
    for test in (hello_says_hello,
                 echo_returns_what_it_is_sent,
                 server_that_is_asked_to_end_answers_accepted_requests,
                 web_application_answers_and_has_an_admin_endpoint):
        why = test()
        print(f"skipped {test.__name__}: {why}" if why else f"ok   {test.__name__}", flush=True)


main()
