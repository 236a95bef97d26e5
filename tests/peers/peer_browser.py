"""Chromium: a site of files, requests made by pages, and the chat in two tabs."""
import struct
import zlib
from pathlib import Path

from cdp import Browser, Tab
from world import check

IMAGES = 24

PAGE = """<!doctype html>
<meta charset="utf-8"><title>site</title>
<link rel="icon" href="icon.png"><link rel="stylesheet" href="style/main.css">
<script src="script/first.js"></script>
<script type="module" src="script/main.js"></script>
<body>%s</body>
"""

STYLE = "body { background: url(../images/back.png); color: rgb(1, 2, 3); }\n"

MODULE = """
import { answer } from "./other.js";
const data = await (await fetch("data.json")).json();
const part = await fetch("large.txt", { headers: { Range: "bytes=26-51" } });
window.seen = { answer, first: window.first, data, status: part.status, part: await part.text() };
"""

# Requests of a page to peer_server; the results are compared.
REQUESTS = """(async () => {
  const seen = {};
  const body = new Uint8Array(400000).map((_, i) => i * 7);
  const back = new Uint8Array(await (await fetch("/mirror", { method: "POST", body }))
                              .arrayBuffer());
  seen.mirror = back.length == body.length && back.every((byte, i) => byte == body[i]);
  seen.chunks = (await (await fetch("/chunks?size=1000000")).text()).length;
  const form = new FormData();
  form.append("file", new Blob(["x".repeat(100000)]), "x.txt");
  seen.form = Number((await (await fetch("/count", { method: "POST", body: form })).text())
                     .split(" ")[0]) > 100000;
  seen.statuses = [];
  for (const status of [204, 404, 418, 500])
    seen.statuses.push((await fetch("/status/" + status)).status);
  const stop = new AbortController();
  const reader = (await fetch("/letters?size=30000000", { signal: stop.signal })).body.getReader();
  seen.first = (await reader.read()).value[0];
  stop.abort();
  seen.cut = await fetch("/half").then((r) => r.text()).then(() => false, () => true);
  seen.pieces = await new Promise((done) => {
    const events = new EventSource("/events?count=4"), numbers = [];
    events.addEventListener("number", (event) => {
      numbers.push(event.data);
      if (numbers.length == 4) { events.close(); done(numbers.join()); }
    });
  });
  const many = Array.from({ length: 40 }, (_, i) => fetch("/letters?size=" + i * 999));
  seen.many = (await Promise.all(many.map(async (one, i) =>
    (await (await one).text()).length == i * 999))).every((good) => good);
  return seen;
})()"""

SEEN = {"mirror": True, "chunks": 1000000, "form": True, "statuses": [204, 404, 418, 500],
        "first": 97, "cut": True, "pieces": "0,1,2,3", "many": True}


def png(color):
    """An image of one color."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))

    rows = (b"\0" + bytes(color) * 16) * 16
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_site(folder):
    files = {f"images/{i}.png": png((i * 10, 100, 200)) for i in range(IMAGES)}
    tags = "".join(f'<img src="images/{i}.png">' for i in range(IMAGES))
    files |= {"index.html": PAGE % tags, "style/main.css": STYLE, "script/main.js": MODULE,
              "script/first.js": "window.first = 'first';", "data.json": '{"a": [1, 2]}',
              "script/other.js": "export const answer = 42;", "icon.png": png((0, 0, 0)),
              "images/back.png": png((255, 255, 255)),
              "large.txt": "abcdefghijklmnopqrstuvwxyz" * 40000}
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())


def browser(stage):
    """The browser that all tests share."""
    if not hasattr(stage, "browser"):
        stage.browser = Browser(stage)
    return stage.browser


def codes_of(tab, name=""):
    """The statuses of the responses for URLs that end in `name`.  The browser reports
    them after the page has the response."""
    asked = {event["requestId"] for event in tab.events("Network.requestWillBeSent")
             if event["request"]["url"].endswith(name)}
    return [event["statusCode"] for event in tab.events("Network.responseReceivedExtraInfo")
            if event["requestId"] in asked]


def check_network(tab, least, statuses):
    """Wait for `least` responses; none has failed, and all have one of the statuses."""
    tab.until_so(f"{least} replies", lambda: len(codes_of(tab)) >= least)
    failures = tab.events("Network.loadingFailed") + tab.events("Log.entryAdded")
    check(failures, not failures)
    check(codes_of(tab), set(codes_of(tab)) <= set(statuses))


# The status that a page gets if it revalidates its copy itself.
ASK_AGAIN = """(async () => {
  const first = await fetch("style/main.css", { cache: "no-store" });
  const tag = first.headers.get("ETag");
  return (await fetch("style/main.css", { headers: { "If-None-Match": tag } })).status;
})()"""

# The browser writes its cache in the background: wait until a copy is there.
IN_CACHE = """fetch("style/main.css", { cache: "only-if-cached", mode: "same-origin" })
  .then((reply) => reply.ok, () => false)"""


def check_cache(tab):
    """A file in the browser's cache is revalidated, and not sent again."""
    tab.until(IN_CACHE)
    tab.forget_events()
    size = tab.value('fetch("style/main.css", { cache: "no-cache" })'
                     '.then((reply) => reply.text()).then((text) => text.length)')
    check(size, size == len(STYLE))
    tab.until_so("a reply", lambda: codes_of(tab, "main.css"))
    check(codes_of(tab), codes_of(tab, "main.css") == [304])


