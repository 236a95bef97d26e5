"""Scripts that fetch: from our own server, and through nginx, plain and over TLS."""
import os
import subprocess
from pathlib import Path

from peer_nginx import Front
from world import PATIENCE, check, until

SCRIPT = Path(__file__).parent / "fetch.js"


def run(stage, *words, trust=True):
    """Run the script; return its output and its status."""
    environment = dict(os.environ)
    environment.pop("SSL_CERT_FILE", None)
    if trust and stage.chain:
        environment["SSL_CERT_FILE"] = stage.chain
    done = subprocess.run([stage.more_programs[0], "run", SCRIPT, *words], env=environment,
                          capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
    return done.stdout + done.stderr, done.returncode


def check_all(stage, url):
    said, status = run(stage, "all", url)
    check(f"fetch from {url}: {said}", status == 0 and said == "all is well\n")


def test_our_own_server(stage):
    server = stage.serve("http")
    check_all(stage, server.url(""))
    until("nothing is left open", lambda: server.stats()["active"] == 1)


def test_our_own_server_with_tls(stage):
    check_all(stage, stage.serve("https").url(""))


def test_nginx_before_it(stage):
    front = Front(stage)
    check_all(stage, f"http://127.0.0.1:{front.port}/direct")
    check_all(stage, f"https://localhost:{front.tls_port}/direct-secure")


def test_a_server_that_nobody_vouches_for_is_not_talked_to(stage):
    said, status = run(stage, "stranger", stage.serve("https").url("/hello"), trust=False)
    check(said, status == 0 and "certificate" in said)


def test_a_script_that_stops_reading_ends_all_the_same(stage):
    server = stage.serve("http")
    said, status = run(stage, "unread", server.url("/letters?size=100000000"))
    check(said, status == 0 and said == "200\n")
    until("it is gone", lambda: server.stats()["active"] == 1)
