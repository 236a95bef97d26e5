#!/usr/bin/env python3
"""Run one example; check its output and its exit status.

    tests/examples/run.py PROGRAM

Most examples end by themselves: their output is compared.  Servers get requests and are
then ended with SIGTERM.
"""
import contextlib
import http.client
import http.server
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PATIENCE = 300  # seconds until something that must happen has happened

# The outputs, as regular expressions that match the whole text.
SAYS = {
    "abort": r"near: success\nfar: canceled\nasleep: canceled\nthe answer is near's\n",
    "ask": r"done\nthere are only 40 cents\n",
    "child": r"hello\ntimed out: ending it\n",
    "embed": r"(still here.*\n)*",
    "embed_js": r"answer: 42\ninterrupted\n",
    "fanout": r"near: 300\nfar: timed out\nmiddle: 250\n",
    "hello": r"(tick (\d)\ntock \2\n){3}",
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


def echo(program):
    with contextlib.ExitStack() as stack:
        port = reserve(stack)
        process = start(program, str(port))
        await_line(process, "listening")
        end(talk(port), [process])


def serve(program, *words, status=0):
    with contextlib.ExitStack() as stack:
        door = listen(stack)
        fd = door.fileno()
        process = start(program, f"fd:{fd}", *words, fds=[fd])
        end(talk(door.getsockname()[1]), [process], status)


def echo_callback(program):
    """The 101st peer is served when another one has left."""
    serve(program, status=-signal.SIGTERM)
    with contextlib.ExitStack() as stack:
        door = listen(stack)
        fd, port = door.fileno(), door.getsockname()[1]
        process = start(program, f"fd:{fd}", fds=[fd])
        peers = [stack.enter_context(connect(port)) for _ in range(100)]
        for peer in peers:
            peer.sendall(b"hello")
            check("the echo", receive(peer, 5) == b"hello")
        waiting = stack.enter_context(connect(port))
        waiting.sendall(b"hello")
        peers[99].sendall(b"hello")
        check("the echo", receive(peers[99], 5) == b"hello")
        check("not served yet", not select.select([waiting], [], [], 0)[0])
        peers[0].close()
        check("the echo", receive(waiting, 5) == b"hello")
        end([], [process], -signal.SIGTERM)


def relay(program):
    """What one peer sends reaches all others, also after one has left; none gets its own."""
    with contextlib.ExitStack() as stack:
        door = listen(stack)
        fd, port = door.fileno(), door.getsockname()[1]
        process = start(program, f"fd:{fd}", fds=[fd])
        peers = []
        for i in range(4):  # a peer is there once it gets what another one sends
            peers.append(stack.enter_context(connect(port)))
            while i > 0 and not select.select([peers[-1]], [], [], 0.01)[0]:
                peers[0].sendall(b"hello\n")
        peers[0].sendall(b"end of hello\n")
        for peer in peers[1:]:
            await_bytes(peer, b"end of hello\n")
        peers.pop().close()
        peers[1].sendall(b"all\n")
        for peer in peers[:1] + peers[2:]:
            check("a line of another", receive(peer, 4) == b"all\n")
        process.send_signal(signal.SIGTERM)
        finish(process)
        check("nothing of its own", peers[1].recv(1) == b"")


def netcat(program):
    """Both directions, then the end of the input; then a server that is not there."""
    with contextlib.ExitStack() as stack:
        door = listen(stack)
        address = f"tcp://127.0.0.1:{door.getsockname()[1]}"
        process = start(program, address, stdin=subprocess.PIPE)
        peer, _ = door.accept()
        peer.settimeout(PATIENCE)
        with peer:
            peer.sendall(b"welcome\n")
            process.stdin.write("hello\n" * 10000)
            process.stdin.close()
            process.stdin = None  # communicate() does not write to it
            check("the input", receive(peer, 60000) == b"hello\n" * 10000)
            check("the end of the input", peer.recv(1) == b"")
            peer.sendall(b"bye\n" * 10000)
        out = finish(process)
        check(len(out), out == "welcome\n" + "bye\n" * 10000)
        nobody = f"tcp://127.0.0.1:{reserve(stack)}"
        out = finish(start(program, nobody), 1)
        check(out, out == f"{nobody}: connection refused\n")


def message(text):
    return len(text).to_bytes(4, "big") + text


def frames(program):
    """Eight peers are served at once; the ninth when one of them has left.  A message may
    arrive in pieces."""
    with contextlib.ExitStack() as stack:
        door = listen(stack)
        fd, port = door.fileno(), door.getsockname()[1]
        process = start(program, f"fd:{fd}", fds=[fd])
        peers = [stack.enter_context(connect(port)) for _ in range(8)]
        for i, peer in enumerate(peers):
            for byte in message(b"word " * i):
                peer.sendall(bytes([byte]))
        for i, peer in enumerate(peers):
            check("the count", receive(peer, 5) == message(b"%d" % i))
        waiting = stack.enter_context(connect(port))
        waiting.sendall(message(b" one  two "))
        peers[0].sendall(message(b"one"))
        check("the count", receive(peers[0], 5) == message(b"1"))
        check("not served yet", not select.select([waiting], [], [], 0)[0])
        peers.pop(0).close()
        check("the count", receive(waiting, 5) == message(b"2"))
        waiting.sendall((2000).to_bytes(4, "big"))
        check("too large", waiting.recv(1) == b"")
        process.send_signal(signal.SIGTERM)
        for peer in peers:
            peer.close()
        out = finish(process)
        once = rf" at tcp://127.0.0.1:{port}: 1 answers, the stream has ended\n"
        check(out, len(re.findall(once, out)) == 7
              and "2 answers, the stream" in out and "1 answers, too large" in out)


def handoff(program):
    """Two workers get connections in turn."""
    with contextlib.ExitStack() as stack:
        door = listen(stack)
        fd, port = door.fileno(), door.getsockname()[1]
        process = start(program, f"fd:{fd}", fds=[fd])
        for i in range(6):
            with connect(port) as peer:
                peer.sendall(b"peer %d\n" % i)
                await_bytes(peer, b"worker %d greets peer %d\n" % (1 + i % 2, i))
                check("the end", peer.recv(1) == b"")
        process.send_signal(signal.SIGTERM)
        check("no output", finish(process) == "")


def proxy(program):
    """In front of the echo server; then in front of a closed port."""
    with contextlib.ExitStack() as stack:
        behind = listen(stack)
        fd, port = behind.fileno(), behind.getsockname()[1]
        server = start(str(Path(program).parent / "serve"), f"fd:{fd}", fds=[fd])
        serve(program, f"tcp://127.0.0.1:{port}")
        end([], [server])
        door, nobody = listen(stack), reserve(stack)
        fd, port = door.fileno(), door.getsockname()[1]
        process = start(program, f"fd:{fd}", f"tcp://127.0.0.1:{nobody}", fds=[fd])
        check("the end", connect(port).recv(1) == b"")
        process.send_signal(signal.SIGTERM)
        out = finish(process)
        check(out, out == f"connect tcp://127.0.0.1:{nobody}: connection refused\n")


def udp_time(program):
    """Several peers request the time at once, and each gets it; one peer closes early."""
    process = start(program, "udp://127.0.0.1:0")
    line = process.stdout.readline()
    check(line, line.startswith("listening on udp://127.0.0.1:"))
    where = ("127.0.0.1", int(line.rsplit(":", 1)[1]))
    peers = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(20)]
    for peer in peers:
        peer.settimeout(PATIENCE)
        peer.sendto(b"what time is it?", where)
    peers.pop().close()
    for peer in peers:
        data, sender = peer.recvfrom(100)
        check(data, sender == where and abs(int(data) - time.time()) < PATIENCE)
        peer.close()
    process.send_signal(signal.SIGTERM)
    finish(process)


