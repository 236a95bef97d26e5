"""The rows: what is measured, by which programs, and the bar that weft must reach.

`PROGRAM ROW` prints one number.  The bar of a peer is the minimum ratio; the bar of a row
without peers is the maximum value (the minimum, if higher is better).  None means that there is
no bar.
"""
from collections import namedtuple

Peer = namedtuple("Peer", "name program bar")
Row = namedtuple("Row", "name unit weft peers bar better", defaults=((), None, "lower"))


def uv(group, bar):
    return Peer("libuv", f"{group}_uv", bar)


def ev(group, bar):
    return Peer("libev", f"{group}_ev", bar)


def boost(group, bar):
    return Peer("boost.fiber", f"{group}_boost", bar)


def tbb(bar):
    return Peer("oneTBB", "dag_tbb", bar)


def go(bar):
    return Peer("go", "rows_go", bar)


def node(bar):
    return Peer("node", "rows_node", bar)


def nginx(bar):
    return Peer("nginx", "served_nginx", bar)


def hiredis_ev(bar):
    return Peer("hiredis+libev", "redis_ev", bar)


def uvloop(bar):
    return Peer("uvloop", "py_uvloop", bar)


def pythons(bar):
    """uvloop, and Python's own loop without a bar."""
    return uvloop(bar), Peer("asyncio", "py_asyncio", None)


