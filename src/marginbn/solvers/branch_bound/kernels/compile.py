"""How every kernel of the engine is compiled.

``fastmath`` stays off: bounds rely on IEEE rounding, and the error terms of ``kernels/rounding.py``
count operations in the order in which they are written. ``error_model="numpy"`` only removes the
zero-division checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])

_compile: Any = njit  # its annotations know neither NamedTuple arguments nor all options


def entry(function: F) -> F:
    """Compile a kernel that Python calls; cached on disk, without the interpreter lock."""
    compiled: F = _compile(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def kernel(function: F) -> F:
    """Compile a kernel that only other kernels call: without the wrapper for Python, which would
    take as long to compile as the kernel itself.
    """
    compiled: F = _compile(
        cache=True,
        nogil=True,
        error_model="numpy",
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)
    return compiled
