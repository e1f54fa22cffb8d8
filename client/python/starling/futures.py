# SPDX-License-Identifier: Apache-2.0
"""Futures: requests that are submitted from any thread and reaped by one in the background.

The reaper owns a line of its own, started with the first submit(). The lock is held for submitting, polling and arming only; the
reaper waits outside of it, on the line's descriptor and on a pipe that wakes it when there is something new to know. What its own
callbacks, and event loops, submit while the line is full goes when there is room, which nobody but the reaper makes.

A handler of a signal may raise anywhere in submit(): whatever the reaper has to know it knows before the request is in flight. See gate.py.
"""

from __future__ import annotations

import _thread
import asyncio
import collections
import concurrent.futures
import errno
import os
import select
import threading
from typing import TYPE_CHECKING, Any, Deque, List, Optional, Set, Tuple, Union

from .errors import CLOSED, Busy, Cancelled, RuntimeGone, StarlingError, TooSmall, error_of, unpicklable
from .gate import Bell, Condition, Gate, Lease
from .request import Answer, Labelled, Members, Selection, Times

if TYPE_CHECKING:
    from .annotations import Result
    from .call import Call
    from .library import Completion
    from .line import Landed, Pool

    Outcome = Tuple[Result, Optional[BaseException]]
    Base = concurrent.futures.Future[Result]
else:
    Base = concurrent.futures.Future

_WAIT_SLICE_S = 0.1
_CLOSE_SLICE_NS = 100_000_000
_CLOSE_TRIES = 50  # for a runtime that lives but does not answer


class _NothingToCompute:
    """The call of a request without samples."""

    times = Times(0, 0, 0, 0)
    answer = None
    model = None


class Future(Base):
    """The result of Client.submit(). `times` is set when it is done."""

    NOT_PICKLED = "its request belongs to a client of this process"
    __reduce_ex__ = unpicklable

    def __init__(self, reaper: Any, call: Any, selection: Union[Selection, Labelled, None] = None) -> None:
        super().__init__()
        self._condition.__class__ = Condition
        self._settled = Bell()
        self._reaper = reaper
        self._call = call
        self._selection = selection

    @classmethod
    def of_no_samples(cls, result: Result) -> Future:
        """One that is done."""
        future = cls(None, _NothingToCompute)
        future.set_result(result)
        return future

    def __repr__(self) -> str:
        name = self._call.model.name if self._call.model else ""
        return f'<Future of "{name}": {self._state.lower().replace("_and_notified", "")}>'

    def _wait(self, timeout: Optional[float]) -> None:
        """Until it is done or the time is over, without the lock that the reaper needs."""
        if self.done():
            return
        baton = self._settled.listen()
        try:
            if not self.done():
                self._settled.sleep(baton, timeout)
        finally:
            self._settled.forget(baton)

    def result(self, timeout: Optional[float] = None) -> Result:
        """The outputs, as infer() returns them; raises what infer() raises, CancelledError, or TimeoutError after `timeout` seconds."""
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What result() would raise, or None."""
        self._wait(timeout)
        return super().exception(0)

    @property
    def times(self) -> Optional[Times]:
        """starling.request.Times of the request, None before it is done."""
        times: Optional[Times] = self._call.times
        return times

    @property
    def answer(self) -> Optional[Answer]:
        """starling.Answer of a query, which says the variant that had it; None of a model, and before it is done."""
        answer: Optional[Answer] = self._call.answer
        return answer

    @property
    def members(self) -> Optional[Members]:
        """starling.Members of an ensemble's result; None of another model, before it is done, and where it failed."""
        members: Optional[Members] = self._call.members
        return members

    def cancel(self) -> bool:
        """Asks the runtime to end the request early. It is done when its completion comes, mostly as CancelledError; a result that was
        faster stays a result. Returns False when it is done already."""
        return not self.done() and bool(self._reaper.cancel(self._call))

    def _outcome(self, completion: Completion) -> Outcome:
        """What _settle() takes, read while the completion is valid."""
        try:
            result = self._call.result(completion)
            return (result if self._selection is None else self._selection.of(result)), None
        except Exception as error:
            return None, error

    def _settle(self, result: Result, error: Optional[BaseException]) -> None:
        """Runs the callbacks of the application: no lock is held. Again where a handler of a signal has raised before it was settled."""
        try:
            if error is None:
                self.set_result(result)
            elif isinstance(error, Cancelled) and not isinstance(error, RuntimeGone) and super().cancel():
                if self._state == concurrent.futures._base.CANCELLED:  # and nobody was told
                    self.set_running_or_notify_cancel()
            else:
                self.set_exception(error)
        except concurrent.futures.InvalidStateError:
            pass  # it was
        finally:
            self._settled.ring_all()


