"""A headless Chromium, driven through its DevTools protocol over a pair of pipes."""
import collections
import json
import os
import select
import subprocess
import time

from world import PATIENCE, check, need, until

PROGRAM = need("chromium-headless-shell", "chromium", "google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu",
         "--disable-dev-shm-usage", "--no-first-run", "--no-proxy-server", "--mute-audio",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-extensions", "--disable-default-apps", "--ignore-certificate-errors"]


class Browser:
    """The process, and the messages to and from it: JSON that ends with a NUL."""

    def __init__(self, stage):
        folder = stage.folder / "browser"
        theirs_in, self.out = os.pipe()
        self.source, theirs_out = os.pipe()
        self.log = open(stage.folder / "browser.log", "wb")

        def arrange():  # the browser expects them as descriptors 3 and 4
            spare = [os.dup(fd) for fd in (theirs_in, theirs_out)]
            spare = [os.dup(fd) if fd < 5 else fd for fd in spare]
            for number, fd in enumerate(spare, 3):
                os.dup2(fd, number)

        self.process = subprocess.Popen(
            [PROGRAM, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, pass_fds=(3, 4),
            preexec_fn=arrange, env={**os.environ, "HOME": str(stage.folder)})
        for fd in (theirs_in, theirs_out):
            os.close(fd)
        self.rest, self.last_id, self.replies = b"", 0, {}
        self.events = collections.defaultdict(list)  # by session
        stage.callback(self.end)

    def read(self):
        """Read its next message."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready = select.select([self.source], [], [], max(0, end - time.monotonic()))[0]
            more = os.read(self.source, 1 << 16) if ready else b""
            check("the browser is there and says something", more)
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        if "id" in message:
            self.replies[message["id"]] = message
        else:
            self.events[message.get("sessionId")].append(message)

    def call(self, method, session=None, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while self.last_id not in self.replies:
            self.read()
        reply = self.replies.pop(self.last_id)
        check(f"{method} {params}: {reply.get('error')}", "result" in reply)
        return reply["result"]

    def end(self):
        """End the browser; it ends its own processes before itself."""
        try:
            self.call("Browser.close")
            self.process.wait(PATIENCE)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        for fd in (self.out, self.source):
            os.close(fd)
        self.log.close()


class Tab:
    """An open page; its network events are recorded."""

    def __init__(self, browser, url):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target,
                                    flatten=True)["sessionId"]
        for part in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{part}.enable")
        self.call("Page.navigate", url=url)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def value(self, expression):
        """Evaluate an expression in the page; promises are awaited."""
        reply = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                          awaitPromise=True)
        check(f"{expression}: {reply}", "exceptionDetails" not in reply)
        return reply["result"].get("value")

    def until(self, expression):
        return until(f"{expression} in a page", lambda: self.value(expression))

    def until_so(self, what, look):
        """Read messages of the browser until `look` returns true for the events."""
        return until(what, lambda: look() or self.value("0"))

    def events(self, method):
        return [event["params"] for event in self.browser.events[self.session]
                if event["method"] == method]

    def forget_events(self):
        self.browser.events[self.session].clear()

    def click(self, name):
        """Click with the mouse, in the center of the element."""
        self.call("Page.bringToFront")
        spot = self.value(f"(() => {{ const r = document.querySelector('{name}')"
                          ".getBoundingClientRect();"
                          " return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **spot)

    def write(self, name, text):
        self.click(name)
        self.call("Input.insertText", text=text)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
