"""Types of arrays, for annotations."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
WordArray = NDArray[np.uint64]
"""Sets as bits."""

IndexArray = NDArray[np.intp]
"""What indexes an array, as numpy returns it."""
