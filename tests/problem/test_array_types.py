"""Types of arrays have one name each, in all of the package."""

import re
from pathlib import Path

import marginbn
from marginbn.problem import array_types

ROOT = Path(marginbn.__file__).parent
NAMED = re.findall(r"^\w+ = (NDArray\[.*\])$", Path(array_types.__file__).read_text("utf-8"), re.M)
OWN = [Path(array_types.__file__), *(ROOT / "proof").rglob("*.py")]
"""The checker of proofs shares no code with the search."""


def test_no_module_writes_out_an_array_type_that_has_a_name() -> None:
    """``FloatArray``, not ``NDArray[np.float64]``, and no second name for it."""
    assert len(NAMED) >= 6
    for path in ROOT.rglob("*.py"):
        if path not in OWN:
            text = path.read_text("utf-8")
            assert not [name for name in NAMED if name in text], path
