# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, one class for each cause; `status` is the negative errno value of starling.h."""

from __future__ import annotations

import errno
from typing import Any, Dict, NoReturn, SupportsIndex, Tuple, Type

CLOSED = "the client is closed"

_STOPPING = 2  # among the codes of reasons: the runtime is stopping


class StarlingError(Exception):
    """Any failure that the library or the runtime reports."""

    def __init__(self, status: int, text: str, bytes_needed: int = 0) -> None:
        super().__init__(text)
        self.status = status
        self.bytes_needed = bytes_needed

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.status, str(self), self.bytes_needed)  # to other processes, and back


class InvalidRequest(StarlingError, ValueError):
    """A shape, a type or an option is wrong."""


class Busy(StarlingError):
    """A queue is full; try again later."""


class Expired(StarlingError, TimeoutError):
    """The deadline passed before the result was there."""


class Cancelled(StarlingError):
    """The request was cancelled."""


class TooSmall(StarlingError, ValueError):
    """An output has no room for the result; `bytes_needed` says how much it wants."""


class Stale(StarlingError):
    """The model's inputs or outputs have changed: look it up again."""


class ModelFailed(StarlingError):
    """The model failed while it computed, or could not be loaded or compiled for these sizes."""


class NotFound(StarlingError, LookupError):
    """No such model; NoRuntime is another class."""


class OutOfMemory(StarlingError, MemoryError):
    """Memory ran out."""


class QuotaExceeded(StarlingError, MemoryError):
    """A quota of this client or user is used up."""


class Unmet(StarlingError):
    """No variant of the task is so accurate, so fast or so cheap."""


class RuntimeGone(StarlingError, ConnectionError):
    """The runtime is gone, or goes: reconnect() or close(). Every call that meets a runtime that has ended or ends raises it."""


class RuntimeStops(RuntimeGone, Cancelled):
    """The runtime ends, and computes no more."""


class NoRuntime(RuntimeGone, NotFound):
    """No runtime of this name, for as long as one was waited for."""


class Forked(StarlingError):
    """The client was made by the parent of this process: make one here."""


_CLASSES: Dict[int, Type[StarlingError]] = {
    errno.EINVAL: InvalidRequest,
    errno.E2BIG: InvalidRequest,
    errno.ERANGE: InvalidRequest,
    errno.EAGAIN: Busy,
    errno.EBUSY: Busy,
    errno.EMFILE: Busy,
    errno.ETIME: Expired,
    errno.ETIMEDOUT: Expired,
    errno.ECANCELED: Cancelled,
    errno.EDOM: Unmet,
    errno.EMSGSIZE: TooSmall,
    errno.ESTALE: Stale,
    errno.EIO: ModelFailed,
    errno.ENOENT: NotFound,
    errno.ECONNREFUSED: NotFound,
    errno.ENOMEM: OutOfMemory,
    errno.EDQUOT: QuotaExceeded,
    errno.EPIPE: RuntimeGone,
    errno.ESHUTDOWN: RuntimeStops,
    errno.ECHILD: Forked,
}


def status_of(status: int, code: int) -> int:
    """Of a completion, with the code of its reason: what ends with the runtime is told from what its client cancelled."""
    return -errno.ESHUTDOWN if status == -errno.ECANCELED and code == _STOPPING else status


def error_of(status: int, text: str, bytes_needed: int = 0) -> StarlingError:
    """The exception for a negative status."""
    return _CLASSES.get(-status, StarlingError)(status, text, bytes_needed)


def connection_error_of(status: int, text: str) -> StarlingError:
    """Of what attaches to a runtime."""
    error = NoRuntime if -status in (errno.ENOENT, errno.ECONNREFUSED) else _CLASSES.get(-status, StarlingError)
    return error(status, text)


def unpicklable(self: Any, _: SupportsIndex) -> NoReturn:
    """__reduce_ex__ of what belongs to this process."""
    raise TypeError(f"a {type(self).__name__} cannot be pickled: {type(self).NOT_PICKLED}")
