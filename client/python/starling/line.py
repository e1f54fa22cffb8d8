# SPDX-License-Identifier: Apache-2.0
"""A queue pair in use, the pool that they come from, and a request's way through both.

The C library wants one thread at a time per queue pair. A line is lent to one caller at a time: a thread that waits in infer(),
the thread behind futures, or one event loop.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple, Union

from .block import Core
from .call import Call, Handle
from .errors import CLOSED, Busy, TooSmall, error_of
from .gate import Bell, Gate, Lease
from .library import Answer, Completion, Error, Members, frame_type
from .request import answer_of, members_of

if TYPE_CHECKING:
    from .annotations import Result
    from .client import Client, Model

#: What has completed: a call, what its borrower wants to know it by, and how it ended.
Landed = Tuple[Call, Any, Completion]

_REAP_MAX = 32
_ID_OFFSET = frame_type(1).id.offset
_WAIT_SLICE_NS = 100_000_000  # so that Ctrl-C is heard
_CLOSE_SLICES = 50  # for a runtime that lives but does not answer
_CLOSE_LIMIT_NS = 10_000_000_000  # twice as long as that
_OVER = (-errno.EPIPE, -errno.ENODATA, -errno.ECHILD, -errno.ECANCELED)  # of a wait: nothing will come any more


class Line:
    """One queue pair and the calls that are in flight on it."""

    def __init__(self, core: Core, handle: Optional[int]) -> None:
        self._core = core
        self._library = core.library
        self.handle = handle
        self.lease: Optional[weakref.ref[Lease]] = None  # a weak reference to that of the borrower
        self.calls: Dict[int, Tuple[Call, Any]] = {}  # key, which is its user_data -> (call, what the borrower wants to know when it completes)
        self._keys = itertools.count(1)
        self._completions = (Completion * _REAP_MAX)()
        self._unread = False  # the library may have put completions there that were not handed out
        self._closed = False
        self._lock = threading.RLock()  # between the borrower and who closes the client

    def is_lent(self) -> bool:
        return self.lease is not None and self.lease() is not None

    def _use(self, closed: Optional[int], call: Callable[..., Any], *arguments: Any) -> Any:
        """What a call of the library says; `closed` once the line is, without a wait for that to end."""
        if not self._closed:
            with self._lock:
                if not self._closed:
                    return call(self.handle, *arguments)
        return closed

    def _submit(self, handle: int, call: Call, note: Any) -> int:
        """Holds the call before the library has it. Only the library sets its id: that of a call that it has not is 0."""
        key = next(self._keys)
        frame = call.frame
        frame.user_data = key
        frame.id = 0
        try:
            self.calls[key] = (call, note)
            address = ctypes.addressof(frame)
            status: int = self._library.submit(handle, address, address + _ID_OFFSET)
        finally:
            if not frame.id:
                self.calls.pop(key, None)
        if status < 0:
            text = self._library.queue_error(handle).decode(errors="replace") or self._library.words(status)
            raise error_of(status, text)
        return status

    def submit(self, call: Call, note: Any = None) -> None:
        """Raises what the library refuses; Busy when the queue pair is full."""
        if self._use(None, self._submit, call, note) is None:
            raise error_of(-errno.EPIPE, CLOSED)

    @property
    def in_flight(self) -> int:
        n: int = self._use(0, self._library.queue_in_flight)
        return n

    def cancel(self, call: Call) -> bool:
        return bool(self._use(None, self._library.cancel, call.frame.id) == 0)

    def cancel_all(self) -> None:
        for call, _ in list(self.calls.values()):
            self.cancel(call)

    def abandon(self) -> None:
        """Cancels what is in flight and is not waited for any more."""
        self.cancel_all()
        for key, (call, _) in list(self.calls.items()):
            self.calls[key] = (call, None)

    def _note_answer(self, call: Call, completion: Completion) -> None:
        """Which variant has answered, before the next submit."""
        answer = Answer()
        if self._library.completion_variant(self.handle, ctypes.byref(completion), ctypes.byref(answer)) == 0:
            call.answer = answer_of(answer.variant, answer.accuracy, answer.met, answer.tries, answer.expected_ns)

    def _note_members(self, call: Call, completion: Completion) -> None:
        """Which members have answered, before the next submit."""
        members = Members()
        if self._library.completion_members(self.handle, ctypes.byref(completion), ctypes.byref(members)) == 0:
            call.members = members_of(members.any, members.all)

    def _hand_out(self, n: int, into: List[Landed]) -> None:
        """Those that an interrupted look had handed out already are in `calls` no more."""
        for i in range(n):
            completion = self._completions[i]
            entry = self.calls.get(completion.user_data)
            if entry is not None:
                if entry[0].model.asks:
                    self._note_answer(entry[0], completion)
                if entry[0].model.combines:
                    self._note_members(entry[0], completion)
                into.append((*entry, completion))
                self.calls.pop(completion.user_data, None)
        self._unread = False

    def _reap(self, into: List[Landed], closed: int, call: Callable[..., Any], *arguments: Any) -> int:
        n = _REAP_MAX
        if not self._unread:
            self._unread = True
            n = self._use(closed, call, self._completions, _REAP_MAX, *arguments)
        self._hand_out(max(0, n), into)
        return n

    def poll(self, into: List[Landed]) -> None:
        """Appends what has completed, as (call, note, completion); the completion's shapes last until the next poll or wait."""
        self._reap(into, 0, self._library.poll)

    def wait(self, timeout_ns: int, into: List[Landed]) -> None:
        self._reap(into, 0, self._library.wait, timeout_ns)

    def wait_for(self, call: Call, timeout_ns: int) -> Optional[Completion]:
        """The call's own completion, or None; others that come were given up by their callers. Raises when none will come."""
        landed: List[Landed] = []
        n = self._reap(landed, -errno.ECANCELED, self._library.wait, timeout_ns)
        for done, _, completion in landed:
            if done is call:
                return completion
        if n in _OVER:
            status = -errno.EPIPE if n == -errno.ENODATA else n
            raise error_of(status, self._library.words(status))
        return None

    def fd(self) -> int:
        fd: int = self._library.queue_fd(self.handle)
        if fd < 0:
            raise error_of(fd, f"no descriptor for the event loop: {self._library.words(fd)}")
        return fd

    def arm(self) -> bool:
        """True when the descriptor will tell, and of a closed line; False when there is something to reap already."""
        return not self._unread and bool(self._use(0, self._library.queue_arm) == 0)

    def close(self) -> None:
        """Cancels what is in flight and waits until the runtime has let go of its memory."""
        self._closed = True
        with self._lock:
            handle, self.handle = self.handle, None
            if handle:
                self._library.queue_close(handle)
            self.calls.clear()


