# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through its debugging pipe: descriptors 3 and 4, messages of JSON that end with a NUL."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

WAIT_S = 50


def find_chromium():
    """Its path; None where it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="starling-browser-")
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        self.log = open(os.path.join(self.folder, "log"), "w+")
        arguments = ["--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--disable-lcd-text", "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
                     f"--user-data-dir={self.folder}/profile", "about:blank"]
        if os.geteuid() == 0:
            arguments.insert(0, "--no-sandbox")  # which root has none of

        def take_pipes():
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=take_pipes,
                                        close_fds=False, start_new_session=True, env=dict(os.environ, HOME=self.folder))
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._buffer, self.events = 0, b"", []
        target = self.call("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True}, session=None)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def _read(self, until):
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0, until - time.monotonic()))[0]:
                raise RuntimeError(f"Chromium does not answer: {self.said()}")
            part = os.read(self._in, 1 << 20)
            if not part:
                raise RuntimeError(f"Chromium has ended: {self.said()}")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, parameters=None, session=""):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = session or self.session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + WAIT_S
        while True:
            answer = self._read(until)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        self.call("Page.navigate", {"url": url})

    def value(self, expression):
        """Of an expression of JavaScript, as JSON has it."""
        result = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression, what):
        """Until it is true."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            value = self.value(expression)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"{what}: not within {WAIT_S} s; the page says: {self.value('document.body.innerText')[:2000]}")

    def look(self, width, height, scheme="light", scale=1):
        self.call("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600})
        self.call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", {"format": "png"})["data"]))

    def heard(self, *methods):
        """Events of these kinds so far."""
        self.value("1")
        return [event["params"] for event in self.events if event.get("method") in methods]

    def said(self):
        self.log.seek(0)
        return self.log.read()[-2000:]

    def stop(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # its processes are a group of their own
        self.process.wait()
        os.close(self._in)
        os.close(self._out)
        self.log.close()
        for _ in range(100):  # who was killed may write a little longer
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                break
            time.sleep(0.05)
