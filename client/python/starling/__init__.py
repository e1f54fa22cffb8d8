# SPDX-License-Identifier: Apache-2.0
"""Inference through shared memory: the Python client of the Starling runtime.

    import numpy as np
    import starling

    with starling.Client() as client:
        images = client.empty((300, 1, 8, 8), np.float32)     # this array lies in memory that the runtime reads
        images[:] = ...
        probabilities = client.infer("digits", images)         # and the result in memory that it wrote

Arrays that lie elsewhere are copied into the arena first. See Client for threads, futures and asyncio.
"""

from .client import Client, Entry, Model, Port, Query, Variant
from .errors import (
    Busy,
    Cancelled,
    Expired,
    Forked,
    InvalidRequest,
    ModelFailed,
    NoRuntime,
    NotFound,
    OutOfMemory,
    QuotaExceeded,
    RuntimeGone,
    RuntimeStops,
    Stale,
    StarlingError,
    TooSmall,
    Unmet,
)
from .futures import Future
from .library import version
from .request import Answer, Members, Times

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Busy",
    "Cancelled",
    "Client",
    "Entry",
    "Expired",
    "Forked",
    "Future",
    "InvalidRequest",
    "Members",
    "Model",
    "ModelFailed",
    "NoRuntime",
    "NotFound",
    "OutOfMemory",
    "Port",
    "Query",
    "QuotaExceeded",
    "RuntimeGone",
    "RuntimeStops",
    "Stale",
    "StarlingError",
    "Times",
    "TooSmall",
    "Unmet",
    "Variant",
    "version",
]
