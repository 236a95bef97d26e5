#!/usr/bin/env python3
"""A program that is not there: serves the window's page and routes with invented numbers.

    tests/page/standin.py [--port N] [--plain] [--threadlets N]

Prints `page: http://127.0.0.1:PORT/` when it is ready, ends with SIGTERM.  With --plain
there is no panel of the demo.  What is posted to /demo/set changes what it says; settings
of its own, for tests: POST /test/redis with up or down as the body.
"""
import argparse
import html
import http.server
import json
import math
import os
import secrets
import signal
import threading
import time
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE, PANEL = ROOT / "proto/admin/page", ROOT / "tools/demo/panel"
LIMITS = {"load": [0, 5000], "fan_out": [1, 400], "delay_us": [0, 20000]}
CPU_US, CAPACITY = 700, 1400
NODES = [("viewer", "input", []), ("profile", "loop", ["viewer"]),
         ("followed", "loop", ["profile"]), ("trending", "loop", ["viewer"]),
         ("similar", "loop", ["profile"]), ("merge", "cpu", ["followed", "trending", "similar"]),
         ("features", "loop", ["merge"]), ("score", "cpu", ["features", "profile"]),
         ("filter", "cpu", ["score"]), ("sort", "cpu", ["filter"]), ("top_k", "cpu", ["sort"]),
         ("audit", "blocking", ["top_k"]), ("reply", "loop", ["top_k", "viewer"])]


class World:
    """What the invented program does, as a function of time and of what is set."""

    def __init__(self, threadlets):
        self.begin, self.threadlets = time.monotonic(), threadlets
        self.settings = {"load": 50, "fan_out": 120, "delay_us": 1000, "compare": True}
        self.redis_up, self.posted = True, []

    def age(self):
        return time.monotonic() - self.begin

    def wave(self, period, low=0.9, high=1.1):
        return low + (high - low) * (math.sin(self.age() * 2 * math.pi / period) + 1) / 2

    def set(self, body):
        wanted = {key: int(value) for key, value in urllib.parse.parse_qsl(body)}
        for key, value in wanted.items():
            low, high = LIMITS.get(key, (0, 1))
            if key not in self.settings or not low <= value <= high:
                return False
        self.posted.append(wanted)
        self.settings |= wanted
        self.settings["compare"] = bool(self.settings["compare"])
        return True


# --- what the window serves ---------------------------------------------------

def quantiles(middle):
    return {"count": 1000, "mean": int(middle * 1.2), "p50": int(middle), "p90": int(middle * 2),
            "p95": int(middle * 2.6), "p99": int(middle * 4.1), "max": int(middle * 9)}


