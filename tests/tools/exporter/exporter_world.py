# SPDX-License-Identifier: Apache-2.0
"""The exporter, a Prometheus that scrapes it, and what both say."""

import contextlib
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

FOLDER = os.path.dirname(os.path.abspath(__file__))
WAIT_S = 120


def find_prometheus():
    """The folder of its programs; exits as a test that is skipped where they cannot be had."""
    found = subprocess.run([os.path.join(FOLDER, "get_prometheus.sh")], stdout=subprocess.PIPE, text=True)
    if found.returncode != 0:
        print(found.stdout, end="")
        raise SystemExit(found.returncode)
    return found.stdout.strip()


def wait_for(what, check):
    """The first result of check() that is true."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        result = check()
        if result:
            return result
        time.sleep(0.1)
    raise AssertionError(f"does not happen: {what}")


class Program:
    """A process that ends with the test; what it says goes to a file."""

    def __init__(self, arguments, **environment):
        self.log = tempfile.NamedTemporaryFile("w+", prefix="starling-exporter-")
        self.process = subprocess.Popen(arguments, env=dict(os.environ, **environment), stdout=self.log, stderr=self.log)

    def said(self):
        with open(self.log.name) as log:
            return log.read()

    def find(self, pattern):
        """The first group of what it says, once it says so."""

        def look():
            if self.process.poll() is not None:
                raise AssertionError(f"it has ended: {self.said()}")
            return re.search(pattern, self.said())

        return wait_for(pattern, look).group(1)

    def stop(self):
        self.process.terminate()
        status = self.process.wait(timeout=WAIT_S)
        self.log.close()
        return status


class Exporter(Program):
    def __init__(self, runtime, *others):
        super().__init__(
            [os.environ["STARLING_COMMAND"], "exporter", "--listen", "127.0.0.1:0", runtime.name, *others],
            STARLING_SOCKET_DIR=runtime.folder,
        )
        self.address = self.find(r"listens at (127\.0\.0\.1:\d+)\n")

    def ask(self, path, method="GET"):
        """Status, fields of the head, and body."""
        try:
            with urllib.request.urlopen(urllib.request.Request(f"http://{self.address}{path}", method=method), timeout=WAIT_S) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read().decode()

    def scrape(self, accept="text/plain"):
        request = urllib.request.Request(f"http://{self.address}/metrics", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return answer.read().decode()


class Prometheus(Program):
    """Scrapes an exporter each second."""

    def __init__(self, programs, exporter):
        self.folder = tempfile.TemporaryDirectory(prefix="starling-prometheus-")
        config = os.path.join(self.folder.name, "prometheus.yml")
        with open(config, "w") as file:
            file.write(
                "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
                f'scrape_configs: [{{job_name: starling, static_configs: [{{targets: ["{exporter.address}"]}}]}}]\n'
            )
        super().__init__(
            [
                os.path.join(programs, "prometheus"),
                f"--config.file={config}",
                "--web.listen-address=127.0.0.1:0",
                f"--storage.tsdb.path={self.folder.name}/data",
                "--log.level=info",
            ]
        )
        self.address = self.find(r'msg="Listening on" address=(\S+)')

    def get(self, path, **parameters):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with contextlib.suppress(ConnectionError, urllib.error.URLError):
            with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
                return json.load(answer)["data"]

    def query(self, expression):
        """Values of an instant query, by their labels as text."""
        data = self.get("query", query=expression)
        return {json.dumps(one["metric"], sort_keys=True): float(one["value"][1]) for one in data["result"]} if data else {}

    def value(self, expression):
        """Of an expression that has one value; None: it has none yet."""
        values = list(self.query(expression).values())
        return values[0] if len(values) == 1 else None

    def stop(self):
        super().stop()
        self.folder.cleanup()
