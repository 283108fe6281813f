"""Random data, structures and candidates: hypothesis strategies and seeded makers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import oracles
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.structure import Structure

WEIGHTS = (0.25, 0.5, 1.0, 2.0, 3.5)


def make_variables(arities: Sequence[int]) -> tuple[Variable, ...]:
    """Variable 0 is called class, the others x1, x2, ...; states are s0, s1, ..."""
    names = ["class", *(f"x{i}" for i in range(1, len(arities)))]
    return tuple(
        Variable(n, tuple(f"s{j}" for j in range(a))) for n, a in zip(names, arities, strict=True)
    )


def make_data(
    rows: Sequence[Sequence[int]],
    arities: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
) -> EncodedData:
    """Data from rows of codes; arities default to the largest code plus one, weights to one."""
    codes = np.array(rows, dtype=np.int32)
    if arities is None:
        arities = [int(a) for a in codes.max(axis=0) + 1]
    given = np.ones(len(codes)) if weights is None else np.array(weights, dtype=np.float64)
    return EncodedData(codes, given, make_variables(arities))


def random_data(
    seed: int, n_samples: int = 30, arities: Sequence[int] = (3, 2, 3, 2), *, weighted: bool = True
) -> EncodedData:
    """Rows drawn with dependence on the class, so that scores and margins differ by structure."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, arities[0], n_samples)]
    for arity in arities[1:]:
        source = columns[int(rng.integers(0, len(columns)))]
        noise = rng.integers(0, arity, n_samples)
        columns.append(np.where(rng.random(n_samples) < 0.6, source % arity, noise))
    weights = rng.choice(WEIGHTS, n_samples) if weighted else np.ones(n_samples)
    return make_data(np.column_stack(columns).tolist(), arities, weights.tolist())


@st.composite
def encoded_data(
    draw: st.DrawFn,
    min_variables: int = 1,
    max_variables: int = 4,
    min_classes: int = 2,
    max_classes: int = 4,
    max_arity: int = 3,
    max_samples: int = 12,
    min_samples: int = 1,
    weights: st.SearchStrategy[float] | None = None,
) -> EncodedData:
    """Data with mixed arities (one state is allowed for features) and weights."""
    n_features = draw(st.integers(min_variables - 1, max_variables - 1))
    n_classes = draw(st.integers(min_classes, max_classes))
    arities = [n_classes, *(draw(st.integers(1, max_arity)) for _ in range(n_features))]
    n_samples = draw(st.integers(min_samples, max_samples))
    uniform = draw(hnp.arrays(np.int32, (n_samples, len(arities)), elements=st.integers(0, 11)))
    given = weights if weights is not None else st.sampled_from(WEIGHTS)
    return make_data(
        (uniform % np.array(arities)).tolist() if n_samples else np.empty((0, len(arities))),
        arities,
        draw(st.lists(given, min_size=n_samples, max_size=n_samples)),
    )


@st.composite
def structures(
    draw: st.DrawFn, n_variables: int, max_parents: int = 3, class_restricted: bool = False
) -> Structure:
    """A DAG in a random order; restricted ones have features without parents or with the class."""
    order = draw(st.permutations(range(n_variables)))
    parents: list[tuple[int, ...]] = [()] * n_variables
    for position, child in enumerate(order):
        earlier = order[:position]
        if not earlier:
            continue
        chosen = draw(st.lists(st.sampled_from(earlier), max_size=max_parents, unique=True))
        if class_restricted and child != 0 and 0 not in chosen:
            chosen = []
        parents[child] = tuple(sorted(chosen))
    return Structure(tuple(parents))


@st.composite
def data_and_structure(
    draw: st.DrawFn, class_restricted: bool = True, max_parents: int = 3, **options: object
) -> tuple[EncodedData, Structure]:
    data = draw(encoded_data(**options))  # type: ignore[arg-type]
    return data, draw(structures(data.n_variables, max_parents, class_restricted))


def all_structures(n_variables: int, max_parents: int | None = None) -> Iterator[Structure]:
    """Every DAG, one parent set per variable at a time; 1, 3, 25, 543 of them for n = 1..4."""
    largest = n_variables - 1 if max_parents is None else max_parents
    yield from map(Structure, oracles.all_graphs(n_variables, largest, False))
