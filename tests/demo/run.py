#!/usr/bin/env python3
"""Run `weft demo` and check its behavior from outside.

    tests/demo/run.py WEFT [WORD]    the tests whose names contain WORD

No test waits for a fixed time: it waits for a reply or an event.
"""
import contextlib
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ among the sources
sys.path.insert(0, str(Path(__file__).parent))
import model
from demo import Demo, Reply, read_all, store_of_redis, store_of_weft
from seen import PATIENCE, TESTS, check, equal, test, wait_until

RUNS_MAX = 64  # in flight on one loop


def grown(before, after):
    return {name: after["counts"][name] - before["counts"][name] for name in after["counts"]}


# --- one request ---------------------------------------------------------------------

@test
def a_feed_is_json_with_ranked_items(weft):
    with Demo(weft) as demo:
        reply = demo.wait_up().get("/feed/7?k=5")
        equal(reply.headers["content-type"], "application/json")
        feed = reply.json()
        equal((feed["viewer"], len(feed["items"]), feed["candidates"]), (7, 5, 120))
        scores = [item["score"] for item in feed["items"]]
        equal(scores, sorted(scores, reverse=True))
        equal(len(demo.get("/feed/7").json()["items"]), 10)


@test
def an_unknown_viewer_is_not_found_and_bad_input_is_refused(weft):
    with Demo(weft) as demo:
        demo.wait_up()
        before = demo.now()
        demo.get("/feed/500")
        missing = ("/feed/501", "/feed/999999999")
        bad = ("/feed/x", "/feed/0", "/feed/-1", "/feed/1234567890", "/feed/7%00",
               "/feed/7?k=0", "/feed/7?k=51", "/feed/7?k=x", "/feed/7?k=")
        for path in missing:
            check(path, "no such viewer" in demo.get(path, 404).text())
        for path in bad:
            demo.get(path, 400)
        demo.get("/feed/", 404)
        demo.get("/feeds", 404)
        for path in ("/threads/501", "/threads/x"):
            demo.get(path, 404 if path.endswith("501") else 400)
        # The server refuses a path with a NUL byte before the service sees it.
        equal(grown(before, demo.now()), {"ok": 1, "not_found": len(missing), "bad": len(bad) - 1,
                                          "shed": 0, "errors": 0, "redis_errors": 0})


@test
def the_ranking_is_what_the_data_say_by_both_ways(weft):
    with store_of_weft(weft) as store, Demo(weft, "--redis", store.url, "--seed", 11) as demo:
        demo.wait_up()
        equal(store.call("GET", "demo:data"), "2 seed 11")
        for viewer, fan_out, top in ((1, 120, 10), (77, 1, 3), (250, 400, 50), (500, 33, 7)):
            demo.set(f"fan_out={fan_out}&delay_us=0")
            want = model.feed(store, viewer, fan_out, top)
            for way in ("feed", "threads"):
                got = demo.get(f"/{way}/{viewer}?k={top}").json()
                equal({name: got[name] for name in want}, want)


@test
def the_same_seed_gives_the_same_data(weft):
    feeds = []
    for seed in (3, 3, 4):
        with Demo(weft, "--seed", seed) as demo:
            feeds.append(demo.wait_up().get("/feed/9").json()["items"])
    equal(feeds[0], feeds[1])
    check("another seed, other data", feeds[0] != feeds[2])


@test
def data_of_another_seed_replace_the_old_data(weft):
    with store_of_weft(weft) as store:
        store.call("SET", "mine", "kept")
        with Demo(weft, "--redis", store.url, "--seed", 1) as demo:
            first = demo.wait_up().get("/feed/9").json()["items"]
        with Demo(weft, "--redis", store.url, "--seed", 2) as demo:
            demo.wait_up()
            equal(store.call("LLEN", "demo:followed:1"), 150)
            check("other data", demo.get("/feed/9").json()["items"] != first)
        equal(store.call("GET", "mine"), "kept")


# --- settings and events ----------------------------------------------------------------

