"""How every kernel of the engine is compiled.

``fastmath`` stays off: bounds rely on IEEE rounding, and the error terms of ``kernels/rounding.py`` count operations
in the order in which they are written. ``error_model="numpy"`` only removes the zero-division checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile to machine code on first call, cached on disk, without the interpreter lock."""
    return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))
