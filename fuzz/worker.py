"""One process of atheris on one target.

``python -m fuzz.worker TARGET FOLDER libfuzzer-options...`` runs until an option or a finding ends
it. Only the package's own readers are instrumented: compiled kernels cannot be.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import atheris

_UNTOUCHED = [
    "marginbn.solvers",
    "marginbn.problem",
]
with atheris.instrument_imports(include=["marginbn", "fuzz.frames"], exclude=_UNTOUCHED):
    from fuzz.guard import run_watched
    from fuzz.seeds import plant_seeds, warm_up
    from fuzz.targets import TARGETS

MEMORY_FOLDER = Path("/dev/shm")


def main() -> None:
    """Fuzz one target."""
    target = TARGETS[sys.argv[1]]
    base = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=base) as name:
        folder = Path(name)
        warm_up(target, folder)
        plant_seeds(target.name, Path(sys.argv[2]))

        def test_one(data: bytes) -> None:
            run_watched(target.run, data, folder)

        options = {"custom_mutator": mutate_json} if target.json else {}
        atheris.Setup([sys.argv[0], *sys.argv[2:]], test_one, **options)
        atheris.Fuzz()


# --- JSON, mutated as values ----------------------------------------------------------------------

_LEAVES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 1e308, -0.0, 0.5, 10**30, 2**63, 2**31, 10**400, "", "x", "inf",
    "nan", "-inf", "numeric", "categorical", "\x00", "\u00e9", [], {}, [0], [[]], {"a": 1},
)  # fmt: skip


def mutate_json(data: bytes, max_size: int, seed: int) -> bytes:
    """Change one value of a line of JSON, keep what follows; the rest is left to libFuzzer."""
    rng = random.Random(seed)
    if rng.random() < 0.3:
        return bytes(atheris.Mutate(data, max_size))
    try:
        head, end, rest = data.partition(b"\n")
        value = json.loads(head)
        for _ in range(rng.choice((1, 1, 2, 4))):
            value = _changed(value, rng)
        text = json.dumps(value).encode() + end + rest
    except (ValueError, RecursionError):
        return bytes(atheris.Mutate(data, max_size))
    return text if len(text) <= max_size else bytes(atheris.Mutate(data, max_size))


def _changed(value: Any, rng: random.Random) -> Any:
    """The value with one thing in it changed, walking down at random."""
    if isinstance(value, dict) and value and rng.random() < 0.95:
        key = rng.choice(list(value))
        if rng.random() < 0.05:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        return _changed_list(value, rng)
    if isinstance(value, float | int) and rng.random() < 0.3:
        return rng.choice((value + 1, value - 1, -value, value * 2))
    if isinstance(value, str) and rng.random() < 0.3:
        return value + rng.choice((value, "\n", "\u2028", "x"))
    return rng.choice(_LEAVES)


def _changed_list(value: list[Any], rng: random.Random) -> list[Any]:
    at = rng.randrange(len(value))
    action = rng.random()
    if action < 0.1:
        return value[:at] + value[at + 1 :]
    if action < 0.2:
        return [*value[:at], value[at], *value[at:]]
    if action < 0.3:
        other = rng.randrange(len(value))
        swapped = list(value)
        swapped[at], swapped[other] = value[other], value[at]
        return swapped
    return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]


if __name__ == "__main__":
    main()