class Reaper:
    def __init__(self, pool: Pool, gate: Gate, lease: Lease) -> None:
        self._pool = pool
        self._gate = gate
        self.lease = lease
        self._line = lease.line
        self._lock = threading.RLock()
        self._room = Bell()  # for those that wait for it
        self._stopping = False
        self._ended = False
        self._watching = False  # the line's descriptor, or will before it sleeps
        self._landed: List[Landed] = []  # of the line, not looked at yet
        self._unsettled: Set[Future] = set()
        self._later: Deque[Tuple[Optional[Call], Future]] = collections.deque()  # of who does not wait and the line had no room for
        with gate:
            self._fd = self._line.fd()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        self._running = _thread.allocate_lock()  # held by the thread
        self._thread: Optional[int] = None

    def start(self) -> None:
        """Its thread, unless there is one: of several that were started all but the first end at once."""
        if not self._running.locked():
            _thread.start_new_thread(self._run, ())  # a threading.Thread whose start() is interrupted may never begin

    def is_own_thread(self) -> bool:
        return threading.get_ident() == self._thread

    def _submit(self, call: Call, future: Future, wait: bool) -> bool:
        """False when there is no room, and the caller waits for it. With the lock."""
        if not self._watching:
            self._ring()
            self._watching = True
        self._unsettled.add(future)
        try:
            self._line.submit(call, future)
            return True
        except Busy:
            if not self._line.in_flight:
                raise
        if wait:
            self._unsettled.discard(future)
        else:
            self._later.append((call, future))
        return not wait

    def _try_to_submit(self, call: Call, future: Future, wait: bool) -> bool:
        with self._lock, self._gate:
            if self._stopping:
                raise error_of(-errno.EPIPE, CLOSED)
            self.start()
            return self._submit(call, future, wait)

    def submit(self, call: Call, wait: bool = True, selection: Union[Selection, Labelled, None] = None) -> Future:
        """Waits while the queue pair is full, unless told not to; a callback does not."""
        future = Future(self, call, selection)
        wait = wait and not self.is_own_thread()
        try:
            while not self._try_to_submit(call, future, wait):
                baton = self._room.listen()
                try:
                    if self._try_to_submit(call, future, wait):
                        break
                    self._room.sleep(baton, _WAIT_SLICE_S)
                finally:
                    self._room.forget(baton)
        except BaseException:
            self._unsettled.discard(future)  # the caller has not got it; what is in flight all the same completes unseen
            raise
        return future

    def infer(self, call: Call) -> Result:
        """For who waits, where no other line is to be had."""
        if self.is_own_thread():
            words = "a callback of a future cannot wait for an answer: the client has one queue pair, and that is the future's"
            raise error_of(-errno.EBUSY, words)
        future = self.submit(call)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise error_of(-errno.ECANCELED, "the client was closed") from None
        except BaseException:
            future.cancel()
            raise

    async def infer_async(self, call: Call) -> Result:
        """For an event loop, likewise."""
        loop = asyncio.get_running_loop()
        future, done = self.submit(call, wait=False), loop.create_future()

        def settle() -> None:
            if not done.done():
                done.set_result(None)

        def tell(_: object) -> None:
            try:
                loop.call_soon_threadsafe(settle)
            except RuntimeError:
                pass  # the loop was closed meanwhile

        future.add_done_callback(tell)
        try:
            await done
        except asyncio.CancelledError:
            future.cancel()
            raise
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise error_of(-errno.ECANCELED, "the client was closed") from None

    def cancel(self, call: Call) -> bool:
        with self._lock, self._gate:
            for waiting in self._later:
                if waiting[0] is call:
                    self._later.appendleft((None, waiting[1]))
                    self._later.remove(waiting)
                    self._ring()
                    return True
            return bool(self._line.cancel(call))

    def wake(self) -> None:
        with self._lock:
            if not self._stopping:
                self._ring()

    def _ring(self) -> None:
        """With the lock: close() ends the pipe."""
        try:
            os.write(self._wake_write, b"x")
        except BlockingIOError:
            pass  # full of wake-ups already

    def _outcomes(self) -> List[Tuple[Future, Outcome]]:
        """What has become of each call that has landed; one whose outputs lacked room goes again with as much as they want. Of what
        infer() gave up before the line was borrowed nobody asks."""
        outcomes: List[Tuple[Future, Outcome]] = []
        for call, future, completion in self._landed:
            if future not in self._unsettled:
                continue
            result, error = future._outcome(completion)
            if isinstance(error, TooSmall) and not self._stopping:
                try:
                    if call.grow(error):
                        self._line.submit(call, future)
                        continue
                except StarlingError as second:
                    error = second
            outcomes.append((future, (result, error)))
        self._landed.clear()
        return outcomes

    def _submit_later(self) -> List[Tuple[Future, Outcome]]:
        """What callbacks and event loops have submitted, as far as there is room. Outcomes of what was cancelled before, or is refused."""
        outcomes: List[Tuple[Future, Outcome]] = []
        while self._later and not self._stopping:
            call, future = self._later[0]
            try:
                if call is None:
                    raise error_of(-errno.ECANCELED, "the request was cancelled")
                self._line.submit(call, future)
            except Busy as error:
                if self._line.in_flight:
                    break
                outcomes.append((future, (None, error)))
            except StarlingError as error:
                outcomes.append((future, (None, error)))
            self._later.popleft()
        return outcomes

    def _poll(self) -> Tuple[Optional[List[Tuple[Future, Outcome]]], bool]:
        """Outcomes of what has completed; when there are none, whether the descriptor is to be waited for."""
        with self._lock, self._gate:
            self._line.poll(self._landed)
            n_landed = len(self._landed)
            outcomes = self._outcomes()
            outcomes += self._submit_later()
            self._room.ring(n_landed)
            if n_landed or outcomes:
                return outcomes, False
            self._watching = self._line.in_flight > 0
            if not self._watching:
                return None, False
            return ([], False) if not self._line.arm() else (None, True)

    def _settle_all(self, outcomes: List[Tuple[Future, Outcome]]) -> None:
        """Callbacks of the application run: no lock is held."""
        for future, outcome in outcomes:
            if future in self._unsettled:
                future._settle(*outcome)
            self._unsettled.discard(future)

    def _reap(self) -> bool:
        """Settles what has completed. True when the descriptor is to be waited for."""
        while True:
            outcomes, waits = self._poll()
            if outcomes is None:
                return waits
            self._settle_all(outcomes)
            if self._stopping:
                return False

    def _sleep(self, with_line: bool) -> None:
        poller = select.poll()
        poller.register(self._wake_read, select.POLLIN)
        if with_line:
            poller.register(self._fd, select.POLLIN)
        if any(fd == self._wake_read for fd, _ in poller.poll()):
            os.read(self._wake_read, 4096)

    def _run(self) -> None:
        if not self._running.acquire(blocking=False):
            return
        try:
            self._thread = threading.get_ident()
            while not self._stopping:
                waits = self._reap()
                if not self._stopping:
                    self._sleep(waits)
        finally:
            self._thread = None
            self._running.release()

    def _settle_flying(self) -> None:
        """What is in flight ends as cancelled, after the runtime has let go of it."""
        with self._gate:
            self._line.cancel_all()
        for _ in range(_CLOSE_TRIES):
            with self._gate:
                if not self._landed and self._line.in_flight:
                    self._line.wait(_CLOSE_SLICE_NS, self._landed)
                outcomes = self._outcomes()
            self._settle_all(outcomes)
            if not self._line.in_flight:
                break
        error = error_of(-errno.ECANCELED, "the client was closed, and the runtime did not answer")
        self._settle_all([(future, (None, error)) for future in list(self._unsettled)])

    def close(self) -> None:
        """Ends the thread, and what is in flight. May be interrupted, and called again then."""
        self._stopping = True
        with self._lock:
            if self._ended:
                return
            self._room.ring_all()
            self._ring()
        if not self.is_own_thread():  # else a callback of a future closes the client
            with self._running:
                pass
        self._settle_flying()
        with self._lock:
            if not self._ended:
                self._ended = True
                os.close(self._wake_read)
                os.close(self._wake_write)
        self._pool.give_back(self.lease)
