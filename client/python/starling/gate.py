# SPDX-License-Identifier: Apache-2.0
"""Lets calls pass side by side, and a reconnect alone: the C library asks for that."""

import threading


class Gate:
    """`with gate:` for calls; `with gate.alone():` waits until none is inside, and keeps others out meanwhile."""

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

    def alone(self):
        return _Alone(self)


class _Alone:
    def __init__(self, gate):
        self._gate = gate

    def __enter__(self):
        gate = self._gate
        with gate._changed:
            while gate._closed:
                gate._changed.wait()
            gate._closed = True
            while gate._inside:
                gate._changed.wait()

    def __exit__(self, *_):
        gate = self._gate
        with gate._changed:
            gate._closed = False
            gate._changed.notify_all()
