"""curl: every kind of request that it can make, plain and over TLS."""
import json
import subprocess
from pathlib import Path

from world import PATIENCE, check, letters, need, until

CURL = need("curl")
BIG = 5_000_000  # bytes: more than socket buffers hold


def command(server, *words):
    start = [CURL, "-q", "-sS", "--noproxy", "*", "--max-time", str(PATIENCE), "--http1.1"]
    if server.scheme == "https":
        start += ["--cacert", server.world.chain]
    return start + [str(word) for word in words]


def curl(server, path, *words, fails=0, send=None):
    """Make one request; return curl's information about it, the headers, and the body."""
    head, body = server.world.folder / "head", server.world.folder / "body"
    for file in (head, body):
        file.unlink(missing_ok=True)
    done = subprocess.run(command(server, "-D", head, "-o", body, "-w", "%{json}", *words,
                                  server.url(path)),
                          input=send, capture_output=True, timeout=PATIENCE)
    check(f"curl {path} {words}: {done}", done.returncode == fails)
    info = json.loads(done.stdout)
    return (info, head.read_bytes().decode() if head.exists() else "",
            body.read_bytes() if body.exists() else b"")


def expect(server, path, *words, status=200, body=None, **named):
    info, head, got = curl(server, path, *words, **named)
    check(f"{path} {words}: {info['http_code']}\n{head}", info["http_code"] == status)
    check(f"{path} {words}: body of {len(got)}: {got[:100]}", body is None or got == body)
    return info, head, got


def both(stage):
    """The two servers that all tests share."""
    if not stage.servers:
        stage.serve("http")
        stage.serve("https")
    return stage.servers[:2]


def make_site(stage):
    data = bytes(range(256)) * 4000
    (stage.site / "data.bin").write_bytes(data)
    (stage.site / "sub").mkdir(exist_ok=True)
    (stage.site / "sub" / "index.html").write_text("<p>sub")
    (stage.site / "small.txt").write_text("small")
    (stage.site / "empty").write_bytes(b"")
    return data


def test_plain_requests(stage):
    for server in both(stage):
        expect(server, "/hello", body=b"hello\n")
        _, head, body = expect(server, "/hello", "--head")
        check(head, "Content-Length: 6\r\n" in head and body.decode() == head)
        _, head, _ = expect(server, "/hello", "-X", "OPTIONS", status=204)
        check(head, "Allow: " in head and "Content-Length" not in head)
        expect(server, "/hello", "-d", "x", status=405)
        expect(server, "/nothing", status=404)
        expect(server, "/status/204", status=204, body=b"")
        expect(server, "/status/418", status=418, body=b"as told\n")
        expect(server, "/fail", status=500)
        for path in ("/letters", "/chunks"):
            for size in (0, 1, 16384, 16385, BIG):
                expect(server, f"{path}?size={size}", body=letters(size))
        _, head, _ = expect(server, "/chunks?size=20")
        check(head, "Transfer-Encoding: chunked" in head and "X-Letters: all" in head)
        expect(server, "/slow", body=b"piece\n" * 5)


def test_reply_cut_short(stage):
    """curl must see an error: 18 is a partial transfer, 56 a reset."""
    for server in both(stage):
        done = subprocess.run(command(server, server.url("/half")), capture_output=True,
                              timeout=PATIENCE)
        check(done, done.returncode in (18, 56))


def test_http_1_0(stage):
    for server in both(stage):
        _, head, _ = expect(server, "/hello", "--http1.0", body=b"hello\n")
        check(head, "Connection: close" in head)
        info, head, _ = expect(server, f"/chunks?size={BIG}", "--http1.0", body=letters(BIG))
        check(head, "Transfer-Encoding" not in head and "Content-Length" not in head)
        expect(server, "/echo", "--http1.0", "-d", "to an old client", body=b"to an old client")


