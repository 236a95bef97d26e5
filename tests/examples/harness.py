"""Start a program and talk to it: for the tests of the examples."""
import http.client
import shutil
import signal
import socket
import subprocess
import sys

PATIENCE = 300  # seconds until something that must happen has happened


def check(what, good):
    if not good:
        sys.exit(f"not as it should be: {what}")


def start(program, *words, fds=(), stdin=subprocess.DEVNULL):
    return subprocess.Popen([program, *words], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, stdin=stdin, text=True, pass_fds=fds)


def await_line(process, begin):
    """Read the output up to the line that starts with `begin`."""
    while not (line := process.stdout.readline()).startswith(begin):
        check(f"no {begin!r} before its end", line)


def finish(process, status=0):
    """Wait for the process to end.  Return its output that was not read yet."""
    out, _ = process.communicate(timeout=PATIENCE)
    check(f"status {process.returncode}\n{out}", process.returncode == status)
    return out


def receive(peer, size):
    data = b""
    while len(data) < size and (more := peer.recv(size - len(data))):
        data += more
    return data


def await_bytes(peer, end):
    """Read from a socket up to `end`."""
    data = b""
    while not data.endswith(end):
        more = peer.recv(1)
        check(f"no {end!r} before the end", more)
        data += more


def reserve(stack):
    """Return a port that is bound, but not listened on: no other process can get it."""
    reserved = stack.enter_context(socket.socket())
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved.getsockname()[1]


def listen(stack):
    """Return a listening socket for a program to inherit: connections wait until it
    accepts."""
    return stack.enter_context(socket.create_server(("127.0.0.1", 0)))


def connect(port):
    return socket.create_connection(("127.0.0.1", port), PATIENCE)


def talk(port):
    """Three peers at once, each sending more than a buffer; one stays until the server
    ends."""
    peers = [connect(port) for _ in range(3)]
    for i, peer in enumerate(peers):
        peer.sendall(bytes([i]) * 10000)
    for i, peer in enumerate(peers):
        check("the echo", receive(peer, 10000) == bytes([i]) * 10000)
    for peer in peers[1:]:
        peer.shutdown(socket.SHUT_WR)
        check("the end of a connection", peer.recv(1) == b"")
    return peers


def end(peers, processes, status=0):
    for process in processes:
        process.send_signal(signal.SIGTERM)
        finish(process, status)
    for peer in peers:
        peer.close()


def start_redis(stack, folder):
    """Start a Redis server on folder/socket; skip the test if there is none."""
    if not shutil.which("redis-server"):
        print("skipped: redis-server is not installed")
        sys.exit(77)
    server = start("redis-server", "--port", "0", "--unixsocket", f"{folder}/socket",
                   "--dir", folder, "--save", "")
    stack.callback(server.wait)
    stack.callback(server.kill)
    while "eady to accept connections" not in (line := server.stdout.readline()):
        check("no server", line)


def make_certificate(folder):
    """Make a self-signed certificate for this host; return the names of chain and key."""
    names = [str(folder / "cert.pem"), str(folder / "key.pem")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=weft test",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-out", names[0], "-keyout", names[1]],
                   check=True, capture_output=True, timeout=PATIENCE)
    return names


def ask(port, method, path, body=None, headers=None):
    """Make one request; return status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(method, path, body, headers or {})
    reply = connection.getresponse()
    data = reply.read()
    connection.close()
    return reply.status, reply.headers, data
