"""Compiled array functions of the engine; importing this package imports numba."""
