"""How the kernels of the branch and cut are compiled.

``fastmath`` stays off: sums are added in the order in which they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile to machine code on first call, cached on disk, without the interpreter lock."""
    return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))