@test
def settings_are_taken_within_their_limits_only(weft):
    with Demo(weft) as demo:
        demo.wait_up()
        demo.set("load=0&fan_out=3&delay_us=20000&compare=0")
        want = {"load": 0, "fan_out": 3, "delay_us": 20000, "compare": False}
        equal(demo.now()["settings"], want)
        equal(demo.get("/feed/7").json()["candidates"], 3)
        for body in ("load=3001", "load=-1", "fan_out=0", "fan_out=401", "delay_us=20001",
                     "compare=2", "load=", "load", "other=1", "load=1x", "fan_out=5&load=9999",
                     "load=99999999999999999999", "load=1\0"):
            demo.set(body, 400)
        equal(demo.now()["settings"], want)
        demo.set("")
        demo.set("fan_out=400")
        equal(demo.now()["settings"], {**want, "fan_out": 400})
        equal(demo.now()["limits"], {"load": [0, 3000], "fan_out": [1, 400],
                                     "delay_us": [0, 20000], "compare": [0, 1]})


STEPS = {"profile": (), "followed": (), "similar": ("profile",), "trending": (), "seen": (),
         "merge": ("followed", "similar", "trending"), "features": ("merge",),
         "score": ("features", "merge", "profile"), "filter": ("score", "seen"),
         "rank": ("filter",)}


@test
def the_slowest_request_is_sent_as_a_trace_of_its_steps(weft):
    with Demo(weft, "--fan-out", 30) as demo:
        demo.wait_up().get("/feed/7")
        steps = demo.slowest_steps()
        names = [name for name, _, _, _ in steps]
        equal({name: names.count(name) for name in names},
              {name: 30 if name == "features" else 1 for name in STEPS})
        equal({place for _, place, _, _ in steps}, {"loop", "cpu"})
        for name, _, begin, _ in steps:
            for other, _, _, end in steps:
                check(f"{other} ended at {end}, {name} began at {begin}",
                      other not in STEPS[name] or end <= begin + 0.01)  # rounded


@test
def the_delay_is_added_to_each_call(weft):
    with Demo(weft, "--delay-us", 20000) as demo:
        demo.wait_up().get("/feed/7")
        for name, place, begin, end in demo.slowest_steps():
            if place == "loop" and name != "merge":
                check(f"{name}: {begin} to {end}", end - begin >= 20000)
        demo.set("delay_us=0&fan_out=20")
        demo.get("/feed/7")


@test
def events_report_both_sides_as_they_change(weft):
    with Demo(weft, "--fan-out", 20, "--delay-us", 100, load=100) as demo:
        values = []
        with contextlib.closing(demo.events()) as events:
            for name, value in events:
                if name == "demo" and value["weft"]["rps"] and value["threads"]["rps"]:
                    values.append(value)
                if len(values) >= 3 and values[-1]["counts"]["ok"] > values[0]["counts"]["ok"]:
                    break
        first, last = values[0], values[-1]
        for side in ("weft", "threads"):
            check(last[side], 0 < last[side]["p50_us"] <= last[side]["p99_us"])
        equal(set(last), {"weft", "threads", "in_flight", "counts", "redis", "settings",
                          "limits"})
        equal(last["redis"], {"state": "up", "url": "embedded store", "detail": ""})


@test
def calls_in_flight_are_those_that_wait_by_each_way(weft):
    most = 0
    with Demo(weft, "--fan-out", 20, "--delay-us", 20000, load=100) as demo:
        with contextlib.closing(demo.events()) as events:
            for name, value in itertools.islice(events, 200):
                if name == "demo":
                    most = max(most, value["threads"]["calls"])
                    if value["threads"]["calls"] == 8 and value["weft"]["calls"] > 8:
                        break
    equal(most, 8)