class Pool:
    """Lines of one client. Opened as needed, as many as the client has queue pairs.

    `models` is the client's dict of those that it has looked up."""

    def __init__(self, core: Core, gate: Gate, lines_max: int, models: Dict[Any, Model]) -> None:
        self._core = core
        self._gate = gate
        self._models = models
        self._pid = os.getpid()
        self._lines_max = lines_max
        self._lock = threading.RLock()  # of who borrows
        self._changed = Bell()
        self._fresh = ctypes.c_void_p()  # a queue pair that may have no line yet
        self._all: List[Line] = []
        self._closed = False

    def _adopt(self) -> Line:
        """The line of a queue pair that was opened."""
        handle = self._fresh.value
        line = next((line for line in self._all if line.handle == handle), None)
        if line is None:
            line = Line(self._core, handle)
            self._all.append(line)
        self._fresh = ctypes.c_void_p()
        return line

    def _open(self) -> Line:
        error = Error()
        if not self._fresh.value:
            with self._gate:
                status = self._core.library.queue_open(self._core.handle, ctypes.byref(self._fresh), ctypes.byref(error))
            if status < 0:
                raise error_of(status, error.text.decode(errors="replace"))
        return self._adopt()

    def _take(self, lease: Lease) -> Optional[Line]:
        if self._closed:
            raise error_of(-errno.EPIPE, CLOSED)
        with self._lock:
            line = next((line for line in self._all if not line.is_lent()), None)
            if line is None and len(self._all) < self._lines_max:
                line = self._open()
            if line is not None:
                line.lease = weakref.ref(lease)
                lease.line = line
        return line

    def borrow(self, lease: Lease, wait: bool = True, client: Optional[Client] = None, deadline_ns: int = 0) -> Line:
        """A line for the lease. Waits for one when all are lent, until the deadline if there is one; or raises Busy.

        What event loops leave that are closed meanwhile is looked for with the client."""
        if not self._lines_max:
            raise error_of(-errno.EPERM, self._core.library.words(-errno.EPERM))
        line = self._take(lease)
        while line is None:
            if not wait:
                raise Busy(-errno.EMFILE, f"all {self._lines_max} queue pairs of this client are in use: see queue_pairs")
            line = self._wait_for_line(lease, deadline_ns)
            if line is None and client is not None:
                client._retire_loops()
        return line

    def _wait_for_line(self, lease: Lease, deadline_ns: int) -> Optional[Line]:
        baton = self._changed.listen()
        try:
            line = self._take(lease)
            if line is not None:
                return line
            left_ns = deadline_ns - self._core.library.clock_ns() if deadline_ns else _WAIT_SLICE_NS
            if left_ns <= 0:
                raise error_of(-errno.ETIME, "the deadline passed while all queue pairs of this client were in use: see queue_pairs")
            self._changed.sleep(baton, min(left_ns, _WAIT_SLICE_NS) / 1e9)
        finally:
            self._changed.forget(baton)
        return self._take(lease)

    def give_back(self, lease: Lease) -> None:
        """Takes no lock: the end of a lease may come anywhere."""
        lease.line = None
        for line in list(self._all):
            if line.lease is not None and line.lease() in (lease, None):
                line.lease = None
        self._changed.ring(1)

    def _is_inferring(self) -> bool:
        leases = [line.lease for line in list(self._all)]
        threads = {lease.infers for lease in (lease() for lease in leases if lease is not None) if lease is not None}
        return bool(threads - {None, threading.get_ident()})  # a signal's handler that closes the client waits for no infer() below it

    def close(self) -> None:
        """Threads inside infer() see that the pool is closed, cancel and come back: their queue pairs are theirs until then."""
        self._closed = True
        with self._gate:
            pass  # whoever is alone keeps them from coming back
        until_ns = self._core.library.clock_ns() + _CLOSE_LIMIT_NS
        while self._is_inferring() and self._core.library.clock_ns() < until_ns:
            self._changed.ring_all()
            self._changed.sleep(self._changed.listen(), _WAIT_SLICE_NS / 1e9)
        with self._gate:
            for line in self._all:
                line.close()
        self._all.clear()

    # ---- a request ----

    def _find(self, client: Client, model: Union[str, Model]) -> Model:
        kept = model if isinstance(model, Handle) else self._models.get(model)
        return kept if kept is not None and not kept.stale else client._find(model)

    def infer(
        self,
        client: Client,
        model: Union[str, Model],
        inputs: Any,
        outputs: Any,
        timeout: Optional[float],
        priority: int,
        session: int,
    ) -> Result:
        """See Client.infer()."""
        if os.getpid() != self._pid:
            raise error_of(-errno.ECHILD, self._core.library.words(-errno.ECHILD))
        if self._closed:
            raise error_of(-errno.EPIPE, CLOSED)
        model = self._find(client, model)
        with self._gate:
            call = Call(self._core, model, inputs, outputs, timeout, priority, session)
        lease = Lease(infers=threading.get_ident())
        try:
            return self._run(self.borrow(lease, client=client, deadline_ns=call.frame.deadline_ns), call)
        finally:
            self.give_back(lease)

    def _run(self, line: Line, call: Call) -> Result:
        try:
            while True:
                self._submit(line, call)
                try:
                    return self._wait_for(line, call)
                except TooSmall as error:
                    with self._gate:
                        if not call.grow(error):
                            raise
        except BaseException:
            with self._gate:
                line.cancel(call)  # unless it is done
            raise

    def _submit(self, line: Line, call: Call) -> None:
        """Waits for room where those whose callers gave them up fill the queue pair."""
        while True:
            with self._gate:
                try:
                    return line.submit(call)
                except Busy:
                    if not line.in_flight or self._closed:
                        raise
                    line.wait(_WAIT_SLICE_NS, [])

    def _wait_for(self, line: Line, call: Call) -> Result:
        closing = 0
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
