# SPDX-License-Identifier: Apache-2.0
"""Mistakes that type checkers report, one in each line that says so. It is checked, and not run."""

import numpy as np
import numpy.typing as npt
import starling


def connects() -> None:
    starling.Client(lable="mine")  # wrong
    starling.Client(role="administrator")  # wrong
    starling.Client(queue_pairs="4")  # wrong
    starling.Client("starling", "mine")  # wrong
    starling.Client(timeout="soon")  # wrong
    starling.Client(7)  # wrong


def arrays(client: starling.Client) -> None:
    client.empty((3,), 3.5)  # wrong
    client.empty("3", np.float32)  # wrong
    client.empty((3, None))  # wrong
    client.array([1, 2], dtype=5)  # wrong
    client.array([1, 2], np.zeros)  # wrong
    client.empty((3,), dtyp=np.float32)  # wrong
    floats = client.empty((3,), np.float32)
    pixels: npt.NDArray[np.uint8] = floats  # wrong
    print(pixels)


def requests(client: starling.Client, x: npt.NDArray[np.float32]) -> None:
    client.infer("digits")  # wrong
    client.infer(7, x)  # wrong
    client.infer("digits", None)  # wrong
    client.infer("digits", object())  # wrong
    client.infer("digits", x, timeuot=1)  # wrong
    client.infer("digits", x, timeout="1")  # wrong
    client.infer("digits", x, priority=1.5)  # wrong
    client.infer("digits", x, outputs="probabilities")  # wrong
    client.infer("digits", x, outputs=[1, 2])  # wrong
    client.infer("digits", x, x)  # wrong
    client.submit("digits", x, ouputs=x)  # wrong
    client.submit("digits", x).reslut()  # wrong
    client.submit("digits", x).result(timeout="1")  # wrong
    client.submit("digits", x).times.queued_ns  # wrong


async def coroutines(client: starling.Client, x: npt.NDArray[np.float32]) -> int:
    await client.infer_async("digits", x, session="s")  # wrong
    return client.model("digits")  # wrong


def describes(client: starling.Client, times: starling.Times) -> None:
    client.model(b"digits")  # wrong
    client.model("digits").input  # wrong
    client.model("digits").inputs[0].shape[0]  # wrong
    client.models()[0].label  # wrong
    client.info().arena_bites  # wrong
    times.waited_ns  # wrong
    starling.Nothing  # wrong


def administers(client: starling.Client) -> None:
    client.load(7)  # wrong
    client.reload()  # wrong
    client.apply([("digits", "cpu", "8")])  # wrong
    client.apply([("digits", "cpu")])  # wrong
    client.reconnect(wait=60)  # wrong
    try:
        client.unload("digits")
    except starling.StarlingError as error:
        error.bytes_need  # wrong
