"""Certificates for tests: how to make them, how to spoil them, and a slow opinion about them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from branch_bound_cases import is_dag
from marginbn.exceptions import InputError
from marginbn.files import PathLike
from marginbn.problem.candidates import CandidateSets, enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.margins import MarginRows
from marginbn.problem.problem import StructureProblem, linear_problem
from marginbn.problem.scores import get_local_score
from marginbn.proof import checker, exact
from marginbn.proof.certificate import (
    ARC,
    ARGUMENTS,
    CANDIDATE,
    CLUSTERS,
    EDGE,
    FOREST,
    Certificate,
    DualWeights,
    Multipliers,
    NamedRow,
)
from marginbn.proof.checker.verdict import Progress
from marginbn.proof.format import encode_certificate, part_type, read_certificate
from marginbn.solvers import solve_structure

UNCLEAR = 1e-6
"""Relative distance to a claim within which the slow opinion says nothing."""


def certified(problem: StructureProblem, folder: Path, **options: object) -> Certificate:
    """The certificate of a solve; both checkers have accepted it."""
    path = folder / "proof.cert"
    solve_structure(problem, certificate=path, **options)  # type: ignore[arg-type]
    assert exact.main([str(path)]) == 0
    return read_certificate(path)


LIMITS = ("too fine", "makes no sense", "too deep", "too large")
"""Reasons of the first checker that speak of its own arithmetic, not of the claim."""


def verify_certificate(
    source: Certificate | PathLike, progress: Progress | None = None
) -> checker.Verdict:
    """The verdict of the first checker; the second one must come to the same.

    It may verify what the first cannot decide: where claims are closer than the first one's
    rounding, and where its integers are too small.
    """
    verdict = checker.verify_certificate(source, progress=progress)
    certificate = source if isinstance(source, Certificate) else read_certificate(source)
    if verdict:
        assert second_opinion(certificate) == "", verdict
    elif second_opinion(certificate) == "" and not any(w in verdict.reason for w in LIMITS):
        size = UNCLEAR * max(1.0, abs(certificate.objective), abs(certificate.bound))
        claims = {"objective": certificate.objective + size, "bound": certificate.bound - size}
        assert second_opinion(replace(certificate, **claims)), verdict.reason
    return verdict


def second_opinion(certificate: Certificate) -> str:
    """Why the second checker does not verify a certificate; empty if it does."""
    try:
        exact.Checker(encode_certificate(certificate)).check()
    except (exact.Refuted, ValueError) as error:
        return str(error) or "unreadable"
    return ""


def sealed(certificate: Certificate) -> Certificate:
    """With the fingerprint that its data have now."""
    return replace(certificate, fingerprint=certificate.data.fingerprint())


# ---------------------------------------------------------------------------------- an opinion


class Wrong(Exception):  # noqa: N818
    """The claim does not follow."""


class Unclear(Exception):  # noqa: N818
    """Too close to tell in double precision."""


def follows(certificate: Certificate) -> bool | None:
    """Whether the claim follows, by looking at every structure; None where it is close.

    Coefficients and scores are those of the package, leaves are bounded by listing their
    structures, or, for clusters, by the formula.
    """
    try:
        _judge(certificate)
    except Wrong:
        return False
    except Unclear:
        return None
    return True


def _judge(c: Certificate) -> None:
    if c.fingerprint != c.data.fingerprint():
        raise Wrong("fingerprint")
    problem, loss = rebuild(c)
    sets = [
        [problem.candidates.parents[k] for k in problem.candidates.group(i)]
        for i in range(problem.n_variables)
    ]
    if any(p not in own for p, own in zip(c.incumbent, sets, strict=False)):
        raise Wrong("incumbent")
    if len(c.incumbent) != problem.n_variables or not is_dag(list(c.incumbent)):
        raise Wrong("incumbent")
    chosen = [problem.candidates.index(i, p) for i, p in enumerate(c.incumbent)]
    at_least(problem.evaluate(chosen), c.objective)
    allowed = frozenset(range(problem.candidates.n_candidates))
    rest = _walk(c, problem, c.tree.tolist(), list(structures(problem)), allowed, frozenset(), loss)
    if rest:
        raise Wrong("something follows the tree")


def at_least(value: float, claimed: float) -> None:
    if value < claimed - UNCLEAR * max(1.0, abs(claimed)):
        raise Wrong(f"{value} is below {claimed}")
    if value < claimed:
        raise Unclear


def rebuild(c: Certificate) -> tuple[StructureProblem, float]:
    """The problem of a certificate by the package's own means, and what unlisted sets may add."""
    variables = tuple(Variable(n, s) for n, s in zip(c.data.names, c.data.states, strict=True))
    data = EncodedData(c.data.codes, c.data.weights, variables)
    try:
        if c.candidates.rule is not None:
            r = c.candidates.rule
            candidates = enumerate_candidates(
                len(variables),
                r.max_parents,
                class_restricted=r.class_restricted,
                class_arcs=r.class_arcs,
                required=r.required,
                forbidden=r.forbidden,
                constant=r.constant,
            )
        problem = None
        if c.candidates.rule is not None:
            problem = _problem(c, data, candidates)
        if c.candidates.rule is None or c.candidates.listed:
            if not all(c.candidates.listed):
                raise Wrong("a variable without candidates")
            child = [i for i, own in enumerate(c.candidates.listed) for _ in own]
            listed = tuple(p for own in c.candidates.listed for p in own)
            candidates = CandidateSets(len(variables), np.array(child, dtype=np.int32), listed)
        kept = _problem(c, data, candidates)
    except InputError as error:
        raise Wrong("definition") from error
    if problem is None or not c.candidates.listed:
        return kept, 0.0
    if c.score.is_margin or (candidates.places_in(problem.candidates) < 0).any():
        raise Wrong("listed")
    _check_unlisted(problem, kept, c.candidates.loss)
    return kept, kept.n_variables * c.candidates.loss