def ask_time(program):
    """A server that replies, one that does not, and a stranger that replies for it."""
    server = start(str(Path(program).parent / "udp_time"), "udp://:0")
    port = server.stdout.readline().strip().rsplit(":", 1)[1]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.settimeout(PATIENCE)
        silent.bind(("127.0.0.1", 0))
        names = f"udp://localhost:{port}", f"udp://127.0.0.1:{silent.getsockname()[1]}"
        process = start(program, *names)
        _, asker = silent.recvfrom(100)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"12345", asker)
        out = finish(process, 1)
        for _ in range(5):  # on a busy machine a reply may come too late
            if f"{port}: no reply" not in out:
                break
            out = finish(start(program, *names), 1)
    check(out, re.search(rf"udp://localhost:{port}: \d+, from \S+\n"
                         rf"{names[1]}: no reply\n", out))
    out = finish(start(program, "udp://nobody.invalid:1"), 1)
    check(out, "nobody.invalid" in out)
    end([], [server])


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


def mirrors(program):
    """Of three mirrors one answers; then none."""
    with contextlib.ExitStack() as stack:
        door = listen(stack)
        good = f"tcp://127.0.0.1:{door.getsockname()[1]}"
        bad = f"tcp://127.0.0.1:{reserve(stack)}"
        lines = f"{bad}: connection refused\nunix:/nobody: not found\n"
        for _ in range(5):  # on a busy machine two seconds may be too short
            out = finish(start(program, bad, "unix:/nobody", good))
            if "none in 2 s" not in out:
                break
        check(out, out == f"first: {good}\n{lines}{good}: connected\n")
        out = finish(start(program, bad, "unix:/nobody"))
        check(out, out == f"first: none\n{lines}")