def test_files(stage):
    data = make_site(stage)
    example = stage.serve_example(stage.files_program, stage.site)
    for server, front in [(both(stage)[0], "/files"), (both(stage)[1], "/files"), (example, "")]:
        _, head, _ = expect(server, f"{front}/data.bin", body=data)
        tag = next(line[6:] for line in head.split("\r\n") if line.startswith("ETag: "))
        date = next(line[15:] for line in head.split("\r\n") if line.startswith("Last-Mod"))
        for word in (f"If-None-Match: {tag}", f"If-Modified-Since: {date}",
                     f'If-None-Match: "x", {tag}', "If-None-Match: *"):
            expect(server, f"{front}/data.bin", "-H", word, status=304, body=b"")
        expect(server, f"{front}/data.bin", "-H", 'If-None-Match: "x"', body=data)
        _, head, _ = expect(server, f"{front}/data.bin", "--head")
        check(head, f"Content-Length: {len(data)}\r\n" in head)
        for word, part in [("0-0", data[:1]), ("5-", data[5:]), ("-7", data[-7:]),
                           (f"10-{len(data) * 2}", data[10:]), ("3-70000", data[3:70001])]:
            _, head, _ = expect(server, f"{front}/data.bin", "-r", word, status=206, body=part)
            check(head, f"/{len(data)}\r\n" in head and "Content-Range: bytes " in head)
        expect(server, f"{front}/data.bin", "-r", f"{len(data)}-", status=416)
        expect(server, f"{front}/data.bin", "-r", "1-2", "-H", f"If-Range: {tag}", status=206)
        expect(server, f"{front}/data.bin", "-r", "1-2", "-H", 'If-Range: "x"', body=data)
        info, _, _ = expect(server, f"{front}/sub", "-L", body=b"<p>sub")
        check(info["num_redirects"], info["num_redirects"] == 1)
        expect(server, f"{front}/empty", body=b"")
        expect(server, f"{front}/small.txt", "--compressed", body=b"small")
        expect(server, f"{front}/../../etc/passwd", "--path-as-is", status=400)
        expect(server, f"{front}/%2e%2e/%2e%2e/etc/passwd", status=400)


def test_resumed_download(stage):
    data = make_site(stage)
    for server in both(stage):
        half = stage.folder / "half"
        half.write_bytes(data[:300_000])
        subprocess.run(command(server, "-C", "-", "-o", half, server.url("/files/data.bin")),
                       check=True, timeout=PATIENCE)
        check("what was resumed", half.read_bytes() == data)


def test_downloads_that_are_left(stage):
    """curl aborts a large download: the connection ends, and the server continues."""
    for server in both(stage):
        _, _, body = curl(server, f"/letters?size={BIG}", "--max-filesize", "1000", fails=63)
        check(body, body == b"")
        leave_early(server)
        expect(server, "/hello", body=b"hello\n")


def leave_early(server):
    process = subprocess.Popen(command(server, "-N", server.url("/letters?size=100000000")),
                               stdout=subprocess.PIPE)
    check("what comes first", process.stdout.read(1000) == letters(1000))
    process.kill()
    process.stdout.close()
    process.wait(PATIENCE)


def test_kept_connections(stage):
    """Many URLs, with responses of all kinds, also errors: one connection."""
    paths = ["/hello", "/letters?size=300000", "/chunks?size=300000", "/status/204", "/nothing",
             "/files/small.txt", "/hello", "/slow?pieces=2", "/status/304", "/fail", "/hello"]
    make_site(stage)
    for server in both(stage):
        before = server.stats()
        words = [word for path in paths for word in ("-o", "/dev/null", server.url(path))]
        done = subprocess.run(command(server, "-w", "%{http_code} %{num_connects}\\n", *words),
                              capture_output=True, text=True, timeout=PATIENCE, check=True)
        check(done.stdout, [line.split() for line in done.stdout.splitlines()] == [
            [code, str(int(i == 0))] for i, code in enumerate(
                "200 200 200 204 404 200 200 200 304 500 200".split())])
        after = server.stats()
        check((before, after), after["connections"] == before["connections"] + 2
              and after["requests"] == before["requests"] + len(paths) + 1)


