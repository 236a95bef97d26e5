#!/usr/bin/env python3
"""Test the dashboard page in a headless Chromium.

    tests/page/run.py [--load N] [--seconds N] [--height N] FOLDER WEFT CROWD [WORD]

WEFT is the weft program: the tests open the page of its `demo`.  CROWD is crowd.c, which
has an admin endpoint without a panel and ten thousand threadlets.  With WORD, only the
tests run whose names contain it.  Screenshots of the page are left in FOLDER.  --height is
their height, --seconds is how long the demo runs before them, --load its load.  The default
load is low, because other tests need the CPU, too.  No test waits for a fixed time, and
every server ends with its test.  Exits with 77 if there is no browser.
"""
import argparse
import base64
import contextlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
import cdp  # noqa: E402
import world  # noqa: E402
from cdp import Browser, Tab  # noqa: E402
from world import check, until  # noqa: E402

# A browser is slow while many compilers run.
PATIENCE = cdp.PATIENCE = world.PATIENCE = 300

TESTS = []
CROWD = 10000
KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "End": 35, "Space": 32}
WIDTHS, THEMES = (1280, 400), ("light", "dark")


def test(function):
    TESTS.append(function)
    return function


def equal(got, want):
    check(f"{got!r} is not {want!r}", got == want)