def own_loop(program):
    """An echo; a peer that does not read; peers that send nothing are dropped."""
    with contextlib.ExitStack() as stack:
        port = reserve(stack)
        process = start(program, str(port), "600")
        await_line(process, "listening")
        peers = talk(port)
        slow = stack.enter_context(connect(port))
        sender = threading.Thread(target=slow.sendall, args=(b"x" * 10_000_000,))
        sender.start()
        peers += talk(port)  # the server serves others meanwhile
        check("the echo", receive(slow, 10_000_000) == b"x" * 10_000_000)
        sender.join(PATIENCE)
        process.send_signal(signal.SIGTERM)
        out = finish(process)
        check(out, out == "3 peers were connected\n")
        for peer in peers:
            peer.close()
        port = reserve(stack)
        process = start(program, str(port), "1")
        await_line(process, "listening")
        silent = [stack.enter_context(connect(port)) for _ in range(3)]
        for peer in silent:
            check("dropped", peer.recv(1) == b"")
        process.send_signal(signal.SIGTERM)
        out = finish(process)
        check(out, out == "0 peers were connected\n")


def own_main(program):
    """The main thread reads addresses, and gets the outcome of each."""
    with contextlib.ExitStack() as stack:
        door = listen(stack)
        good = f"tcp://127.0.0.1:{door.getsockname()[1]}"
        bad = f"tcp://127.0.0.1:{reserve(stack)}"
        process = start(program, stdin=subprocess.PIPE)
        out, _ = process.communicate(f"{good}\n{bad}\nno address\n", PATIENCE)
        check(out, process.returncode == 0 and len(out.splitlines()) == 3
              and f"{good}\n" in out and f"connect {bad}: connection refused\n" in out)


def make_certificate(folder):
    """Make a self-signed certificate for this host; return the names of chain and key."""
    names = [str(folder / "cert.pem"), str(folder / "key.pem")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=weft test",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-out", names[0], "-keyout", names[1]],
                   check=True, capture_output=True, timeout=PATIENCE)
    return names


def https(program):
    """Pages over TLS, also after the certificate was replaced; plain text is refused."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chain, key = make_certificate(folder)
        port = reserve(stack)
        process = start(program, f"tls://127.0.0.1:{port}", chain, key)
        check("hello", ask_https(port, chain) == (200, b"hello\n"))
        make_certificate(folder)
        process.send_signal(signal.SIGHUP)
        await_line(process, "reload: done")
        check("hello", ask_https(port, chain) == (200, b"hello\n"))
        with connect(port) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                check("no plain text", b"hello" not in receive(plain, 1000))
        process.send_signal(signal.SIGTERM)
        finish(process)


def ask_https(port, chain):
    """GET / of a server that starts; return status and body."""
    context = ssl.create_default_context(cafile=chain)
    end = time.monotonic() + PATIENCE
    while True:
        connection = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE,
                                                 context=context)
        try:
            connection.request("GET", "/")
        except ConnectionRefusedError:
            check("a server that starts", time.monotonic() < end)
            time.sleep(0.01)
            continue
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        return reply.status, data


def listing(program):
    """The names in a directory; the reason if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("one", "two", ".hidden"):
            Path(folder, name).touch()
        out = finish(start(program, folder))
        check(out, sorted(out.splitlines()) == ["one", "two"])
        out = finish(start(program, f"{folder}/nothing"), 1)
        check(out, "opendir " in out and "not found" in out)


def ask_ours(port, chain):
    """OpenSSL's client and Python's client, connected to our server."""
    theirs = start("openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", chain,
                   "-verify_return_error", "-quiet", "-no_ign_eof", stdin=subprocess.PIPE)
    theirs.stdin.write("hello\n")
    theirs.stdin.flush()
    await_line(theirs, "hello")
    finish(theirs)
    context = ssl.create_default_context(cafile=chain)
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as peer:
            peer.sendall(b"x" * 100000)
            check("the echo", receive(peer, 100000) == b"x" * 100000)
            peer.unwrap()


