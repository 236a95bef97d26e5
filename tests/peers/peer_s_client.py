"""s_client of openssl(1), with a server of ours that uses plain TLS."""
import contextlib

from openssl import (CUT, ENDED, NOT_TRUSTED, VERSIONS, agreed, cert, check_alert, issue, start,
                     trust)
from world import PATIENCE, check


class Client:
    """s_client; sends the given lines and prints the received ones."""

    def __init__(self, stack, port, words):
        self.process = start(stack, "s_client", "-connect", f"127.0.0.1:{port}",
                             "-verify_return_error", *words)
        self.said = ""

    def say(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def hear(self, line):
        while (heard := self.process.stdout.readline().decode()) != f"{line}\n":
            check(f"{line!r} behind\n{self.said}", heard)
            self.said += heard

    def end(self, status):
        """Wait for its end; return its whole output."""
        self.said += self.process.stdout.read().decode()
        got = self.process.wait(PATIENCE)
        check(f"s_client: {got}, not {status}\n{self.said}", got == status)
        return self.said


class Ours:
    """Our server; its output is checked line by line."""

    def __init__(self, stage, *words):
        self.stage = stage
        self.server = stage.start(stage.tls_program, "serve", "tcp://127.0.0.1:0", *words)
        self.server.await_port()

    def expect(self, *lines):
        for line in lines:
            got = self.server.process.stdout.readline().decode().rstrip("\n")
            check(f"{got!r}, not {line!r}", got == line)

    @contextlib.contextmanager
    def client(self, *words, name="localhost", ca="authority"):
        """A client that trusts `ca` and requests `name`."""
        whom = ["-servername", name] if name else ["-noservername"]
        with contextlib.ExitStack() as stack:
            yield Client(stack, self.server.port,
                         [*whom, "-CAfile", issue(self.stage, ca)[0], *words])

    def exchange(self, *words, **named):
        """Send a line and receive it back, then close_notify from both; return
        s_client's output."""
        with self.client(*words, **named) as client:
            client.say("hello")
            client.hear("hello")
            client.process.stdin.close()
            return client.end(0)

    def refused(self, *words, **named):
        """The same, but there must be no session."""
        with self.client(*words, **named) as client:
            return client.end(1)

    def end(self):
        """The server ends cleanly, without unexpected output."""
        self.server.process.terminate()
        rest = self.server.process.stdout.read().decode()
        check(f"no more lines: {rest}", not rest)
        self.server.end()
        self.stage.servers.remove(self.server)


@contextlib.contextmanager
def serving(stage, *words):
    ours = Ours(stage, *words)
    yield ours
    ours.end()


def test_a_session(stage):
    with serving(stage, *cert(stage, "server")) as ours:
        for version, word in VERSIONS.items():
            said = ours.exchange(word, "-verify_hostname", "localhost")
            check(said, f"New, {version}" in said and "Verification: OK" in said
                  and "Verified peername: localhost" in said)
            ours.expect(agreed(version), "goodbye")


def test_protocols(stage):
    """The server's order decides, and without a common protocol there is no session."""
    with serving(stage, *cert(stage, "server"), "alpn=weft", "alpn=other") as ours:
        for version, word in VERSIONS.items():
            for offer, chosen in (("h2,other,weft", "weft"), ("h2,other", "other")):
                said = ours.exchange(word, "-alpn", offer)
                check(said, f"ALPN protocol: {chosen}" in said)
                ours.expect(agreed(version, alpn=chosen), "goodbye")
            ours.exchange(word)
            ours.expect(agreed(version), "goodbye")
            check_alert(ours.refused(word, "-alpn", "h2"), 120)
            ours.expect("WEFT_EPROTO: tls with a client: no application protocol (ALPN) in "
                        "common with the peer")


def test_a_version_that_is_too_old(stage):
    with serving(stage, *cert(stage, "server"), "min=0304") as ours:
        check_alert(ours.refused("-tls1_2"), 70)
        ours.expect("WEFT_EPROTO: tls with a client: the peer wants a version of TLS that is "
                    "not allowed")
        ours.exchange()
        ours.expect(agreed("TLSv1.3"), "goodbye")


def test_certificates_by_name(stage):
    named = [*cert(stage, "one", sni="one.test"), *cert(stage, "two", sni="*.two.test")]
    with serving(stage, *cert(stage, "server"), *named) as ours:
        for version, word in VERSIONS.items():
            for name in ("one.test", "a.two.test", "localhost"):
                said = ours.exchange(word, "-verify_hostname", name, name=name)
                check(said, "Verification: OK" in said)
                ours.expect(agreed(version, name=name), "goodbye")
            # The default is for other names; these clients do not accept it.
            ours.refused(word, "-verify_hostname", "three.test", name="three.test")
            ours.expect(f"WEFT_ECERT: tls with a client: {ENDED}our certificate is bad "
                        "(alert 42)")
    with serving(stage, *named) as ours:
        for word in VERSIONS.values():
            check_alert(ours.refused(word, name="three.test"), 112)
            ours.expect("WEFT_EPROTO: tls with a client: no certificate for the name that the"
                        " client requested")


def test_an_address_as_name(stage):
    with serving(stage, *cert(stage, "server")) as ours:
        for version, word in VERSIONS.items():
            for address in ("127.0.0.1", "::1"):
                said = ours.exchange(word, "-verify_ip", address, name=None)
                check(said, "Verification: OK" in said)
                ours.expect(agreed(version, name=""), "goodbye")
            said = ours.refused(word, "-verify_ip", "127.0.0.2", name=None)
            check(said, "verify error:num=64" in said)
            ours.expect(f"WEFT_ECERT: tls with a client: {ENDED}our certificate is bad "
                        "(alert 42)")


def test_resumption(stage):
    """Also with a client certificate: it is known without being sent again."""
    guest, key = issue(stage, "guest")
    ask = [trust(stage), "ask=1"]
    for words, show, peer in (([], [], ""), (ask, ["-cert", guest, "-key", key], "guest")):
        with serving(stage, *cert(stage, "server"), "alpn=weft", *words) as ours:
            for version, word in VERSIONS.items():
                kept = str(stage.folder / f"session-{version}")
                said = ours.exchange(word, "-alpn", "weft", "-sess_out", kept, *show)
                check(said, f"New, {version}" in said)
                ours.expect(agreed(version, alpn="weft", peer=peer), "goodbye")
                said = ours.exchange(word, "-alpn", "weft", "-sess_in", kept)
                check(said, f"Reused, {version}" in said)
                ours.expect(agreed(version, alpn="weft", peer=peer, how="resumed"), "goodbye")


def test_tickets_that_are_not_ours(stage):
    """With an unknown ticket a full handshake follows; this server issues none itself."""
    kept = {version: str(stage.folder / f"session-{version}") for version in VERSIONS}
    with serving(stage, *cert(stage, "server")) as ours:
        for version, word in VERSIONS.items():
            ours.exchange(word, "-sess_out", kept[version])
            ours.expect(agreed(version), "goodbye")
    with serving(stage, *cert(stage, "server"), "no_tickets=1") as ours:
        for version, word in VERSIONS.items():
            said = ours.exchange(word, "-sess_in", kept[version])
            check(said, f"New, {version}" in said)
            ours.expect(agreed(version), "goodbye")


def test_a_server_that_is_not_trusted(stage):
    with serving(stage, *cert(stage, "stranger")) as ours:
        for word in VERSIONS.values():
            said = ours.refused(word)
            check(said, "verify error:num=20" in said)
            ours.expect(f"WEFT_ECERT: tls with a client: {ENDED}it does not trust the "
                        "authority of our certificate (alert 48)")


def test_certificates_of_clients(stage):
    guest, key = issue(stage, "guest")
    stranger, other = issue(stage, "stranger")
    with serving(stage, *cert(stage, "server"), trust(stage), "ask=1") as ours:
        for version, word in VERSIONS.items():
            ours.exchange(word, "-cert", guest, "-key", key)
            ours.expect(agreed(version, peer="guest"), "goodbye")
            check_alert(ours.refused(word), {"TLSv1.2": 40, "TLSv1.3": 116}[version])
            ours.expect("WEFT_ECERT: tls with a client: the client has sent no certificate")
            check_alert(ours.refused(word, "-cert", stranger, "-key", other), 48)
            ours.expect(f"WEFT_ECERT: tls with a client: {NOT_TRUSTED}")


def test_ends(stage):
    """Our end with close_notify and without, which s_client distinguishes; s_client's
    without."""
    with serving(stage, *cert(stage, "server")) as ours:
        for version, word in VERSIONS.items():
            with ours.client(word) as client:
                client.say("end")
                client.hear("closed")
                client.end(0)
            ours.expect(agreed(version), "goodbye")
            with ours.client(word) as client:
                client.say("cut")
                said = client.end(1)
                check(said, "\nclosed\n" not in said)
            ours.expect(agreed(version), "cut")
            with ours.client(word) as client:
                client.say("hello")
                client.hear("hello")
                client.process.kill()
                ours.expect(agreed(version), f"WEFT_ETRUNCATED: tls with a client: {CUT}")
