#!/usr/bin/env python3
"""Query the admin endpoint of a running program from outside: promtool must accept its metrics,
its JSON must have the documented members, and the counters must match the requests made here.

    tests/admin/check.py OBSERVED       the example `observed`
"""
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading

PATIENCE = 300  # upper limit in seconds of every wait
REQUESTS = 50

QUANTILES = {"count", "mean", "p50", "p90", "p95", "p99", "max"}
PHASES = {"timers", "inbox", "threadlets", "wait", "done", "immediates", "closing",
          "microtasks"}
LOOP = {"id", "name", "state", "threadlets", "backend", "backend_reason", "turns", "wakes",
        "syscalls", "polls_skipped", "posts_accepted", "posts_executed", "posts_refused",
        "ops_started", "ops_finished", "timers_fired", "fds", "alive", "accepted", "accepts_paused",
        "accepts_shed", "connected", "connects_failed", "handshakes", "handshakes_failed",
        "peers_dropped", "turns_per_s", "callbacks_per_s", "phase_ns", "inbox", "internal",
        "microtasks", "turn", "lag"}
THREADLET = {"loop", "id", "name", "fn", "state", "waits_for", "waits_on", "waited_ns", "left_ns",
             "spawned_at", "stack_bytes", "stack_used", "stack_high", "frames"}


def check(what, good):
    if not good:
        sys.exit(f"not as it should be: {what}")


