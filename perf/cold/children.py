# SPDX-License-Identifier: Apache-2.0
"""The private memory of a runtime's children while they live, from /proc. RssAnon: pages that cannot be dropped; pages of mapped files,
and of the plan file, which is counted by its own size, are not among them."""

import glob
import threading
import time

PERIOD_SECONDS = 0.001


def children_of(process):
    pids = []
    for path in glob.glob(f"/proc/{process}/task/*/children"):
        try:
            with open(path, encoding="utf-8") as file:
                pids += file.read().split()
        except OSError:
            continue
    return pids


def private_bytes(process):
    """0 of one that has ended."""
    try:
        with open(f"/proc/{process}/status", encoding="utf-8") as file:
            lines = [line.split() for line in file if line.startswith("RssAnon:")]
        return int(lines[0][1]) << 10 if lines else 0
    except OSError:
        return 0


class Peak:
    """The most that any one child had while the `with` lasted, seen each millisecond."""

    def __init__(self, process):
        self.process, self.bytes, self.samples, self._ends = process, 0, 0, False
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *failure):
        self._ends = True
        self._thread.join()

    def _watch(self):
        while not self._ends:
            for child in children_of(self.process):
                self.bytes = max(self.bytes, private_bytes(child))
                self.samples += 1
            time.sleep(PERIOD_SECONDS)
