# SPDX-License-Identifier: Apache-2.0
"""Futures: requests that are submitted from any thread and reaped by one in the background.

The reaper owns a line of its own, started with the first submit(). The lock is held for submitting, polling and arming only; the
reaper waits outside of it, on the line's descriptor and on a pipe that wakes it when there is something new to know. What its own
callbacks, and event loops, submit while the line is full goes when there is room, which nobody but the reaper makes.
"""

import asyncio
import collections
import concurrent.futures
import errno
import os
import select
import threading

from .errors import Busy, StarlingError, TooSmall, error_of

_CLOSE_SLICE_NS = 100_000_000
_CLOSE_TRIES = 50  # for a runtime that lives but does not answer


class Future(concurrent.futures.Future):
    """The result of Client.submit(). `times` is set when it is done."""

    def __init__(self, reaper, call):
        super().__init__()
        self._reaper = reaper
        self._call = call

    @property
    def times(self):
        """starling.request.Times of the request, None before it is done."""
        return self._call.times

    def cancel(self):
        """Asks the runtime to end the request early. It is done when its completion comes, mostly as CancelledError; a result that was
        faster stays a result. Returns False when it is done already."""
        return not self.done() and self._reaper.cancel(self._call)

    def _outcome(self, completion):
        """What _settle() takes, read while the completion is valid."""
        try:
            return self._call.result(completion), None
        except StarlingError as error:
            return None, error

    def _settle(self, result, error):
        """Runs the callbacks of the application: no lock is held."""
        if error is None:
            self.set_result(result)
        elif error.status == -errno.ECANCELED and super().cancel():
            self.set_running_or_notify_cancel()
        else:
            self.set_exception(error)


def _settle_all(outcomes):
    for future, outcome in outcomes:
        future._settle(*outcome)


class Reaper:
    def __init__(self, pool, gate, line):
        self._pool = pool
        self._gate = gate
        self._line = line
        self._room = threading.Condition(threading.Lock())
        self._stopping = False
        self._unsettled = set()
        self._later = collections.deque()  # (call, future) of who does not wait and the line had no room for
        with gate:
            self._fd = self._line.fd()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        self._thread = threading.Thread(target=self._run, name="starling-reaper", daemon=True)
        self._thread.start()

    def submit(self, call, wait=True):
        """Waits while the queue pair is full, unless told not to; a callback does not."""
        future = Future(self, call)
        with self._room:
            while True:
                if self._stopping:
                    raise error_of(-errno.EPIPE, "the client is closed")
                try:
                    with self._gate:
                        self._line.submit(call, future)
                    self._unsettled.add(future)
                    break
                except Busy:
                    if not self._line.in_flight:
                        raise
                    if not wait or threading.current_thread() is self._thread:
                        self._later.append((call, future))
                        self._unsettled.add(future)
                        return future
                    self._room.wait()
            if self._line.in_flight == 1:
                self._ring()
        return future

    def infer(self, call):
        """For who waits, where no other line is to be had."""
        if threading.current_thread() is self._thread:
            words = "a callback of a future cannot wait for an answer: the client has one queue pair, and that is the future's"
            raise error_of(-errno.EBUSY, words)
        future = self.submit(call)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise error_of(-errno.ECANCELED, "the client was closed") from None

    async def infer_async(self, call):
        """For an event loop, likewise."""
        loop = asyncio.get_running_loop()
        future, done = self.submit(call, wait=False), loop.create_future()

        def settle():
            if not done.done():
                done.set_result(None)

        def tell(_):
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

    def cancel(self, call):
        with self._room, self._gate:
            for waiting in self._later:
                if waiting[0] is call:
                    self._later.remove(waiting)
                    self._later.appendleft((None, waiting[1]))
                    self._ring()
                    return True
            return self._line.cancel(call)

    def wake(self):
        with self._room:
            if not self._stopping:
                self._ring()

    def _ring(self):
        """With the lock: close() ends the pipe."""
        try:
            os.write(self._wake_write, b"x")
        except BlockingIOError:
            pass  # full of wake-ups already

    def _outcomes(self, completions):
        """What has become of each call; one whose outputs lacked room goes again with as much as they want. Of what infer() gave up
        before the line was borrowed nobody asks."""
        outcomes = []
        for call, future, completion in completions:
            if future is None:
                continue
            result, error = future._outcome(completion)
            if isinstance(error, TooSmall) and not self._stopping:
                try:
                    if call.grow(error):
                        self._line.submit(call, future)
                        continue
                except StarlingError as second:
                    error = second
            self._unsettled.discard(future)
            outcomes.append((future, (result, error)))
        return outcomes

    def _submit_later(self):
        """What callbacks and event loops have submitted, as far as there is room. Outcomes of what was cancelled before, or is refused."""
        outcomes = []
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
        self._unsettled.difference_update(future for future, _ in outcomes)
        return outcomes

    def _poll(self):
        """Outcomes of what has completed; when there are none, whether the descriptor is to be waited for."""
        with self._room, self._gate:
            completions = self._line.poll()
            outcomes = self._outcomes(completions) if completions else []
            outcomes += self._submit_later()
            if completions:
                self._room.notify_all()
            if completions or outcomes:
                return outcomes, False
            if not self._line.in_flight:
                return None, False
            return ([], False) if not self._line.arm() else (None, True)

    def _reap(self):
        """Settles what has completed. True when the descriptor is to be waited for."""
        while True:
            outcomes, waits = self._poll()
            if outcomes is None:
                return waits
            _settle_all(outcomes)
            if self._stopping:
                return False

    def _sleep(self, with_line):
        poller = select.poll()
        poller.register(self._wake_read, select.POLLIN)
        if with_line:
            poller.register(self._fd, select.POLLIN)
        if any(fd == self._wake_read for fd, _ in poller.poll()):
            os.read(self._wake_read, 4096)

    def _run(self):
        while not self._stopping:
            waits = self._reap()
            if not self._stopping:
                self._sleep(waits)

    def close(self):
        """Ends the thread; what is in flight ends as cancelled, after the runtime has let go of it."""
        with self._room:
            self._stopping = True
            self._room.notify_all()
            self._ring()
        if threading.current_thread() is not self._thread:  # else a callback of a future closes the client
            self._thread.join()
        with self._gate:
            self._line.cancel_all()
        for _ in range(_CLOSE_TRIES):
            if not self._line.in_flight:
                break
            with self._gate:
                outcomes = self._outcomes(self._line.wait(_CLOSE_SLICE_NS))
            _settle_all(outcomes)
        left, self._unsettled = self._unsettled, set()
        error = error_of(-errno.ECANCELED, "the client was closed, and the runtime did not answer")
        _settle_all([(future, (None, error)) for future in left])
        os.close(self._wake_read)
        os.close(self._wake_write)
        self._pool.give_back(self._line)