def loop_of(world, number, name, weight):
    load = world.settings["load"] * world.wave(7) * weight
    turns = int(world.settings["load"] * world.age() * 40)
    busy = min(0.97, 0.02 + world.settings["load"] * weight * 0.0007)
    phases = {"timers": 0.05, "first": 0, "inbox": 0.2, "threadlets": 0, "done": 0.55,
              "immediates": 0.05, "closing": 0.02, "microtasks": 0.13}
    ns = world.age() * 1e9
    counters = ["wakes", "syscalls", "polls_skipped", "posts_accepted", "posts_executed",
                "posts_refused", "ops_started", "ops_finished", "timers_fired", "fds", "alive",
                "accepted", "accepts_paused", "accepts_shed", "connected", "connects_failed",
                "handshakes", "handshakes_failed", "peers_dropped"]
    depth = int(3 + load / 20 * world.wave(3))
    return {"number": number, "name": name, "state": "running",
            "threadlets": world.threadlets // 2, "backend": "uring" if number == 1 else "epoll",
            "backend_reason": "best here" if number == 1 else "asked for", "turns": turns,
            **{key: turns // (i + 1) for i, key in enumerate(counters)},
            "turns_per_s": load * 40, "callbacks_per_s": load * 260,
            "phase_ns": {"wait": int(ns * (1 - busy)),
                         **{key: int(ns * busy * share) for key, share in phases.items()}},
            "inbox": {"now": depth, "max": depth * 4, "average": depth * 1.3},
            "microtasks": {"now": 0, "max": depth, "average": 0.4},
            "turn": quantiles(21000 * world.wave(11)), "lag": quantiles(9000 + load * 60)}


def loops(world):
    return {"program": "standin", "title": "ranking demo", "pid": os.getpid(), "version": "0.1.0",
            "uptime_ns": int(world.age() * 1e9), "now_ns": time.monotonic_ns(),
            "loops": [loop_of(world, 1, "main", 1), loop_of(world, 2, "store", 0.4)],
            "values": [{"name": "demo_requests_total", "help": "Requests that were answered.",
                        "value": int(world.age() * world.settings["load"])},
                       {"name": "demo_cache_bytes", "help": "Memory of the profile cache.",
                        "value": 5e6 * world.wave(13)}],
            "process": {"cpu_ns": time.process_time_ns() + int(world.age() * 3e8),
                        "rss_bytes": int(48e6 * world.wave(17)), "fds": 61, "threads": 7}}


def threadlet(world, number):
    name, fn, wait = [("request", "serve_feed", "redis"), ("feature", "load_feature", "redis"),
                      ("accept", "weft_listener_accept", "fd"), ("merge", "merge_lists", "recv"),
                      ("<b>tag</b>", "sweep_cache", "sleep")][number % 5]
    waited = int(world.age() * 1e9 % 3e9 / (number % 97 + 1))
    return {"loop": 1 + number % 2, "id": number, "name": f"{name} {number}", "fn": fn,
            "state": "running" if number == 7 else "ready" if number % 31 == 0 else "waiting",
            "waits_for": "" if number == 7 else wait, "waits_on": number % 50 + 5,
            "waited_ns": waited, "left_ns": None if number % 3 else 5000000000 - waited,
            "spawned_at": f"{fn}_start+0x{number % 99 + 16:x} (weft)", "stack_bytes": 65536,
            "stack_used": 1200 + number % 13 * 208, "stack_high": 4096 + number % 13 * 208,
            "frames": [f"weft_redis_wait+0x5{number % 10} (libweft.so.0)",
                       f"{fn}+0x1a2 (weft)", "weft__threadlet_main+0x33 (libweft.so.0)"]}


def threadlets(world, query):
    found = [threadlet(world, number) for number in range(1, world.threadlets + 1)]
    if text := query.get("q"):
        found = [one for one in found if text in one["name"] or text in one["fn"]
                 or text in one["waits_for"]]
    if "loop" in query:
        found = [one for one in found if one["loop"] == int(query["loop"])]
    key = {"since": lambda one: -one["waited_ns"], "stack": lambda one: -one["stack_used"],
           "name": lambda one: one["name"]}[query.get("sort", "since")]
    found.sort(key=key)
    shown = found[:int(query.get("max", 1000))]
    return {"total": len(found), "shown": len(shown), "threadlets": shown}


def node_us(world, name, place):
    delay = world.settings["delay_us"]
    if name == "features":
        return delay + 240 + world.settings["fan_out"] * 6
    return {"loop": delay + 180, "cpu": 60 + len(name) * 14, "blocking": 130}.get(place, 0)


def dags(world):
    runs = int(world.age() * world.settings["load"])
    nodes = []
    for name, place, inputs in NODES:
        node = {"name": name, "place": place}
        if place != "input":
            mean = int(node_us(world, name, place) * 1000 * world.wave(5 + len(name)))
            node |= {"inputs": inputs, "count": runs, "failed": 0, "mean_ns": mean,
                     "max_ns": mean * 3, "last_ns": mean}
        nodes.append(node)
    return {"dags": [{"name": "feed", "nodes": nodes, "number": 1, "started": runs, "running": 4,
                      "failed": 0, "retries": 0, "late": 0}]}


# --- what the demo serves -----------------------------------------------------

def demo(world):
    s = world.settings
    alone_us = 5 * s["delay_us"] + 900 + s["fan_out"] * 6
    slow_us = (s["fan_out"] + 4) * (s["delay_us"] + 60) + 700
    served, slow_max = min(s["load"], CAPACITY), 8e6 / slow_us
    slow_served = min(s["load"], slow_max) if s["compare"] else 0
    waits = 1 if s["load"] < slow_max * 0.9 else 12
    flight = served * world.wave(2) * alone_us / 1e6 * s["fan_out"] * 0.35
    blocked = min(8, slow_served * slow_us / 1e6)
    up, shed = world.redis_up, max(0, s["load"] - CAPACITY)
    return {"rps": {"weft": served * world.wave(3) if up else 0,
                    "threads": slow_served * world.wave(4) if up else 0},
            "latency_us": {"weft": quantiles(alone_us * world.wave(5) / 1.4),
                           "threads": quantiles(slow_us * waits * world.wave(6))},
            "in_flight": {"requests": int(served * alone_us / 1e6) + 1,
                          "redis": int(flight) if up else 0,
                          "threads_redis": round(blocked) if up else 0},
            "queues": {"cpu": int(served / 200 * world.wave(1.5)),
                       "redis_waiting": int(flight / 30)},
            "counts": {"ok": int(world.age() * served), "not_found": 0, "bad": 0,
                       "shed": int(world.age() * shed), "errors": 0,
                       "redis_errors": 0 if up else int(world.age() * 10)},
            "redis": {"state": "up" if up else "down", "url": "the embedded store",
                      "detail": "" if up else "connection refused"},
            "settings": s, "limits": LIMITS, "capacity_rps": CAPACITY}


def slow(world):
    ends, nodes = {}, []
    for name, place, after in NODES[1:]:
        begin = max((ends.get(one, 0) for one in after), default=0)
        end = begin + node_us(world, name, place) * 2
        if name == "features":
            for i in range(world.settings["fan_out"]):
                start = begin + i * 9
                nodes.append({"name": f"features {i}", "place": place, "begin_us": start,
                              "end_us": start + world.settings["delay_us"] + 200 + i * 31 % 700,
                              "after": after, "state": "done"})
            end = max(node["end_us"] for node in nodes)
        else:
            nodes.append({"name": name, "place": place, "begin_us": begin, "end_us": end,
                          "after": after, "state": "done"})
        ends[name] = end
    return {"viewer": 4711, "total_us": max(ends.values()), "nodes": nodes}


# --- HTTP -----------------------------------------------------------------------

def joined(folder, kind):
    return "".join(file.read_text() for file in sorted(folder.glob(f"*.{kind}")))


def document(plain):
    """The page put together, and the nonce of its policy."""
    nonce = secrets.token_urlsafe(16)
    panel = script = ""
    if not plain:
        style = (PANEL / "panel.css").read_text()
        panel = (f'<section class="panel"><h2>A ranking service</h2><style nonce="{nonce}">'
                 f'{style}</style>{(PANEL / "panel.html").read_text()}</section>')
        script = f'<script nonce="{nonce}">{joined(PANEL, "js")}</script>'
    text = (PAGE / "page.html").read_text()
    for name, value in {"title": html.escape("ranking demo"), "panels": panel,
                        "style": joined(PAGE, "css"), "script": joined(PAGE, "js"),
                        "panel_scripts": script, "nonce": nonce}.items():
        text = text.replace("{{" + name + "}}", value)
    return text, nonce


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, kind, body, **headers):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def page(self):
        text, nonce = document(self.server.plain)
        self.answer(200, "text/html; charset=utf-8", text, Content_Security_Policy=(
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"))

    def json(self, value):
        self.answer(200, "application/json", json.dumps(value))

    def stream(self, period, make):
        """Events until the reader goes; `make` gives (name, value) pairs."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        count = 0
        while not self.server.ending.is_set():
            for name, value in make(count):
                self.wfile.write(f"event: {name}\ndata: {json.dumps(value)}\n\n".encode())
            self.wfile.flush()
            count += 1
            self.server.ending.wait(period)

    def do_GET(self):
        world = self.server.world
        path, _, query = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        routes = {
            "/": self.page,
            "/metrics": lambda: self.answer(200, "text/plain", "# nothing\n"),
            "/debug/loops": lambda: self.json(loops(world)),
            "/debug/threadlets": lambda: self.json(threadlets(world, query))
            if "format" in query else self.answer(200, "text/plain", "threadlets\n"),
            "/debug/dag": lambda: self.json({"dags": []} if self.server.plain else dags(world)),
            "/debug/trace": lambda: self.json({"traceEvents": []}),
            "/events": lambda: self.stream(1, lambda count: [("loops", loops(world))]),
            "/demo/events": lambda: self.stream(0.25, lambda count: [("demo", demo(world))]
                                                + ([("slow", slow(world))]
                                                   if count % 20 == 0 else [])),
        }
        try:
            routes.get(path, lambda: self.answer(404, "text/plain", "no such thing\n"))()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.path == "/demo/set":
            good = self.server.world.set(body)
            self.answer(204 if good else 400, None, "" if good else "out of range")
        elif self.path == "/test/redis":
            self.server.world.redis_up = body == "up"
            self.answer(204, None, "")
        else:
            self.answer(404, None, "")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--threadlets", type=int, default=10000)
    options = parser.parse_args()
    server = Server(("127.0.0.1", options.port), Handler)
    server.plain, server.world = options.plain, World(options.threadlets)
    server.ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print(f"page: http://127.0.0.1:{server.server_address[1]}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
