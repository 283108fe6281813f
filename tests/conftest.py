"""Settings of the whole suite."""

import os

# scikit-learn skips its array-API check unless SciPy was told to support it before its import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

collect_ignore = ["conftest.py"]  # no doctests here, and docs/ has a file of this name too
