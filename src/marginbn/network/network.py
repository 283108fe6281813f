"""A Bayesian network: a structure with a conditional probability table per variable.

The joint distribution is P(x) = prod_i P(x_i | parents of i). Tables are kept as logarithms, with
one axis per parent in increasing order, the variable itself last.

All questions are answered exactly (``elimination.py``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginbn.data.texts import part_names, parts_of_date
from marginbn.exceptions import InputError
from marginbn.network import elimination
from marginbn.network.class_joint import ClassJoint
from marginbn.network.elimination import Inference, check_cells, refuse_impossible
from marginbn.network.observed import quoted, state_of
from marginbn.problem.array_types import CodeArray, FloatArray
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.margins import estimate_log_tables
from marginbn.problem.structure import EquivalenceClass, Structure

_ROW_SUM_TOLERANCE = 1e-9
"""How far a row of probabilities may be from one; log and exp of a float cost about 1e-16."""


Observed = Mapping[str | int, Any]
"""Observed value by variable name (or index): a state's label, or a value as the table has it."""


@dataclass(frozen=True, eq=False, repr=False)
class BayesianNetwork:
    """Structure and parameters; variable 0 is the class.

    Parameters
    ----------
    structure
        The directed acyclic graph.
    variables
        Name and state labels of each variable; names are unique, labels within a variable too.
    log_tables
        ``log_tables[i]`` holds log P(i | parents), float64, ``-inf`` for a probability of zero. It
        has an axis per parent, in increasing order, and i on the last. Copied and made read-only.

    Examples
    --------
    The examples of the methods use this network.

    >>> import numpy as np
    >>> rain, grass = Variable("rain", ("no", "yes")), Variable("grass", ("dry", "wet"))
    >>> tables = np.log([0.8, 0.2]), np.log([[0.9, 0.1], [0.25, 0.75]])
    >>> network = BayesianNetwork(Structure(((), (0,))), (rain, grass), tables)
    >>> network.posterior_array("rain", {"grass": "wet"}).round(3).tolist()
    [0.348, 0.652]
    """

    structure: Structure
    variables: tuple[Variable, ...]
    log_tables: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        variables = tuple(self.variables)
        tables = tuple(np.array(t, dtype=np.float64, order="C") for t in self.log_tables)
        if not variables:
            raise InputError("a network needs at least one variable, the class")
        if not self.structure.n_variables == len(variables) == len(tables):
            raise InputError(
                f"structure, variables and log_tables must agree in length, got "
                f"{self.structure.n_variables}, {len(variables)} and {len(tables)}"
            )
        _refuse_repeats("variable names", (v.name for v in variables))
        for variable in variables:
            if not variable.states:
                raise InputError(f"variable {variable.name!r} must have at least one state")
            _refuse_repeats(f"state labels of {variable.name!r}", variable.states)
        for i, table in enumerate(tables):
            shape = tuple(variables[v].arity for v in (*self.structure.parents[i], i))
            _check_table(variables[i].name, table, shape)
            table.flags.writeable = False
        object.__setattr__(self, "variables", variables)
        object.__setattr__(self, "log_tables", tables)

    @classmethod
    def fit(
        cls, data: EncodedData, structure: Structure, smoothing: float = 1.0
    ) -> BayesianNetwork:
        """Estimate the parameters of a structure from data, Laplace-smoothed.

        With ``smoothing=0`` (maximum likelihood) every state of the parents must occur in the
        data, otherwise a row of the table is undefined and an ``InputError`` says which.

        Examples
        --------
        >>> data = EncodedData(np.array([[0, 0], [1, 1]] * 9), np.ones(18), (rain, grass))
        >>> fitted = BayesianNetwork.fit(data, network.structure, smoothing=1.0)
        >>> np.exp(fitted.log_tables[1]).round(3).tolist()  # (9 + 1) / (9 + 2) and the rest
        [[0.909, 0.091], [0.091, 0.909]]
        """
        if not (np.isfinite(smoothing) and smoothing >= 0):
            raise InputError(f"smoothing must be a number >= 0, got {smoothing}")
        with np.errstate(divide="ignore", invalid="ignore"):
            tables = estimate_log_tables(data, structure, smoothing)
        for variable, table in zip(data.variables, tables, strict=True):
            if np.isnan(table).any():
                raise InputError(
                    f"smoothing=0 leaves P({variable.name} | parents) undefined because some "
                    f"state of the parents never occurs; use smoothing > 0"
                )
        return cls(structure, data.variables, tables)

    @property
    def arities(self) -> tuple[int, ...]:
        """Number of states of each variable."""
        return tuple(v.arity for v in self.variables)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(v.name for v in self.variables)

    @property
    def n_variables(self) -> int:
        """Number of variables, class included."""
        return len(self.variables)

    @property
    def n_classes(self) -> int:
        """Number of states of the class."""
        return self.variables[0].arity

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: each row of a table has one less than it has entries."""
        return sum(t.size // t.shape[-1] * (t.shape[-1] - 1) for t in self.log_tables)

    def log_joint(self, codes: ArrayLike) -> FloatArray:
        """Log probability of complete rows: codes (n, n_variables) -> float64 (n,).

        Examples
        --------
        >>> np.exp(network.log_joint([[0, 1], [1, 1]])).round(3).tolist()
        [0.08, 0.15]
        """
        checked = self._checked_codes(codes, least=0)
        total = np.zeros(len(checked))
        for i, parents in enumerate(self.structure.parents):
            total += self.log_tables[i][tuple(checked[:, v] for v in (*parents, i))]
        return total

    def log_joint_per_class(self, codes: ArrayLike) -> FloatArray:
        """Log P(c, z) of every class c with the features z of each row.

        Parameters
        ----------
        codes
            Integers (n, n_variables); -1 marks a missing feature, which is summed out exactly.
            Column 0, the class, is ignored.

        Returns
        -------
        numpy.ndarray
            float64 (n, n_classes).

        Examples
        --------
        >>> np.exp(network.log_joint_per_class([[0, 1], [0, -1]])).round(3).tolist()
        [[0.08, 0.15], [0.8, 0.2]]
        """
        return self._class_joint.evaluate(self._checked_codes(codes, least=-1))

    def log_likelihood(self, data: EncodedData) -> float:
        """Weighted sum of the log probabilities of the samples, in nats.

        Examples
        --------
        >>> data = EncodedData(np.array([[0, 1], [1, 1]]), np.ones(2), network.variables)
        >>> round(float(np.exp(network.log_likelihood(data))), 3)  # 0.08 times 0.15
        0.012
        """
        if data.variables != self.variables:
            raise InputError(
                "data must have the variables of the network, in its order and with its states; "
                f"the network has {quoted(self.names)}, the data {quoted(data.names)}"
            )
        return float(data.weights @ self.log_joint(data.codes))

    def sample_codes(
        self,
        n: int,
        random_state: int | np.random.Generator | None = None,
        evidence: Observed | None = None,
    ) -> CodeArray:
        """Draw ``n`` independent joint states, int32 (n, n_variables).

        With evidence (value by variable name) the draws follow the exact conditional
        distribution. Equal seeds give equal draws.

        Examples
        --------
        >>> draws = network.sample_codes(1000, random_state=0, evidence={"grass": "wet"})
        >>> draws.shape, bool((draws[:, 1] == 1).all())
        ((1000, 2), True)
        """
        if not isinstance(n, int | np.integer) or n < 0:
            raise InputError(f"n must be a whole number >= 0, got {n!r}")
        codes = np.empty((n, self.n_variables), dtype=np.int32)
        rng = _as_generator(random_state)
        if evidence:
            observed = self.encode_evidence(evidence)
            return self._inference.draw(len(codes), observed, rng)
        for i in self.structure.order:
            parents = tuple(codes[:, p] for p in self.structure.parents[i])
            codes[:, i] = elimination.draw_states(self.log_tables[i], parents, len(codes), rng)
        return codes

    def posterior_array(
        self, query: str | int | Sequence[str | int], evidence: Observed | None = None
    ) -> FloatArray:
        """Probability of the joint states of some variables given the evidence, without labels.

        Parameters
        ----------
        query
            A variable, or several, by name or index.
        evidence
            Value by variable name, for any subset of the variables: a state's label or a value as
            the table has it, so that ``{"age": 53}`` finds its bin.

        Returns
        -------
        numpy.ndarray
            float64, one axis per queried variable in the order of ``query``; sums to one. An
            observed variable may be asked for and has its observed state with probability one.

        Examples
        --------
        >>> network.posterior_array(["rain", "grass"]).round(3).tolist()
        [[0.72, 0.08], [0.05, 0.15]]
        """
        asked = self._query_indices(query)
        observed = self.encode_evidence(evidence)
        shape = [self.variables[v].arity for v in sorted(asked)]
        check_cells(math.prod(shape))
        free = sorted(v for v in asked if v not in observed)
        joint = self._inference.log_joint_of(free, observed)
        result = np.zeros(shape)
        result[tuple(observed.get(v, slice(None)) for v in sorted(asked))] = _normalised(joint)
        return np.ascontiguousarray(np.transpose(result, np.argsort(np.argsort(asked))))

    def posterior(
        self, query: str | int | Sequence[str | int], evidence: Observed | None = None
    ) -> dict[Any, float]:
        """Probability of the states of a variable, or of several, given the evidence.

        The tables of this network answer. A classifier with trained tables has an answer of its own
        about the class: ``clf.posterior(evidence)``, which is also that of ``predict_proba``.

        Parameters are those of :meth:`posterior_array`. Keys are states; of several variables,
        tuples of their states.

        Examples
        --------
        >>> {state: round(p, 3) for state, p in network.posterior("rain").items()}
        {'no': 0.8, 'yes': 0.2}
        >>> round(network.posterior(["rain", "grass"])["no", "dry"], 2)
        0.72
        """
        asked = [self.variables[i] for i in self._query_indices(query)]
        values = self.posterior_array(query, evidence).ravel().tolist()
        if isinstance(query, str | int | np.integer):
            return dict(zip(asked[0].states, values, strict=True))
        return dict(zip(product(*(v.states for v in asked)), values, strict=True))

    def table(self, variable: str | int) -> dict[Any, Any]:
        """The conditional probability table of a variable, given by name or index, with labels.

        Without parents a dict from state to probability; with parents a dict from the tuple of
        their states to such a dict.

        Examples
        --------
        >>> for given, row in network.table("grass").items():
        ...     print(given, {state: round(p, 2) for state, p in row.items()})
        ('no',) {'dry': 0.9, 'wet': 0.1}
        ('yes',) {'dry': 0.25, 'wet': 0.75}
        """
        i = self.variable_index(variable)
        parents, states = self.structure.parents[i], self.variables[i].states
        rows = np.exp(self.log_tables[i]).reshape(-1, len(states))
        given = list(product(*(self.variables[p].states for p in parents)))
        tables = {
            key: dict(zip(states, row.tolist(), strict=True))
            for key, row in zip(given, rows, strict=True)
        }
        return tables if parents else tables[()]

    def sample(
        self,
        n: int,
        random_state: int | np.random.Generator | None = None,
        evidence: Observed | None = None,
    ) -> dict[str, list[str]]:
        """Draw ``n`` independent rows, those of :meth:`sample_codes`, with labels by column.

        Examples
        --------
        >>> network.sample(3, random_state=0, evidence={"grass": "wet"})["grass"]
        ['wet', 'wet', 'wet']
        """
        codes = self.sample_codes(n, random_state, evidence)
        return {
            v.name: np.array(v.states, dtype=object)[codes[:, i]].tolist()
            for i, v in enumerate(self.variables)
        }

    def marginals(self, evidence: Observed | None = None) -> dict[str, FloatArray]:
        """Posterior of every variable on its own, by name, from one pass forth and one back.

        Examples
        --------
        >>> {name: p.round(3).tolist() for name, p in network.marginals().items()}
        {'rain': [0.8, 0.2], 'grass': [0.77, 0.23]}
        """
        observed = self.encode_evidence(evidence)
        log_marginals = self._inference.log_marginals(observed)
        certain = {i: np.eye(self.arities[i])[state] for i, state in observed.items()}
        own = {i: _normalised(values) for i, values in log_marginals.items()} | certain
        return {name: own[i] for i, name in enumerate(self.names)}

    def log_evidence(self, evidence: Observed | None = None) -> float:
        """Log probability of the evidence; ``-inf`` where it is impossible, 0 without any.

        Examples
        --------
        >>> round(float(np.exp(network.log_evidence({"grass": "wet"}))), 3)
        0.23
        """
        return float(self._inference.log_joint_of((), self.encode_evidence(evidence)))

    def most_probable_explanation(
        self, evidence: Observed | None = None
    ) -> tuple[dict[str, str], float]:
        """The most probable joint state of all variables that agrees with the evidence.

        Returns
        -------
        assignment
            State label by variable name, for all variables, the observed ones included; one of
            them if several are equally probable.
        log_probability
            Log joint probability of that assignment.

        Examples
        --------
        >>> network.most_probable_explanation({"grass": "wet"})[0]
        {'rain': 'yes', 'grass': 'wet'}
        """
        found = self._inference.most_probable(self.encode_evidence(evidence))
        codes = [found[i] for i in range(self.n_variables)]
        states = {v.name: v.states[k] for v, k in zip(self.variables, codes, strict=True)}
        return states, float(self.log_joint([codes])[0])

    def d_separated(
        self,
        a: str | int | Sequence[str | int],
        b: str | int | Sequence[str | int],
        given: str | int | Sequence[str | int] = (),
    ) -> bool:
        """Whether the graph implies that variables are independent given others.

        Examples
        --------
        >>> network.d_separated("rain", "grass")
        False
        """
        listed = ([v] if isinstance(v, str | int) else v for v in (a, b, given))
        return self.structure.d_separated(*([self.variable_index(v) for v in s] for s in listed))

    def markov_blanket(self, variable: str | int) -> tuple[str, ...]:
        """Names of parents, children and other parents of the children of a variable.

        Examples
        --------
        >>> network.markov_blanket("rain")
        ('grass',)
        """
        blanket = self.structure.markov_blanket(self.variable_index(variable))
        return tuple(self.names[v] for v in blanket)

    def cpdag(self) -> EquivalenceClass[str]:
        """The equivalence class of the graph, by name; see :meth:`Structure.cpdag`.

        Examples
        --------
        >>> network.cpdag().undirected  # data alone do not determine the direction
        (('rain', 'grass'),)
        """
        graph = self.structure.cpdag()
        directed = tuple((self.names[a], self.names[b]) for a, b in graph.directed)
        undirected = tuple((self.names[a], self.names[b]) for a, b in graph.undirected)
        return EquivalenceClass(self.n_variables, directed, undirected)

    def do(self, interventions: Observed) -> BayesianNetwork:
        """The network after variables are *set* to states, whatever their parents are.

        Arcs into them are cut and their tables are certain (Pearl's do-operator). Ask
        the result as any network. Effects are causal only as far as the arcs are.

        Examples
        --------
        >>> watered = network.do({"grass": "wet"})  # which makes no rain
        >>> watered.posterior_array("rain").round(3).tolist()
        [0.8, 0.2]
        """
        states = self.encode_evidence(interventions)
        parents, tables = list(self.structure.parents), list(self.log_tables)
        for i, state in states.items():
            parents[i] = ()
            tables[i] = np.full(self.arities[i], -np.inf)
            tables[i][state] = 0.0
        return BayesianNetwork(Structure(tuple(parents)), self.variables, tuple(tables))

    def variable_index(self, variable: str | int) -> int:
        """Index of a variable given by name (or by index, which is only checked).

        Examples
        --------
        >>> network.variable_index("grass")
        1
        """
        if isinstance(variable, str):
            if variable in self._index:
                return self._index[variable]
            raise InputError(f"unknown variable {variable!r}; known are {quoted(self.names)}")
        if isinstance(variable, int | np.integer) and not isinstance(variable, bool):
            if 0 <= variable < self.n_variables:
                return int(variable)
            raise InputError(
                f"variable index must lie in 0..{self.n_variables - 1}, got {variable}"
            )
        raise InputError(f"a variable is given by its name or index, got {variable!r}")

    def encode_evidence(self, evidence: Observed | None) -> dict[int, int]:
        """Evidence {variable name: value} as {variable index: state index}.

        A value is the label of a state or a value of the table. A number falls into its bin; 3 is
        the state "3", True the state "True", None the state for missing values. A date is that of a
        column which became year, month and weekday.

        Examples
        --------
        >>> network.encode_evidence({"grass": "wet"})
        {1: 1}
        """
        observed: dict[int, int] = {}
        for name, value in self.plain_evidence(evidence):
            i = self.variable_index(name)
            if i in observed:
                raise InputError(f"evidence mentions variable {self.names[i]!r} twice")
            observed[i] = state_of(self.variables[i], value)
        return observed

    def plain_evidence(self, evidence: Observed | None) -> Iterator[tuple[str | int, Any]]:
        """Names and values of evidence, a date taken apart.

        Examples
        --------
        >>> dict(network.plain_evidence({"grass": "wet"}))
        {'grass': 'wet'}
        """
        if evidence is None:
            return
        if not isinstance(evidence, Mapping):
            raise InputError(
                f"evidence must map variable names to values, got {type(evidence).__name__}"
            )
        for name, value in evidence.items():
            parts = part_names(name) if isinstance(name, str) else ()
            if name not in self.names and parts and set(parts) <= set(self.names):
                yield from parts_of_date(str(name), value).items()
            else:
                yield name, value

    def __eq__(self, other: object) -> bool:
        """Equal structure and variables, and every table entry the same float."""
        if not isinstance(other, BayesianNetwork):
            return NotImplemented
        same = (self.structure, self.variables) == (other.structure, other.variables)
        return same and all(map(np.array_equal, self.log_tables, other.log_tables))

    def __hash__(self) -> int:
        return hash((self.structure, self.variables))

    def __repr__(self) -> str:
        return (
            f"BayesianNetwork({self.n_variables} variables, {len(self.structure.arcs)} arcs, "
            f"{self.n_parameters} parameters)"
        )

    def _repr_html_(self) -> str:
        """The picture that notebooks show."""
        from marginbn.network.svg import draw_figure

        return draw_figure(self.structure, self.variables, repr(self))

    def __reduce__(self) -> tuple[object, ...]:
        # Through the constructor: a copy is checked and read-only again, and carries no caches.
        return BayesianNetwork, (self.structure, self.variables, self.log_tables)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _class_joint(self) -> ClassJoint:
        return ClassJoint.build(self.structure, self.arities, self.log_tables)

    @cached_property
    def _inference(self) -> Inference:
        return Inference(self.structure, self.arities, self.log_tables)

    def _checked_codes(self, codes: ArrayLike, least: int) -> NDArray[np.integer]:
        array = np.asarray(codes)
        if array.ndim != 2 or array.shape[1] != self.n_variables:
            raise InputError(f"codes must have shape (n, {self.n_variables}), got {array.shape}")
        if not np.issubdtype(array.dtype, np.integer):
            raise InputError(f"codes must be integers, got dtype {array.dtype}")
        first = -least  # where features may be missing, the class is ignored
        used, arities = array[:, first:], self.arities[first:]
        low, high = used.min(axis=0, initial=0), used.max(axis=0, initial=0)
        for i in np.flatnonzero((low < least) | (high >= arities)).tolist():
            raise InputError(
                f"codes of variable {first + i} must lie in 0..{arities[i] - 1}, got "
                f"{low[i] if low[i] < least else high[i]}; log_joint_per_class takes -1 for a "
                "missing feature"
            )
        return array

    def _query_indices(self, query: str | int | Sequence[str | int]) -> list[int]:
        names = [query] if isinstance(query, str | int | np.integer) else list(query)
        asked = [self.variable_index(name) for name in names]
        if not asked or len(set(asked)) != len(asked):
            raise InputError(
                f"query must name at least one variable, none of them twice, got {query}"
            )
        return asked


def _normalised(log_values: FloatArray) -> FloatArray:
    peak = float(log_values.max())
    refuse_impossible(peak)
    values = np.exp(log_values - peak)
    return np.asarray(values / values.sum())


# --- what is refused ---


def _refuse_repeats(what: str, labels: Iterable[str]) -> None:
    repeated = [label for label, count in Counter(labels).items() if count > 1]
    if repeated:
        raise InputError(f"{what} must be unique, repeated: {quoted(repeated)}")


def _check_table(name: str, table: FloatArray, shape: tuple[int, ...]) -> None:
    """Refuse a table that is no conditional distribution of the given shape."""
    if table.shape != shape:
        raise InputError(f"log table of {name!r} must have shape {shape}, got {table.shape}")
    if np.isnan(table).any() or np.isposinf(table).any():
        raise InputError(f"log table of {name!r} must hold log probabilities, got NaN or inf")
    with np.errstate(over="ignore"):
        excess = np.abs(np.exp(table).sum(axis=-1) - 1.0).max()
    if excess > _ROW_SUM_TOLERANCE:
        raise InputError(
            f"each row of the table of {name!r} must sum to 1; the largest error is {excess:.3g}"
        )


def _as_generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """What a user gives as ``random_state``, as a generator."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state must be None, a whole number >= 0 or a numpy Generator, "
            f"got {random_state!r}"
        ) from None
