# SPDX-License-Identifier: Apache-2.0
"""The exporter's page in Chromium, of a runtime that was under load: what it shows is what `starling stats` says, and nothing else.
`test_page.py --pictures FOLDER ADDRESS` takes the pictures of the documents, of an exporter that runs."""

import json
import os
import re
import sys
import threading
import time
import unittest

from browser import Browser, find_chromium
from exporter_world import Exporter

PROGRAM = find_chromium()
if not PROGRAM:
    print("[SKIP] exporter-page: Chromium is not installed: apt-get install chromium")
    sys.exit(77)
try:
    import numpy as np
except ImportError:
    print("[SKIP] exporter-page: python3-numpy is not installed")
    sys.exit(77)

sys.path.insert(0, os.environ.get("STARLING_CLIENT_TESTS", ""))

COLUMNS = {"completed": 9, "failed": 10, "expired": 11, "cancelled": 12, "refused": 13}
MARKUP = "<img src=x onerror=alert(1)>"
# WCAG 2.1, relative luminance and contrast, of two colours #rrggbb
CONTRAST = """((a, b) => {
  const light = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((all, v, i) => all + v * [0.2126, 0.7152, 0.0722][i], 0);
  const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
})"""


def cells(browser):
    """Of each model, the texts and the titles of its cells."""
    return browser.value(
        """Object.fromEntries([...document.querySelectorAll('.models tbody tr[data-model]')].map((row) =>
        [row.dataset.model, [...row.children].map((cell) => ({text: cell.textContent, title: cell.title}))]))"""
    )


def whole(text):
    return int(re.sub(r"\D", "", text))


