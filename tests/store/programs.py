#!/usr/bin/env python3
"""Run redis-cli, redis-benchmark and a hiredis program against `weft store`, and test its command
line.

    tests/store/programs.py PROGRAM [HIREDIS_ASK]
"""
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from servers import PATIENCE, SKIPPED, Connection, start_store


def check(what, good):
    if not good:
        sys.exit(f"not as it should be: {what}")


def run(*words, text=None, status=0, env=None):
    done = subprocess.run(list(map(str, words)), input=text, capture_output=True, text=True,
                          timeout=5 * PATIENCE, env=env)
    check(f"{words}: exit {done.returncode}: {done.stdout}{done.stderr}",
          done.returncode == status)
    return done.stdout


def test_command_line(store):
    cli = ("redis-cli", "-s", store.path)
    check("SET", run(*cli, "SET", "a", "1") == "OK\n")
    check("a list", run(*cli, text="RPUSH l a b\nLRANGE l 0 -1\n") == "2\na\nb\n")
    check("RESP3", run(*cli, "-3", "HSET", "h", "f", "v") == "1\n")
    check("a map", run(*cli, "-3", "--no-raw", "HGETALL", "h") == '1# "f" => "v"\n')
    check("INFO", "in_memory_only:1" in run(*cli, "INFO"))
    check("an error", "ERR unknown command 'NOPE'" in run(*cli, "NOPE"))
    check("keys", sorted(run(*cli, "KEYS", "*").split()) == ["a", "h", "l"])
    check("a stream", run(*cli, text="XADD x 1-1 f v\nXLEN x\n") == "1-1\n1\n")
    check("pipe", "errors: 0, replies: 1000" in run(
        *cli, "--pipe", text="".join(f"SET p:{i} {i}\r\n" for i in range(1000))))
    check("piped", run(*cli, "DBSIZE") == "1004\n")


def test_interactive(store):
    """The commands that redis-cli sends before its first prompt, such as COMMAND DOCS."""
    out = run("redis-cli", "-s", store.path, text="hello 3\nping\n")
    check(f"interactive: {out}", "PONG" in out)


def test_benchmark(store):
    tests = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,zadd,zpopmin,lrange_100,mset"
    for more in ((), ("-P", "16"), ("-3",), ("-r", "1000", "-c", "100")):
        out = run("redis-benchmark", "-s", store.path, "-n", "5000", "-c", "50", "-q", "-t", tests,
                  *more)
        check(f"redis-benchmark: {out}", "requests per second" in out)
        check(f"redis-benchmark: {out}", "error" not in out.lower())


def test_options(program, folder):
    out = run(program, "store", "--help")
    check("help says that it is in memory", "in memory" in out)
    check("help of the program", "store" in run(program, "--help"))
    run(program, "store", "--listen", status=2)
    run(program, "store", "--memory-max", "1x", status=2)
    run(program, "store", "--listen", f"unix:{folder}/none/none", status=1)
    run(program, "store", "--listen", "tcp://0.0.0.0:0", status=1)
    store = start_store(program, folder, "--without-password", "--listen", "tcp://0.0.0.0:0")
    check("it listens everywhere if asked to by name", store.stop() == 0)


def test_bounds(program, folder):
    store = start_store(program, folder, "--memory-max", "1m")
    connection = Connection(store.path)
    for i in range(3):
        reply = connection.ask("SET", i, "v" * 600000)
    check(f"memory is bounded: {reply}", reply[0] == "error" and reply[1].startswith(b"OOM"))
    check("no scripts", connection.ask("EVAL", "return 1", 0)[0] == "error")
    connection.close()
    check("it ends", store.stop() == 0)


def main():
    program = sys.argv[1]
    if not shutil.which("redis-benchmark") or not shutil.which("redis-cli"):
        print("redis-tools are not here")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        test_options(program, folder)
        store = start_store(program, folder)
        for test in (test_command_line, test_interactive, test_benchmark):
            test(store)
        if len(sys.argv) > 2:
            run(sys.argv[2], store.path)
        check("it ends", store.stop() == 0)
        test_bounds(program, folder)


if __name__ == "__main__":
    main()
