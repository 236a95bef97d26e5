#!/usr/bin/env python3
"""Run the HTTP client against a private nginx, with and without TLS.

    tests/proto/run_nginx.py PROGRAM

Exits with 77 if there is no nginx here, or none that can store files with PUT.
"""
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE = 300  # seconds
BIG = 3 << 20  # as in http_ask.c

CONFIG = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log notice;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 7;
    server {{
        listen 127.0.0.1:{plain};
        listen 127.0.0.1:{secure} ssl;
        ssl_certificate {folder}/cert.pem;
        ssl_certificate_key {folder}/key.pem;
        root {folder}/root;
        client_max_body_size 16m;
        location /moved {{ return 301 /a.txt; }}
        location /empty {{ return 204; }}
        location /parts.shtml {{ ssi on; ssi_types *; }}
        location /put/ {{ dav_methods PUT; client_body_buffer_size 16k; }}
        location /tight/ {{ dav_methods PUT; client_max_body_size 1k; }}
    }}
}}
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def find_nginx():
    nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
    if not nginx:
        skip("no nginx here")
    says = subprocess.run([nginx, "-V"], capture_output=True, text=True, check=True).stderr
    if "http_dav_module" not in says or "http_ssl_module" not in says:
        skip("this nginx has no PUT or no TLS")
    return nginx


def reserve(stack):
    """Bind a port without listening on it.  A process that binds it with SO_REUSEADDR gets it."""
    reserved = stack.enter_context(socket.socket())
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved.getsockname()[1]


def make_files(folder):
    (folder / "root" / "put").mkdir(parents=True)
    (folder / "root" / "a.txt").write_text("hello\n")
    (folder / "root" / "parts.shtml").write_text(
        'one <!--# include virtual="/a.txt" --> two\n')
    period = bytes(ord("a") + i * 7 % 26 for i in range(26))
    (folder / "root" / "big").write_bytes((period * (BIG // 26 + 1))[:BIG])
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=weft test",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-out", folder / "cert.pem",
                    "-keyout", folder / "key.pem"],
                   check=True, capture_output=True, timeout=PATIENCE)
    # If nginx runs as root, it uses another user, which needs access to the files.
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o644)


def await_port(port, process):
    """nginx does not report when it listens, so try to connect."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.02)
    sys.exit("nginx does not listen")


def main(program):
    nginx = find_nginx()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        make_files(folder)
        ports = {"plain": reserve(stack), "secure": reserve(stack)}
        config = folder / "nginx.conf"
        config.write_text(CONFIG.format(folder=folder, **ports))
        process = subprocess.Popen([nginx, "-p", folder, "-c", config, "-e",
                                    folder / "error.log"])
        stack.callback(process.wait, PATIENCE)
        stack.callback(process.terminate)
        await_port(ports["plain"], process)
        for scheme, port in (("http", ports["plain"]), ("https", ports["secure"])):
            for path in (folder / "root" / "put").iterdir():
                path.unlink()
            done = subprocess.run([program, folder / "cert.pem", f"{scheme}://127.0.0.1:{port}"],
                                  timeout=4 * PATIENCE, check=False)
            if done.returncode:
                print((folder / "error.log").read_text())
                sys.exit(f"{scheme}: status {done.returncode}")


if __name__ == "__main__":
    main(sys.argv[1])
