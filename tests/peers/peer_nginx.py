"""nginx as a reverse proxy for our server: kept connections, bodies, TLS, upgrades.

nginx forwards to the plain server (/plain/; /direct/ without any buffering) and to the one
with TLS, verified (/secure/).  Requests to nginx itself are made plain and over TLS.
"""
import http.client
import socket
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

from world import PATIENCE, check, letters, need, until

NGINX = need("nginx")
BIG = 20_000_000
RESTARTS = 20

CONF = """
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body_temp;
  proxy_temp_path {folder}/proxy_temp;
  fastcgi_temp_path {folder}/fastcgi_temp;
  uwsgi_temp_path {folder}/uwsgi_temp;
  scgi_temp_path {folder}/scgi_temp;
  client_max_body_size 0;
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_set_header Host $host;
  proxy_next_upstream off;
  proxy_ssl_trusted_certificate {chain};
  proxy_ssl_verify on;
  proxy_ssl_name localhost;
  proxy_ssl_server_name on;
  upstream plain {{ server 127.0.0.1:{plain}; keepalive 8; }}
  upstream secure {{ server 127.0.0.1:{secure}; keepalive 8; }}
  upstream again {{ server 127.0.0.1:{again}; keepalive 8; }}
  server {{
    listen 127.0.0.1:{front};
    listen 127.0.0.1:{front_tls} ssl;
    ssl_certificate {chain};
    ssl_certificate_key {key};
    location /plain/ {{ proxy_pass http://plain/; }}
    location /secure/ {{ proxy_pass https://secure/; }}
    location /stranger/ {{
      proxy_pass https://127.0.0.1:{secure}/;
      proxy_ssl_name somebody.else;
      proxy_ssl_session_reuse off;
    }}
    location /direct/ {{
      proxy_pass http://plain/;
      proxy_buffering off;
      proxy_request_buffering off;
    }}
    location /direct-secure/ {{
      proxy_pass https://secure/;
      proxy_buffering off;
      proxy_request_buffering off;
    }}
    location /upgrade/ {{
      proxy_pass http://plain/;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection upgrade;
    }}
    location /upgrade-secure/ {{
      proxy_pass https://secure/;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection upgrade;
    }}
    location /old/ {{
      proxy_pass http://plain/;
      proxy_http_version 1.0;
      proxy_set_header Connection close;
    }}
    location /garbage/ {{
      proxy_pass http://plain/;
      proxy_set_header Host "two words";
    }}
    location /garbage-kept/ {{
      proxy_pass http://plain/;
      proxy_set_header Transfer-Encoding "chunked, identity";
    }}
    location /again/ {{
      proxy_pass http://again/;
      proxy_next_upstream error timeout;
    }}
    location /once/ {{ proxy_pass http://127.0.0.1:{again}/; }}
    location /huge/ {{
      proxy_pass http://plain/;
      {huge}
    }}
  }}
}}
"""

# All prefixes that lead to a server in the usual way.
WAYS = ("plain", "secure", "direct", "direct-secure", "old")


class Front:
    """nginx, and requests to it."""

    def __init__(self, stage):
        self.stage = stage
        self.plain, self.secure = stage.serve("http"), stage.serve("https")
        self.port, self.tls_port = stage.free_port(), stage.free_port()
        self.door = stage.listen()
        conf = stage.folder / "nginx.conf"
        conf.write_text(CONF.format(
            folder=stage.folder, chain=stage.chain, key=stage.key, plain=self.plain.port,
            secure=self.secure.port, again=self.door.getsockname()[1], front=self.port,
            front_tls=self.tls_port,
            huge="".join(f'proxy_set_header X-{i} "{"y" * 1000}";' for i in range(60))))
        self.process = subprocess.Popen([NGINX, "-p", stage.folder, "-c", conf, "-e",
                                         stage.folder / "error.log"],
                                        stdin=subprocess.DEVNULL)
        stage.callback(self.stop)
        for port in (self.port, self.tls_port):
            until("nginx listens", lambda p=port: self.is_there(p))

    def is_there(self, port):
        check(f"nginx: {self.errors()}", self.process.poll() is None)
        with socket.socket() as peer:
            return peer.connect_ex(("127.0.0.1", port)) == 0

    def errors(self):
        file = self.stage.folder / "error.log"
        return file.read_text() if file.exists() else ""

    def forget_errors(self):
        (self.stage.folder / "error.log").write_text("")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)

    def connection(self, tls=False):
        if not tls:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        context = ssl.create_default_context(cafile=self.stage.chain)
        return http.client.HTTPSConnection("localhost", self.tls_port, timeout=PATIENCE,
                                           context=context)

    def ask(self, path, method="GET", body=None, headers=None, tls=False):
        """Make one request; return status, headers, body."""
        connection = self.connection(tls)
        connection.request(method, path, body, headers or {},
                           encode_chunked=hasattr(body, "__next__"))
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        return reply.status, reply.headers, data

    def expect(self, path, status, data=None, **named):
        got, headers, body = self.ask(path, **named)
        check(f"{path} {named.get('method')}: {got} {body[:100]}\n{headers}\n{self.errors()}",
              got == status and (data is None or body == data))
        return headers


