# SPDX-License-Identifier: Apache-2.0
"""Programs that use the client as it is meant: type checkers find nothing here. It is checked, and not run."""

import asyncio
import concurrent.futures
import pathlib
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import numpy.typing as npt
import starling


def first_steps() -> npt.NDArray[np.float32]:
    with starling.Client(timeout=60) as client:
        images = client.empty((300, 1, 8, 8), np.float32)
        images[:] = 0.5
        probabilities: npt.NDArray[np.float32] = client.infer("digits", images)
        return probabilities


def connects(folder: pathlib.Path) -> List[starling.Client]:
    return [
        starling.Client(),
        starling.Client("other", label="mine", role="reader", queue_pairs=2, queue_depth=8, tensors_per_request=512),
        starling.Client(folder / "starling.sock", arena_bytes=1 << 20, timeout=0.5),
        starling.Client(runtime=b"/run/starling.sock", role="admin", timeout=None),
    ]


def arrays(client: starling.Client) -> None:
    by_default: npt.NDArray[np.float32] = client.empty(3)
    bits: npt.NDArray[np.uint8] = client.empty([3, np.int64(4)], dtype=np.dtype(np.uint8))
    by_name: npt.NDArray[Any] = client.empty((3,), "int64")
    copied: npt.NDArray[np.int32] = client.array(np.zeros(3, np.int32))
    made: npt.NDArray[np.float16] = client.array([[1, 2], [3, 4]], np.float16)
    listed: npt.NDArray[Any] = client.array([1, 2])
    print(by_default, bits, by_name, copied, made, listed)


class OfAnotherPackage:
    def __dlpack__(self, *, stream: Optional[int] = None) -> object:
        return None

    def __dlpack_device__(self) -> Tuple[int, int]:
        return 1, 0


def inputs_and_outputs(client: starling.Client, model: starling.Model) -> None:
    x, y = np.zeros((1, 4)), client.empty((1, 4))
    by_name: Dict[str, npt.NDArray[np.float32]] = {"a": y, "b": y}
    mixed = {"a": x, "b": [[1, 2]], "c": None}
    client.infer(model, x, timeout=1, priority=3)
    client.infer(model, [[1.0, 2.0]], outputs=y)
    client.infer(model, OfAnotherPackage(), session=0)
    client.infer("pair", by_name, outputs=by_name)
    client.infer("pair", mixed, outputs=["c", "d"])
    client.infer("pair", (x, None), outputs=[y, y])
    several: Dict[str, npt.NDArray[Any]] = client.infer("pair", [x, y], outputs=("c", "d"))
    for name, array in several.items():
        print(name, array.shape)


def describes(client: starling.Client) -> str:
    model = client.model("digits")
    for port in [*model.inputs, *model.outputs]:
        sizes = [size or 1 for size in port.shape] if port.shape is not None else []
        print(port.name.upper(), np.zeros(sizes, port.dtype), port.batch_axis, port.optional)
    for entry in client.models():
        name, version, state, is_ensemble = entry
        print(name.upper(), version + 1, state.upper(), is_ensemble, entry.ensemble)
    print(client.info().arena_used_bytes + 1, model.version, model.samples_max, model.ensemble, model.stale)
    return starling.version() + starling.__version__


def futures(client: starling.Client, x: npt.NDArray[np.float32]) -> Optional[int]:
    pending: List[starling.Future] = [client.submit("digits", x, timeout=0.1, priority=1) for _ in range(8)]
    pending[0].add_done_callback(lambda future: print(future.result()))
    for future in concurrent.futures.as_completed(pending):
        print(future.exception())
    rows: npt.NDArray[np.float32] = pending[1].result(timeout=1)
    was_cancelled: bool = pending[2].cancel()
    times: Optional[starling.Times] = pending[1].times
    print(rows, was_cancelled)
    return None if times is None else times.queued_ns + times.batched_ns + times.computing_ns + times.combining_ns


async def coroutines(client: starling.Client, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    await asyncio.gather(*(client.infer_async("digits", x, timeout=1) for _ in range(8)))
    result: npt.NDArray[np.float32] = await client.infer_async("digits", x, outputs=["probabilities"])
    return result


def fails(client: starling.Client, x: npt.NDArray[np.float32]) -> int:
    try:
        client.infer("digits", x)
    except starling.TooSmall as error:
        return error.bytes_needed
    except (starling.Busy, starling.Expired, starling.NotFound) as error:
        return error.status
    except starling.RuntimeGone:
        client.reconnect(timeout=60)
    except starling.StarlingError as error:
        print(f"{error}")
    return 0


def administers(client: starling.Client) -> None:
    client.load("digits")
    client.reload("digits")
    client.unload("digits")
    client.apply([("digits", "cpu:0-1+4", 8), ("other", "gpu:1/50%", 1)])
    client.apply(None)
    client.close()