@test
def counters_agree_with_what_clients_counted(weft):
    with Demo(weft, "--fan-out", 10, "--delay-us", 0) as demo:
        before = demo.wait_up().now()
        counted, lock = {}, threading.Lock()

        def ask(paths):
            for path in paths:
                status = demo.ask(path).status
                with lock:
                    counted[status] = counted.get(status, 0) + 1
        paths = ["/feed/1", "/feed/2?k=1", "/feed/600", "/feed/nobody", "/feed/3"] * 20
        run_threads(8, ask, paths)
        got = grown(before, demo.now())
        equal(counted, {200: 480, 404: 160, 400: 160})
        equal((got["ok"], got["not_found"], got["bad"], got["shed"], got["errors"]),
              (480, 160, 160, 0, 0))


@test
def the_page_has_the_panel_and_metrics_agree(weft):
    with Demo(weft, "--fan-out", 10, "--delay-us", 0) as demo:
        demo.wait_up()
        page = demo.get("/").text()
        check("the panel", 'id="demo-weft-rps"' in page and "/demo/events" in page)
        for path in ["/feed/1"] * 7 + ["/feed/600"] * 5 + ["/feed/x"] * 3:
            demo.ask(path)
        metrics = dict(re.findall(r"^(demo_\w+) (\d+)$", demo.get("/metrics").text(), re.M))
        equal({name: metrics[f"demo_{name}_total"] for name in ("ok", "not_found", "bad", "shed",
                                                               "errors")},
              {"ok": "7", "not_found": "5", "bad": "3", "shed": "0", "errors": "0"})
        names = [dag["name"] for dag in demo.get("/debug/dag").json()["dags"]]
        equal(names, ["feed"])


@test
def other_sites_can_neither_set_nor_watch(weft):
    with Demo(weft) as demo:
        demo.wait_up()
        before = demo.now()["settings"]
        own = f"Origin: {demo.url}"
        for headers in ((), ("Origin: http://evil.example",), ("Sec-Fetch-Site: cross-site",),
                        (own, "Sec-Fetch-Site: cross-site")):
            equal((headers, demo.ask("/demo/set", "POST", b"load=9", headers).status),
                  (headers, 403))
        equal(demo.ask("/demo/events", headers=("Sec-Fetch-Site: cross-site",)).status, 403)
        equal(demo.ask("/demo/set", headers=(own,)).status, 405)
        equal(demo.now()["settings"], before)


def run_threads(count, function, *args):
    """Call `function` in `count` threads.  Raises the first error of a thread."""
    errors = []

    def run():
        try:
            function(*args)
        except BaseException as e:
            errors.append(e)
    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


# --- overload and shutdown ------------------------------------------------------------------

def wrk(demo, seconds, connections):
    """Returns the number of replies, and how many of them were refused."""
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s",
                           f"{demo.url}/feed/7"], capture_output=True, text=True,
                          timeout=PATIENCE + seconds)
    check(done.stderr, done.returncode == 0)
    replies = int(re.search(r"(\d+) requests in", done.stdout)[1])
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
    return replies, int(refused[1]) if refused else 0


@test
def twice_what_it_can_do_is_shed_and_it_recovers(weft):
    if not shutil.which("wrk"):
        return "wrk is not here"
    # Less work where each call is ten times as slow: accepted requests must end in time.
    fan_out = 4 if os.environ.get("WEFT_TEST_SLOW") else 40
    with Demo(weft, "--delay-us", 5000, "--fan-out", fan_out) as demo:
        before = demo.wait_up().now()
        most, stop = [0], threading.Event()

        def watch():
            with contextlib.closing(demo.events()) as events:
                for name, value in events:
                    if name == "demo":
                        most[0] = max(most[0], value["in_flight"])
                    if stop.is_set():
                        return
        watcher = threading.Thread(target=watch)
        watcher.start()
        replies, refused = wrk(demo, 5, 3 * RUNS_MAX)
        stop.set()
        watcher.join()
        got = grown(before, demo.now())
        check(f"shed: {got}, {refused} of {replies}", refused > 0 and got["shed"] >= refused)
        check(f"and served: {got}", replies > refused)
        check(f"{got} against {replies}",
              replies <= got["ok"] + got["shed"] <= replies + 3 * RUNS_MAX)
        check(f"{most[0]} in flight", most[0] <= RUNS_MAX)
        equal(got["errors"], 0)
        demo.wait("all is answered", lambda now: now["in_flight"] == 0)
        before = demo.now()
        for _ in range(20):
            demo.get("/feed/7")
        equal(grown(before, demo.now())["shed"], 0)
        demo.terminate()


