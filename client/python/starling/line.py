# SPDX-License-Identifier: Apache-2.0
"""A queue pair in use, and the pool that they come from.

The C library wants one thread at a time per queue pair. A line is lent to one caller at a time: a thread that waits in infer(),
the thread behind futures, or one event loop.
"""

import ctypes
import errno
import threading

from .errors import Busy, error_of
from .library import Completion, Error

_REAP_MAX = 32


class Line:
    """One queue pair and the calls that are in flight on it."""

    def __init__(self, core, handle):
        self._core = core
        self._library = core.library
        self.handle = handle
        self.calls = {}  # id -> (call, what the borrower wants to know when it completes)
        self._completions = (Completion * _REAP_MAX)()

    def submit(self, call, note=None):
        """Raises what the library refuses; Busy when the queue pair is full."""
        status = self._library.submit(self.handle, ctypes.byref(call.request), ctypes.byref(call.id))
        if status < 0:
            text = self._library.queue_error(self.handle).decode() or self._library.words(status)
            raise error_of(status, text)
        self.calls[call.id.value] = (call, note)

    def cancel(self, call):
        return self._library.cancel(self.handle, call.id.value) == 0

    def _hand_out(self, n):
        for i in range(n):
            completion = self._completions[i]
            call, note = self.calls.pop(completion.id, (None, None))
            if call is not None:
                yield call, note, completion

    def poll(self):
        """What has completed, as (call, note, completion); the completion's shapes last until the next poll or wait."""
        return list(self._hand_out(max(0, self._library.poll(self.handle, self._completions, _REAP_MAX))))

    def wait(self, timeout_ns):
        return list(self._hand_out(max(0, self._library.wait(self.handle, self._completions, _REAP_MAX, timeout_ns))))

    def fd(self):
        fd = self._library.queue_fd(self.handle)
        if fd < 0:
            raise error_of(fd, f"no descriptor for the event loop: {self._library.words(fd)}")
        return fd

    def arm(self):
        """True when the descriptor will tell; False when there is something to reap already."""
        return self._library.queue_arm(self.handle) == 0

    def close(self):
        """Cancels what is in flight and waits until the runtime has let go of its memory."""
        self._library.queue_close(self.handle)
        self.calls.clear()


class Pool:
    """Lines of one client. Opened as needed, as many as the client has queue pairs."""

    def __init__(self, core, lines_max):
        self._core = core
        self._lines_max = lines_max
        self._changed = threading.Condition(threading.Lock())
        self._free = []
        self._all = []
        self._closed = False

    def _open(self):
        handle, error = ctypes.c_void_p(), Error()
        status = self._core.library.queue_open(self._core.handle, ctypes.byref(handle), ctypes.byref(error))
        if status < 0:
            raise error_of(status, error.text.decode())
        line = Line(self._core, handle.value)
        self._all.append(line)
        return line

    def _take(self):
        if self._closed:
            raise error_of(-errno.EPIPE, "the client is closed")
        if self._free:
            return self._free.pop()
        return self._open() if len(self._all) < self._lines_max else None

    def borrow(self, wait=True):
        """A line of one's own. Waits for one when all are lent, or raises Busy."""
        with self._changed:
            line = self._take()
            while line is None:
                if not wait:
                    raise Busy(-errno.EMFILE, f"all {self._lines_max} queue pairs of this client are in use: see queue_pairs")
                self._changed.wait()
                line = self._take()
            return line

    def give_back(self, line):
        with self._changed:
            self._free.append(line)
            self._changed.notify()

    def close(self):
        with self._changed:
            self._closed = True
            lines, self._all, self._free = self._all, [], []
            self._changed.notify_all()
        for line in lines:
            line.close()
