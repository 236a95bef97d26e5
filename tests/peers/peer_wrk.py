"""wrk: load with many connections at once, plain, pipelined and over TLS."""
import re
import subprocess

from world import PATIENCE, check, need

WRK = need("wrk")
SECONDS = 1

# Sixteen requests in one write, of several kinds; wrk counts the responses.
PIPELINED = """
function init(args)
  local all = {}
  for i = 1, 16 do
    all[i] = wrk.format("GET", i % 4 == 0 and "/chunks?size=500" or "/hello")
  end
  batch = table.concat(all)
end
function request() return batch end
"""

# Bodies of many sizes, which must come back unchanged.
ECHOED = """
local count = 0
function request()
  count = count % 300 + 1
  return wrk.format("POST", "/echo", nil, string.rep("x", count * 37))
end
function response(status, headers, body)
  if status ~= 200 or #body % 37 ~= 0 or #body == 0 then
    print("a body of " .. #body .. " with status " .. status)
    os.exit(1)
  end
end
"""


def run(server, path, *words, connections=64):
    """Run wrk; check that all requests were answered, and return their number."""
    done = subprocess.run([WRK, "-t", "2", "-c", str(connections), "-d", f"{SECONDS}s",
                           "--timeout", f"{PATIENCE}s", "--latency", *words,
                           f"{server.scheme}://127.0.0.1:{server.port}{path}"],
                          capture_output=True, text=True, timeout=PATIENCE)
    found = re.search(r"^ *(\d+) requests in", done.stdout, re.M)
    check(done, done.returncode == 0 and found and int(found[1]) > 0)
    for bad in ("Socket errors", "Non-2xx"):
        check(done.stdout, bad not in done.stdout)
    return int(found[1])


def wrk(server, *words, **named):
    """The same, and check that the server has counted no errors."""
    requests = run(server, *words, **named)
    stats = server.stats()
    # When its time is over, wrk disconnects in the middle of responses: these have failed.
    check(stats, all(stats[name] == 0 for name in ("bad_requests", "rejected_503", "timed_out"))
          and stats["failed"] <= stats["connections"])
    return requests


def script(stage, text):
    file = stage.folder / "script.lua"
    file.write_text(text)
    return ["-s", str(file)]


def load(stage, scheme):
    server = stage.serve(scheme)
    (stage.site / "data.bin").write_bytes(bytes(100_000))
    for path in ("/hello", "/files/data.bin"):
        requests = wrk(server, path)
        check("all were counted", server.stats()["requests"] >= requests)
    wrk(server, "/hello", *script(stage, PIPELINED), connections=32)
    wrk(server, "/echo", *script(stage, ECHOED), connections=32)
    server.end()
    stage.servers.remove(server)


def test_plain(stage):
    load(stage, "http")


def test_tls(stage):
    load(stage, "https")


def test_files_example(stage):
    (stage.site / "index.html").write_text("<p>hello" * 1000)
    server = stage.serve_example(stage.files_program, stage.site)
    run(server, "/")
