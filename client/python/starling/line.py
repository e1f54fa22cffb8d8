# SPDX-License-Identifier: Apache-2.0
"""A queue pair in use, the pool that they come from, and a request's way through both.

The C library wants one thread at a time per queue pair. A line is lent to one caller at a time: a thread that waits in infer(),
the thread behind futures, or one event loop.
"""

import ctypes
import errno
import os
import threading

from .call import Call, Handle
from .errors import Busy, TooSmall, error_of
from .library import Completion, Error

_REAP_MAX = 32
_WAIT_SLICE_NS = 100_000_000  # so that Ctrl-C is heard
_CLOSE_SLICES = 50  # for a runtime that lives but does not answer
_CLOSE_LIMIT_S = 10  # twice as long as that
_OVER = (-errno.EPIPE, -errno.ENODATA, -errno.ECHILD, -errno.ECANCELED)  # of a wait: nothing will come any more


class Line:
    """One queue pair and the calls that are in flight on it."""

    def __init__(self, core, handle):
        self._core = core
        self._library = core.library
        self.handle = handle
        self.calls = {}  # id -> (call, what the borrower wants to know when it completes)
        self._completions = (Completion * _REAP_MAX)()
        self._closed = False
        self._lock = threading.RLock()  # between the borrower and who closes the client

    def _use(self, closed, call, *arguments):
        """What a call of the library says; `closed` once the line is, without a wait for that to end."""
        if not self._closed:
            with self._lock:
                if not self._closed:
                    return call(self.handle, *arguments)
        return closed

    def _submit(self, handle, call, note):
        status = self._library.submit(handle, ctypes.byref(call.request), ctypes.byref(call.id))
        if status < 0:
            text = self._library.queue_error(handle).decode(errors="replace") or self._library.words(status)
            raise error_of(status, text)
        self.calls[call.id.value] = (call, note)
        return status

    def submit(self, call, note=None):
        """Raises what the library refuses; Busy when the queue pair is full."""
        if self._use(None, self._submit, call, note) is None:
            raise error_of(-errno.EPIPE, "the client is closed")

    @property
    def in_flight(self):
        return len(self.calls)

    def cancel(self, call):
        return self._use(None, self._library.cancel, call.id.value) == 0

    def cancel_all(self):
        for call, _ in list(self.calls.values()):
            self.cancel(call)

    def abandon(self):
        """Cancels what is in flight, of which nobody wants to know any more."""
        self.cancel_all()
        for call, _ in list(self.calls.values()):
            self.calls[call.id.value] = (call, None)

    def _hand_out(self, n):
        for i in range(n):
            completion = self._completions[i]
            call, note = self.calls.pop(completion.id, (None, None))
            if call is not None:
                yield call, note, completion

    def poll(self):
        """What has completed, as (call, note, completion); the completion's shapes last until the next poll or wait."""
        return list(self._hand_out(max(0, self._use(0, self._library.poll, self._completions, _REAP_MAX))))

    def wait(self, timeout_ns):
        return list(self._hand_out(max(0, self._wait(timeout_ns))))

    def _wait(self, timeout_ns):
        return self._use(-errno.ECANCELED, self._library.wait, self._completions, _REAP_MAX, timeout_ns)

    def wait_for(self, call, timeout_ns):
        """The call's own completion, or None; others that come were given up by their callers. Raises when none will come."""
        n = self._wait(timeout_ns)
        if n in _OVER:
            status = -errno.EPIPE if n == -errno.ENODATA else n
            raise error_of(status, self._library.words(status))
        own = None
        for done, _, completion in self._hand_out(max(0, n)):
            if done is call:
                own = completion
        return own

    def fd(self):
        fd = self._library.queue_fd(self.handle)
        if fd < 0:
            raise error_of(fd, f"no descriptor for the event loop: {self._library.words(fd)}")
        return fd

    def arm(self):
        """True when the descriptor will tell, and of a closed line; False when there is something to reap already."""
        return self._use(0, self._library.queue_arm) == 0

    def close(self):
        """Cancels what is in flight and waits until the runtime has let go of its memory."""
        self._closed = True
        with self._lock:
            self._library.queue_close(self.handle)
            self.calls.clear()


