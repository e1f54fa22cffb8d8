# SPDX-License-Identifier: Apache-2.0
"""The types that signatures name, for type checkers: nothing imports this file while a program runs."""

from typing import Any, Dict, Iterable, List, Protocol, SupportsIndex, Tuple, Type, TypeVar, Union

import numpy as np
import numpy.typing as npt


class DLPack(Protocol):
    """A tensor of another package."""

    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> Tuple[Any, Any]: ...


Scalar = TypeVar("Scalar", bound=np.generic)

Array = npt.NDArray[Any]
DType = np.dtype[Any]
DTypeOf = Union[Type[Scalar], "np.dtype[Scalar]"]
Shape = Union[int, "np.integer[Any]", Iterable[SupportsIndex]]
Input = Union[npt.ArrayLike, DLPack]
#: Of one input, by name, or in order; None is an input that is left out.
Inputs = Union[Input, Dict[str, Any], List[Any], Tuple[Union[Input, None], ...]]
#: Arrays of the arena, in the same forms, or names of those that are wanted.
Outputs = Union[Array, Dict[str, Array], List[Array], Tuple[Array, ...], List[str], Tuple[str, ...]]
#: An Array, or a Dict[str, Array]: the model says which, and no type checker knows the model.
Result = Any