class Server:
    """A program that serves a page."""

    def __init__(self, stage, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        stdin=subprocess.DEVNULL)
        stage.callback(self.kill)
        line = self.process.stdout.readline()
        found = re.match(r"page: (http://127\.0\.0\.1:(\d+)/)", line)
        check(f"{command} says where its page is: {line!r}", found)
        self.url, self.port = found[1], int(found[2])

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, path, data=None):
        """Make a request; with data it is a POST, with the headers that the page sends."""
        request = urllib.request.Request(self.url + path, data and data.encode(), {
            "Origin": self.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"})
        return urllib.request.urlopen(request, timeout=PATIENCE)

    def settings(self):
        with self.ask("demo/events") as stream:
            for line in stream:
                if line.startswith(b"data: ") and b'"settings"' in line:
                    return json.loads(line[6:])["settings"]


class Stage(contextlib.ExitStack):
    """Shared by the tests: the browser, a folder, and the way to start servers."""

    def __init__(self, options):
        super().__init__()
        self.pictures, self.picture_seconds = Path(options.folder), options.seconds
        self.load, self.height = options.load, options.height
        self.weft, self.crowd_program = options.weft, options.crowd
        self.folder = Path(self.enter_context(
            tempfile.TemporaryDirectory(prefix="weft-page-", ignore_cleanup_errors=True)))
        self.browser = Browser(self)
        self.pictures.mkdir(parents=True, exist_ok=True)
        self.server, self.pages = self.demo(), []

    def demo(self, *words, port=0):
        return Server(self, self.weft, "demo", "--quiet", "--load", str(self.load), "--port",
                      str(port), *words)

    def crowd(self):
        return Server(self, self.crowd_program, "0", str(CROWD))

    def page(self):
        """The page that most tests share, scrolled to the top and without earlier
        events."""
        if not self.pages:
            Page(self, self.server)
        page = self.pages[0]
        page.call("Page.bringToFront")
        page.value("scrollTo({top: 0, behavior: 'instant'})")
        page.forget_events()
        return page

    def close_pages(self, rest=0):
        while len(self.pages) > rest:
            self.pages.pop().close()


class Page(Tab):
    """The page of a server, loaded and connected."""

    def __init__(self, stage, server):
        super().__init__(stage.browser, "about:blank")
        stage.pages.append(self)
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.form(1280)
        self.forget_events()
        self.call("Page.navigate", url=server.url)
        self.await_live()

    def form(self, width, theme="light", motion="no-preference", height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": motion}])

    def await_live(self):
        self.until("document.getElementById('state')?.dataset.state == 'live'")
        self.until("document.querySelectorAll('#loop-cards .loop').length > 0")

    def text(self, name):
        return self.value(f"document.querySelector({json.dumps(name)}).innerText")

    def await_change(self, name):
        before = self.text(name)
        self.until(f"document.querySelector({json.dumps(name)}).innerText"
                   f" != {json.dumps(before)}")

    def show(self, name):
        self.value(f"document.querySelector({json.dumps(name)})"
                   ".scrollIntoView({block: 'center', behavior: 'instant'})")

    def press(self, name):
        """Press a button with the keyboard.  A click could miss it: the page moves its
        content as values arrive, also between measuring the position and the click."""
        self.show(name)
        self.key(name, "Space", key=" ", text=" ")

    def key(self, name, code, **words):
        self.value(f"document.querySelector({json.dumps(name)}).focus()")
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, code=code,
                      windowsVirtualKeyCode=KEYS[code], **{"key": code, **words})

    def complaints(self):
        """Messages of the console, of scripts, and of the content security policy."""
        said = [one for one in self.events("Runtime.consoleAPICalled")
                if one["type"] in ("error", "warning", "assert")]
        return said + self.events("Runtime.exceptionThrown") + self.events("Log.entryAdded")

    def picture(self, file):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(data))


# --- the loaded page ------------------------------------------------------------

@test
def page_loads_without_complaints_and_asks_nobody_else(stage, server, page):
    page = Page(stage, server)
    for name in ("#graphs", "#threadlets"):
        page.show(name)
        page.until(f"document.querySelectorAll('{name} :is(.node, tbody tr)').length > 5")
    page.until("!!document.querySelector('.timeline')")
    equal(page.complaints(), [])
    asked = [one["request"]["url"] for one in page.events("Network.requestWillBeSent")]
    equal([url for url in asked if not url.startswith((server.url, "data:"))], [])
    equal(page.events("Network.loadingFailed"), [])


@test
def values_move(stage, server, page):
    for name in ("#uptime", "#demo-counts", ".loop dd", "#demo-charts .chart:nth-child(2) .legend"):
        page.await_change(name)
    picture = "document.querySelector('#loop-charts canvas').toDataURL()"
    before = page.value(picture)
    page.until(f"{picture} != {json.dumps(before)}")
    page.show("#graphs")
    page.until("document.querySelectorAll('.node').length > 5")
    page.await_change("#graphs .hint")


@test
def program_without_a_panel_has_a_dashboard_too(stage, server, page):
    crowd = stage.crowd()
    page = Page(stage, crowd)
    page.show("#threadlets")
    page.until(f"{ROWS}.length > 0")
    equal(page.complaints(), [])
    check("graphs that are not there take no room",
          page.value("document.querySelector('#graphs').offsetHeight") <= 1)
    crowd.kill()


# --- settings ----------------------------------------------------------------------

@test
def sliders_take_effect(stage, server, page):
    for name in ("load", "fan_out", "delay_us"):
        page.until(f"document.querySelector('#demo-{name}-text').value != '–'")
        before = server.settings()[name]
        page.key(f"#demo-{name}", "ArrowRight")
        until(f"another {name}", lambda: server.settings()[name] != before)
        check(f"more {name} than {before}", server.settings()[name] > before)
    equal(page.value("document.querySelector('#demo-refused').hidden"), True)


@test
def slider_follows_what_somebody_else_has_set(stage, server, page):
    server.ask("demo/set", "fan_out=77").close()
    page.until("document.querySelector('#demo-fan_out').value == 76")  # the slider counts from 0
    page.until("document.querySelector('#demo-fan_out-text').value == '77'")


@test
def setting_that_is_refused_is_said(stage, server, page):
    page = Page(stage, server)  # the browser logs an error for a 400
    page.until("document.querySelector('#demo-load-text').value != '–'")
    page.value("""(() => { const input = document.querySelector('#demo-fan_out');
        input.max = 5000; input.value = 5000; Object.defineProperty(input, 'value',
        { value: '-9', configurable: true });
        input.dispatchEvent(new Event('input')); delete input.value; })()""")
    page.until("!document.querySelector('#demo-refused').hidden")
    check(page.text("#demo-refused"), page.text("#demo-refused").startswith("Not set"))
    page.key("#demo-fan_out", "ArrowLeft")
    page.until("document.querySelector('#demo-refused').hidden")


@test
def comparison_is_switched_off_and_on(stage, server, page):
    page.until("document.querySelector('#demo-compare').checked")
    page.press("#demo-compare")
    until("it is off", lambda: not server.settings()["compare"])
    page.until("document.querySelector('#demo-threads-rps').innerText == 'off'")
    check(page.text("#demo-verdict"), "off" in page.text("#demo-verdict"))
    page.press("#demo-compare")
    until("it is on", lambda: server.settings()["compare"])
    page.until("document.querySelector('#demo-threads-rps').innerText != 'off'")


@test
def redis_that_is_down_is_said_in_words_and_colour(stage, server, page):
    path = stage.folder / "redis.sock"

    def store():
        process = subprocess.Popen([stage.weft, "store", "--listen", f"unix:{path}"],
                                   stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        stage.callback(lambda: process.poll() is None and process.kill())
        until("there is a store", path.exists)
        return process

    first = store()
    mine = stage.demo("--redis", f"redis+unix:{path}")
    page = Page(stage, mine)
    page.until("document.querySelector('#demo-redis').innerText.includes('is up')")
    up = page.value("getComputedStyle(document.querySelector('#demo-redis')).color")
    first.kill()
    first.wait()
    page.until("document.querySelector('#demo-redis').innerText.includes('Redis is down')")
    check("another colour", page.value(
        "getComputedStyle(document.querySelector('#demo-redis')).color") != up)
    path.unlink()
    second = store()
    page.until("document.querySelector('#demo-redis').innerText.includes('is up')")
    mine.kill()
    second.kill()
    second.wait()


# --- threadlets --------------------------------------------------------------------

ROWS = "document.querySelectorAll('#threadlet-rows tr:not(.detail)')"


def type_query(page, text):
    page.value("(() => { const query = document.querySelector('#threadlet-query');"
               " query.value = ''; query.dispatchEvent(new Event('input')); })()")
    page.show("#threadlet-query")
    page.write("#threadlet-query", text)


@test
def search_finds_threadlets_and_a_row_opens(stage, server, page):
    page.show("#threadlets")
    page.until(f"{ROWS}.length > 0")
    name = "health_run"  # of the demo; it is on no other stack
    type_query(page, name)
    page.until(f"Array.from({ROWS}).every((row) =>"
               f" row.innerText.includes({json.dumps(name)})) && {ROWS}.length > 0")
    page.press("#threadlet-rows .open")
    page.until("!document.querySelector('#threadlet-rows .detail').hidden")
    frames = page.text("#threadlet-rows .frames")
    check(frames, len(frames.split("\n")) > 1)
    asked = len(page.events("Network.responseReceived"))
    until("it is asked for again", lambda: page.value("1") and len(
        [one for one in page.events("Network.responseReceived")[asked:]
         if "debug/threadlets" in one["response"]["url"]]) >= 2)
    check("it stays open", not page.value(
        "document.querySelector('#threadlet-rows .detail').hidden"))
    type_query(page, "no threadlet has such a name")
    page.until(f"{ROWS}.length == 0")
    equal(page.text("#threadlet-count"), "0 threadlets")
    type_query(page, "")
    page.until(f"{ROWS}.length > 1")


@test
def ten_thousand_threadlets_are_searched_and_sorted(stage, server, page):
    crowd = stage.crowd()
    page = Page(stage, crowd)
    page.show("#threadlets")
    page.until(f"{ROWS}.length == 50")
    check(page.text("#threadlet-count"), re.fullmatch(r"50 of 10,0\d\d shown",
                                                      page.text("#threadlet-count")))
    page.value("(() => { const sort = document.querySelector('#threadlet-sort');"
               " sort.value = 'name'; sort.dispatchEvent(new Event('change')); })()")
    page.until("document.querySelector('#threadlet-rows .open').innerText"
               " == '<b>sleeper</b> 00001'")
    names = page.value(f"Array.from({ROWS}, (row) => row.querySelector('.open').innerText)")
    equal(names, [f"<b>sleeper</b> {i:05}" for i in range(1, 100, 2)])
    equal(page.value("document.querySelectorAll('#threadlet-rows b').length"), 0)
    page.press("#threadlet-more")
    page.until(f"{ROWS}.length == 100")
    type_query(page, "waiter</b> 099")
    page.until("document.querySelector('#threadlet-count').innerText == '50 threadlets'")
    equal(page.complaints(), [])
    crowd.kill()


@test
def threadlets_are_asked_for_only_while_they_are_seen(stage, server, page):
    page.show("#threadlets")
    page.until(f"{ROWS}.length > 0")
    page.value("scrollTo({top: 0, behavior: 'instant'})")
    page.until("scrollY == 0 && document.querySelector('#threadlets')"
               ".getBoundingClientRect().top > innerHeight + 200")
    page.await_change("#uptime")  # requests in progress have been answered
    page.await_change("#uptime")
    page.await_change("#uptime")
    page.forget_events()
    for _ in range(3):
        page.await_change("#uptime")
    equal([one["request"]["url"] for one in page.events("Network.requestWillBeSent")
           if "debug/threadlets" in one["request"]["url"]], [])


# --- a server that ends ----------------------------------------------------------------

@test
def server_that_is_killed_and_started_again_is_noticed(stage, server, page):
    mine = stage.demo()
    page = Page(stage, mine)
    equal(page.text("#state"), "live")
    pid = mine.process.pid
    mine.kill()
    page.until("document.querySelector('#state').innerText == 'lost, reconnecting'")
    check("it is said", "does not respond" in page.text("#lost"))
    again = stage.demo(port=mine.port)
    page.await_live()
    equal(page.value("document.querySelector('#lost').hidden"), True)
    check("another process", again.process.pid != pid)
    page.until(f"document.querySelector('#process').innerText.includes({again.process.pid})")
    for name in ("#uptime", "#demo-counts"):
        page.await_change(name)
    again.kill()


SQUARES = """(() => {
	const canvas = document.querySelector("#demo-weft-calls");
	const [red, green, blue] = canvas.getContext("2d").getImageData(5, 5, 1, 1).data;
	const pen = document.createElement("canvas").getContext("2d");
	pen.fillStyle = `rgb(${red}, ${green}, ${blue})`;
	return [canvas.width / devicePixelRatio - canvas.clientWidth, pen.fillStyle];
})()"""


@test
def squares_are_repainted_without_new_events(stage, server, page):
    mine = stage.demo()
    page = Page(stage, mine)
    page.until(f"{SQUARES}[1] == '#0f766e'")
    mine.kill()
    page.until("document.querySelector('#state').innerText == 'lost, reconnecting'")
    page.form(400, "dark")
    page.until("innerWidth == 400")
    page.until(f"String({SQUARES}) == '0,#4cc3b3'")


@test
def server_that_hangs_is_noticed(stage, server, page):
    mine = stage.demo()
    page = Page(stage, mine)
    mine.process.send_signal(signal.SIGSTOP)
    page.until("document.querySelector('#state').innerText == 'lost, reconnecting'")
    mine.process.send_signal(signal.SIGCONT)
    page.await_live()
    mine.kill()


# --- accessibility ----------------------------------------------------------------------

# Texts whose contrast to their background is less than 4.5, or less than 3 if large.
CONTRAST = """(() => {
	const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
	const light = (c) => c.slice(0, 3).map((v) => v / 255)
		.map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (element) => {
		for (; element; element = element.parentElement) {
			const colour = parse(getComputedStyle(element).backgroundColor);
			if (colour.length == 3 || colour[3] > 0.9)
				return colour;
		}
		return [255, 255, 255];
	};
	const poor = [];
	for (const element of document.querySelectorAll("body *:not(svg *)")) {
		const style = getComputedStyle(element);
		const own = Array.from(element.childNodes).some((node) =>
			node.nodeType == 3 && node.textContent.trim());
		if (!own || !element.checkVisibility() || element.disabled)
			continue;
		const [a, b] = [light(parse(style.color)), light(behind(element))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		const large = parseFloat(style.fontSize) >= 24;
		if (ratio < (large ? 3 : 4.5))
			poor.push([element.tagName, element.className, element.textContent, ratio]);
	}
	return poor;
})()"""
CONTROLS = {"button", "slider", "searchbox", "textbox", "combobox", "switch", "link", "checkbox"}


def fits(page, width):
    equal(page.value("document.documentElement.scrollWidth"), width)


@test
def page_fits_and_can_be_read_at_each_width_and_theme(stage, server, page):
    server.ask("demo/set", f"load={stage.load}&fan_out=120&delay_us=1000&compare=1").close()
    page.show("#graphs")
    page.until("document.querySelectorAll('.node').length > 5")
    page.show("#threadlets")
    page.until(f"{ROWS}.length > 0")
    page.value("scrollTo({top: 0, behavior: 'instant'})")
    page.until("!!document.querySelector('.timeline')")
    for _ in range(stage.picture_seconds):
        page.await_change("#uptime")
    for width in WIDTHS:
        for theme in THEMES:
            page.form(width, theme, height=stage.height)
            page.until(f"innerWidth == {width} && document.querySelector('.timeline')"
                       ".getAttribute('width') < innerWidth")
            fits(page, width)
            equal(page.value(CONTRAST), [])
            page.picture(stage.pictures / f"page-{width}-{theme}.png")
    page.form(360)
    page.until("innerWidth == 360")
    fits(page, 360)
    page.form(1280)


@test
def page_fits_before_its_timeline_is_repainted(stage, server, page):
    page.form(1280)
    page.until("!!document.querySelector('.timeline')")
    page.value("document.querySelector('.timeline').setAttribute('width', 2000)")
    fits(page, 1280)


@test
def everything_that_is_operated_has_a_name(stage, server, page):
    page.show("#threadlets")
    page.until(f"{ROWS}.length > 0")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    found = [node for node in nodes if node.get("role", {}).get("value") in CONTROLS]
    check(f"{len(found)} controls", len(found) > 15)
    equal([node for node in found if not node.get("name", {}).get("value")], [])


@test
def charts_are_read_by_keyboard(stage, server, page):
    page.until("document.querySelector('#demo-charts .legend b').innerText != '–'")
    page.key("#demo-charts canvas", "ArrowLeft")
    page.until("!document.querySelector('#demo-charts .tip').hidden")
    check(page.text("#demo-charts .tip"), "weft" in page.text("#demo-charts .tip"))


@test
def nothing_moves_for_those_who_asked_for_less_motion(stage, server, page):
    page.form(1280, motion="reduce")
    equal(page.value("Array.from(document.querySelectorAll('*')).filter((element) =>"
                     " !/^0s(, 0s)*$/.test(getComputedStyle(element).transitionDuration)"
                     " || getComputedStyle(element).animationName != 'none').length"), 0)
    page.form(1280)


@test
def trace_is_taken_away_as_a_file(stage, server, page):
    stage.browser.call("Browser.setDownloadBehavior", behavior="allow",
                       downloadPath=str(stage.folder))
    page.value("document.querySelector('#trace-seconds').value = '1'")
    page.press("#trace")
    file = stage.folder / "trace.json"
    page.until("/^(Saved|No trace)/.test(document.querySelector('#trace-state').innerText)")
    equal(page.text("#trace-state"), "Saved as trace.json. Open it in ui.perfetto.dev.")
    until("there is a trace", file.exists)
    until("it is whole", lambda: file.stat().st_size > 0)
    json.loads(file.read_text())


def run(stage, one):
    """Run one test.  Return whether it passed, without complaints on the shared page."""
    begin = time.monotonic()
    try:
        page = stage.page()
        one(stage, stage.server, page)
        equal(page.complaints(), [])
        stage.close_pages(1)
    except (AssertionError, OSError, ValueError, KeyError) as error:
        print(f"{one.__name__} FAILED after {time.monotonic() - begin:.2f} s: {error}")
        traceback.print_exc(file=sys.stdout)
        stage.close_pages()
        return False
    print(f"{one.__name__}: {time.monotonic() - begin:.2f} s", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser()
    for name in ("folder", "weft", "crowd"):
        parser.add_argument(name)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--load", type=int, default=20)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("word", nargs="?", default="")
    options = parser.parse_args()
    with Stage(options) as stage:
        results = [run(stage, one) for one in TESTS if options.word in one.__name__]
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main()