def _problem(c: Certificate, data: EncodedData, candidates: CandidateSets) -> StructureProblem:
    """Equal rows stay apart, so that dual weights keep their order."""
    if not c.score.is_margin:
        score = get_local_score(c.score.name, c.score.equivalent_sample_size)
        return linear_problem(data, candidates, score)
    if not c.score.smoothing > 0:
        raise InputError("smoothing")
    return StructureProblem(
        candidates,
        np.zeros(candidates.n_candidates),
        data.variables,
        MarginRows(data, candidates, c.score.name, c.score.smoothing),  # type: ignore[arg-type]
        data.weights,
        c.score.gamma,
    )


def _check_unlisted(every: StructureProblem, kept: StructureProblem, loss: float) -> None:
    """A listed subset scores at least as much as each set that is not listed, but for the loss."""
    for i in range(every.n_variables):
        group = [(kept.candidates.parents[k], kept.linear[k]) for k in kept.candidates.group(i)]
        listed = {parents for parents, _ in group}
        for k in every.candidates.group(i):
            parents = every.candidates.parents[k]
            if parents not in listed:
                below = [value for own, value in group if set(own) < set(parents)]
                if not below or every.linear[k] > max(below) + loss + UNCLEAR:
                    raise Wrong("not listed")
                if every.linear[k] > max(below) + loss:
                    raise Unclear


def structures(problem: StructureProblem) -> Iterator[tuple[int, ...]]:
    """Every acyclic selection."""
    groups = [problem.candidates.group(i) for i in range(problem.n_variables)]
    for chosen in itertools.product(*groups):
        if is_dag([problem.candidates.parents[k] for k in chosen]):
            yield chosen


