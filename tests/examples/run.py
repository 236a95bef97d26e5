#!/usr/bin/env python3
"""Run one example and check what it says, and that it ends well.

    tests/examples/run.py PROGRAM

Most end by themselves and are compared with the text they print.  Servers are talked to,
then told to end by SIGTERM.
"""
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

PATIENCE = 30  # seconds until something that must happen has happened

# What is printed, as regular expressions that match all of it.
SAYS = {
    "child": r"hello\ntimed out: ending it\n",
    "embed": r"(still here.*\n)*",
    "fanout": r"near: 300\nfar: timed out\nmiddle: 250\n",
    "hello": r"(tick (\d)\ntock \2\n){3}",
    "pipeline": "".join(f"{i * i}\n" for i in range(1, 11)),
    "post": r"10000100000\n",
    "report": r"threadlet loader failed: load settings: no such file \(WEFT_ENOENT\)\n",
    "spread": r"500500\n",
    "sum": r"499999500000\n",
    "ticks": r"tick 1\ntick 2\ntick 3\n",
    "timers": r"(tick \d, due at \d+\n)+clear: 0\n",
}


def check(what, good):
    if not good:
        sys.exit(f"not as it should be: {what}")


def start(program, *words):
    return subprocess.Popen([program, *words], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)


def finish(process):
    """Wait for its end; what it has printed that was not read yet."""
    out, _ = process.communicate(timeout=PATIENCE)
    check(f"status {process.returncode}\n{out}", process.returncode == 0)
    return out


def receive(peer, size):
    data = b""
    while len(data) < size and (more := peer.recv(size - len(data))):
        data += more
    return data


def echo(program):
    """Three peers at once, more than a buffer each; one is left when the end comes."""
    with socket.socket() as reserved:  # bound and not listening: nobody else gets it
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        process = start(program, str(port))
        check("that it listens", process.stdout.readline().startswith("listening"))
        peers = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(3)]
        for i, peer in enumerate(peers):
            peer.sendall(bytes([i]) * 10000)
        for i, peer in enumerate(peers):
            check("the echo", receive(peer, 10000) == bytes([i]) * 10000)
        for peer in peers[1:]:
            peer.shutdown(socket.SHUT_WR)
            check("the end of a connection", peer.recv(1) == b"")
        process.send_signal(signal.SIGTERM)
        finish(process)
        for peer in peers:
            peer.close()


def shutdown(program):
    """All jobs that were taken before the signal are done after it."""
    process = start(program)
    lines = [process.stdout.readline() for _ in range(5)]
    process.send_signal(signal.SIGTERM)
    text = "".join(lines) + finish(process)
    done = [int(n) for n in re.findall(r"^job (\d+): done$", text, re.M)]
    check(text, done == list(range(1, len(done) + 1)) and len(done) >= 5)
    check(text, "ending: told to\n" in text and text.endswith("\nbye\n"))
    check(text, len(text.splitlines()) == len(done) + 2)


def main(args):
    name = Path(args[0]).name
    if name in ("echo", "echo_ops"):
        echo(args[0])
    elif name == "shutdown":
        shutdown(args[0])
    else:
        out = finish(start(args[0]))
        check(out, re.fullmatch(SAYS[name], out))


if __name__ == "__main__":
    main(sys.argv[1:])