class Place:
    """A listening socket that is passed to a program, and requests to it."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.fd, self.port = self.socket.fileno(), self.socket.getsockname()[1]

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path)
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, body

    def get(self, path):
        status, body = self.ask(path)
        check((path, status, body[:200]), status == 200)
        return body

    def json(self, path):
        return json.loads(self.get(path))


def ask_service(service):
    """Make REQUESTS requests, some of them concurrently."""
    def some():
        for _ in range(REQUESTS // 5):
            check("hello", service.get("/hello") == b"hello\n")
    threads = [threading.Thread(target=some) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check_loops(admin):
    about = admin.json("/debug/loops")
    check(about.keys(), about.keys() == {"program", "title", "pid", "version", "uptime_ns",
                                         "now_ns", "loops", "values", "process"})
    check(about["program"], about["program"] == about["title"] == "observed")
    check(about["process"], about["process"].keys() == {"cpu_ns", "rss_bytes", "fds", "threads"})
    values = {value["name"]: value["value"] for value in about["values"]}
    check(values, values == {"hello_served_total": REQUESTS, "hello_waiting": 0,
                             "hello_seconds": REQUESTS})
    quantiles = about["values"][2]["quantiles"]
    check(quantiles, quantiles.keys() == QUANTILES)
    # The service waits for 20 ms in each request.
    check(quantiles, quantiles["count"] == REQUESTS and quantiles["max"] >= quantiles["p99"]
          >= quantiles["p50"] >= 19e6)
    check("loops", len(about["loops"]) == 1)
    loop = about["loops"][0]
    check(loop.keys() ^ LOOP, loop.keys() == LOOP)
    check(loop["phase_ns"], loop["phase_ns"].keys() == PHASES)
    for name in ("turn", "lag"):
        check(loop[name], loop[name].keys() == QUANTILES)
    for name in ("inbox", "internal", "microtasks"):
        check(loop[name], loop[name].keys() == {"now", "max", "average"})
    # The requests to the service, and this one.
    check(loop["accepted"], loop["accepted"] == REQUESTS + 1)
    check("threadlets", 0 < loop["threadlets"] < 20)


def samples(text):
    """Parse the samples of metrics: {name with labels: value}."""
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in text.splitlines() if not line.startswith("#")}


def check_histogram(numbers):
    """Buckets are cumulative, in ascending order, and end with all values."""
    buckets = [(float(re.fullmatch(r'hello_seconds_bucket\{le="(.+)"\}', name)[1]), value)
               for name, value in numbers.items() if name.startswith("hello_seconds_bucket{")]
    check(buckets, buckets == sorted(buckets) and len(buckets) > 10)
    check(buckets, [value for _, value in buckets] == sorted(value for _, value in buckets))
    check(buckets, buckets[-1] == (float("inf"), REQUESTS))
    check("count", numbers["hello_seconds_count"] == REQUESTS)
    check("sum", numbers["hello_seconds_sum"] >= REQUESTS * 0.02)
    check("below 10 ms", dict(buckets)[0.01] == 0)


def check_metrics(admin):
    text = admin.get("/metrics").decode()
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                          capture_output=True, timeout=PATIENCE)
    check(done.stdout + done.stderr, done.returncode == 0 and not done.stderr.strip())
    numbers = samples(text)
    check("served", numbers["hello_served_total"] == REQUESTS)
    check_histogram(numbers)
    accepted = [value for name, value in numbers.items()
                if name.startswith("weft_loop_accepted_total{")]
    check(accepted, accepted == [REQUESTS + 2])
    check("cpu", numbers["process_cpu_seconds_total"] > 0)


def check_threadlets(admin):
    listed = admin.json("/debug/threadlets?format=json&sort=name")
    check(listed.keys(), {"total", "shown", "threadlets"} <= listed.keys())
    check("shown", listed["shown"] == len(listed["threadlets"]) == listed["total"])
    for one in listed["threadlets"]:
        check(one, one.keys() == THREADLET)
    names = [one["name"] for one in listed["threadlets"]]
    check(names, names == sorted(names) and "admin" in names)
    text = admin.get("/debug/threadlets").decode()
    check(text, re.match(r"loop \d+ \(", text) and text.endswith(" threadlets\n"))
    check("graphs", admin.json("/debug/dag") == {"dags": []})


def check_observed(admin):
    """While a client reads events, the loop is observed, and promtool accepts its metrics."""
    connection = http.client.HTTPConnection("127.0.0.1", admin.port, timeout=PATIENCE)
    connection.request("GET", "/events?ms=250")
    reply = connection.getresponse()
    while True:
        line = reply.readline().decode()
        if line.startswith("data: ") and json.loads(line[6:])["loops"][0]["turn"]["count"] > 0:
            break
    text = admin.get("/metrics").decode()
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                          capture_output=True, timeout=PATIENCE)
    check(done.stdout + done.stderr, done.returncode == 0 and not done.stderr.strip())
    check(text, 'stat="p99"} ' in text and 'phase="wait"} ' in text)
    connection.close()


def spans_of(events):
    """The (begin, end) of all spans of each track.  Each begin event must have an end event."""
    spans, begun = {}, {}
    for event in events:
        track = event.get("pid"), event.get("tid")
        if event["ph"] == "X":
            spans.setdefault(track, []).append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] == "B":
            begun.setdefault(track, []).append(event["ts"])
        elif event["ph"] == "E":
            check(event, begun.get(track))
            spans.setdefault(track, []).append((begun[track].pop(), event["ts"]))
    check("spans that do not end", not any(begun.values()))
    return spans


def check_spans(events):
    """On each track, two spans are nested or disjoint."""
    rounding = 0.0021  # microseconds
    for track, spans in spans_of(events).items():
        around = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while around and around[-1] <= begin + rounding:
                around.pop()
            check((track, begin, end, around[-3:]), not around or end <= around[-1] + rounding)
            around.append(end)


def record_twice(service, admin):
    """Request two recordings at once while the service works.  Return both answers."""
    got = []
    threads = [threading.Thread(target=lambda: got.append(admin.ask("/debug/trace?seconds=2")))
               for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        service.get("/hello")
    for thread in threads:
        thread.join()
    return sorted(got)


def check_trace(service, admin):
    """One of two concurrent requests for a recording is refused."""
    got = record_twice(service, admin)
    while got[1][0] == 200:  # on a busy machine, they may have run one after the other
        got = record_twice(service, admin)
    check(got[1], (got[0][0], got[1][0]) == (200, 409))
    trace = json.loads(got[0][1])
    events = trace if isinstance(trace, list) else trace["traceEvents"]
    check("events", len(events) > 50)
    names = {event["args"]["name"] for event in events
             if event["ph"] == "M" and event["name"] == "thread_name"}
    check(names, any("http" in name for name in names))
    check_spans(events)


def main(program):
    if not shutil.which("promtool"):
        print("skipped: there is no promtool (Debian package prometheus)")
        sys.exit(77)
    service, admin = Place(), Place()
    process = subprocess.Popen([program, f"fd:{service.fd}", f"fd:{admin.fd}"],
                               pass_fds=[service.fd, admin.fd])
    try:
        ask_service(service)
        check_loops(admin)
        check_metrics(admin)
        check_threadlets(admin)
        check_observed(admin)
        check_trace(service, admin)
        process.send_signal(signal.SIGTERM)
        check("its end", process.wait(PATIENCE) == 0)
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
