"""Types of arrays, for annotations."""

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
