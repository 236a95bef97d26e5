"""s_server of openssl(1), with a client of ours that uses plain TLS."""
import re
import subprocess

from openssl import (CUT, ENDED, NOT_TRUSTED, VERSIONS, agreed, cert, check_alert, issue, start,
                     trust)
from world import PATIENCE, check

REPLY = "heard olleh"


class Theirs:
    """s_server for `count` connections.  With `rev` it returns lines reversed; otherwise
    it sends the lines on its stdin."""

    def __init__(self, stage, *words, count=1, name="server", rev=True):
        chain, key = issue(stage, name)
        self.stage = stage
        self.process = start(stage, "s_server", "-accept", "127.0.0.1:0", "-cert", chain, "-key",
                             key, "-naccept", str(count), *(["-rev"] if rev else []), *words)
        self.log = ""
        while not (found := re.search(r"^ACCEPT .*:(\d+)$", self.log, re.M)):
            line = self.process.stdout.readline().decode()
            check(f"where it listens: {self.log}", line)
            self.log += line
        self.port = int(found[1])

    def client(self, *words, host="localhost"):
        """Start a client of ours, which ends by itself.  Without `host` it verifies the
        address."""
        client = subprocess.Popen(
            [self.stage.tls_program, "visit", f"tls://127.0.0.1:{self.port}", trust(self.stage),
             *([f"host={host}"] if host else []), *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.stage.callback(client.stdout.close)
        self.stage.callback(client.kill)
        return client

    def visit(self, *words, fails=False, **named):
        """Return all lines of our client."""
        client = self.client(*words, **named)
        lines = client.stdout.read().splitlines()
        status = client.wait(PATIENCE)
        check(f"{words}: {status} {lines}", (status == 0) != fails)
        return lines

    def expect(self, lines, *words, **named):
        got = self.visit(*words, **named)
        check(f"{got}, not {lines}", got == lines)

    def refused(self, why, *words, **named):
        """Check the last line of our client: from the handshake or, with TLS 1.3, from a
        read."""
        got = self.visit(*words, fails=True, **named)
        error, text = why.split(": ", 1)
        check(f"{got}, not {why}", got[-1].startswith(f"{error}: ") and got[-1].endswith(text))
        check(f"nothing was heard: {got}", REPLY not in got)

    def end(self):
        """Return its output, after the last connection."""
        self.log += self.process.stdout.read().decode()
        status = self.process.wait(PATIENCE)
        check(f"the end of s_server: {status}\n{self.log}", status in (0, 1))
        return self.log


def test_sessions_and_resumption(stage):
    """Also if only one side has ALPN protocols, or both."""
    for version, word in VERSIONS.items():
        for theirs, ours, alpn in (([], ["alpn=weft"], ""), (["-alpn", "weft"], [], ""),
                                   (["-alpn", "h2,weft"], ["alpn=other", "alpn=weft"], "weft")):
            server = Theirs(stage, word, *theirs, count=3)
            lines = [[agreed(version, alpn=alpn, peer="server", how=how), REPLY, "goodbye"]
                     for how in ("full", "resumed", "resumed")]
            server.expect(sum(lines, []), *ours, "times=3")
            log = server.end()
            check(log, log.count("CONNECTION CLOSED") == 3)


def test_a_version_that_is_too_old(stage):
    server = Theirs(stage, "-tls1_2")
    server.refused(f'WEFT_EPROTO: tls with "localhost": {ENDED}it allows none of our '
                   "TLS versions (alert 70)", "min=0304")
    server.end()


def test_certificates_by_name(stage):
    chain, key = issue(stage, "two")
    for version, word in VERSIONS.items():
        server = Theirs(stage, word, "-servername", "a.two.test", "-servername_fatal", "-cert2",
                        chain, "-key2", key, count=3)
        server.expect([agreed(version, name="a.two.test", peer="two"), REPLY, "goodbye"],
                      host="a.two.test")
        server.refused(f'WEFT_EPROTO: tls with "b.two.test": {ENDED}it has no certificate for '
                       "this name (alert 112)", host="b.two.test")
        # An address cannot be requested as a name: the server uses its first certificate.
        server.expect([agreed(version, name="", peer="server"), REPLY, "goodbye"], host=None)
        server.end()


def test_an_address_as_name(stage):
    for version, word in VERSIONS.items():
        server = Theirs(stage, word, count=3)
        for host in ("127.0.0.1", "::1"):
            server.expect([agreed(version, name="", peer="server"), REPLY, "goodbye"], host=host)
        server.refused('WEFT_ECERT: tls with "127.0.0.2": wrong host: the certificate is for '
                       '"localhost", the address 127.0.0.1, the address '
                       "0000:0000:0000:0000:0000:0000:0000:0001", host="127.0.0.2")
        check_alert(server.end(), 42)


def test_a_server_that_is_not_trusted(stage):
    for word in VERSIONS.values():
        server = Theirs(stage, word, name="stranger")
        server.refused(f'WEFT_ECERT: tls with "localhost": {NOT_TRUSTED}')
        check_alert(server.end(), 48)
        server = Theirs(stage, word, name="one")
        server.refused('WEFT_ECERT: tls with "localhost": wrong host: the certificate is for '
                       '"one.test"')
        check_alert(server.end(), 42)


def test_certificates_of_clients(stage):
    """A client without a certificate, or with a wrong one, gets an error: with TLS 1.3
    from the first read, because its own handshake has ended before.  The client sends
    nothing itself: its data would cause a reset, which discards the alert."""
    ask = ["-Verify", "1", "-verify_return_error", "-CAfile", issue(stage, "authority")[0]]
    missed = {"TLSv1.2": "WEFT_EPROTO: tls with \"localhost\": " + ENDED
                         + "no parameters in common, or no suitable certificate (alert 40)",
              "TLSv1.3": "WEFT_ECERT: tls with \"localhost\": " + ENDED
                         + "it requires a certificate from us (alert 116)"}
    for version, word in VERSIONS.items():
        server = Theirs(stage, word, *ask, count=4)
        lines = [[agreed(version, peer="server", how=how), REPLY, "goodbye"]
                 for how in ("full", "resumed")]
        server.expect(sum(lines, []), *cert(stage, "guest"), "times=2")
        server.refused(missed[version], "say=", "end=last")
        server.refused(f'WEFT_ECERT: tls with "localhost": {ENDED}it does not trust the '
                       "authority of our certificate (alert 48)",
                       *cert(stage, "stranger"), "say=", "end=last")
        server.end()


def test_ends_of_theirs(stage):
    for version, word in VERSIONS.items():
        server = Theirs(stage, word)
        server.expect([agreed(version, peer="server"), "goodbye"], "say=CLOSE")
        server.end()
        server = Theirs(stage, word)
        client = server.client("end=last")
        lines = [client.stdout.readline().rstrip("\n") for _ in range(2)]
        server.process.kill()
        lines += client.stdout.read().splitlines()
        client.wait(PATIENCE)
        check(lines, lines == [agreed(version, peer="server"), REPLY,
                               f'WEFT_ETRUNCATED: tls with "localhost": {CUT}'])


def test_ends_of_ours(stage):
    """With close_notify and without; s_server distinguishes them if it does not reverse
    lines."""
    for version, word in VERSIONS.items():
        for end, ours, theirs in (("first", "goodbye", "DONE"), ("cut", "cut", "ERROR")):
            server = Theirs(stage, word, rev=False)
            client = server.client(f"end={end}")
            check("what was agreed", client.stdout.readline() == agreed(version, peer="server")
                  + "\n")
            server.process.stdin.write(b"greetings\n")
            server.process.stdin.flush()
            lines = client.stdout.read().splitlines()
            check(lines, lines == ["heard greetings", ours] and client.wait(PATIENCE) == 0)
            log = server.end()
            check(log, re.findall("^(?:DONE|ERROR)$", log, re.M) == [theirs])
