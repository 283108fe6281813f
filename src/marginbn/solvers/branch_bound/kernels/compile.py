"""How every kernel of the engine is compiled.

``fastmath`` stays off: bounds rely on IEEE rounding, and the error terms of ``kernels/rounding.py`` count operations
in the order in which they are written. ``error_model="numpy"`` only removes the zero-division checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def entry(function: F) -> F:
    """Compile a kernel that Python calls; cached on disk, without the interpreter lock."""
    return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))


def kernel(function: F) -> F:
    """Compile a kernel that only other kernels call: no wrapper for Python, which saves half of the compile time."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, njit(cache=True, nogil=True, error_model="numpy", **options)(function))