def front(stage):
    """The nginx that all tests share."""
    if not hasattr(stage, "front"):
        stage.front = Front(stage)
    return stage.front


def test_requests_of_all_kinds(stage):
    nginx = front(stage)
    (stage.site / "data.bin").write_bytes(bytes(range(256)) * 4000)
    for way in WAYS:
        for tls in (False, True):
            nginx.expect(f"/{way}/hello", 200, b"hello\n", tls=tls)
            nginx.expect(f"/{way}/chunks?size=100000", 200, letters(100000), tls=tls)
        headers = nginx.expect(f"/{way}/hello", 200, b"", method="HEAD")
        check(headers, headers["Content-Length"] == "6")
        nginx.expect(f"/{way}/files/data.bin", 200, bytes(range(256)) * 4000)
        headers = {"Range": "bytes=300-599"}
        nginx.expect(f"/{way}/files/data.bin", 206, (bytes(range(256)) * 4)[300:600],
                     headers=headers)
        for status in (204, 304):
            nginx.expect(f"/{way}/status/{status}", status, b"")
        for status in (200, 400, 404, 418, 503):
            nginx.expect(f"/{way}/status/{status}", status, b"as told\n")
        nginx.expect(f"/{way}/nothing", 404, b"404 Not Found\n")
        nginx.expect(f"/{way}/fail", 500)
        nginx.expect(f"/{way}/hello", 405, method="POST", body=b"x")
    check(nginx.errors(), not nginx.errors())


def test_large_bodies_both_ways(stage):
    nginx = front(stage)
    big = letters(BIG)
    count = f"{BIG} {sum(big)} -\n".encode()
    for way in WAYS:
        nginx.expect(f"/{way}/letters?size={BIG}", 200, big)
        nginx.expect(f"/{way}/chunks?size={BIG}", 200, big)
        nginx.expect(f"/{way}/count", 200, count, method="POST", body=big)
        pieces = (big[i:i + 70001] for i in range(0, BIG, 70001))
        nginx.expect(f"/{way}/count", 200, count, method="POST", body=pieces,
                     headers={"Transfer-Encoding": "chunked"})
        nginx.expect(f"/{way}/mirror", 200, big, method="POST", body=big)
    quiet = [line for line in nginx.errors().splitlines() if "temporary file" not in line]
    check(quiet, not quiet)
    nginx.forget_errors()


def test_echo_while_it_is_sent(stage):
    """Without buffering, the response arrives while the request is still being sent."""
    nginx = front(stage)
    for way in ("direct", "direct-secure"):
        connection = nginx.connection()
        connection.putrequest("POST", f"/{way}/echo")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        connection.send(b"3\r\nabc\r\n")
        reply = connection.response_class(connection.sock, method="POST")
        reply.begin()
        check("the first piece", reply.read(3) == b"abc")
        connection.send(b"4\r\ndefg\r\n0\r\n\r\n")
        check("the rest", reply.read() == b"defg")
        connection.close()


def test_kept_connections(stage):
    """Forty requests one after another use few connections to the server."""
    nginx = front(stage)
    for way, server in (("plain", nginx.plain), ("secure", nginx.secure)):
        before = server.stats()
        for i in range(40):
            path, data = [("hello", b"hello\n"), ("chunks?size=3000", letters(3000)),
                          ("status/204", b""), ("nothing", b"404 Not Found\n")][i % 4]
            status = (200, 200, 204, 404)[i % 4]
            nginx.expect(f"/{way}/{path}", status, data)
        after = server.stats()
        check((before, after), after["requests"] == before["requests"] + 41
              and after["connections"] <= before["connections"] + 4)


def test_many_at_once(stage):
    nginx = front(stage)

    def ask(i):
        way = WAYS[i % len(WAYS)]
        nginx.expect(f"/{way}/chunks?size={i * 1000}", 200, letters(i * 1000))
        nginx.expect(f"/{way}/slow?pieces=3", 200, b"piece\n" * 3)
        return True

    with ThreadPoolExecutor(32) as pool:
        check("all were answered", all(pool.map(ask, range(96))))