def _walk(
    c: Certificate,
    problem: StructureProblem,
    stream: list[int],
    inside: list[tuple[int, ...]],
    allowed: frozenset[int],
    present: frozenset[tuple[int, int]],
    loss: float,
) -> list[int]:
    """Judge one subtree; returns what is left of the stream."""
    if not stream or stream[0] not in ARGUMENTS or len(stream) <= ARGUMENTS[stream[0]]:
        raise Wrong("incomplete")
    kind, arguments = stream[0], stream[1 : 1 + ARGUMENTS[stream[0]]]
    rest = stream[1 + ARGUMENTS[kind] :]
    if kind in (FOREST, CLUSTERS):
        bound = _leaf(c, problem, kind, arguments, inside, allowed, present)
        if bound > -np.inf:
            at_least(c.bound, bound + loss)
        return rest
    has, with_it, joined = _object(problem, kind, arguments, allowed)
    without = allowed - {k for k in allowed if has((k,))}
    rest = _walk(c, problem, rest, [s for s in inside if not has(s)], without, present, loss)
    more = present | joined
    return _walk(c, problem, rest, [s for s in inside if has(s)], with_it, more, loss)


def _object(
    problem: StructureProblem, kind: int, arguments: list[int], allowed: frozenset[int]
) -> tuple[Callable[[tuple[int, ...]], bool], frozenset[int], frozenset[tuple[int, int]]]:
    """Whether a selection has the object, the candidates allowed with it, the edge it decides."""
    child, parents = problem.candidates.child, problem.candidates.parents
    if any(a < 0 for a in arguments):
        raise Wrong("object")
    if kind == CANDIDATE:
        [k] = arguments
        if k >= len(parents):
            raise Wrong("object")
        with_it = frozenset(a for a in allowed if child[a] != child[k] or a == k)
        return (lambda s: k in s), with_it, frozenset()
    i, j = arguments
    if i == j or max(i, j) >= problem.n_variables:
        raise Wrong("object")
    arcs = {(i, j)} if kind == ARC else {(i, j), (j, i)}
    holding = {k for k in allowed if any(child[k] == a and b in parents[k] for a, b in arcs)}
    everywhere = {
        k for k in range(len(parents)) if any(child[k] == a and b in parents[k] for a, b in arcs)
    }
    if kind == ARC:
        with_it = frozenset(k for k in allowed if child[k] != i or k in holding)
        return (lambda s: not everywhere.isdisjoint(s)), with_it, frozenset()
    assert kind == EDGE
    joined = frozenset({(min(i, j), max(i, j))})
    return (lambda s: not everywhere.isdisjoint(s)), allowed, joined


def _leaf(
    c: Certificate,
    problem: StructureProblem,
    kind: int,
    arguments: list[int],
    inside: list[tuple[int, ...]],
    allowed: frozenset[int],
    present: frozenset[tuple[int, int]],
) -> float:
    constant, values = _majorant(c, problem, arguments[0])
    if kind == FOREST:
        candidates = problem.candidates
        if not candidates.is_class_restricted or candidates.max_parents > 2:
            raise Wrong("forests")
        own = [s for s in inside if allowed.issuperset(s)]
        return constant + max((sum(values[list(s)]) for s in own), default=-np.inf)
    if not 0 <= arguments[1] < len(c.multipliers):
        raise Wrong("multipliers")
    values = values.copy()
    for number, y in zip(
        c.multipliers[arguments[1]].rows, c.multipliers[arguments[1]].values, strict=True
    ):
        constant -= y
        values[_row(c, problem, number, y, present)] += y
    best = []
    for i in range(problem.n_variables):
        group = [values[k] for k in problem.candidates.group(i) if k in allowed]
        best.append(max(group, default=-np.inf))
    return constant + sum(best)


def _row(
    c: Certificate,
    problem: StructureProblem,
    number: int,
    y: float,
    present: frozenset[tuple[int, int]],
) -> list[int]:
    if not 0 <= number < len(c.rows) or not 0 <= y < np.inf:
        raise Wrong("row")
    row, candidates = c.rows[number], problem.candidates
    if not row.members or not all(0 <= v < problem.n_variables for v in row.members):
        raise Wrong("row")
    pairs = list(enumerate(zip(candidates.child.tolist(), candidates.parents, strict=True)))
    if row.kind == "cluster":
        cluster = set(row.members)
        return [k for k, (i, p) in pairs if i in cluster and cluster.isdisjoint(p)]
    if row.members not in present:
        raise Wrong("edge row")
    a, b = row.members
    return [k for k, (i, p) in pairs if (i == a and b in p) or (i == b and a in p)]


