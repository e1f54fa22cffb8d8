# SPDX-License-Identifier: Apache-2.0
"""asyncio: one line per event loop while it has requests in flight, watched through the line's descriptor.

All of it runs in the loop's thread. Requests that find the queue pair full wait in a list, from which the reaping puts as many in flight
as there is room for: what a completion costs does not depend on how many wait. The line goes back to the pool when nothing is in flight.
A loop that is closed before that reaps nothing any more: the client takes the line from it when it wants one (retire()).
"""

from __future__ import annotations

import asyncio
import collections
import errno
import os
from typing import TYPE_CHECKING, Any, Callable, Deque, List, Set, Tuple

from .errors import Busy, StarlingError, error_of
from .gate import Gate, Lease

if TYPE_CHECKING:
    from .annotations import Result
    from .call import Call
    from .library import Completion
    from .line import Landed, Pool

    Done = asyncio.Future[Result]


class LoopLine:
    _fd: Any = None  # a number while there is a line; here, for the end of one whose making a handler of a signal interrupted

    def __init__(
        self, pool: Pool, gate: Gate, loop: asyncio.AbstractEventLoop, on_idle: Callable[[asyncio.AbstractEventLoop], None]
    ) -> None:
        self._pool = pool
        self._gate = gate
        self._loop = loop
        self._on_idle = on_idle
        self._waiting: Deque[Tuple[Call, Done]] = collections.deque()  # (call, done) that found the queue pair full
        self._awaited: Set[Done] = set()
        self._landed: List[Landed] = []  # of the line, not looked at yet
        self._armed = False
        self._lease = Lease()
        self._line: Any = None  # a Line from open() on

    def open(self) -> None:
        """Takes a line, unless it has one. The client knows it by then, and retires it if this is interrupted and the loop closed."""
        if self._line is not None:
            return
        try:
            self._close_fd()
            line = self._lease.line or self._pool.borrow(self._lease, wait=False)
            with self._gate:
                self._fd = os.dup(line.fd())  # close() ends the line's, and the loop knows it by its number
            self._loop.add_reader(self._fd, self.reap)
            self._line = line
        except BaseException:
            self._give_back()
            self._on_idle(self._loop)
            raise

    def is_open(self) -> bool:
        return self._line is not None

    async def infer(self, call: Call) -> Result:
        done: Done = self._loop.create_future()
        try:
            self._awaited.add(done)
            self._submit(call, done)
            return await done
        except GeneratorExit:
            raise  # the loop is gone
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and self._line is not None:
                with self._gate:
                    self._line.cancel(call)
            if not done.cancel() and not done.cancelled():
                done.exception()  # is told here, by another
            raise
        finally:
            self._awaited.discard(done)
            self._release_if_idle()

    def _submit(self, call: Call, done: Done) -> None:
        """Those that wait go first."""
        with self._gate:
            if self._waiting or not self._put(call, done):
                self._waiting.append((call, done))
                return
            if not self._armed and not self._arm():
                self._loop.call_soon(self.reap)

    def _arm(self) -> bool:
        self._armed = self._line.arm()
        return self._armed

    def _put(self, call: Call, done: Done) -> bool:
        """In flight; False when there is no room. Raises what refuses it."""
        try:
            self._line.submit(call, done)
            return True
        except Busy:
            if not self._line.in_flight:
                raise
            return False

    def _put_waiting(self) -> None:
        while self._waiting:
            call, done = self._waiting[0]
            try:
                if not done.done() and not self._put(call, done):
                    return
            except StarlingError as error:
                done.set_exception(error)
            self._waiting.popleft()

    def _settle(self, call: Call, done: Done, completion: Completion) -> None:
        try:
            result = call.result(completion)
        except Exception as error:
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(result)

    def _settle_landed(self) -> None:
        """A handler of a signal may have raised before they all were."""
        for call, done, completion in self._landed:
            if done is not None and not done.done():  # None: infer() gave it up before this loop had the line
                self._settle(call, done, completion)
        self._landed.clear()

    def reap(self) -> None:
        self._armed = False
        while self._line is not None:
            with self._gate:
                if not self._landed:
                    self._line.poll(self._landed)
                n_landed = len(self._landed)
                self._settle_landed()
                self._put_waiting()
                if not n_landed and (not self._line.in_flight or self._arm()):
                    break
        self._release_if_idle()

    def end(self) -> None:
        """The client is closed: what is awaited will not come."""
        for done in self._awaited:
            if not done.done():
                done.set_exception(error_of(-errno.ECANCELED, "the client was closed"))

    def retire(self) -> None:
        """The loop is closed: what is in flight is nobody's any more."""
        line = self._lease.line
        if line is None:
            return
        with self._gate:
            line.abandon()
        self._give_back()

    def _release_if_idle(self) -> None:
        if self._line is None or self._awaited or self._loop.is_closed() or self._line.in_flight:
            return
        self._loop.remove_reader(self._fd)
        self._give_back()
        self._on_idle(self._loop)

    def _give_back(self) -> None:
        self._line = None
        self._pool.give_back(self._lease)
        self._close_fd()

    def _close_fd(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def __del__(self) -> None:
        self._close_fd()