ROWS = (
    Row("timer.start_stop.1e5", "ns", "timer_weft", (uv("timer", 10), ev("timer", 1.5))),
    Row("timer.rearm.1e6", "ns", "timer_weft", (uv("timer", 8), ev("timer", None))),
    Row("timer.expire.1e6", "ns", "timer_weft", (uv("timer", 15), ev("timer", None))),

    Row("post.1p", "ns", "post_weft", (uv("post", 4),)),
    Row("post.2p", "ns", "post_weft", (uv("post", 2),)),

    Row("wake.roundtrip.spin", "ns", "wake_weft", (uv("wake", 40),)),
    Row("wake.roundtrip.park", "ns", "wake_weft", (Peer("futex", "wake_futex", 0.9),)),

    Row("turn.empty", "ns", "turn_weft", (uv("turn", 7), ev("turn", 7))),
    Row("turn.metrics", "ns", "turn_metrics", (Peer("without", "turn_weft", 0.97),)),

    Row("echo.callback.cpu.512", "ns", "echo_weft", (uv("echo", 1.15),)),
    Row("echo.callback.cpu.512.epoll", "ns", "echo_weft", (uv("echo", 0.95),)),

    Row("echo.threadlet.cpu.64", "ns", "serve_weft",
        (Peer("raw io_uring", "echo_uring", 0.95), uv("echo", 1.1), go(1.15))),
    Row("echo.threadlet.cpu.1000", "ns", "serve_weft",
        (Peer("raw io_uring", "echo_uring", 0.95), uv("echo", 1.1), go(1.25))),
    Row("echo.threadlet.cpu.1000.epoll", "ns", "serve_weft",
        (Peer("raw epoll", "echo_raw", 0.93), uv("echo", None))),

    Row("udp.echo.cpu", "ns", "udp_weft", (uv("udp", 1.3),)),

    Row("conn.memory.leased", "bytes", "conn_weft", bar=5200),
    Row("conn.memory.stack", "bytes", "conn_weft", bar=9400),
    Row("conn.memory.callback", "bytes", "conn_weft", bar=600),
    Row("conn.idle.100k", "ns", "conn_weft"),

    # CPU time of a write in a queue of a million, against as many in queues of a thousand.
    Row("stream.queue.1e6", "ns", "queue_weft", (Peer("1e3", "queue_few", 0.6),)),

    Row("loop.new_free", "ns", "loop_weft", (uv("loop", 1),)),
    Row("loop.new_turn_free", "ns", "loop_weft", (uv("loop", None),)),
    Row("loop.memory", "bytes", "loop_weft", bar=65536),
    Row("watch.memory", "bytes", "watch_weft", bar=100),

    # CPU time of the process; resident memory.
    Row("threadlet.switch", "ns", "switch_weft", (go(3), boost("switch", 4))),
    Row("threadlet.spawn_join", "ns", "spawn_weft",
        (go(7), Peer("st", "spawn_st", 2), boost("spawn", 7))),
    Row("threadlet.memory.1e6", "bytes", "parked_weft", bar=4400),

    # CPU time on one loop; wall time between two loops (Go: on two cores).
    Row("chan.unbuffered", "ns", "chan_weft", (go(4), boost("chan", 8))),
    Row("chan.unbuffered.deep", "ns", "chan_weft", (go(None), boost("chan", None))),
    Row("chan.buffered", "ns", "chan_weft", (go(3),)),
    Row("chan.cross_loop.64", "ns", "cross_weft", (go(1),)),
    Row("chan.cross_loop.0", "ns", "cross_weft", (go(0.5),)),

    # CPU time of a lock and an unlock; wall time divided by the ideal; wall time.
    Row("mutex.uncontended", "ns", "mutex_weft", (Peer("pthread", "mutex_pthread", 1),)),
    Row("sleep.10k", "times", "sleep_weft", (go(1),)),
    Row("work.roundtrip", "ns", "work_weft", (uv("work", 1.5),)),

    # CPU time of the process, including V8's own threads.
    Row("promise.then_chain", "ns", "promise_weft", (node(5),)),
    Row("promise.then_chain.1000", "ns", "promise_weft", (node(None),)),
    Row("promise.create_resolve", "ns", "promise_weft", (node(2),)),
    Row("promise.all.1000", "ns", "promise_weft", (node(1.5),)),
    Row("promise.all.1000.late", "ns", "promise_weft", (node(None),)),
    Row("microtask", "ns", "promise_weft", (node(8),)),
    Row("timeout.set_clear", "ns", "promise_weft", (node(10),)),
    # Scripts: measured by themselves; js.start from start to end of the process.
    Row("js.set_clear", "ns", "js_weft", (Peer("node", "js_node", 0.5),)),
    Row("js.fire_1e6", "ns", "js_weft", (Peer("node", "js_node", 0.5),)),
    Row("js.start", "us", "js_weft", (Peer("node", "js_node", 15),)),

    # Wall time per node; of the last row, per graph.
    Row("dag.chain", "ns", "dag_weft", (tbb(0.6),)),
    Row("dag.fan", "ns", "dag_weft", (tbb(2),)),
    Row("dag.layered", "ns", "dag_weft", (tbb(1.3),)),
    Row("dag.diamond", "ns", "dag_weft", (tbb(1),)),

    # Servers in their own process: CPU time per request, or per record of 16 KB.
    Row("http.plain.cpu", "ns", "served_weft",
        (nginx(1.15), Peer("go", "served_go", 2))),
    Row("http.pipelined.rps", "1/s", "served_weft", (nginx(6),), better="higher"),
    Row("http.static.cpu", "ns", "served_weft", (nginx(1),)),
    Row("http.slowpeers.p99", "us", "served_weft", (nginx(None),)),
    Row("http.overload.goodput", "of peak", "served_weft", bar=0.9, better="higher"),
    # CPU time per request, with a reader of the admin endpoint's events and without.
    Row("admin.overhead", "ns", "served_watched", (Peer("without", "served_alone", 0.97),)),
    # CPU time of the server.
    Row("store.get.p16.cpu", "ns", "stored_weft", (Peer("redis-server", "stored_redis", 1.3),)),

    Row("tls.handshake.cpu", "ns", "served_weft", (nginx(0.95),)),
    Row("tls.bulk.cpu", "ns", "served_weft", (nginx(0.95),)),

    # CPU time of the thread, and bytes per CPU time.
    Row("http.parse", "ns", "http_weft",
        (Peer("llhttp", "http_llhttp", None), Peer("http-parser", "http_nodejs", None))),
    Row("http.parse.rate", "GB/s", "http_weft",
        (Peer("llhttp", "http_llhttp", None), Peer("http-parser", "http_nodejs", None)),
        better="higher"),

    # GET of short texts on one connection, with the server on the other core: CPU time of the
    # client with threadlets and with ops; with 100 or one in flight; and through a proxy that
    # delays all bytes by half a millisecond in each direction.
    Row("redis.get.100.cpu", "ns", "redis_weft",
        (hiredis_ev(2), Peer("no client", "redis_raw", None))),
    Row("redis.get.100.op", "ns", "redis_weft", (hiredis_ev(None),)),
    Row("redis.get.100.rps", "1/s", "redis_weft", (hiredis_ev(1),), better="higher"),
    Row("redis.get.1.rps", "1/s", "redis_weft",
        (Peer("hiredis", "redis_sync", 0.9), hiredis_ev(None)), better="higher"),
    Row("redis.rtt.100.rps", "1/s", "redis_weft",
        (Peer("hiredis, 8 threads", "redis_sync", 10), hiredis_ev(None)), better="higher"),

    # Feeds of the demo; each is a graph with a hundred Redis calls, 1 ms away: one loop and the
    # CPU pool against the same work on blocking threads.
    Row("demo.rps", "1/s", "ranked_weft", (Peer("8 blocking threads", "ranked_threads", 5),),
        better="higher"),

    # asyncio loops with the same Python: CPU time of the process per operation; of an echo server
    # per message, on 32 connections; and wall time of a child process that exits immediately.
    Row("py.call_soon.batch", "ns", "py_weft", pythons(1.6)),
    Row("py.call_soon.chain", "ns", "py_weft", pythons(2)),
    Row("py.sleep0.1", "ns", "py_weft", pythons(1.7)),
    Row("py.sleep0.100", "ns", "py_weft", pythons(1.4)),
    Row("py.future_wake", "ns", "py_weft", pythons(2)),
    Row("py.timer_cancel", "ns", "py_weft", pythons(3)),
    Row("py.threadsafe", "ns", "py_weft", pythons(1.3)),
    Row("py.echo.protocol.1k.cpu", "ns", "py_weft", pythons(1.1)),
    Row("py.echo.streams.1k.cpu", "ns", "py_weft", pythons(1.1)),
    Row("py.echo.sock.1k.cpu", "ns", "py_weft", pythons(2)),
    Row("py.echo.protocol.100k.cpu", "ns", "py_weft", pythons(1)),
    Row("py.echo.tls.1k.cpu", "ns", "py_weft", pythons(1.1)),
    Row("py.subprocess", "us", "py_weft", (uvloop(1),)),
)

# Rows that are pure CPU work of one thread: instructions.py counts their instructions.
COUNTED = frozenset("""
    timer.start_stop.1e5 timer.rearm.1e6 timer.expire.1e6 turn.empty turn.metrics loop.new_free
    threadlet.switch threadlet.spawn_join chan.unbuffered chan.unbuffered.deep chan.buffered
    mutex.uncontended promise.then_chain promise.then_chain.1000 promise.create_resolve
    promise.all.1000 promise.all.1000.late microtask timeout.set_clear http.parse
    py.call_soon.batch py.call_soon.chain py.sleep0.1 py.sleep0.100 py.future_wake py.timer_cancel
""".split())
