# SPDX-License-Identifier: Apache-2.0
"""The two forms of what a request goes through: the extension module _native, and the reference in Python over ctypes.

$STARLING_PYTHON says which: "native" (fails without the extension), "ctypes", or nothing for the extension where there is one that this
interpreter can load. Both have the classes below, with the same methods, results and errors.
"""

import importlib.machinery
import importlib.util
import os
import sys
import sysconfig

from . import library

_FILE = "_native.abi3.so"
_CHOICES = ("native", "ctypes")


def _why_not():
    """Why this interpreter cannot load the extension, or None."""
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} has no stable ABI of CPython"
    if sys.version_info < (3, 11):
        return f"it is for CPython 3.11 and later, this is {sys.version.split()[0]}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this interpreter is a free-threaded build"
    return None


def _candidates():
    yield os.path.join(os.path.dirname(os.path.abspath(__file__)), _FILE)
    beside = os.path.dirname(library.find())  # of a build tree
    if beside:
        yield os.path.join(beside, "python", "starling", _FILE)


def _load():
    path = next(filter(os.path.exists, _candidates()), None)
    if path is None:
        raise ImportError(f"there is no {_FILE} in this installation")
    name = __package__ + "._native"
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, path, loader=loader))
    loader.exec_module(module)
    return module


def _choose():
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

if _native:
    Block, Call, Core, Gate, Handle, Pool = (
        getattr(_native, name) for name in ("Block", "Call", "Core", "Gate", "Handle", "Pool")
    )
else:
    from .block import Block, Core  # noqa: F401
    from .call import Call, Handle  # noqa: F401
    from .gate import Gate  # noqa: F401
    from .line import Pool  # noqa: F401
