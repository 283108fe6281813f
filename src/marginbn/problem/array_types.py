"""Types of arrays, for annotations, and the precision of their numbers."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
CodeArray = NDArray[np.int32]
"""States of variables, -1 where unknown."""

WordArray = NDArray[np.uint64]
"""Sets as bits."""

IndexArray = NDArray[np.intp]
"""What indexes an array, as numpy returns it."""

EPS = 2.0**-53
"""Largest relative error of one rounded operation in double precision."""
