"""The servers that programs connect to, and a certificate; everything ends with its
Servers.

They listen on 127.0.0.1 and on Unix sockets in a folder of their own, at reserved ports.
PostgreSQL refuses to run as root; it then runs as another user.
"""
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PATIENCE = 300  # seconds until a server has started, or ended


class Servers(contextlib.ExitStack):
    def __init__(self):
        super().__init__()
        self.folder = self.new_folder()
        self.world = {"folder": str(self.folder)}

    def new_folder(self):
        return Path(self.enter_context(tempfile.TemporaryDirectory(
            prefix="weft-programs-", ignore_cleanup_errors=True)))

    def call(self, *words):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE, cwd="/", check=False)
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")

    def free_port(self):
        """Return a port that is bound, but not listened on: only SO_REUSEADDR gets it."""
        reserved = self.enter_context(socket.socket())
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        return reserved.getsockname()[1]

    def start(self, *words, ready, how_to_end=signal.SIGTERM):
        """Start a server and wait until it is ready."""
        log = self.enter_context(tempfile.TemporaryFile())
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   cwd="/")
        self.callback(self.end, process, how_to_end)
        deadline = time.monotonic() + PATIENCE
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                raise RuntimeError(f"{words[0]}: {log.read().decode(errors='replace')}")
            time.sleep(0.02)

    def end(self, process, how):
        process.send_signal(how)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def certificate(self):
        """Make a self-signed certificate for this host."""
        chain, key = str(self.folder / "chain.pem"), str(self.folder / "key.pem")
        self.call("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                  "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=weft test",
                  "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext",
                  "keyUsage=digitalSignature,keyCertSign", "-out", chain, "-keyout", key)
        self.world.update(chain=chain, key=key)

    def redis(self):
        path, port = self.folder / "redis.sock", self.free_port()
        self.start("redis-server", "--port", "0", "--unixsocket", str(path), "--tls-port",
                   str(port), "--tls-cert-file", self.world["chain"], "--tls-key-file",
                   self.world["key"], "--tls-ca-cert-file", self.world["chain"],
                   "--tls-auth-clients", "no", "--bind", "127.0.0.1", "--save", "",
                   "--appendonly", "no", "--dir", str(self.folder), ready=path.exists)
        self.world.update(redis_socket=str(path), redis_tls_port=port)

    def postgres(self):
        tools = postgres_tools()
        folder, port = self.new_folder(), self.free_port()
        chain, key = folder / "chain.pem", folder / "key.pem"
        shutil.copy(self.world["chain"], chain)
        shutil.copy(self.world["key"], key)
        key.chmod(0o600)
        as_user = become(folder, chain, key)
        data = str(folder / "data")
        self.call(*as_user, f"{tools}/initdb", "-D", data, "-U", "weft", "-A", "trust",
                  "--no-sync", "-E", "UTF8", "--locale=C")
        ready = [f"{tools}/pg_isready", "-q", "-h", str(folder), "-p", str(port)]
        settings = [f"ssl_cert_file={chain}", f"ssl_key_file={key}", "ssl=on", "fsync=off",
                    "listen_addresses=127.0.0.1", f"unix_socket_directories={folder}"]
        # PostgreSQL's fast shutdown is SIGINT.
        self.start(*as_user, f"{tools}/postgres", "-D", data, "-p", str(port),
                   *(word for setting in settings for word in ("-c", setting)),
                   ready=lambda: subprocess.run(ready, check=False).returncode == 0,
                   how_to_end=signal.SIGINT)
        self.world.update(postgres_socket=str(folder), postgres_port=port)


def postgres_tools():
    """The folder of the newest PostgreSQL that is installed, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"),
                   key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def become(*paths):
    """A command prefix that switches to another user, to whom the paths are given."""
    if os.getuid() != 0:
        return []
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            for path in paths:
                os.chown(path, user.pw_uid, user.pw_gid)
            return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}",
                    "--clear-groups"]
    raise RuntimeError("there is nobody but root")