def secure(program):
    """Our client to our server, our client to OpenSSL, OpenSSL to our server; an unknown
    certificate is refused."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chain, key = make_certificate(folder)
        ports = [reserve(stack) for _ in range(2)]
        process = start(program, "serve", f"tls://127.0.0.1:{ports[0]}", chain, key)
        await_line(process, "listening")
        ask_ours(ports[0], chain)
        out = finish(start(program, "ask", f"tls://localhost:{ports[0]}", chain, "to ourselves"))
        check(out, out == "to ourselves\n")
        out = finish(start(program, "ask", f"tls://127.0.0.1:{ports[0]}",
                           make_certificate(folder)[0], "nothing"))
        check(out, out.startswith("connect tls://") and "self-signed" in out)
        process.send_signal(signal.SIGTERM)
        finish(process)
        theirs = start("openssl", "s_server", "-accept", f"127.0.0.1:{ports[1]}", "-rev",
                       "-cert", folder / "cert.pem", "-key", folder / "key.pem")
        await_line(theirs, "ACCEPT")
        out = finish(start(program, "ask", f"tls://127.0.0.1:{ports[1]}", chain, "abc\n"))
        check(out, out == "cba\n\n")
        theirs.kill()
        theirs.wait(PATIENCE)


def ask(port, method, path, body=None, headers=None):
    """Make one request; return status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(method, path, body, headers or {})
    reply = connection.getresponse()
    data = reply.read()
    connection.close()
    return reply.status, reply.headers, data


def files(program):
    """Files in full, in part, revalidated, and missing; none from outside the folder."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "inside").mkdir()
        (folder / "inside" / "index.html").write_text("<p>hello")
        (folder / "data.bin").write_bytes(bytes(range(256)) * 1000)
        (folder / "inside" / "out").symlink_to("/etc/passwd")
        door = listen(stack)
        fd, port = door.fileno(), door.getsockname()[1]
        process = start(program, f"fd:{fd}", str(folder), fds=[fd])
        status, headers, data = ask(port, "GET", "/inside/")
        check(status, (status, data) == (200, b"<p>hello"))
        check(headers, headers["Content-Type"].startswith("text/html"))
        status, headers, data = ask(port, "GET", "/data.bin")
        check(status, status == 200 and data == bytes(range(256)) * 1000)
        again = {"If-None-Match": headers["ETag"]}
        check("304", ask(port, "GET", "/data.bin", headers=again)[0] == 304)
        status, headers, data = ask(port, "GET", "/data.bin", headers={"Range": "bytes=2-4"})
        check(status, (status, data) == (206, b"\2\3\4"))
        for path in ("/nothing", "/../etc/passwd", "/inside/out", "/%2e%2e/etc/passwd"):
            status, _, data = ask(port, "GET", path)
            check(path, status in (400, 403, 404) and b"root" not in data)
        check("405", ask(port, "POST", "/data.bin", b"x")[0] == 405)
        end([], [process])


def hear(port):
    """Connect a listener of the chat; check the first line that it gets."""
    peer = connect(port)
    peer.sendall(b"GET /lines HTTP/1.1\r\nHost: here\r\n\r\n")
    lines = peer.makefile("rb")
    hear_line(lines, b"welcome")
    return peer, lines


def hear_line(lines, text):
    while (line := lines.readline()) != b"data: " + text + b"\n":
        check(f"no {text!r} before the end", line)


def chat(program):
    """Every line posted reaches all listeners, also after one has left; the page is
    served."""
    with contextlib.ExitStack() as stack:
        door = listen(stack)
        fd, port = door.fileno(), door.getsockname()[1]
        examples = Path(__file__).resolve().parents[2] / "examples"
        process = start(program, f"fd:{fd}", str(examples), fds=[fd])
        status, headers, data = ask(port, "GET", "/")
        check(status, status == 200 and b"EventSource" in data)
        guests = [hear(port) for _ in range(3)]
        check("204", ask(port, "POST", "/lines", "good day")[0] == 204)
        for _, lines in guests:
            hear_line(lines, b"good day")
        guests.pop()[0].close()
        check("204", ask(port, "POST", "/lines", "good bye")[0] == 204)
        for _, lines in guests:
            hear_line(lines, b"good bye")
        check("413", ask(port, "POST", "/lines", "x" * 1000)[0] == 413)
        end([peer for peer, _ in guests], [process])


def serve_mail(door, context):
    """Be a mail server for one client, up to QUIT."""
    peer, _ = door.accept()
    peer.settimeout(PATIENCE)
    peer.sendall(b"220-welcome\r\n220 here\r\n")
    await_bytes(peer, b"EHLO localhost\r\n")
    peer.sendall(b"250-here\r\n250-SIZE 1000\r\n250 STARTTLS\r\n")
    await_bytes(peer, b"STARTTLS\r\n")
    peer.sendall(b"220 go ahead\r\n" if context else b"454 not now\r\n")
    if context:
        with contextlib.suppress(ssl.SSLError):  # the client may refuse the certificate
            peer = context.wrap_socket(peer, server_side=True)
            await_bytes(peer, b"QUIT\r\n")
            peer.sendall(b"221 bye\r\n")
    peer.close()


def ask_mail(program, context, host, chain, status):
    with contextlib.ExitStack() as stack:
        door = listen(stack)
        thread = threading.Thread(target=serve_mail, args=(door, context))
        thread.start()
        address = f"tcp://127.0.0.1:{door.getsockname()[1]}"
        out = finish(start(program, address, host, chain), status)
        thread.join(PATIENCE)
        return out


def starttls(program):
    """The certificate of a server; a wrong name; a server without TLS."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chain, key = make_certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        out = ask_mail(program, context, "localhost", chain, 0)
        check(out, re.fullmatch(r"TLSv1\.\d\n\S+\n.*weft test.*\n", out))
        out = ask_mail(program, context, "elsewhere", chain, 1)
        check(out, "ECERT" in out)
        out = ask_mail(program, None, "localhost", chain, 1)
        check(out, "the server replied 454 to STARTTLS" in out)


