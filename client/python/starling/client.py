# SPDX-License-Identifier: Apache-2.0
"""The client: see Client."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import errno
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Literal, NamedTuple, Optional, Tuple, TypeVar, Union, overload

import numpy as np

from . import arena, convert, form, library
from .errors import CLOSED, TooSmall, connection_error_of, error_of, unpicklable
from .futures import Future, Reaper
from .gate import Lease
from .loops import LoopLine
from .request import Changed, Labelled, NoSamples, Selection, field, has_size, without_samples

if TYPE_CHECKING:
    import numpy.typing as npt

    from .annotations import Array, DType, DTypeOf, Inputs, Outputs, Result, Scalar, Shape


class Entry(NamedTuple):
    """One line of a listing: `state` is "loading", "ready", "draining", "failed", "available" or "standby"."""

    name: str
    version: int
    state: str
    ensemble: bool


class Info(NamedTuple):
    """What was granted and what is used, with the names of starling_client_describe(3)."""

    client_id: int
    queue_pairs: int
    queue_depth: int
    tensors_per_request: int
    regions: int
    arena_bytes: int
    arena_used_bytes: int
    arena_limit_bytes: int


class Port:
    """An input or an output: `shape` has None where the size is free, and is None where its rank is not known; `batch_axis` is the axis
    that counts samples, or None. An `optional` input may be left out of a request, which takes the model's default then. `labels` are
    words: integers are places in them, floats have one for each column."""

    def __init__(self, info: Any) -> None:
        self.name: str = info.name.decode()
        self.number: int = info.dtype
        self.dtype: DType = arena.DTYPES[info.dtype]
        self.shown: DType = np.dtype(np.uint16) if self.dtype == arena.BFLOAT16 else self.dtype  # as what it is taken without a look in Python
        free_rank = info.rank == 0 and info.dims[0] < 0
        self.shape: Optional[Tuple[Optional[int], ...]] = None if free_rank else tuple(None if n < 0 else n for n in info.dims[: info.rank])
        self.batch_axis: Optional[int] = None if info.batch_axis < 0 else info.batch_axis
        self.optional: bool = bool(info.optional)
        self.labels: Tuple[str, ...] = tuple(info.labels[i].decode(errors="replace") for i in range(info.n_labels))
        self.table: Dict[Any, int] = {label: place for place, label in enumerate(self.labels)}
        self.lacked: Tuple[int, int] = (0, 0)  # of an output that lacked room: the most bytes that it wanted, and for a KiB of inputs
        self.knows_outputs = True  # of an input: a request of no samples needs no runtime to say what the outputs' other sizes are

    def __repr__(self) -> str:
        return f"Port({self.name!r}, {self.dtype}, {self.shape})"


class Model(form.Handle):
    """A model as it was when it was looked up; from Client.model(). A request for it goes to what its name stands for by then: after a
    reload with other inputs it takes those, while the lists here stay."""

    NOT_PICKLED = "it belongs to a client of this process; pass its name, and look it up there with model()"
    __reduce_ex__ = unpicklable

    def __init__(self, core: form.Core, handle: Optional[int]) -> None:
        info = library.load().model_describe(handle).contents
        self._core = core
        self._handle = handle
        self.stale: bool = False  # its inputs or outputs are others by now
        self.name: str = info.name.decode()
        self.version: int = info.version
        self.ensemble: bool = bool(info.ensemble)
        self.samples_max: int = info.samples_max
        self.segment_samples: int = info.segment_samples
        self.inputs: List[Port] = [Port(info.inputs[i]) for i in range(info.n_inputs)]
        self.outputs: List[Port] = [Port(info.outputs[i]) for i in range(info.n_outputs)]
        for port in self.inputs:
            port.knows_outputs = all(map(has_size, self.outputs))
        self.combines = self.ensemble
        self.bind(core, handle, self.name, self.inputs, self.outputs)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, inputs={self.inputs}, outputs={self.outputs})"


class Variant(NamedTuple):
    """A variant of a task as it is just now: `state` is "serves", "available", "loading", "failed", "differs" or "absent"; `latency`
    (of one sample, when nothing waits), `wait` and `load` are seconds, None where they are not known; `reason` says why it does not
    serve."""

    name: str
    state: str
    accuracy: float
    cost: float
    latency: Optional[float]
    wait: float
    workers: int
    memory_bytes: int
    load: Optional[float]
    reason: str


def _seconds(nanoseconds: int) -> Optional[float]:
    return nanoseconds / 1e9 if nanoseconds else None


#: What a query is told: accuracy, accuracy_least, cost, nanoseconds, flags.
_Needs = Tuple[float, float, float, int, int]


class Query(Model):
    """A task with needs; from Client.query(). It is taken as a Model is: each request goes to a variant that meets the needs."""

    def __init__(self, core: form.Core, handle: Optional[int], needs: _Needs) -> None:
        super().__init__(core, handle)
        self._needs = needs
        self.asks = True

    def __repr__(self) -> str:
        return f"Query({self.name!r}, inputs={self.inputs}, outputs={self.outputs})"


#: Closed before the interpreter stops its background threads.
_open_clients: weakref.WeakSet[Client] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for client in list(_open_clients):
        client.close()


def _nanoseconds(seconds: Optional[float]) -> int:
    return 0 if seconds is None else max(0, int(seconds * 1e9))


def _bytes(text: Union[str, bytes, os.PathLike[str], None]) -> Optional[bytes]:
    return None if text is None else _without_nul(os.fsencode(text))


def _name(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"a model is a name or a Model, got {type(text).__name__}")
    return _without_nul(text.encode())


def _without_nul(text: bytes) -> bytes:
    """C would read another text, up to it."""
    if b"\0" in text:
        raise ValueError(f"{text!r} has a NUL, which no name has")
    return text


def _of(selection: Union[Selection, Labelled, None], result: Result) -> Result:
    return result if selection is None else selection.of(result)


C = TypeVar("C", bound="Client")


class Client:
    """A connection to a runtime, and the arena that both share.

    runtime              its name, or the path of its socket; "starling" when None
    label                of this client in the runtime's log
    role                 "client", "reader" (lists models only) or "admin" (loads and unloads)
    queue_pairs          how many threads can wait in infer() at once (4); futures take one of them, and so does each event loop
    queue_depth          requests in flight per queue pair (64)
    tensors_per_request  inputs and outputs together (8); of requests with more, a queue pair has two in flight
    arena_bytes          of the arena's first region (16 MiB)
    timeout              seconds to wait for a runtime that is starting

    Threads: all methods may be called from any thread. infer() borrows a queue pair for the time of the call; submit() hands the
    request to one that a background thread reaps; infer_async() uses one per event loop. The interpreter lock is free while the
    library waits. After a fork the child's copy raises Forked: make a client there.
    """

    NOT_PICKLED = "it is a connection of this process; make one in the other"
    __reduce_ex__ = unpicklable

    def __init__(
        self,
        runtime: Union[str, bytes, os.PathLike[str], None] = None,
        *,
        label: Optional[str] = None,
        role: Literal["client", "reader", "admin"] = "client",
        queue_pairs: int = 0,
        queue_depth: int = 0,
        tensors_per_request: int = 0,
        arena_bytes: int = 0,
        timeout: Optional[float] = 0,
    ) -> None:
        self._library = library.load()
        self._pid = os.getpid()
        self._shown = f"{runtime or 'starling'!r}, role={role!r}"
        self._closed = True  # until there is something to close
        if role not in library.ROLES:
            raise ValueError(f"role is {role!r}, wants one of {sorted(library.ROLES)}")
        options = library.Options(
            runtime=_bytes(runtime),
            label=_bytes(label),
            role=library.ROLES[role],
            queue_pairs=field("queue_pairs", queue_pairs, 32),
            queue_depth=field("queue_depth", queue_depth, 32),
            tensors_per_request=field("tensors_per_request", tensors_per_request, 32),
            arena_bytes=field("arena_bytes", arena_bytes, 64),
            timeout_ns=_nanoseconds(timeout),
        )
        handle, error = ctypes.c_void_p(), library.Error()
        status = self._library.connect(ctypes.byref(options), ctypes.byref(handle), ctypes.byref(error))
        if status < 0:
            raise connection_error_of(status, error.text.decode(errors="replace"))
        self._core = form.Core(self._library, handle.value)
        self._gate = form.Gate()
        self._models: Dict[Any, Model] = {}
        self._lines_max = self.info().queue_pairs
        self._pool = form.Pool(self._core, self._gate, self._lines_max, self._models)
        self._lock = threading.RLock()
        self._starting = threading.RLock()  # the reaper
        self._closing = threading.RLock()
        self._retired: List[Model] = []
        self._reaper: Optional[Reaper] = None
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopLine] = weakref.WeakKeyDictionary()
        self._closed = False
        self._ended = False
        _open_clients.add(self)

    # ---- lifetime ----

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise error_of(-errno.ECHILD, self._library.words(-errno.ECHILD))
        if self._closed:
            raise error_of(-errno.EPIPE, CLOSED)

    def close(self) -> None:
        """Ends the connection. What is in flight ends as cancelled; arrays stay what they are as long as they are held."""
        if os.getpid() != self._pid:
            self._closed = True
            return
        if self._reaper and self._reaper.is_own_thread():  # a callback of a future, for whose end another thread may wait in close()
            if self._closing.acquire(blocking=False):
                try:
                    self._close()
                finally:
                    self._closing.release()
            return
        with self._closing:
            self._close()

    def _close(self) -> None:
        """Each step can be taken twice: a handler of a signal may raise, and close() be called again."""
        if not self._ended:
            self._closed = True
            self._end()
            self._ended = True

    def _end(self) -> None:
        with self._lock:
            reaper, loops = self._reaper, list(self._loops.items())
        if reaper:
            reaper.close()
        self._pool.close()
        for loop, line in loops:
            if loop.is_closed():
                line.retire()
            else:
                loop.call_soon_threadsafe(line.end)
        self._gate.alone(lambda: self._library.disconnect(self._core.handle))

    def __repr__(self) -> str:
        return f"Client({self._shown}{', closed' if self._closed else ''})"

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_ended", True) and self._pid == os.getpid():
            self.close()

    def reconnect(self, timeout: Optional[float] = 0) -> None:
        """Attaches to the runtime again after RuntimeGone. Arrays stay where they are; requests in flight raise RuntimeGone."""
        self._check()
        error = library.Error()
        arguments = self._core.handle, _nanoseconds(timeout), ctypes.byref(error)
        status = self._gate.alone(lambda: self._library.reconnect(*arguments))
        if status < 0:
            raise connection_error_of(status, error.text.decode(errors="replace"))
        with self._lock:
            self._retired.extend(self._models.values())
            self._models.clear()
            reaper, loops = self._reaper, list(self._loops.items())
        if reaper:
            reaper.wake()
        for loop, line in loops:
            if not loop.is_closed():
                loop.call_soon_threadsafe(line.reap)

    def info(self) -> Info:
        """What was granted and what is used, with the names of starling_client_describe(3)."""
        info = library.ClientInfo()
        status = self._library.client_describe(self._core.handle, ctypes.byref(info))
        if status < 0:
            raise error_of(status, self._library.words(status))
        return Info(*(getattr(info, name) for name in Info._fields))

    # ---- models ----

    def models(self) -> List[Entry]:
        """What the runtime serves, as a list of Entry."""
        self._check()
        entries = (library.ModelEntry * 64)()
        with self._gate:
            while (n := self._library.model_list(self._core.handle, entries, len(entries))) > len(entries):
                entries = (library.ModelEntry * n)()  # more may have come meanwhile
        return [
            Entry(e.name.decode(), e.version, library.STATES.get(e.state, "unknown"), bool(e.ensemble))
            for e in entries[: max(n, 0)]
        ]

    def model(self, name: str) -> Model:
        """Looks a model up; the answer is kept until it turns out to be stale."""
        self._check()
        with self._lock:
            model = self._models.get(name)
            if model is not None and not model.stale:
                return model
            if model is not None:
                self._retired.append(self._models.pop(name))  # its handle lives as long as the client: others may be using it
        handle, error = ctypes.c_void_p(), library.Error()
        status = -errno.EINTR
        while status == -errno.EINTR:  # it is being loaded, and the handler of a signal has returned
            with self._gate:
                status = self._library.model_open(self._core.handle, _name(name), ctypes.byref(handle), ctypes.byref(error))
        if status < 0:
            raise error_of(status, error.text.decode(errors="replace"))
        model = Model(self._core, handle.value)
        with self._lock:
            return self._models.setdefault(name, model)

    # ---- tasks ----

    def tasks(self) -> Dict[str, List[Variant]]:
        """The runtime's tasks, and the variants of each."""
        self._check()
        entries = (library.TaskEntry * 128)()
        with self._gate:
            n = self._library.task_list(self._core.handle, entries, len(entries))
        if n < 0:
            raise error_of(n, "the runtime has no tasks: it is older than this library" if n == -errno.ENOTSUP else self._library.words(n))
        return {e.name.decode(): self._variants(e.name) for e in entries[: min(n, len(entries))]}

    def _variants(self, task: bytes) -> List[Variant]:
        infos = (library.VariantInfo * 256)()
        with self._gate:
            n = self._library.task_variants(self._core.handle, task, infos, len(infos))
        return [
            Variant(
                v.name.decode(),
                library.VARIANT_STATES.get(v.state, "unknown"),
                v.accuracy,
                v.cost,
                _seconds(v.latency_ns),
                v.wait_ns / 1e9,
                v.workers,
                v.memory_bytes,
                _seconds(v.load_ns),
                v.reason.decode(errors="replace"),
            )
            for v in infos[: max(0, min(n, len(infos)))]
        ]

    def query(
        self,
        task: str,
        *,
        accuracy: float = 0,
        accuracy_least: float = 0,
        latency: Optional[float] = None,
        cost: float = 0,
        closest: bool = False,
        deadline: bool = False,
    ) -> Query:
        """A task in the place of a model: each request goes to the variant that meets these needs just then.

        accuracy        at least, 0 to 1; 0: the most accurate that keeps the rest
        accuracy_least  where no variant of `accuracy` will do just now, the most accurate from here on answers
        latency         seconds from submit to result, at most, as expected
        cost            at most, in the task's own units
        closest         where no variant will do, the closest one answers; else the request is refused
        deadline        the latency is the deadline of each request, too

        Raises Unmet where no variant can ever meet them; a request raises Busy where none can just now. Future.answer says which variant
        answered.
        """
        flags = (library.QUERY_CLOSEST if closest else 0) | (library.QUERY_DEADLINE if deadline else 0)
        latency_ns = 0 if latency is None else max(1, int(latency * 1e9))
        return self._query(task, (float(accuracy), float(accuracy_least), float(cost), latency_ns, flags))

    def _query(self, task: str, needs: _Needs) -> Query:
        self._check()
        key = (task, needs)
        with self._lock:
            kept = self._models.get(key)
            if isinstance(kept, Query) and not kept.stale:
                return kept
            if kept is not None:
                self._retired.append(self._models.pop(key))
        wish = library.Query(**dict(zip(("accuracy", "accuracy_least", "cost", "latency_ns", "flags"), needs)))
        handle, error = ctypes.c_void_p(), library.Error()
        status = -errno.EINTR
        while status == -errno.EINTR:
            with self._gate:
                status = self._library.query_open(
                    self._core.handle, _name(task), ctypes.byref(wish), ctypes.byref(handle), ctypes.byref(error)
                )
        if status < 0:
            raise error_of(status, error.text.decode(errors="replace"))
        query = Query(self._core, handle.value, needs)
        with self._lock:
            found = self._models.setdefault(key, query)
        return found if isinstance(found, Query) else query

    # ---- arrays ----

    @overload
    def empty(self, shape: Shape) -> npt.NDArray[np.float32]: ...

    @overload
    def empty(self, shape: Shape, dtype: DTypeOf[Scalar]) -> npt.NDArray[Scalar]: ...

    @overload
    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> Array: ...

    def empty(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array that lies in the arena, contents undefined. Its memory goes back when the last view of it is gone."""
        self._check()
        with self._gate:
            return arena.empty(self._core, shape, dtype)

    @overload
    def array(self, values: npt.NDArray[Scalar], dtype: None = None) -> npt.NDArray[Scalar]: ...

    @overload
    def array(self, values: npt.ArrayLike, dtype: DTypeOf[Scalar]) -> npt.NDArray[Scalar]: ...

    @overload
    def array(self, values: npt.ArrayLike, dtype: Optional[npt.DTypeLike] = None) -> Array: ...

    def array(self, values: npt.ArrayLike, dtype: Optional[npt.DTypeLike] = None) -> Array:
        """A copy of `values` in the arena."""
        values = np.asarray(convert.array_of(values), dtype)
        array = self.empty(values.shape, values.dtype)
        array[...] = values
        return array

    def trim(self) -> None:
        """For a client that goes idle: gives memory of the arena in which no array is left back to the runtime."""
        self._check()
        with self._gate:
            status = self._library.trim(self._core.handle)
        if status < 0:
            raise error_of(status, self._library.words(status))

    # ---- inference ----

    def _find(self, model: Union[str, Model]) -> Model:
        kept = model if isinstance(model, Model) else self._models.get(model)
        if kept is not None and not kept.stale:
            return kept
        if isinstance(model, Query):
            return self._query(model.name, model._needs)
        return self.model(model.name if isinstance(model, Model) else model)

    def _find_current(self, model: Union[str, Model]) -> Model:
        """What a Call finds out for itself."""
        while True:
            found = self._find(model)
            with self._gate:
                if not self._library.model_changed(found._handle):
                    return found
            found.stale = True

    def _selected(self, model: Union[str, Model], outputs: Any, labels: bool) -> Tuple[Union[Selection, Labelled, None], Any]:
        """Which outputs are wanted and how, None for all as they are; and those that are given, or for each whether it gets memory."""
        selection: Optional[Selection] = None
        if outputs is not None and Selection.is_one(outputs):
            self._check()
            selection = Selection(self._find_current(model), outputs)
            outputs = selection.rooms
        if not labels:
            return selection, outputs
        self._check()
        return Labelled(self._find_current(model), selection), outputs

    def _call(
        self, model: Union[str, Model], inputs: Any, outputs: Any, timeout: Optional[float], priority: int, session: int
    ) -> form.Call:
        self._check()
        model = self._find(model)
        with self._gate:
            return form.Call(self._core, model, inputs, outputs, timeout, priority, session)

    def _without_samples(self, model: Union[str, Model], inputs: Any, outputs: Any) -> Result:
        model = self._find(model)
        with self._gate:
            return without_samples(self._core, model, inputs, None if isinstance(outputs, bytes) else outputs)

    def _asked(
        self, model: Union[str, Model], inputs: Any, outputs: Any, timeout: Optional[float], priority: int, session: int, labels: bool
    ) -> Tuple[Optional[form.Call], Union[Selection, Labelled, None], Result]:
        """What is to be submitted, and which outputs are wanted of it; or None, and the result of a request without samples."""
        while True:
            selection, rooms = self._selected(model, outputs, labels)
            try:
                return self._call(model, inputs, rooms, timeout, priority, session), selection, None
            except Changed:
                continue
            except NoSamples:
                return None, None, _of(selection, self._without_samples(model, inputs, rooms))

    def infer(
        self,
        model: Union[str, Model],
        inputs: Inputs,
        *,
        outputs: Optional[Outputs] = None,
        timeout: Optional[float] = None,
        priority: int = 0,
        session: int = 0,
        labels: bool = False,
    ) -> Result:
        """Runs one request and waits for it.

        model     a name or a Model
        inputs    one array, or for several inputs a dict by name or a sequence in order. Arrays of the arena (see empty())
                  are used where they are, others are copied into it
        outputs   arrays of the arena to write to, in the same forms; made when None. Or names of those that are wanted: ["d"];
                  the others get no memory where the model says how large all are, else it goes back at once
        timeout   seconds until the request expires; priority 0 to 3, 0 goes first; 4 is behind all of them,
                  and pauses for them; session 0, as sequences are not served
        labels    True for words in the place of integers that stand for some: what a classifier says, as arrays of numpy.str_

        Returns the output as an array of the arena, or a dict by name when there are several. A batch of 0 samples has outputs of 0 rows.
        """
        if self._loops:
            self._check()
            self._retire_loops()
        while True:
            selection, rooms = self._selected(model, outputs, labels)
            try:
                if self._reaper and self._lines_max == 1:
                    result = self._reaper.infer(self._call(model, inputs, rooms, timeout, priority, session))
                else:
                    result = self._pool.infer(self, model, inputs, rooms, timeout, priority, session)
            except Changed:
                continue
            except NoSamples:
                result = self._without_samples(model, inputs, rooms)
            return _of(selection, result)

    def submit(
        self,
        model: Union[str, Model],
        inputs: Inputs,
        *,
        outputs: Optional[Outputs] = None,
        timeout: Optional[float] = None,
        priority: int = 0,
        session: int = 0,
        labels: bool = False,
    ) -> Future:
        """As infer(), but returns a Future at once; waits only while the queue pair is full."""
        call, selection, result = self._asked(model, inputs, outputs, timeout, priority, session, labels)
        if call is None:
            return Future.of_no_samples(result)
        reaper: Reaper = self._reaper or self._start_reaper()
        return reaper.submit(call, selection=selection)

    def _start_reaper(self) -> Any:
        with self._starting:
            if self._reaper is None:
                self._retire_loops()
                lease = Lease()
                try:
                    self._pool.borrow(lease, client=self)  # may wait for others, who need the other lock to come back
                    with self._lock:
                        self._check()
                        if self._reaper is None:  # a handler of a signal may have submitted meanwhile
                            self._reaper = Reaper(self._pool, self._gate, lease)
                finally:
                    if self._reaper is None or self._reaper.lease is not lease:
                        self._pool.give_back(lease)
            reaper: Any = self._reaper  # which there is now
            return reaper

    async def infer_async(
        self,
        model: Union[str, Model],
        inputs: Inputs,
        *,
        outputs: Optional[Outputs] = None,
        timeout: Optional[float] = None,
        priority: int = 0,
        session: int = 0,
        labels: bool = False,
    ) -> Result:
        """As infer(), for `await`: any number at once, on one queue pair per event loop. Cancelling the task cancels the request."""
        call, selection, result = self._asked(model, inputs, outputs, timeout, priority, session, labels)
        if call is None:
            return result
        if self._reaper and self._lines_max == 1:
            return _of(selection, await self._reaper.infer_async(call))
        loop = asyncio.get_running_loop()
        while True:
            try:
                return _of(selection, await self._line_of(loop).infer(call))
            except TooSmall as error:
                if not call.grow(error):
                    raise

    def _line_of(self, loop: asyncio.AbstractEventLoop) -> LoopLine:
        line = self._loops.get(loop)
        if line is not None and line.is_open():  # which the loop's own thread closes
            return line
        self._retire_loops()
        with self._lock:
            self._check()
            line = self._loops.get(loop)
            if line is None:
                line = self._loops[loop] = LoopLine(self._pool, self._gate, loop, self._drop_loop)
            line.open()
            return line

    def _retire_loops(self) -> None:
        """Those that were closed with requests in flight leave their queue pairs to others."""
        with self._lock:
            for loop, line in list(self._loops.items()):
                if loop.is_closed():
                    line.retire()
                    self._loops.pop(loop, None)

    def _drop_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._loops.pop(loop, None)

    # ---- administration ----

    def _administer(self, call: Callable[..., int], *arguments: Any) -> None:
        self._check()
        error = library.Error()
        with self._gate:
            status = call(self._core.handle, *arguments, ctypes.byref(error))
        if status < 0:
            raise error_of(status, error.text.decode(errors="replace"))

    def load(self, model: str) -> None:
        """Loads a model of the repository; needs the role "admin". Returns when it serves."""
        self._administer(self._library.admin_load, _name(model))

    def unload(self, model: str) -> None:
        """Ends a model, after its requests in flight."""
        self._administer(self._library.admin_unload, _name(model))

    def reload(self, model: str) -> None:
        """Puts the newest version in the place of the one that serves."""
        self._administer(self._library.admin_reload, _name(model))

    def apply(self, allotments: Optional[Iterable[Tuple[str, str, int]]]) -> None:
        """Changes the workers of models while they serve: a (model, device, batch) for each, device "cpu", "cpu:2" or "cpu:0-1+4",
        or of a model whose device is a GPU "gpu:1" or "gpu:1/50%".

        Returns when the old workers have left. None: as the configuration says.
        """
        rows = [library.Allotment(_name(model), _name(device), field("batch", batch, 32)) for model, device, batch in allotments or []]
        self._administer(self._library.admin_apply, (library.Allotment * len(rows))(*rows), len(rows))