@test
def a_refused_request_is_given_a_time_to_retry(weft):
    # Slow calls, and more at once than may be in flight.
    with Demo(weft, "--delay-us", 20000, "--fan-out", 1) as demo:
        demo.wait_up()
        replies = []

        def ask():
            for _ in range(5):
                replies.append(demo.ask("/feed/7"))
        run_threads(2 * RUNS_MAX, ask)
        refused = [reply for reply in replies if reply.status == 503]
        check("some were shed", refused)
        equal({reply.headers["retry-after"] for reply in refused}, {"1"})
        equal({reply.status for reply in replies}, {200, 503})


@test
def a_signal_lets_what_was_let_in_end(weft):
    for signo in (signal.SIGTERM, signal.SIGINT):
        with Demo(weft, "--delay-us", 5000, "--fan-out", 10, "--loops", 2) as demo:
            demo.wait_up()
            answered, ended, enough = [], threading.Event(), threading.Event()

            def ask():
                while not ended.is_set():
                    try:
                        reply = demo.ask("/feed/7")
                    except (OSError, IndexError):  # refused, or closed before it was accepted
                        continue
                    check("cut short", reply.whole)
                    answered.append(reply.status)
                    if len(answered) > 100:
                        enough.set()
            threads = [threading.Thread(target=ask) for _ in range(24)]
            for thread in threads:
                thread.start()
            check("it serves", enough.wait(PATIENCE))
            demo.process.send_signal(signo)
            out, err = demo.process.communicate(timeout=PATIENCE)
            ended.set()
            for thread in threads:
                thread.join()
            equal((demo.process.returncode, err), (0, ""))
            told = re.search(r"ended: (\d+) ok, 0 not found, 0 bad, (\d+) shed, (\d+) errors", out)
            check(out, told)
            equal([answered.count(status) for status in (200, 503, 502)],
                  [int(number) for number in told.groups()])


@test
def a_reader_of_events_does_not_hold_up_the_end(weft):
    with Demo(weft, load=20) as demo:
        with contextlib.closing(demo.events()) as events:
            next(events)
            demo.terminate()
            equal([name for name, _ in events if name not in ("demo", "slow")], [])


# --- Redis fails and returns ------------------------------------------------------------------

def lose_and_find(store, demo):
    demo.wait_up().get_soon("/feed/7")
    before = demo.now()
    store.kill()
    down = demo.wait("it is down", lambda now: now["redis"]["state"] == "down")
    check(down["redis"], down["redis"]["detail"])
    reply = demo.ask("/feed/7")
    equal(reply.status, 503)
    check(reply.text(), reply.text().startswith("redis is down: "))
    equal(reply.headers["retry-after"], "1")
    equal(demo.ask("/threads/7").status, 502)
    lost = grown(before, demo.now())
    check(lost, lost["errors"] >= 1 and lost["redis_errors"] >= 1)
    store.start()
    demo.wait_up().get_soon("/feed/7")
    demo.get("/threads/7")
    equal(demo.now()["redis"]["detail"], "")


@test
def a_redis_that_is_killed_and_restarted_is_reported_and_used_again(weft):
    program = shutil.which("redis-server")
    with store_of_redis(program) if program else store_of_weft(weft) as store:
        # No other request is in the queue of the threads.  A slow program serves all of its load.
        load = 2 if os.environ.get("WEFT_TEST_SLOW") else 50
        with Demo(weft, "--redis", store.url, "--compare", 0, load=load) as demo:
            for _ in range(2):
                lose_and_find(store, demo)
            demo.terminate()


@test
def redis_that_comes_later_is_waited_for(weft):
    with store_of_weft(weft) as store:
        store.kill()
        with Demo(weft, "--redis", store.url) as demo:
            check(demo.said, "redis is down" in demo.said[0])
            demo.get("/feed/7", 503)
            store.start()
            demo.wait_up().get_soon("/feed/7")
            demo.terminate()


