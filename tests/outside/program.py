#!/usr/bin/env python3
"""Test the weft program from outside: its link options, and that it prints no secrets.

    tests/outside/program.py WEFT [hardened]
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECRET = "s3cr3t"
WORDS = [
    ["top", f"http://user:{SECRET}@127.0.0.1:1", "--once"],
    ["top", f"http://127.0.0.1:1/?token={SECRET}", "--once"],
    ["top", f"ftp://user:{SECRET}@127.0.0.1:1", "--once"],
    ["top", f"user:{SECRET}@127.0.0.1:1", "--once"],
    ["top", "1", f"http://user:{SECRET}@127.0.0.1:1"],
    ["demo", "--redis", f"redsi://user:{SECRET}@127.0.0.1:1"],
    ["demo", "--redis", f"redis://user:{SECRET}@127.0.0.1:1/x"],
    ["demo", "--redi", f"redis://user:{SECRET}@127.0.0.1:1"],
    ["store", "--pasword", SECRET],
    ["store", "--listen", f"tcp://user:{SECRET}@127.0.0.1:1"],
]


def says_no_secret(weft):
    for words in WORDS:
        run = subprocess.run([weft, *words], capture_output=True, text=True, timeout=300,
                             stdin=subprocess.DEVNULL)
        said = run.stdout + run.stderr
        assert run.returncode != 0, words
        assert SECRET not in said, (words, said)
        assert said, words


def is_hardened(weft):
    dynamic = subprocess.run(["readelf", "-d", weft], capture_output=True, text=True,
                             check=True).stdout
    assert "BIND_NOW" in dynamic or " NOW" in dynamic, dynamic
    headers = subprocess.run(["readelf", "-lW", weft], capture_output=True, text=True,
                             check=True).stdout
    assert "GNU_RELRO" in headers


def dev_prints_what_it_installs_before_sudo():
    """./dev without ninja, as a user that is not root: `sudo` is a script that fails."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("id", "echo 1000"), ("sudo", "echo sudo was called >&2; exit 1")):
            path = Path(folder) / name
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        for name in ("sh", "ls", "cat", "mktemp", "rm", "dirname", "nproc", "date", "uname"):
            for place in ("/bin", "/usr/bin"):
                if os.path.exists(f"{place}/{name}") and not os.path.exists(f"{folder}/{name}"):
                    os.symlink(f"{place}/{name}", f"{folder}/{name}")
        run = subprocess.run(["/bin/sh", ROOT / "dev", "check"], env={"PATH": folder},
                             capture_output=True, text=True, timeout=300)
    assert run.returncode != 0
    told = run.stderr.find("sudo apt-get install")
    assert 0 <= told < run.stderr.find("sudo was called"), run.stderr
    assert "ninja-build" in run.stderr[:run.stderr.find("sudo was called")]


says_no_secret(sys.argv[1])
dev_prints_what_it_installs_before_sudo()
if "hardened" in sys.argv[2:]:
    is_hardened(sys.argv[1])
