"""How the kernels of the branch and cut are compiled: see :mod:`marginbn.solvers.compile`."""

from __future__ import annotations

from marginbn.solvers.compile import entry

kernel = entry
"""All kernels here are called from Python as well."""
