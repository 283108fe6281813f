r"""Local scores in the format of Jaakkola and GOBNILP (``.jkl``, ``.jaa``, ``.scores``).

::

    2                     number of variables
    rain 2                a variable and the number of its candidate parent sets
    -12.5 0               score, number of parents, parents
    -11.25 1 grass
    grass 1
    -20.125 0

The score of a structure is the sum over its variables and is maximised, which is a
:class:`~marginbn.StructureProblem` without margin rows. Names are words: white space and the like
have the escape of :mod:`marginbn.export.scanner`. The format has no states, so variables
that were read have none. The first variable is the class. Scores are written with the digits that
read back to the same float.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from marginbn.data.encode import Variable
from marginbn.data.text import decode_text, format_error, load_bytes
from marginbn.exceptions import FormatError, InputError
from marginbn.export import scanner
from marginbn.files import PathLike, shorten, write_atomic, write_text
from marginbn.problem.candidates import MAX_CANDIDATES, CandidateSets
from marginbn.problem.problem import StructureProblem


def save_scores(problem: StructureProblem, path: PathLike, *, names: bool = True) -> None:
    """Write the local scores of a linear problem for GOBNILP and other exact learners.

    There is an example in :func:`load_scores`.

    Parameters
    ----------
    problem
        A problem without margin rows, as :func:`marginbn.linear_problem` makes it.
    path
        The file; packed if its name ends in .gz.
    names
        Whether variables have their names, or their indices as in the oldest files.
    """
    text = problem_to_jkl(problem, names=names)
    if _is_packed(path):
        write_atomic(path, gzip.compress(text.encode(), mtime=0))
    else:
        write_text(path, text)


def _is_packed(path: PathLike) -> bool:
    return os.fspath(path).lower().endswith(".gz")


def load_scores(path: PathLike) -> StructureProblem:
    """Read local scores, also gzipped; the problem is ready for :func:`marginbn.solve_structure`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from marginbn import StructureProblem, Variable, enumerate_candidates
    >>> from marginbn import load_scores, save_scores, solve_structure
    >>> variables = (Variable("rain", ("no", "yes")), Variable("grass", ("dry", "wet")))
    >>> scores = np.array([-3.0, -2.0, -5.0, -1.0])
    >>> problem = StructureProblem(enumerate_candidates(2, 1), scores, variables)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "garden.jkl"
    ...     save_scores(problem, path)
    ...     path.read_text().splitlines()[:4]
    ...     solve_structure(load_scores(path)).objective
    ['2', 'rain 2', '-3.0 0', '-2.0 1 grass']
    -4.0
    """
    if _is_packed(path):
        text = decode_text(load_bytes(Path(path)), os.fspath(path))
    else:
        text = scanner.read_text(path)
    return problem_from_jkl(text, os.fspath(path))


def problem_to_jkl(problem: StructureProblem, *, names: bool = True) -> str:
    """Local scores as text; :func:`problem_from_jkl` is the inverse."""
    if not problem.is_linear:
        raise InputError(
            "problem must be linear, with a score such as MDL or BDeu: margins are no local scores"
        )
    words = [
        scanner.escape(v.name, scanner.NO_WORD) if names else str(i)
        for i, v in enumerate(problem.variables)
    ]
    candidates = problem.candidates
    lines = [str(problem.n_variables)]
    for i in range(problem.n_variables):
        group = candidates.group(i)
        lines.append(f"{words[i]} {len(group)}")
        for k in group:
            parents = candidates.parents[k]
            score = repr(float(problem.linear[k]))
            lines.append(" ".join([score, str(len(parents)), *(words[p] for p in parents)]))
    return "\n".join([*lines, ""])


@dataclass(frozen=True)
class _Candidate:
    score: float
    parents: tuple[int, ...]


def problem_from_jkl(text: str, path: str = "local scores") -> StructureProblem:
    """Read a linear problem; a :class:`FormatError` names ``path``, line and reason."""
    reader = _Reader(text, path)
    names, groups = reader.read()
    for i, group in enumerate(groups):
        group.sort(key=lambda c: (len(c.parents), c.parents))
        if any(a.parents == b.parents for a, b in pairwise(group)):
            reason = f"variable {shorten(names[i])} has a candidate parent set twice"
            raise format_error(path, reader.lines_of[i], reason)
    if not _has_acyclic_choice([[c.parents for c in group] for group in groups]):
        raise format_error(path, None, "every choice of parent sets has a directed cycle")
    child = np.repeat(np.arange(len(names), dtype=np.int32), [len(g) for g in groups])
    flat = [candidate for group in groups for candidate in group]
    candidates = CandidateSets(len(names), child, tuple(c.parents for c in flat))
    scores = np.array([c.score for c in flat], dtype=np.float64)
    return StructureProblem(candidates, scores, tuple(Variable(name, ()) for name in names))


def _has_acyclic_choice(groups: Sequence[Sequence[tuple[int, ...]]]) -> bool:
    """Whether variables can be put in an order in which each has a set among those before it.

    A set waits for its parents; a variable is placed when one of its sets waits for none. Placing
    as many as possible never hurts, so one pass tells.
    """
    waiting: list[list[tuple[int, list[int]]]] = [[] for _ in groups]
    ready = []
    for child, group in enumerate(groups):
        if any(not parents for parents in group):
            ready.append(child)
            continue
        for parents in group:
            entry = (child, [len(parents)])
            for parent in parents:
                waiting[parent].append(entry)
    placed = set(ready)
    while ready:
        for child, left in waiting[ready.pop()]:
            left[0] -= 1
            if left[0] == 0 and child not in placed:
                placed.add(child)
                ready.append(child)
    return len(placed) == len(groups)


class _Reader:
    """Lines of words; parents are resolved once all variables are known."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.line = 0
        self.lines_of: list[int] = []
        self._lines = self._filled_lines(text)

    def read(self) -> tuple[list[str], list[list[_Candidate]]]:
        head = self._words("the number of variables")
        n_variables = self._whole(head[0], "the number of variables", MAX_CANDIDATES)
        if len(head) != 1 or n_variables == 0:
            raise self._error("the first line must be the number of variables, 1 or more")
        names, raw = [], []
        n_candidates = 0
        for _ in range(n_variables):
            name, count = self._header()
            n_candidates += count
            if n_candidates > MAX_CANDIDATES:
                raise self._error(f"there are more than {MAX_CANDIDATES} candidate parent sets")
            names.append(name)
            self.lines_of.append(self.line)
            raw.append([self._candidate() for _ in range(count)])
        if next(self._lines, None) is not None:
            raise self._error("there is text after the last variable")
        index = {name: i for i, name in enumerate(names)}
        if len(index) < n_variables:
            raise format_error(self.path, None, "two variables have the same name")
        return names, [self._resolve(i, group, index) for i, group in enumerate(raw)]

    def _header(self) -> tuple[str, int]:
        words = self._words("a variable")
        if len(words) != 2:
            raise self._error("expected a variable and the number of its candidate parent sets")
        count = self._whole(words[1], "the number of candidate parent sets", MAX_CANDIDATES)
        if count == 0:
            raise self._error(f"variable {shorten(words[0])} has no candidate parent sets")
        return scanner.unescape(words[0]), count

    def _candidate(self) -> tuple[int, float, list[str]]:
        words = self._words("a candidate parent set")
        if len(words) < 2 or scanner.parse_whole(words[1], MAX_CANDIDATES) != len(words) - 2:
            raise self._error("expected a score, the number of parents and as many parents")
        [score] = scanner.parse_numbers(words[:1], lambda why, _: self._error(why)).tolist()
        return self.line, score, [scanner.unescape(word) for word in words[2:]]

    def _resolve(
        self, child: int, group: list[tuple[int, float, list[str]]], index: dict[str, int]
    ) -> list[_Candidate]:
        candidates = []
        for line, score, names in group:
            unknown = [name for name in names if name not in index]
            if unknown:
                reason = f"there is no variable {shorten(unknown[0])}"
                raise format_error(self.path, line, reason)
            parents = tuple(sorted(index[name] for name in names))
            if child in parents or len(set(parents)) < len(parents):
                reason = "parents must be different and not the variable itself"
                raise format_error(self.path, line, reason)
            candidates.append(_Candidate(score, parents))
        return candidates

    def _filled_lines(self, text: str) -> Iterator[list[str]]:
        for number, line in enumerate(text.split("\n"), start=1):
            words = line.split()
            if words and not words[0].startswith("#"):
                self.line = number
                yield words

    def _words(self, what: str) -> list[str]:
        words = next(self._lines, None)
        if words is None:
            raise self._error(f"the file ends where {what} should be")
        return words

    def _whole(self, word: str, what: str, largest: int) -> int:
        number = scanner.parse_whole(word, largest)
        if number is None:
            reason = f"{what} must be a whole number, 0 to {largest}, got {shorten(word)}"
            raise self._error(reason)
        return number

    def _error(self, reason: str) -> FormatError:
        return format_error(self.path, max(self.line, 1), reason)