def test_events(stage):
    """Events arrive as they are made; when the client leaves, the server notices."""
    nginx = front(stage)
    for way, server in (("direct", nginx.plain), ("direct-secure", nginx.secure)):
        connection = nginx.connection()
        connection.request("GET", f"/{way}/events?count=5")
        reply = connection.getresponse()
        check(reply.headers, reply.headers["Content-Type"] == "text/event-stream")
        for i in range(5):
            lines = [reply.readline() for _ in range(3)]
            check(lines, lines == [b"event: number\n", b"data: %d\n" % i, b"\n"])
        check("somebody hears events", server.stats()["active"] == 2)
        connection.sock.close()
        connection.close()
        reply.close()
        until("nobody hears events", lambda s=server: s.stats()["active"] == 1)


def test_another_protocol(stage):
    nginx = front(stage)
    for way in ("upgrade", "upgrade-secure"):
        connection = nginx.connection()
        connection.request("GET", f"/{way}/upgrade", headers={"Upgrade": "echo",
                                                              "Connection": "upgrade"})
        peer = connection.sock
        lines = peer.makefile("rb")
        check("101", lines.readline().startswith(b"HTTP/1.1 101 "))
        head = b""
        while (line := lines.readline()) not in (b"\r\n", b""):
            head += line
        check(head, b"Upgrade: echo\r\n" in head)
        for size in (1, 1000, 1_000_000):
            with ThreadPoolExecutor(1) as pool:
                sending = pool.submit(peer.sendall, letters(size))
                check(f"echo of {size}", lines.read(size) == letters(size))
                sending.result(PATIENCE)
        peer.shutdown(socket.SHUT_WR)
        check("the end", lines.read() == b"")
        lines.close()
        connection.close()
        nginx.expect(f"/{way}/upgrade", 426, b"only to echo\n", headers={"Upgrade": "other"})


def test_what_nginx_may_not_pass(stage):
    """Requests that nginx makes invalid are refused with a page that nginx forwards."""
    nginx = front(stage)
    before = nginx.plain.stats()["bad_requests"]
    nginx.expect("/garbage/hello", 400, b"400 Bad Request\n")
    nginx.expect("/garbage-kept/hello", 400, b"400 Bad Request\n")
    nginx.expect("/huge/hello", 431, b"431 Request Header Fields Too Large\n")
    check("bad requests are counted", nginx.plain.stats()["bad_requests"] == before + 3)
    nginx.expect("/plain/hello?" + "x" * 7000, 200)
    check(nginx.errors(), not nginx.errors())


def test_reply_cut_short(stage):
    """nginx must notice that a response is incomplete, and so must its client."""
    nginx = front(stage)
    for way in ("direct", "direct-secure"):
        try:
            seen = nginx.ask(f"/{way}/half")[2]
        except (http.client.IncompleteRead, ConnectionError):
            seen = None
        check(f"a whole reply: {seen}", seen is None)
    check(nginx.errors(), "upstream" in nginx.errors())
    nginx.forget_errors()


def test_stranger_is_refused(stage):
    """nginx notices that our certificate has another name than the one it expects."""
    nginx = front(stage)
    nginx.expect("/stranger/hello", 502)
    check(nginx.errors(), "upstream SSL certificate does not match" in nginx.errors())
    nginx.forget_errors()


def test_restarts_of_the_server(stage):
    """While a server ends and another one starts on the same socket, every request is
    answered."""
    nginx = front(stage)
    large = letters(3_000_000)
    (stage.site / "page.txt").write_text("page")
    (stage.site / "large.txt").write_bytes(large)
    over = threading.Event()

    def ask_on(way):
        count = 0
        while not over.is_set():
            nginx.expect(f"/{way}/page.txt", 200, b"page")
            nginx.expect(f"/{way}/large.txt", 200, large)
            count += 1
        return count

    server = stage.serve_example(stage.files_program, stage.site, nginx.door)
    with ThreadPoolExecutor(8) as pool:
        asking = [pool.submit(ask_on, way) for way in ("again", "once") * 4]
        try:
            for _ in range(RESTARTS):
                nginx.expect("/again/page.txt", 200, b"page")
                stage.servers.remove(server)
                server.end()
                server = stage.serve_example(stage.files_program, stage.site, nginx.door)
        finally:
            over.set()
        check("all asked", all(one.result(PATIENCE) > 0 for one in asking))