def _majorant(c: Certificate, problem: StructureProblem, number: int) -> tuple[float, np.ndarray]:
    if problem.margins is None:
        if number != 0:
            raise Wrong("dual weights")
        return 0.0, problem.linear
    if not 0 <= number < len(c.duals):
        raise Wrong("dual weights")
    shares = c.duals[number].parts.astype(float) / 2.0 ** c.duals[number].bits
    if (shares.sum(axis=1) > 1).any():
        raise Wrong("shares")
    u = c.data.weights[:, None] * shares
    columns = [problem.margins.column(k) for k in range(problem.candidates.n_candidates)]
    unused = float((c.data.weights * (1 - shares.sum(axis=1))).sum())
    return problem.gamma * unused, np.array([(column * u).sum() for column in columns])


# ---------------------------------------------------------------------------------- spoiling


def spoil(c: Certificate, rng: np.random.Generator) -> Certificate | None:
    """One digit, weight, leaf, sign, label, ... changed; None if there is nothing of the kind."""
    return SPOILERS[int(rng.integers(len(SPOILERS)))](c, rng)


def _number(value: float, rng: np.random.Generator) -> float:
    """One digit changed, or the sign."""
    if rng.random() < 0.2:
        return -value
    text = repr(value)
    places = [a for a, sign in enumerate(text.split("e")[0]) if sign.isdigit()]
    place = places[int(rng.integers(min(6, len(places))))]
    return float(text[:place] + str(rng.integers(10)) + text[place + 1 :])


def _spoil_bound(c: Certificate, rng: np.random.Generator) -> Certificate:
    return replace(c, bound=_number(c.bound, rng))


def _spoil_objective(c: Certificate, rng: np.random.Generator) -> Certificate:
    return replace(c, objective=_number(c.objective, rng))


def _spoil_weight_part(c: Certificate, rng: np.random.Generator) -> Certificate | None:
    if not c.duals:
        return None
    number = int(rng.integers(len(c.duals)))
    dual = c.duals[number]
    parts = dual.parts.astype(np.int64)
    sample, rival = rng.integers(parts.shape[0]), rng.integers(parts.shape[1])
    parts[sample, rival] = rng.integers(2**dual.bits + 1)
    changed = DualWeights(dual.bits, parts.astype(part_type(dual.bits)))
    return replace(c, duals=(*c.duals[:number], changed, *c.duals[number + 1 :]))


def _spoil_many_parts(c: Certificate, rng: np.random.Generator) -> Certificate | None:
    if not c.duals:
        return None
    number = int(rng.integers(len(c.duals)))
    dual = c.duals[number]
    parts = rng.permutation(dual.parts, axis=int(rng.integers(2)))
    changed = DualWeights(dual.bits, parts)
    return replace(c, duals=(*c.duals[:number], changed, *c.duals[number + 1 :]))


def _spoil_bits(c: Certificate, rng: np.random.Generator) -> Certificate | None:
    if not c.duals:
        return None
    number = int(rng.integers(len(c.duals)))
    bits = int(np.clip(c.duals[number].bits + rng.choice([-1, 1, 2]), 1, 24))
    changed = DualWeights(bits, c.duals[number].parts.astype(part_type(bits)))
    return replace(c, duals=(*c.duals[:number], changed, *c.duals[number + 1 :]))


def _spoil_tree_entry(c: Certificate, rng: np.random.Generator) -> Certificate:
    tree = c.tree.copy()
    tree[rng.integers(len(tree))] += rng.choice([-2, -1, 1, 2, 7])
    return replace(c, tree=tree)


def _spoil_tree_length(c: Certificate, rng: np.random.Generator) -> Certificate:
    tree = c.tree.tolist()
    place = int(rng.integers(len(tree)))
    kind = int(rng.integers(4))
    if kind == 0:
        tree = tree[:place]
    elif kind == 1:
        del tree[place]
    elif kind == 2:
        tree.insert(place, int(rng.integers(5)))
    else:
        tree = tree + tree[place:]
    return replace(c, tree=np.array(tree, dtype=np.int32))


