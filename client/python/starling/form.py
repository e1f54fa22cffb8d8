# SPDX-License-Identifier: Apache-2.0
"""The two forms of what a request goes through: the extension module _native, and the reference in Python over ctypes.

$STARLING_PYTHON says which: "native" (fails without the extension), "ctypes", or nothing for the extension where there is one that this
interpreter can load. Both have the classes below, with the same methods, results and errors.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
from types import ModuleType
from typing import TYPE_CHECKING, Any, Iterator, Optional, Tuple

from . import library

_FILE = "_native.abi3.so"
_CHOICES = ("native", "ctypes")


def _why_not() -> Optional[str]:
    """Why this interpreter cannot load the extension, or None."""
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} has no stable ABI of CPython"
    if sys.version_info < (3, 11):
        return f"it is for CPython 3.11 and later, this is {sys.version.split()[0]}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this interpreter is a free-threaded build"
    return None


def _candidates() -> Iterator[str]:
    yield os.path.join(os.path.dirname(os.path.abspath(__file__)), _FILE)
    beside = os.path.dirname(library.find())  # of a build tree
    if beside:
        yield os.path.join(beside, "python", "starling", _FILE)


def _load() -> ModuleType:
    path = next(filter(os.path.exists, _candidates()), None)
    if path is None:
        raise ImportError(f"there is no {_FILE} in this installation")
    name = f"{__package__}._native"
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec: Any = importlib.util.spec_from_file_location(name, path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _choose() -> Tuple[Optional[ModuleType], Optional[str]]:
    """The extension, or None and why not."""
    wanted = os.environ.get("STARLING_PYTHON")
    if wanted and wanted not in _CHOICES:
        raise ImportError(f"STARLING_PYTHON is {wanted!r}, wants one of {list(_CHOICES)}")
    if wanted == "ctypes":
        return None, "STARLING_PYTHON is 'ctypes'"
    reason = _why_not()
    if reason is None:
        try:
            return _load(), None
        except ImportError as error:
            reason = str(error)
    if wanted == "native":
        raise ImportError(f"STARLING_PYTHON is 'native', but {reason}")
    return None, reason


#: Why it is not the extension; None when it is.
_native, REASON = _choose()

#: Which it is: "native" or "ctypes".
NAME = "native" if _native else "ctypes"

if not TYPE_CHECKING and _native:  # whose classes are taken for the same
    Block, Call, Core, Gate, Handle, Pool = (
        getattr(_native, name) for name in ("Block", "Call", "Core", "Gate", "Handle", "Pool")
    )
else:
    from .block import Block as Block
    from .block import Core as Core
    from .call import Call as Call
    from .call import Handle as Handle
    from .gate import Gate as Gate
    from .line import Pool as Pool
