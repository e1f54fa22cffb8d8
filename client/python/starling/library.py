# SPDX-License-Identifier: Apache-2.0
"""libstarling through ctypes: where it is found, its structs and its calls. Mirrors starling.h; nothing here has a will of its own.

ctypes.CDLL gives up the interpreter lock for the length of every call, so waits disturb no other thread.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Tuple

RANK_MAX = 8
NAME_BYTES = 1152
TEXT_BYTES = 480
ALIGNMENT = 64
FOREVER = 2**64 - 1
NOOP = 1
ROLES = {"client": 0, "reader": 1, "admin": 2}
VARIANT_STATES = {0: "absent", 1: "serves", 2: "available", 3: "available", 4: "loading", 5: "failed", 6: "differs"}
QUERY_CLOSEST = 1
QUERY_DEADLINE = 2
STATES = {1: "loading", 2: "ready", 3: "draining", 4: "failed", 5: "available", 6: "standby"}


class Error(Structure):
    _fields_ = [("text", c_char * TEXT_BYTES)]


class Allotment(Structure):
    _fields_ = [("model", c_char_p), ("device", c_char_p), ("batch", c_uint32)]


class Options(Structure):
    _fields_ = [
        ("runtime", c_char_p),
        ("label", c_char_p),
        ("role", c_int),
        ("queue_pairs", c_uint32),
        ("queue_depth", c_uint32),
        ("tensors_per_request", c_uint32),
        ("arena_bytes", c_uint64),
        ("timeout_ns", c_uint64),
        ("reserved", c_uint64 * 8),
    ]


class ClientInfo(Structure):
    _fields_ = [
        ("client_id", c_uint64),
        ("queue_pairs", c_uint32),
        ("queue_depth", c_uint32),
        ("tensors_per_request", c_uint32),
        ("regions", c_uint32),
        ("arena_bytes", c_uint64),
        ("arena_used_bytes", c_uint64),
        ("arena_limit_bytes", c_uint64),
    ]


class ModelEntry(Structure):
    _fields_ = [("name", c_char * NAME_BYTES), ("version", c_int64), ("state", c_int), ("ensemble", c_int)]


class PortInfo(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int),
        ("rank", c_uint32),
        ("dims", c_int32 * RANK_MAX),
        ("batch_axis", c_int32),
        ("optional", c_int32),
        ("n_labels", c_uint32),
        ("labels", POINTER(c_char_p)),
    ]


class ModelInfo(Structure):
    _fields_ = [
        ("name", c_char * NAME_BYTES),
        ("version", c_int64),
        ("ensemble", c_int),
        ("samples_max", c_uint32),
        ("segment_samples", c_uint32),
        ("n_inputs", c_uint32),
        ("n_outputs", c_uint32),
        ("inputs", POINTER(PortInfo)),
        ("outputs", POINTER(PortInfo)),
    ]


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_uint64), ("dtype", c_int), ("rank", c_uint32), ("dims", c_uint32 * RANK_MAX)]


class Request(Structure):
    _fields_ = [
        ("model", c_void_p),
        ("inputs", POINTER(Tensor)),
        ("outputs", POINTER(Tensor)),
        ("n_inputs", c_uint32),
        ("n_outputs", c_uint32),
        ("flags", c_uint32),
        ("priority", c_uint32),
        ("deadline_ns", c_uint64),
        ("user_data", c_uint64),
        ("session", c_uint64),
    ]


@functools.lru_cache(maxsize=None)
def frame_type(n_tensors: int) -> Any:
    """A Request in one piece with the room for its id and its tensors, inputs first: one object where there were five."""
    return type("Frame", (Request,), {"_fields_": [("id", c_uint64), ("tensors", Tensor * n_tensors)]})


class Shape(Structure):
    _fields_ = [("bytes", c_uint64), ("dims", c_uint32 * RANK_MAX), ("rank", c_uint32), ("dtype", c_int)]


class Reason(Structure):
    _fields_ = [
        ("code", c_uint16),
        ("tensor", c_uint16),
        ("axis", c_uint16),
        ("got", c_uint64),
        ("limit", c_uint64),
        ("text", c_char_p),
    ]


class Completion(Structure):
    _fields_ = [
        ("id", c_uint64),
        ("user_data", c_uint64),
        ("status", c_int32),
        ("n_outputs", c_uint32),
        ("outputs", c_void_p),  # of n_outputs Shapes
        ("queued_ns", c_uint64),
        ("batched_ns", c_uint64),
        ("computing_ns", c_uint64),
        ("combining_ns", c_uint64),
        ("bytes_needed", c_uint64),
        ("reason", Reason),
    ]


class Query(Structure):
    _fields_ = [
        ("accuracy", c_double),
        ("accuracy_least", c_double),
        ("cost", c_double),
        ("latency_ns", c_uint64),
        ("flags", c_uint32),
        ("reserved0", c_uint32),
        ("reserved", c_uint64 * 8),
    ]


class Answer(Structure):
    _fields_ = [
        ("variant", c_char_p),
        ("accuracy", c_double),
        ("met", c_int),
        ("tries", c_uint32),
        ("expected_ns", c_uint64),
        ("reserved", c_uint64 * 4),
    ]


class Members(Structure):
    _fields_ = [("any", c_uint64), ("all", c_uint64), ("reserved", c_uint64 * 6)]


class TaskEntry(Structure):
    _fields_ = [("name", c_char * NAME_BYTES), ("variants", c_uint32), ("serving", c_uint32)]


class VariantInfo(Structure):
    _fields_ = [
        ("name", c_char * NAME_BYTES),
        ("state", c_int),
        ("workers", c_uint32),
        ("accuracy", c_double),
        ("cost", c_double),
        ("latency_ns", c_uint64),
        ("batch_ns", c_uint64),
        ("wait_ns", c_uint64),
        ("memory_bytes", c_uint64),
        ("load_ns", c_uint64),
        ("batch_samples", c_uint32),
        ("reason", c_char * TEXT_BYTES),
        ("condition", c_uint32),
        ("reserved", c_uint64 * 8),
    ]


_CALLS: Dict[str, Tuple[Any, List[Any]]] = {
    "strerror": (c_char_p, [c_int]),
    "reason_text": (c_char_p, [POINTER(Completion), c_char_p, c_size_t]),
    "version": (c_char_p, []),
    "clock_ns": (c_uint64, []),
    "connect": (c_int, [POINTER(Options), POINTER(c_void_p), POINTER(Error)]),
    "reconnect": (c_int, [c_void_p, c_uint64, POINTER(Error)]),
    "disconnect": (None, [c_void_p]),
    "close": (c_void_p, [c_void_p]),
    "client_describe": (c_int, [c_void_p, POINTER(ClientInfo)]),
    "model_list": (c_int, [c_void_p, POINTER(ModelEntry), c_uint32]),
    "model_open": (c_int, [c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)]),
    "model_describe": (POINTER(ModelInfo), [c_void_p]),
    "model_changed": (c_int, [c_void_p]),
    "model_close": (c_void_p, [c_void_p]),
    "query_open": (c_int, [c_void_p, c_char_p, POINTER(Query), POINTER(c_void_p), POINTER(Error)]),
    "completion_members": (c_int, [c_void_p, POINTER(Completion), POINTER(Members)]),
    "completion_variant": (c_int, [c_void_p, POINTER(Completion), POINTER(Answer)]),
    "task_list": (c_int, [c_void_p, POINTER(TaskEntry), c_uint32]),
    "task_variants": (c_int, [c_void_p, c_char_p, POINTER(VariantInfo), c_uint32]),
    "alloc_error": (None, [c_void_p, c_uint64, c_int, POINTER(Error)]),
    "alloc": (c_void_p, [c_void_p, c_uint64]),
    "free": (c_int, [c_void_p, c_void_p]),
    "trim": (c_int, [c_void_p]),
    "queue_open": (c_int, [c_void_p, POINTER(c_void_p), POINTER(Error)]),
    "queue_close": (c_void_p, [c_void_p]),
    "submit": (c_int, [c_void_p, c_void_p, c_void_p]),  # a Frame and its id, as addresses
    "poll": (c_int, [c_void_p, POINTER(Completion), c_uint32]),
    "wait": (c_int, [c_void_p, POINTER(Completion), c_uint32, c_uint64]),
    "cancel": (c_int, [c_void_p, c_uint64]),
    "queue_in_flight": (c_uint32, [c_void_p]),
    "queue_error": (c_char_p, [c_void_p]),
    "queue_fd": (c_int, [c_void_p]),
    "queue_arm": (c_int, [c_void_p]),
    "admin_load": (c_int, [c_void_p, c_char_p, POINTER(Error)]),
    "admin_unload": (c_int, [c_void_p, c_char_p, POINTER(Error)]),
    "admin_reload": (c_int, [c_void_p, c_char_p, POINTER(Error)]),
    "admin_apply": (c_int, [c_void_p, POINTER(Allotment), c_uint32, POINTER(Error)]),
}


class Library:
    """The calls of starling.h without their prefix."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, path: str) -> None:
        handle = ctypes.CDLL(path, use_errno=True)
        for name, (result, arguments) in _CALLS.items():
            call = getattr(handle, "starling_" + name)
            call.restype = result
            call.argtypes = arguments
            setattr(self, name, call)
        self.path = path

    def words(self, status: int) -> str:
        return str(self.strerror(status).decode())

    def reason(self, completion: Completion) -> str:
        """Why a request was refused or failed, in words."""
        text = ctypes.create_string_buffer(TEXT_BYTES)
        return str(self.reason_text(completion, text, TEXT_BYTES).decode(errors="replace"))


def _candidates() -> Iterator[str]:
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, "lib", "libstarling.so")
    yield os.path.join(here, "libstarling.so")
    tree = os.path.join(here, "..", "..", "..", "build")
    yield os.path.join(tree, "release", "lib", "libstarling.so")
    yield from sorted(glob.glob(os.path.join(tree, "*", "lib", "libstarling.so")))


def find() -> str:
    """The path of libstarling, or its name for the system's own."""
    path = os.environ.get("STARLING_LIBRARY")
    if path:
        return path
    for path in _candidates():
        if os.path.exists(path):
            return path
    return "libstarling.so.0"


_loaded: List[Library] = []


def load() -> Library:
    """The one library of this process: $STARLING_LIBRARY, beside the package, the build tree's, or the system's."""
    if not _loaded:
        _loaded.append(Library(find()))
    return _loaded[0]


def version() -> str:
    """Of libstarling, as "0.1.0"."""
    return str(load().version().decode())