def _spoil_leaf(c: Certificate, rng: np.random.Generator) -> Certificate:
    """An inner node becomes a leaf: its subtree is gone, the leaf keeps weights of another."""
    tree = c.tree.tolist()
    starts = _subtrees(tree)
    begin, end = starts[int(rng.integers(len(starts)))]
    leaves = [a for a, _ in starts if tree[a] in (FOREST, CLUSTERS)]
    place = leaves[int(rng.integers(len(leaves)))]
    leaf = tree[place : place + 1 + ARGUMENTS[tree[place]]]
    return replace(c, tree=np.array([*tree[:begin], *leaf, *tree[end:]], dtype=np.int32))


def _spoil_sides(c: Certificate, rng: np.random.Generator) -> Certificate:
    """The two sides of a node change places."""
    tree = c.tree.tolist()
    inner = [(a, b) for a, b in _subtrees(tree) if tree[a] not in (FOREST, CLUSTERS)]
    if not inner:
        return _spoil_bound(c, rng)
    begin, end = inner[int(rng.integers(len(inner)))]
    first = begin + 1 + ARGUMENTS[tree[begin]]
    middle = next(b for a, b in _subtrees(tree) if a == first)
    swapped = [*tree[:first], *tree[middle:end], *tree[first:middle], *tree[end:]]
    return replace(c, tree=np.array(swapped, dtype=np.int32))


def _subtrees(tree: list[int]) -> list[tuple[int, int]]:
    """Begin and end of the subtree of every node, in preorder."""
    starts, place = [], 0
    while place < len(tree):
        starts.append(place)
        place += 1 + ARGUMENTS[tree[place]]
    ends: dict[int, int] = {}
    for a in reversed(starts):
        after = a + 1 + ARGUMENTS[tree[a]]
        if tree[a] in (FOREST, CLUSTERS):
            ends[a] = after
        else:
            ends[a] = ends[ends[after]]
    return [(a, ends[a]) for a in starts]


def _spoil_score(c: Certificate, rng: np.random.Generator) -> Certificate:
    score = c.score
    if score.is_margin:
        other = "binary" if score.name == "multiclass" else "multiclass"
        options = [
            replace(score, gamma=_number(score.gamma, rng)),
            replace(score, smoothing=_number(score.smoothing, rng)),
            replace(score, name=other),
        ]
        if c.data.arities[0] > 2:  # the shape of the dual weights belongs to the margin
            options.pop()
    else:
        names = ["mdl", "aic", "loglik", "bdeu", "k2"]
        size = _number(score.equivalent_sample_size, rng)
        options = [
            replace(score, name=names[int(rng.integers(5))]),
            replace(score, equivalent_sample_size=size),
        ]
    return replace(c, score=options[int(rng.integers(len(options)))])


def _spoil_code(c: Certificate, rng: np.random.Generator) -> Certificate:
    codes = c.data.codes.copy()
    m, i = rng.integers(codes.shape[0]), rng.integers(codes.shape[1])
    codes[m, i] = rng.integers(c.data.arities[i])
    return _reseal(replace(c, data=replace(c.data, codes=codes)), rng)


def _spoil_weight(c: Certificate, rng: np.random.Generator) -> Certificate:
    weights = c.data.weights.copy()
    m = rng.integers(len(weights))
    weights[m] = abs(_number(float(weights[m]), rng)) or 7.0
    return _reseal(replace(c, data=replace(c.data, weights=weights)), rng)


def _spoil_states(c: Certificate, rng: np.random.Generator) -> Certificate:
    i = int(rng.integers(len(c.data.states) - 1)) + 1
    states = list(c.data.states)
    if rng.random() < 0.5:
        states[i] = (*states[i], "another")
    else:
        states[i] = (states[i][0] + "x", *states[i][1:])
    return _reseal(replace(c, data=replace(c.data, states=tuple(states))), rng)


def _reseal(c: Certificate, rng: np.random.Generator) -> Certificate:
    """A forger would make the fingerprint anew; an accident does not."""
    return sealed(c) if rng.random() < 0.8 else c