class Pool:
    """Lines of one client. Opened as needed, as many as the client has queue pairs.

    `models` is the client's dict of those that it has looked up."""

    def __init__(self, core, gate, lines_max, models):
        self._core = core
        self._gate = gate
        self._models = models
        self._pid = os.getpid()
        self._inferring = 0
        self._lines_max = lines_max
        self._changed = threading.Condition(threading.Lock())
        self._free = []
        self._all = []
        self._closed = False

    def _open(self):
        handle, error = ctypes.c_void_p(), Error()
        with self._gate:
            status = self._core.library.queue_open(self._core.handle, ctypes.byref(handle), ctypes.byref(error))
        if status < 0:
            raise error_of(status, error.text.decode(errors="replace"))
        line = Line(self._core, handle.value)
        self._all.append(line)
        return line

    def _take(self):
        if self._closed:
            raise error_of(-errno.EPIPE, "the client is closed")
        if self._free:
            return self._free.pop()
        return self._open() if len(self._all) < self._lines_max else None

    def borrow(self, wait=True, client=None, deadline_ns=0):
        """A line of one's own. Waits for one when all are lent, until the deadline if there is one; or raises Busy.

        What event loops leave that are closed meanwhile is looked for with the client."""
        if not self._lines_max:
            raise error_of(-errno.EPERM, self._core.library.words(-errno.EPERM))
        while True:
            with self._changed:
                line = self._take()
                if line is None and not wait:
                    raise Busy(-errno.EMFILE, f"all {self._lines_max} queue pairs of this client are in use: see queue_pairs")
                if line is None:
                    self._wait_for_change(deadline_ns)
                    line = self._take()
                if line is not None:
                    return line
            if client is not None:
                client._retire_loops()

    def _wait_for_change(self, deadline_ns):
        left_ns = deadline_ns - self._core.library.clock_ns() if deadline_ns else _WAIT_SLICE_NS
        if left_ns <= 0:
            raise error_of(-errno.ETIME, "the deadline passed while all queue pairs of this client were in use: see queue_pairs")
        self._changed.wait(min(left_ns, _WAIT_SLICE_NS) / 1e9)

    def give_back(self, line):
        with self._changed:
            self._free.append(line)
            self._changed.notify()

    def close(self):
        """Threads inside infer() see that the pool is closed, cancel and come back: their queue pairs are theirs until then."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        with self._gate:
            pass  # whoever is alone keeps them from coming back
        with self._changed:
            self._changed.wait_for(lambda: self._inferring == 0, _CLOSE_LIMIT_S)
            lines, self._all, self._free = self._all, [], []
        with self._gate:
            for line in lines:
                line.close()

    # ---- a request ----

    def _find(self, client, model):
        if isinstance(model, Handle):
            return model
        kept = self._models.get(model)
        return kept if kept is not None and not kept.stale else client.model(model)

    def infer(self, client, model, inputs, outputs, timeout, priority, session):
        """See Client.infer()."""
        if os.getpid() != self._pid:
            raise error_of(-errno.ECHILD, self._core.library.words(-errno.ECHILD))
        if self._closed:
            raise error_of(-errno.EPIPE, "the client is closed")
        model = self._find(client, model)
        with self._gate:
            call = Call(self._core, model, inputs, outputs, timeout, priority, session)
        with self._changed:
            self._inferring += 1
        try:
            return self._on_line(call, client)
        finally:
            with self._changed:
                self._inferring -= 1
                self._changed.notify_all()

    def _on_line(self, call, client):
        line = self.borrow(client=client, deadline_ns=call.request.deadline_ns)
        try:
            return self._run(line, call)
        finally:
            self.give_back(line)

    def _run(self, line, call):
        while True:
            self._submit(line, call)
            try:
                return self._wait_for(line, call)
            except TooSmall as error:
                with self._gate:
                    if not call.grow(error):
                        raise

    def _submit(self, line, call):
        """Waits for room where those whose callers gave them up fill the queue pair."""
        while True:
            with self._gate:
                try:
                    return line.submit(call)
                except Busy:
                    if not line.in_flight or self._closed:
                        raise
                    line.wait(_WAIT_SLICE_NS)

    def _wait_for(self, line, call):
        closing = 0
        try:
            while True:
                with self._gate:
                    completion = line.wait_for(call, _WAIT_SLICE_NS)
                    if completion is not None:
                        return call.result(completion)
                    if self._closed:
                        closing += 1
                        if closing == 1:
                            line.cancel(call)
                        if closing > _CLOSE_SLICES:
                            raise error_of(-errno.ECANCELED, self._core.library.words(-errno.ECANCELED))
        except BaseException:
            with self._gate:
                line.cancel(call)  # unless it is done
            raise