@test
def a_password_and_a_database_go_along(weft):
    program = shutil.which("redis-server")
    if not program:
        return "redis-server is not here"
    with store_of_redis(program) as store:
        store.call("CONFIG", "SET", "requirepass", "se cret")
        url = f"redis://:se%20cret@127.0.0.1:{store.port}/3"
        with Demo(weft, "--redis", url) as demo:
            demo.wait_up()
            equal(demo.get("/feed/7").json()["items"], demo.get("/threads/7").json()["items"])
            equal(demo.now()["redis"]["url"], f"redis://***@127.0.0.1:{store.port}/3")


# --- the program ----------------------------------------------------------------------------------

@test
def two_loops_serve_as_one_does(weft):
    with Demo(weft, "--loops", 2, "--fan-out", 50) as demo:
        demo.wait_up()
        want = demo.get("/feed/7").json()["items"]
        before = demo.now()

        def ask():
            with demo.connect() as stream:
                stream.sendall(b"GET /feed/7 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 9
                               + b"GET /feed/7 HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
                data = read_all(stream)
            equal(data.count(b"HTTP/1.1 200"), 10)
            equal(Reply(b"HTTP" + data.rpartition(b"HTTP")[2]).json()["items"], want)
        run_threads(12, ask)
        equal(grown(before, demo.now())["ok"], 120)
        demo.terminate()


@test
def a_port_in_use_is_reported(weft):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run([weft, "demo", "--port", str(port)], capture_output=True, text=True,
                              timeout=PATIENCE)
    equal((done.returncode, done.stdout), (1, ""))
    check(done.stderr, f"port {port} of 127.0.0.1 is in use" in done.stderr)


@test
def without_a_port_the_next_free_one_is_taken(weft):
    with socket.socket() as taken:
        with contextlib.suppress(OSError):  # the port is in use already, which is fine
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", 7070))
            taken.listen()
        process = subprocess.Popen([weft, "demo", "--quiet"], stdout=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        process.terminate()
        out, _ = process.communicate(timeout=PATIENCE)
    port = re.fullmatch(r"page: http://127\.0\.0\.1:(\d+)/\n", line)
    check(line, port and 7070 < int(port[1]) <= 7080)
    equal((process.returncode, out), (0, ""))


@test
def wrong_arguments_are_reported_with_the_usage(weft):
    for words in (["--loops", "0"], ["--port", "65536"], ["--fan-out", "401"], ["--what"],
                  ["--load"], ["--compare", "2"], ["extra", "word"]):
        done = subprocess.run([weft, "demo", *words], capture_output=True, text=True,
                              timeout=PATIENCE)
        equal((words, done.returncode, done.stdout), (words, 2, ""))
        check(done.stderr, "usage: weft demo" in done.stderr)
    done = subprocess.run([weft, "demo", "--help"], capture_output=True, text=True,
                          timeout=PATIENCE)
    check(done.stdout, done.returncode == 0 and done.stdout.startswith("usage: weft demo"))


@test
def a_wrong_address_of_redis_is_reported_without_its_password(weft):
    for url, told in (("http://me:secret@x", "the address must begin with redis://"),
                      ("redis://me:secret@x:y", "the port is not a number"),
                      ("redis://me:secret@x/y", "the database is not a number")):
        done = subprocess.run([weft, "demo", "--port", "0", "--redis", url], capture_output=True,
                              text=True, timeout=PATIENCE)
        equal((url, done.returncode, done.stdout), (url, 1, ""))
        check(done.stderr, told in done.stderr and "secret" not in done.stderr)


def main():
    weft, word = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    failed = 0
    for function in TESTS:
        if word not in function.__name__:
            continue
        try:
            left_out = function(weft)
            print(f"ok   {function.__name__}" + (f": left out, {left_out}" if left_out else ""),
                  flush=True)
        except Exception as e:
            failed += 1
            print(f"FAIL {function.__name__}: {type(e).__name__}: {e}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
