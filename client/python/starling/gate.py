# SPDX-License-Identifier: Apache-2.0
"""Lets calls pass side by side, and a reconnect alone: the C library asks for that."""

import threading


class Gate:
    """`with gate:` for calls; shut() and reopen() for who wants to be alone, see Alone."""

    def __init__(self):
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._closed = False

    def __enter__(self):
        with self._changed:
            while self._closed:
                self._changed.wait()
            self._inside += 1

    def __exit__(self, *_):
        with self._changed:
            self._inside -= 1
            if self._closed and self._inside == 0:
                self._changed.notify_all()

    def shut(self):
        """Waits until nobody is inside, and keeps others out until reopen()."""
        with self._changed:
            while self._closed:
                self._changed.wait()
            self._closed = True
            try:
                while self._inside:
                    self._changed.wait()
            except BaseException:  # interrupted: nobody would open it again
                self._closed = False
                self._changed.notify_all()
                raise

    def reopen(self):
        with self._changed:
            self._closed = False
            self._changed.notify_all()


class Alone:
    """`with Alone(gate):`, of either form."""

    def __init__(self, gate):
        self._gate = gate

    def __enter__(self):
        self._gate.shut()

    def __exit__(self, *_):
        self._gate.reopen()
