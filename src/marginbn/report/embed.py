"""Values that lie in a page for its scripts: JSON that no name can break out of.

Inside a script element a browser looks for nothing but its end tag (and the start of a comment), so
it is enough that no ``<`` is left; ``>`` and ``&`` are escaped as well. Everything beyond ASCII,
half surrogate pairs included, is escaped by the JSON encoder itself.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from marginbn.network.network import BayesianNetwork

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def to_script_json(value: object) -> str:
    r"""JSON that may stand between script tags.

    Examples
    --------
    >>> to_script_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def network_values(network: BayesianNetwork) -> dict[str, Any]:
    """The network for the page's own inference; tables bit for bit, in little-endian base64."""
    numbers = np.concatenate([table.ravel() for table in network.log_tables])
    return {
        "variables": [{"name": v.name, "states": list(v.states)} for v in network.variables],
        "parents": [list(parents) for parents in network.structure.parents],
        "tables": base64.b64encode(numbers.astype("<f8").tobytes()).decode("ascii"),
    }
