# SPDX-License-Identifier: Apache-2.0
"""asyncio: one line per event loop while it has requests in flight, watched through the line's descriptor.

All of it runs in the loop's thread. The line goes back to the pool when nothing is in flight. A loop that is closed before that
reaps nothing any more: the client takes the line from it when it wants one (retire()).
"""

import asyncio
import errno
import os

from .errors import Busy, StarlingError, error_of


class LoopLine:
    def __init__(self, pool, gate, loop, on_idle):
        self._pool = pool
        self._gate = gate
        self._loop = loop
        self._on_idle = on_idle
        self._waiters = []  # tasks that found the queue pair full
        self._awaited = set()
        self._users = 0
        self._line = pool.borrow(wait=False)
        try:
            with gate:
                self._fd = os.dup(self._line.fd())  # close() ends the line's, and the loop knows it by its number
        except BaseException:
            pool.give_back(self._line)
            raise
        loop.add_reader(self._fd, self.reap)

    async def infer(self, call):
        self._users += 1
        try:
            done = self._loop.create_future()
            self._awaited.add(done)
            try:
                await self._submit(call, done)
            except BaseException:
                if not done.cancel():  # end() has told it why, which is raised here
                    done.exception()
                raise
            try:
                return await done
            except asyncio.CancelledError:
                if self._line is not None:
                    with self._gate:
                        self._line.cancel(call)
                raise
        finally:
            self._awaited.discard(done)
            self._users -= 1
            self._release_if_idle()

    async def _submit(self, call, done):
        while True:
            try:
                with self._gate:
                    self._line.submit(call, done)
            except Busy:
                if not self._line.in_flight:
                    raise
                waiter = self._loop.create_future()
                self._waiters.append(waiter)
                await waiter
            else:
                with self._gate:
                    armed = self._line.arm()
                if not armed:
                    self._loop.call_soon(self.reap)
                return

    def _settle(self, call, done, completion):
        try:
            result = call.result(completion)
        except StarlingError as error:
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(result)

    def reap(self):
        if self._line is None:
            return
        while True:
            with self._gate:
                completed = self._line.poll()
                for call, done, completion in completed:
                    if done is not None:  # else infer() gave it up before this loop had the line
                        self._settle(call, done, completion)
                if not completed and (not self._line.in_flight or self._line.arm()):
                    break
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._waiters.clear()
        self._release_if_idle()

    def end(self):
        """The client is closed: what is awaited will not come."""
        for done in self._awaited:
            if not done.done():
                done.set_exception(error_of(-errno.ECANCELED, "the client was closed"))
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def retire(self):
        """The loop is closed: what is in flight is nobody's any more."""
        if self._line is None:
            return
        with self._gate:
            self._line.abandon()
        self._give_back()

    def _release_if_idle(self):
        if self._line is None or self._users or self._line.in_flight:
            return
        self._loop.remove_reader(self._fd)
        self._on_idle(self._loop)
        self._give_back()

    def _give_back(self):
        os.close(self._fd)
        line, self._line = self._line, None
        self._pool.give_back(line)