def test_uploads(stage):
    big = letters(BIG)
    answer = f"{BIG} {sum(big)} -\n".encode()
    file = stage.folder / "upload"
    file.write_bytes(big)
    for server in both(stage):
        expect(server, "/echo", "-d", "short", body=b"short")
        expect(server, "/echo", "-X", "POST", "-d", "", body=b"")
        expect(server, "/echo", "-F", "name=value")
        for path, reply in (("/echo", big), ("/count", answer)):
            # curl sends an Expect header for a body of this size, and does not wait a
            # second.
            info, head, _ = expect(server, path, "-T", file, body=reply)
            check(head, head.startswith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"))
            expect(server, path, "-H", "Expect:", "-T", file, body=reply)
            expect(server, path, "-T", "-", send=big, body=reply)
            expect(server, path, "-H", "Transfer-Encoding: chunked", "--data-binary", f"@{file}",
                   body=reply)
        info, head, _ = expect(server, "/nothing", "-T", file, status=404)
        check(head, not head.startswith("HTTP/1.1 100"))
        expect(server, "/echo", "-H", "Expect: miracles", "-d", "x", status=417)


def test_uploads_that_are_too_long(stage):
    """413 without reading the body if curl sends Expect; without it curl gets the
    response, too."""
    file = stage.folder / "upload"
    with open(file, "wb") as out:
        out.truncate(257 << 20)
    for server in both(stage):
        info, head, _ = expect(server, "/count", "-T", file, status=413)
        check((info, head), not head.startswith("HTTP/1.1 100") and info["size_upload"] == 0)
        done = subprocess.run(command(server, "-H", "Expect:", "-T", file, "-w", "%{http_code}",
                                      "-o", "/dev/null", server.url("/count")),
                              capture_output=True, text=True, timeout=PATIENCE)
        check(done, done.stdout == "413")
    file.unlink()


def test_events(stage):
    """Events arrive as they are made, and the server notices when curl has gone."""
    for server in both(stage):
        _, head, _ = expect(server, "/events?end=1", "-N", body=b"".join(
            b"event: number\ndata: %d\n\n" % i for i in range(3)))
        check(head, "Content-Type: text/event-stream" in head)
        process = subprocess.Popen(command(server, "-N", server.url("/events")),
                                   stdout=subprocess.PIPE)
        for i in range(3):
            lines = [process.stdout.readline() for _ in range(3)]
            check(lines, lines == [b"event: number\n", b"data: %d\n" % i, b"\n"])
        check("somebody hears events", server.stats()["active"] == 2)
        process.kill()
        process.stdout.close()
        process.wait(PATIENCE)
        until("nobody hears events", lambda s=server: s.stats()["active"] == 1)


def test_many_at_once(stage):
    for server in both(stage):
        words = []
        for i in range(50):
            path = ("/hello", "/chunks?size=100000", "/letters?size=100000", "/slow")[i % 4]
            words += ["-o", stage.folder / f"part{i}", server.url(path)]
        done = subprocess.run(command(server, "-Z", "--parallel-max", "50",
                                      "--parallel-immediate", "-w", "%{http_code} ", *words),
                              capture_output=True, text=True, timeout=PATIENCE)
        check(done, done.returncode == 0 and done.stdout.split() == ["200"] * 50)
        for i in range(50):
            want = (b"hello\n", letters(100000), letters(100000), b"piece\n" * 5)[i % 4]
            check(f"part {i}", (stage.folder / f"part{i}").read_bytes() == want)


def test_targets(stage):
    """A request with an absolute URL, as for a proxy; OPTIONS for `*`; too long ones."""
    for server in both(stage)[:1]:
        done = subprocess.run([CURL, "-q", "-sS", "--noproxy", "", "--proxy", server.url(""),
                               "http://localhost/hello"], capture_output=True, timeout=PATIENCE)
        check(done, done.stdout == b"hello\n")
        _, head, _ = expect(server, "/", "-X", "OPTIONS", "--request-target", "*", status=204)
        check(head, "Allow: " in head)
        expect(server, "/hello?x=" + "y" * 9000, status=414)
        expect(server, "/hello", "-H", "X: " + "y" * 40000, status=431)
        expect(server, "/hello", "-H", "Host:", status=400)


def test_tls_only_with_the_right_name(stage):
    """A client that does not trust us, or expects another name, gets nothing; old
    versions of TLS are refused, too."""
    server = both(stage)[1]
    curl_words = ["--cacert", "/dev/null"]
    for words, status in ((curl_words, (60, 77)), (["--tls-max", "1.1"], (35,)),
                          (["--connect-to", f"other:{server.port}:localhost:{server.port}"],
                           (60,))):
        url = server.url("/hello")
        if words[0] == "--connect-to":
            url = url.replace("localhost", "other")
        done = subprocess.run([*command(server, *words), url], capture_output=True,
                              timeout=PATIENCE)
        check(done, done.returncode in status and done.stdout == b"")
    for version in ("1.2", "1.3"):
        expect(server, f"/letters?size={BIG}", f"--tlsv{version}", "--tls-max", version,
               body=letters(BIG))


def test_chat(stage):
    """A line that one curl posts reaches another curl."""
    examples = Path(__file__).resolve().parents[2] / "examples"
    server = stage.serve_example(stage.chat_program, examples)
    _, _, page = expect(server, "/")
    check(page, b"EventSource" in page)
    ears = subprocess.Popen(command(server, "-N", server.url("/lines")), stdout=subprocess.PIPE)
    check("the welcome", ears.stdout.readline() == b"data: welcome\n")
    expect(server, "/lines", "-d", "good day", status=204)
    lines = [ears.stdout.readline() for _ in range(2)]
    check(lines, lines == [b"\n", b"data: good day\n"])
    expect(server, "/lines", "-d", "x" * 501, status=413)
    stage.servers.remove(server)
    server.end()
    check("the end that curl sees", ears.wait(PATIENCE) == 0)
    ears.stdout.close()