class Site(http.server.BaseHTTPRequestHandler):
    """A page that redirects, one that is long, one that is sent in chunks."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(302 if self.path == "/moved" else 200)
        if self.path == "/moved":
            self.send_header("Location", "/chunks")
        if self.path == "/chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\nhello\r\n7\r\n, world\r\n1\r\n\n\r\n0\r\n\r\n")
            return
        body = b"" if self.path == "/moved" else b"long\n" * 100000
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def site(stack, chain, key):
    """Start Python's HTTP server with TLS; return its port."""
    server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site))
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.shutdown)
    return server.server_address[1]


def fetch(program):
    """Pages of a trusted server; then of an untrusted one, and of a closed port."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chain, key = make_certificate(folder)
        url = f"https://localhost:{site(stack, chain, key)}"
        out = finish(start(program, chain, url + "/moved"))
        check(out, out == f"200 {url}/chunks\nhello, world\n")
        out = finish(start(program, chain, *[url + "/long"] * 4))
        check(len(out), out == (f"200 {url}/long\n" + "long\n" * 100000) * 4)
        (folder / "other").mkdir()
        stranger, _ = make_certificate(folder / "other")
        out = finish(start(program, stranger, url + "/long"), 1)
        check(out, f"GET {url}/long: connect tls://" in out and "self-signed" in out)
        nobody = f"http://127.0.0.1:{reserve(stack)}/"
        out = finish(start(program, "-", nobody), 1)
        check(out, f"GET {nobody}: connect tcp://" in out and "refused" in out)


def hiredis(program):
    """With a server, and without one."""
    if not shutil.which("redis-server"):
        print("skipped: redis-server is not installed")
        sys.exit(77)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = start("redis-server", "--port", "0", "--unixsocket", f"{folder}/socket",
                       "--dir", folder, "--save", "")
        stack.callback(server.wait)
        stack.callback(server.kill)
        while "eady to accept connections" not in (line := server.stdout.readline()):
            check("no server", line)
        out = finish(start(program, f"{folder}/socket"))
        check(out, out == "visit 1\nvisit 2\nvisit 3\n")
        out = finish(start(program, "127.0.0.1", str(reserve(stack))), 1)
        check(out, out == "lost: Connection refused\n" * 3)


def cache_aside(program):
    """First every lookup misses, then every one hits; without a server all miss."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = f"redis+unix:{folder}/socket"
        out = finish(start(program, address))
        check(out, out.count("miss profile of ") == 100)
        if not shutil.which("redis-server"):
            return
        server = subprocess.Popen(["redis-server", "--port", "0", "--save", "", "--dir", folder,
                                   "--unixsocket", folder / "socket"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(server.wait)
        stack.callback(server.kill)
        end = time.monotonic() + PATIENCE
        while not (folder / "socket").exists():
            check("a server that starts", time.monotonic() < end)
            time.sleep(0.01)
        for word in "miss", "hit":
            out = sorted(finish(start(program, address)).splitlines())
            check(out, out == sorted(f"{word} profile of {i}" for i in range(100)))


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
               "own_loop": own_loop, "own_main": own_main}
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