class PageTest(unittest.TestCase):
    def setUp(self):
        from world import RealRuntime

        self.runtime = RealRuntime(os.environ["STARLING_MODELS"])
        self.addCleanup(self.runtime.stop)
        self.client = self.runtime.connect(label=MARKUP[:31])
        self.addCleanup(self.client.close)
        self.exporter = Exporter(self.runtime, "nobody-here")
        self.addCleanup(self.exporter.stop)
        self.browser = Browser(PROGRAM)
        self.addCleanup(self.browser.stop)

    def load(self):
        """From several threads, so that something waits, too."""

        def ask(model, times, samples):
            images = np.zeros((samples, 1, 8, 8), np.float32)
            for _ in range(times):
                self.client.infer(model, images)

        threads = [threading.Thread(target=ask, args=arguments) for arguments in (("digits", 40, 4), ("lenet", 60, 1), ("mlp", 90, 2))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _ in range(3):
            future = self.client.submit("resnet", np.zeros((4096, 1, 8, 8), np.float32))
            future.cancel()

    def open(self, width=1280, height=1000):
        self.browser.look(width, height)
        self.browser.open(f"http://{self.exporter.address}/")
        self.browser.wait_for("document.querySelectorAll('.models tbody tr[data-model]').length === 6", "all models are there")

    def test_figures_are_those_of_the_command(self):
        # The exporter has looked once before there is a load, and so counts all of it.
        self.open()
        self.browser.wait_for("fetch('/api/history').then((a) => a.json()).then((h) => h.runtimes[0].unix_ms.length > 0)", "a first point")
        self.load()
        stats = {model["name"]: model for model in json.loads(self.runtime.stats("--json"))["models"]}
        done = json.dumps(f"{stats['mlp']['completed']:,}")
        count = f"document.querySelector('tr[data-model=mlp]').children[{COLUMNS['completed']}].textContent"
        self.browser.wait_for(f"{count} === {done} && document.querySelector('tr[data-model=mlp]').children[4].title !== ''", "the page has it")
        shown = cells(self.browser)
        self.assertEqual(shown.keys(), {"digits", "lenet", "mlp", "resnet", "densenet", "mobilenet"})
        for name, row in shown.items():
            with self.subTest(model=name):
                for key, column in COLUMNS.items():
                    self.assertEqual(whole(row[column]["text"]), stats[name][key], key)
                total = stats[name]["latency"]["total"]
                for column, key in ((3, "p50_ns"), (4, "p99_ns"), (5, "p999_ns"), (6, "max_ns")):
                    self.assertEqual(whole(row[column]["title"] or "0"), total[key], key)
        self.assertEqual(self.browser.value("document.querySelectorAll('.workers li').length"), len(json.loads(self.runtime.stats("--json"))["workers"]))
        self.browser.wait_for("document.querySelectorAll('.throughput path.series').length >= 3", "lines of those that were asked")
        self.browser.value("(() => { const filter = document.querySelector('.filter'); filter.value = 'NeT'; filter.dispatchEvent(new Event('input')); })()")
        self.assertEqual(list(cells(self.browser)), ["densenet", "lenet", "mobilenet", "resnet"])

    def test_text_of_others_is_text_and_nothing_comes_from_elsewhere(self):
        self.open()
        self.browser.wait_for("document.querySelectorAll('.clients tbody th').length", "a client")
        self.assertIn(MARKUP[:31], self.browser.value("document.querySelector('.clients tbody').textContent"))
        self.assertEqual(self.browser.value("document.querySelectorAll('img, iframe, object, embed').length"), 0)
        self.browser.wait_for("document.querySelectorAll('section.runtime').length === 2", "both runtimes")
        urls = {event["request"]["url"] for event in self.browser.heard("Network.requestWillBeSent")}
        own = f"http://{self.exporter.address}/"
        self.assertEqual({url for url in urls if not url.startswith((own, "data:", "about:"))}, set())
        self.assertEqual(self.browser.heard("Runtime.exceptionThrown"), [])
        self.assertEqual([event["entry"]["text"] for event in self.browser.heard("Log.entryAdded") if event["entry"]["level"] == "error"], [])
        # What the policy forbids does not run, though somebody had got it into the page.
        self.browser.value("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.broken = 1'}))")
        self.assertIsNone(self.browser.value("window.broken"))

    def test_a_runtime_that_is_gone_says_since_when(self):
        self.open()
        absent = "document.querySelector('#runtime-nobody-here .banner').textContent"
        self.assertRegex(self.browser.wait_for(absent, "who is not there"), r"^No runtime of this name .*No such file.* starling serve MODELS --name nobody-here$")
        self.runtime.process.kill()
        self.runtime.process.wait()
        banner = f"document.querySelector('#runtime-{self.runtime.name} .banner')"
        text = self.browser.wait_for(f"!{banner}.hidden && {banner}.textContent", "the runtime is gone")
        self.assertRegex(text, r"^Runtime gone since \d\d:\d\d:\d\d: it crashed or was killed\..* starling postmortem ")
        self.assertEqual(len(cells(self.browser)), 6, "its last state")
        self.assertEqual(self.exporter.process.poll(), None)
        self.exporter.process.kill()
        self.browser.wait_for("/^No answer from the exporter since /.test(document.getElementById('status').textContent)", "the exporter is gone")

    def test_it_fits_a_phone_and_both_schemes_and_the_keyboard(self):
        self.open(390, 844)
        self.browser.wait_for("document.querySelectorAll('.clients tbody th').length", "a client")
        for width in (320, 390, 820, 1280):
            self.browser.look(width, 900)
            self.assertLessEqual(self.browser.wait_for("document.documentElement.scrollWidth", "a width"), width)
        for scheme in ("light", "dark"):
            self.browser.look(1280, 900, scheme)
            for colour in ("text", "muted", "accent", "good", "warn", "bad", *(f"s{i}" for i in range(8))):
                for ground in ("card", "ground"):
                    value = "getComputedStyle(document.documentElement).getPropertyValue('--%s').trim()"
                    contrast = self.browser.value(f"{CONTRAST}({value % colour}, {value % ground})")
                    self.assertGreaterEqual(contrast, 4.5, f"{colour} on {ground}, {scheme}")
        self.assertEqual(self.browser.value("document.documentElement.lang"), "en")
        unnamed = "[...document.querySelectorAll('table')].filter((table) => [...table.querySelectorAll('thead th')].some((th) => th.scope !== 'col' || !th.textContent)).length"
        self.assertEqual(self.browser.value(unnamed), 0)
        silent = "[...document.querySelectorAll('[tabindex], [role=region], [role=img]')].filter((one) => one.id !== 'content' && !one.getAttribute('aria-label')).length"
        self.assertEqual(self.browser.value(silent), 0)
        # Tab goes to the button, and Enter pauses.
        self.browser.value("document.body.focus()")
        for _ in range(12):
            for kind in ("keyDown", "keyUp"):
                self.browser.call("Input.dispatchKeyEvent", {"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9})
            if self.browser.value("document.activeElement.id") == "pause":
                break
        self.assertEqual(self.browser.value("document.activeElement.id"), "pause")
        for kind in ("keyDown", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", {"type": kind, "key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13})
        self.assertEqual(self.browser.value("document.getElementById('pause').getAttribute('aria-pressed')"), "true")
        self.assertTrue(self.browser.value("document.getElementById('status').textContent.startsWith('Paused')"))


def take_pictures(folder, address):
    browser = Browser(PROGRAM)
    try:
        browser.look(1280, 1000)
        browser.open(f"http://{address}/")
        browser.wait_for("document.querySelectorAll('.throughput path.series').length", "lines")
        for name, width, height, scheme in (("page-light", 1280, 1400, "light"), ("page-dark", 1280, 1400, "dark"),
                                            ("page-phone", 390, 1500, "light"), ("page-phone-dark", 390, 1500, "dark")):
            browser.look(width, height, scheme)
            time.sleep(3)  # until it was drawn again
            browser.picture(os.path.join(folder, name + ".png"))
    finally:
        browser.stop()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--pictures"]:
        take_pictures(*sys.argv[2:4])
    else:
        unittest.main()
