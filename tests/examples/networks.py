"""Run the examples of networks: streams, datagrams, TLS, loops of their own."""
import contextlib
import re
import select
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from harness import (PATIENCE, check, start, await_line, finish, receive, await_bytes, reserve,
                     listen, connect, talk, end, make_certificate)


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
