"""Certificates changed at random: both checkers come to the same verdict."""

from __future__ import annotations

import json
import random
import tempfile
import warnings
import zlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fuzz import proofs

from marginbn.exceptions import CertificateWarning, InputError


@cache
def seeds() -> tuple[bytes, ...]:
    """Contents of genuine certificates, some of stopped searches."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        return tuple(proofs.certificate_seeds())


def changed(value: Any, rng: random.Random) -> Any:
    """Another value, near the old one or far from it."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, 0, 2**31, value * 1000])
    if isinstance(value, float):
        return rng.choice([value * (1 + 1e-9), value * 0.99, value + 1.0, -value, 0.0, 1e300])
    if isinstance(value, str):
        return rng.choice([value + "x", "", "mdl", "binary", "cluster", "all", "free"])
    return rng.choice([None, 0, [], {}])


def mutate_header(content: bytes, rng: random.Random) -> bytes:
    """One number, text or list of the header is another one, or is gone, or is there twice."""
    header, _, arrays = content.partition(b"\n")
    record = json.loads(header)
    node: Any = record
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = rng.choice(keys)
        child = node[key]
        if not isinstance(child, dict | list) or not child or rng.random() < 0.2:
            break
        node = child
    if isinstance(node, list) and rng.random() < 0.3:
        node.insert(rng.randrange(len(node) + 1), child) if rng.random() < 0.5 else node.pop(key)
    else:
        node[key] = changed(child, rng)
    return json.dumps(record).encode() + b"\n" + arrays


def mutate_arrays(content: bytes, rng: random.Random) -> bytes:
    """Some bytes of the arrays are others."""
    header, _, arrays = content.partition(b"\n")
    own = bytearray(arrays)
    for _ in range(rng.choice([1, 1, 2, 4])):
        own[rng.randrange(len(own))] = rng.choice([0, 1, 2, 3, 127, 255, rng.randrange(256)])
    return header + b"\n" + bytes(own)


def compare(count: int, first: int = 0) -> Counter[str]:
    """How many of the changed certificates are accepted by both, refused by both, unreadable."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            rng = random.Random(number)
            content = rng.choice(seeds())
            mutate = mutate_header if rng.random() < 0.6 else mutate_arrays
            try:
                proofs.verify(mutate(content, rng), Path(folder))
                found["read"] += 1
            except InputError:
                found["unreadable"] += 1
            except zlib.error:
                found["broken"] += 1
    return found


def test_both_checkers_agree() -> None:
    found = compare(300)
    assert sum(found.values()) == 300
    assert found["read"] > 50
    assert found["unreadable"] > 50


@pytest.mark.slow
def test_both_checkers_agree_about_thousands() -> None:
    assert sum(compare(5000, first=300).values()) == 5000