def visit_site(stage, url):
    tab = Tab(browser(stage), url)
    loaded = "document.readyState == 'complete' && !!window.seen"
    tab.until(loaded)
    seen = tab.value("window.seen")
    check(seen, seen == {"answer": 42, "first": "first", "data": {"a": [1, 2]}, "status": 206,
                         "part": "abcdefghijklmnopqrstuvwxyz"})
    check("the style is there", tab.value("getComputedStyle(document.body).color")
          == "rgb(1, 2, 3)")
    check("all pictures are there", tab.value(
        "Array.from(document.images).filter((i) => i.naturalWidth == 16).length") == IMAGES)
    check_network(tab, IMAGES + 6, (200, 206))
    used = {event["response"]["connectionId"] for event in tab.events("Network.responseReceived")}
    check(f"connections were kept: {used}", len(used) <= 7)
    tab.forget_events()
    tab.call("Page.reload")
    tab.until("performance.getEntriesByType('navigation')[0].type == 'reload' && " + loaded)
    check_network(tab, 1, (200, 206, 304))
    check("a page that has the file", tab.value(ASK_AGAIN) == 304)
    if url.startswith("http:"):  # a site with an untrusted certificate is not cached
        check_cache(tab)
    tab.close()


def test_site_of_files(stage):
    make_site(stage.site)
    server = stage.serve_example(stage.files_program, stage.site)
    visit_site(stage, server.url("/"))


def test_site_over_tls(stage):
    visit_site(stage, stage.serve("https").url("/files/"))


def test_requests_of_a_page(stage):
    for scheme in ("http", "https"):
        server = stage.serve(scheme)
        tab = Tab(browser(stage), server.url("/hello"))
        tab.until("document.body && document.body.innerText.trim() == 'hello'")
        seen = tab.value(REQUESTS)
        check(seen, seen == SEEN)
        tab.close()


def lines_of(tab):
    return tab.value("Array.from(document.querySelectorAll('#lines li'), (li) => li.innerText)")


def say(tabs, speaker, text, heard):
    """A line that is typed and sent in one tab appears in all tabs."""
    tabs[speaker].write("#line", text)
    tabs[speaker].click("button")
    for tab in tabs:
        tab.until(f"document.querySelectorAll('#lines li').length >= {len(heard)}")
        check(lines_of(tab), lines_of(tab) == heard)


def test_chat_in_two_tabs(stage):
    examples = Path(__file__).resolve().parents[2] / "examples"
    door = stage.listen()
    server = stage.serve_example(stage.chat_program, examples, door)
    tabs = [Tab(browser(stage), server.url("/")) for _ in range(2)]
    heard = ["welcome"]
    for tab in tabs:
        tab.until("document.title == 'chat: there'")
    for speaker, text in ((0, "good day"), (1, "ünïcödé & <b>tags</b>"), (0, "bye")):
        heard.append(text)
        say(tabs, speaker, text, heard)
    # The server ends, another one replaces it, and the pages reconnect by themselves.
    stage.servers.remove(server)
    server.end()
    for tab in tabs:
        tab.until("document.title == 'chat: away'")
    stage.serve_example(stage.chat_program, examples, door)
    heard.append("welcome")
    for tab in tabs:
        tab.until("document.title == 'chat: there'")
    heard.append("here again")
    say(tabs, 1, "here again", heard)
    for tab in tabs:
        # The browser counts a response without a body that no script reads as canceled.
        failed = [event for event in tab.events("Network.loadingFailed")
                  if event["type"] != "EventSource" and not event.get("canceled")]
        check(failed, not failed)
        tab.close()
