"""The part of a model file that holds trained networks.

::

    "trained": {"structure": [[], [0], ...],     parents that the search found; the network of the
                                                 file may have more arcs than these
                "models": [{"model": "naive, lines", "ridge": 3.0, "log_loss": ..., "weight": ...}],
                "weights": [1.0],                of the members, which predict together
                "members": [{"network": null,    that of the file, or parents, groups and tables
                             "twin": {...},      parents, groups and tables; null: as the first one
                             "most": 0.6, "half": 0.1, "n_draws": 32,
                             "background": [...], "doubt": 0.007}, ...]}

All networks have the variables of the file's, so these are not written again. Tables are bytes in
base64 (:mod:`marginbn.export.native`, version 3): the floats as they are, half as long as digits.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np

from marginbn import files
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.committee import Committee
from marginbn.exceptions import InputError
from marginbn.export.native import (
    PackedTables,
    check_parents,
    network_from_packed,
    packed_tables,
)
from marginbn.files import Count, MisfitError, encode_number
from marginbn.network.network import BayesianNetwork
from marginbn.parameters.missing_features import MissingFeatures
from marginbn.parameters.trained import TrainedNetwork
from marginbn.problem.structure import Structure

MOST_DRAWS = 4096
"""More would be a file that asks for memory, not for a better answer."""

_Share = Annotated[float, files.Must("lie between 0 and 1", lambda share: 0 < share < 1)]
_Draws = Annotated[int, files.Must(f"be 1 to {MOST_DRAWS}", lambda n: 1 <= n <= MOST_DRAWS)]


@dataclass(frozen=True)
class _Member:
    network: PackedTables | None
    twin: PackedTables | None
    most: float
    half: float
    n_draws: _Draws
    background: tuple[_Share, ...]
    doubt: _Share


@dataclass(frozen=True)
class _PooledModel:
    model: str
    ridge: float
    log_loss: files.Number
    weight: float


@dataclass(frozen=True)
class TrainedShape:
    """What stands in the file."""

    structure: tuple[tuple[Count, ...], ...]
    models: tuple[_PooledModel, ...]
    weights: tuple[float, ...]
    members: tuple[_Member, ...]


def write_trained(classifier: BaseBNClassifier) -> dict[str, object]:
    """The trained networks of a classifier; nothing where parameters are counted."""
    members = getattr(classifier, "trained_", ())
    if not members:
        return {}
    return {
        "trained": {
            "structure": [list(parents) for parents in classifier.result_.structure.parents],
            "models": [_write_model(model) for model in classifier.training_],
            "weights": classifier.weights_.tolist(),
            "members": [_write_member(m, members[0], classifier.network_) for m in members],
        }
    }


def _write_model(model: dict[str, Any]) -> dict[str, Any]:
    return {k: v if isinstance(v, str) else encode_number(v) for k, v in model.items()}


def _write_member(
    member: TrainedNetwork, first: TrainedNetwork, shown: BayesianNetwork
) -> dict[str, object]:
    answers, network = member.answers, member.network
    is_same_twin = member is not first and answers.twin == first.answers.twin
    return {
        "network": None if network == shown else packed_tables(network),
        "twin": None if is_same_twin else packed_tables(answers.twin),
        "most": answers.most,
        "half": answers.half,
        "n_draws": answers.n_draws,
        "background": member.background.tolist(),
        "doubt": float(member.doubt),
    }


def set_trained(classifier: BaseBNClassifier, shape: TrainedShape | None) -> None:
    """Set what predicts, of a classifier whose parameters are trained and no other."""
    if (shape is not None) != (classifier._is_trained() and classifier.network_.n_classes > 1):
        words = "is missing" if shape is None else "must not be there"
        raise MisfitError(f"$.trained: {words} for this {type(classifier).__name__}")
    if shape is None:
        return
    members = _read_members(shape, classifier.network_)
    is_committee = bool(getattr(classifier, "average", False))
    if len(members) > 1 and not is_committee:
        raise MisfitError("$.trained.members: must be one, because average is false")
    try:
        weights = Committee(tuple(m.network for m in members), np.array(shape.weights)).weights
    except InputError as error:
        raise MisfitError(f"$.trained.weights: {error}") from None
    if not is_committee and members[0].network is not classifier.network_:
        raise MisfitError("$.trained.members[0].network: must be null, the network of the file")
    classifier.trained_, classifier.weights_ = members, weights
    classifier.training_ = [asdict(model) for model in shape.models]


def read_structure(shape: TrainedShape | None, network: BayesianNetwork) -> Structure:
    """What the search found: the structure of the network, unless the file has another."""
    if shape is None:
        return network.structure
    check_parents(shape.structure, network.n_variables, "$.trained.structure")
    return Structure(shape.structure)


def _read_members(shape: TrainedShape, shown: BayesianNetwork) -> tuple[TrainedNetwork, ...]:
    members: list[TrainedNetwork] = []
    for i, entry in enumerate(shape.members):
        place = f"$.trained.members[{i}]"
        network, twin = shown, None
        if entry.network is not None:
            network = network_from_packed(entry.network, shown.variables, f"{place}.network")
        if entry.twin is not None:
            twin = network_from_packed(entry.twin, shown.variables, f"{place}.twin")
        elif members:
            twin = members[0].answers.twin
        members.append(_read_member(entry, network, twin, place))
    return tuple(members)


def _read_member(
    entry: _Member, network: BayesianNetwork, twin: BayesianNetwork | None, place: str
) -> TrainedNetwork:
    if twin is None:
        raise MisfitError(f"{place}.twin: must be there, because there is no member before")
    if not all(np.isfinite(table).all() for table in twin.log_tables):
        raise MisfitError(f"{place}.twin: its probabilities must be positive")
    files.check_length(entry.background, network.n_classes, f"{place}.background")
    background = np.array(entry.background)
    if abs(background.sum() - 1.0) > 1e-9:
        raise MisfitError(f"{place}.background: must sum to one")
    try:
        answers = MissingFeatures(network, twin, entry.most, entry.half, entry.n_draws)
    except InputError as error:
        raise MisfitError(f"{place}: {error}") from None
    return TrainedNetwork(answers, background, entry.doubt)
