"""Geometry of the problem as pure functions, usable by every solver."""
