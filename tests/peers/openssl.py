"""Shared by the tests with openssl(1): a certificate authority and its certificates, and
others.

Of openssl's output only those parts are compared that are the same in every version, and of
alerts only their numbers.  Texts that are compared as a whole are ours.
"""
import re
import subprocess
import threading

from world import PATIENCE, check, need

OPENSSL, SETPRIV = need("openssl"), need("setpriv")
VERSIONS = {"TLSv1.2": "-tls1_2", "TLSv1.3": "-tls1_3"}
# For each certificate: its issuer, and its names.
NAMES = {
    "server": ("authority", "DNS:localhost,IP:127.0.0.1,IP:::1"),
    "one": ("authority", "DNS:one.test"),
    "two": ("authority", "DNS:*.two.test"),
    "guest": ("authority", "DNS:guest.test"),
    "stranger": ("nobody", "DNS:localhost"),
}
NOT_TRUSTED = 'the certificate of "stranger" has an issuer that is neither trusted nor sent by' \
              ' the peer: "nobody"'
ENDED = "the peer ended the session: "
CUT = "the connection ended without a close_notify"


def start(stack, *words):
    """Start openssl.  It ends with `stack`, at the latest after a long time, and also if
    this process is killed.  It is a direct child: a process in between might not forward
    a signal."""
    process = subprocess.Popen([SETPRIV, "--pdeathsig", "KILL", OPENSSL, *words],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    limit = threading.Timer(2 * PATIENCE, process.kill)
    limit.daemon = True
    limit.start()
    stack.callback(end, process, limit)
    return process


def end(process, limit):
    limit.cancel()
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def issue(stage, name):
    """Return the files of a certificate and its key; both are made once."""
    chain, key = stage.folder / f"{name}.pem", stage.folder / f"{name}-key.pem"
    if not chain.exists():
        words = []
        if name in NAMES:
            issuer, names = NAMES[name]
            by, by_key = issue(stage, issuer)
            words = ["-CA", by, "-CAkey", by_key, "-addext", f"subjectAltName={names}",
                     "-addext", "basicConstraints=critical,CA:FALSE"]
        subprocess.run([OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        f"/CN={name}", *words, "-out", chain, "-keyout", key],
                       check=True, capture_output=True, timeout=PATIENCE)
    return str(chain), str(key)


def cert(stage, name, *, sni=None):
    """The same, as options for tls_peer."""
    chain, key = issue(stage, name)
    return [f"chain={chain}", f"key={key}", *([f"name={sni}"] if sni else [])]


def trust(stage, name="authority"):
    return f"ca={issue(stage, name)[0]}"


def agreed(version, *, alpn="", name="localhost", peer="", how="full"):
    """The line that tls_peer prints about a session."""
    return f"{version} alpn={alpn} name={name} peer={peer and f'CN = {peer}'} {how}"


def check_alert(said, *numbers):
    """The peer received an alert with one of these numbers."""
    found = re.search(r"SSL alert number (\d+)", said)
    check(f"alert {numbers} in\n{said}", found and int(found[1]) in numbers)
