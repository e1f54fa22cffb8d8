# SPDX-License-Identifier: Apache-2.0
"""Who may pass beside whom, who waits for what, and who has which line.

A handler of a signal may raise between any two bytecodes of the main thread. What must not be left half done is therefore one call of
C: `with` over one of the interpreter's own locks, whose __enter__ and __exit__ are found before the lock is taken; one append or pop of
a deque; one assignment. What is left behind all the same is found by who comes next: waits are in slices, and a lease ends with its owner.
"""

from __future__ import annotations

import _thread
import collections
import operator
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Deque, List, Optional, TypeVar

T = TypeVar("T")

_AT_ONCE = 8  # locks that a frame of _hold() takes


class Gate:
    """`with gate:` for calls, which pass side by side; alone() for what must run alone: the C library asks for that.

    Each thread has a lock of its own for being inside, and whoever wants to be alone takes all of them.
    """

    def __init__(self) -> None:
        self._turn = threading.RLock()  # of who is alone, and of who makes its lock
        self._own = threading.local()
        self._locks: weakref.WeakSet[Any] = weakref.WeakSet()
        self._shut = False  # keeps those from passing by who would come again and again

    def _lock(self) -> Any:
        lock = getattr(self._own, "lock", None)
        if lock is None:
            lock = threading.RLock()
            with self._turn:
                self._locks.add(lock)
            self._own.lock = lock
        elif self._shut and not lock._is_owned():
            with self._turn:
                pass
        return lock

    if TYPE_CHECKING:

        def __enter__(self) -> object: ...

        def __exit__(self, *_: object) -> None: ...

    else:
        __enter__ = property(lambda self: self._lock().__enter__)
        __exit__ = property(lambda self: self._own.lock.__exit__)  # which `with` looks up behind the other

    def _hold(self, locks: List[Any], work: Callable[[], T]) -> T:
        if not locks:
            return work()
        a, b, c, d, e, f, g, h = (locks.pop() for _ in range(_AT_ONCE))
        with a, b, c, d, e, f, g, h:
            return self._hold(locks, work)

    def alone(self, work: Callable[[], T]) -> T:
        """What work() returns, with no other call inside."""
        with self._turn:
            self._shut = True
            try:
                locks: List[Any] = list(self._locks)
                locks += [threading.RLock() for _ in range(-len(locks) % _AT_ONCE)]
                return self._hold(locks, work)
            finally:
                self._shut = False


class Bell:
    """Who waits for a change that another thread makes: listens, looks, sleeps, and forgets. It holds no lock meanwhile."""

    def __init__(self) -> None:
        self._batons: Deque[_thread.LockType] = collections.deque()

    def listen(self) -> _thread.LockType:
        """A baton; before the look, so that what changes after it is heard."""
        baton = _thread.allocate_lock()
        baton.acquire()
        self._batons.append(baton)
        return baton

    @staticmethod
    def sleep(baton: _thread.LockType, seconds: Optional[float]) -> bool:
        """Until the bell rings for it, at most `seconds`, or for ever if that is None."""
        return baton.acquire(timeout=-1 if seconds is None else min(max(seconds, 0), threading.TIMEOUT_MAX))

    def forget(self, baton: _thread.LockType) -> None:
        try:
            self._batons.remove(baton)
        except ValueError:
            pass  # it was rung for

    def ring(self, n: int) -> None:
        """For up to `n` of those that have listened longest."""
        for _ in range(n):
            try:
                self._batons.popleft().release()
            except IndexError:
                return

    def ring_all(self) -> None:
        self.ring(len(self._batons))


class Lease:
    """Who has a line of a pool: Pool.borrow() sets `line`, Pool.give_back() takes it. The pool has a weak reference to it and takes back
    what a lease had that is forgotten."""

    __slots__ = ("line", "infers", "__weakref__")

    def __init__(self, infers: Optional[int] = None) -> None:
        self.line: Any = None
        self.infers = infers  # the thread inside infer()


class Condition(threading.Condition):
    """Entered and left in one step each, which a threading.Condition is not."""

    if not TYPE_CHECKING:
        __enter__ = property(operator.attrgetter("_lock.__enter__"))
        __exit__ = property(operator.attrgetter("_lock.__exit__"))