def _spoil_fingerprint(c: Certificate, rng: np.random.Generator) -> Certificate:
    place = int(rng.integers(64))
    digit = format((int(c.fingerprint[place], 16) + 1) % 16, "x")
    text = c.fingerprint[:place] + digit + c.fingerprint[place + 1 :]
    return replace(c, fingerprint=text)


def _spoil_incumbent(c: Certificate, rng: np.random.Generator) -> Certificate:
    i = int(rng.integers(len(c.incumbent)))
    others = [v for v in range(len(c.incumbent) + 1) if v != i]
    size = int(rng.integers(3))
    own = tuple(sorted(int(v) for v in rng.choice(others, size, replace=False)))
    return replace(c, incumbent=(*c.incumbent[:i], own, *c.incumbent[i + 1 :]))


def _spoil_rule(c: Certificate, rng: np.random.Generator) -> Certificate | None:
    rule = c.candidates.rule
    if rule is None:
        return None
    arc = tuple(int(v) for v in rng.choice(len(c.incumbent), 2, replace=False))
    options = [
        replace(rule, max_parents=rule.max_parents + int(rng.choice([-1, 1]))),
        replace(rule, class_restricted=not rule.class_restricted),
        replace(rule, required=(*rule.required, arc)),
        replace(rule, forbidden=rule.forbidden[1:]),
        replace(rule, constant=(*rule.constant, arc[0])),
        replace(rule, class_arcs="all" if rule.class_arcs == "free" else "free"),
    ]
    changed = options[int(rng.integers(len(options)))]
    if changed.max_parents < 0:
        return None
    return replace(c, candidates=replace(c.candidates, rule=changed))


def _spoil_list(c: Certificate, rng: np.random.Generator) -> Certificate | None:
    """A set less, where a rule allows it."""
    listed = c.candidates.listed
    if c.candidates.rule is None or not listed:
        return None
    i = int(rng.integers(len(listed)))
    k = int(rng.integers(len(listed[i])))
    shorter = (*listed[:i], listed[i][:k] + listed[i][k + 1 :], *listed[i + 1 :])
    return replace(c, candidates=replace(c.candidates, listed=shorter))


def _spoil_multiplier(c: Certificate, rng: np.random.Generator) -> Certificate | None:
    used = [a for a, m in enumerate(c.multipliers) if m.rows]
    if not used:
        return None
    number = used[int(rng.integers(len(used)))]
    own = c.multipliers[number]
    place = int(rng.integers(len(own.rows)))
    rows, values = list(own.rows), list(own.values)
    if rng.random() < 0.3:
        rows[place] += int(rng.choice([-1, 1]))
    else:
        values[place] = _number(values[place], rng)
    changed = Multipliers(tuple(rows), tuple(values))
    sets = (*c.multipliers[:number], changed, *c.multipliers[number + 1 :])
    return replace(c, multipliers=sets)


def _spoil_row(c: Certificate, rng: np.random.Generator) -> Certificate | None:
    if not c.rows:
        return None
    number = int(rng.integers(len(c.rows)))
    row = c.rows[number]
    if rng.random() < 0.3 and len(row.members) == 2:
        changed = NamedRow("edge" if row.kind == "cluster" else "cluster", row.members)
    else:
        members = set(row.members) ^ {int(rng.integers(len(c.incumbent) + 1))}
        changed = NamedRow("cluster", tuple(sorted(members)))
    return replace(c, rows=(*c.rows[:number], changed, *c.rows[number + 1 :]))


SPOILERS: tuple[Callable[[Certificate, np.random.Generator], Certificate | None], ...] = (
    _spoil_bound,
    _spoil_objective,
    _spoil_weight_part,
    _spoil_many_parts,
    _spoil_bits,
    _spoil_tree_entry,
    _spoil_tree_length,
    _spoil_leaf,
    _spoil_sides,
    _spoil_score,
    _spoil_code,
    _spoil_weight,
    _spoil_states,
    _spoil_fingerprint,
    _spoil_incumbent,
    _spoil_rule,
    _spoil_list,
    _spoil_multiplier,
    _spoil_row,
)
