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

import numpy as np

from marginbn.data.text_files import format_error
from marginbn.exceptions import FormatError, InputError
from marginbn.export import scanner
from marginbn.files import PathLike, shorten, write_atomic, write_text
from marginbn.problem.array_types import FloatArray, IntArray, WordArray
from marginbn.problem.candidates import MAX_CANDIDATES, CandidateSets
from marginbn.problem.encoded import Variable
from marginbn.problem.masks import (
    ParentSets,
    masks_from_members,
    masks_of,
    set_sizes,
    sorting_order,
)
from marginbn.problem.problem import StructureProblem


def save_scores(problem: StructureProblem, path: PathLike) -> None:
    """Write the local scores of a linear problem for GOBNILP and other exact learners.

    There is an example in :func:`load_scores`.

    Parameters
    ----------
    problem
        A problem without margin rows, as :func:`marginbn.linear_problem` makes it.
    path
        The file; packed if its name ends in .gz.
    """
    text = problem_to_jkl(problem)
    if os.fspath(path).lower().endswith(".gz"):
        write_atomic(path, gzip.compress(text.encode(), mtime=0))
    else:
        write_text(path, text)


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
    return problem_from_jkl(scanner.read_text(path), os.fspath(path))


def problem_to_jkl(problem: StructureProblem) -> str:
    """Local scores as text; :func:`problem_from_jkl` is the inverse."""
    if not problem.is_linear:
        raise InputError(
            "problem must be linear, with a score such as MDL or BDeu: margins are no local scores"
        )
    words = [scanner.escape(v.name, scanner.NO_WORD) for v in problem.variables]
    candidates = problem.candidates
    lines = [str(problem.n_variables)]
    for i in range(problem.n_variables):
        group = slice(*candidates.offsets[i : i + 2].tolist())
        lines.append(f"{words[i]} {group.stop - group.start}")
        sets = ParentSets(candidates.masks[group])
        for score, parents in zip(problem.linear[group].tolist(), sets, strict=True):
            lines.append(" ".join([repr(score), str(len(parents)), *(words[p] for p in parents)]))
    return "\n".join([*lines, ""])


def problem_from_jkl(text: str, path: str = "local scores") -> StructureProblem:
    """Read a linear problem; a :class:`FormatError` names ``path``, line and reason."""
    return _ScoreReader(text, path).read()


class _ScoreReader:
    """Lines of words; words are numbered as they come and resolved once all variables are known."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.line = 1  # the last one with words
        words = (line.split() for line in text.split("\n"))
        self._filled = ((k, w) for k, w in enumerate(words, 1) if w and w[0][0] != "#")

    def read(self) -> StructureProblem:
        head = self._words("the number of variables")
        n_variables = self._whole(head[0], "the number of variables")
        if len(head) != 1 or n_variables == 0:
            raise self._error("the first line must be the number of variables, 1 or more")
        self._names: list[str] = []
        self._counts: list[int] = []  # candidates of each variable
        self._header_lines: list[int] = []
        self._numbers: dict[str, int] = {}  # of words that name parents
        self._lines: list[int] = []  # of the candidates
        self._sizes: list[int] = []
        self._members: list[int] = []  # words by number
        scores = [self._block() for _ in range(n_variables)]
        self.line, _ = next(self._filled, (0, None))
        if self.line:
            raise self._error("there is text after the last variable")
        if len(set(self._names)) < n_variables:
            raise format_error(self.path, None, "two variables have the same name")
        child = np.repeat(np.arange(n_variables), self._counts)
        starts = np.cumsum(self._counts)[:-1]
        blocks, order = np.split(self._masks(child), starts), []
        for i, own in enumerate(blocks):
            order.append(sorting_order(own))
            blocks[i] = own[order[i]]
            if (blocks[i][1:] == blocks[i][:-1]).all(axis=1).any():
                reason = f"variable {shorten(self._names[i])} has a candidate parent set twice"
                raise format_error(self.path, self._header_lines[i], reason)
        if not _has_acyclic_choice(blocks):
            reason = "every choice of parent sets has a directed cycle"
            raise format_error(self.path, None, reason)
        masks = ParentSets(np.concatenate(blocks))
        candidates = CandidateSets(n_variables, child.astype(np.int32), masks)
        variables = tuple(Variable(name, ()) for name in self._names)
        linear = np.concatenate([own[k] for own, k in zip(scores, order, strict=True)])
        return StructureProblem(candidates, linear, variables)

    def _block(self) -> FloatArray:
        """Read a variable with its candidates; their scores."""
        words = self._words("a variable")
        if len(words) != 2:
            raise self._error("expected a variable and the number of its candidate parent sets")
        count = self._whole(words[1], "the number of candidate parent sets")
        if count == 0:
            raise self._error(f"variable {shorten(words[0])} has no candidate parent sets")
        if len(self._lines) + count > MAX_CANDIDATES:
            raise self._error(f"there are more than {MAX_CANDIDATES} candidate parent sets")
        self._names.append(scanner.unescape(words[0]))
        self._counts.append(count)
        self._header_lines.append(self.line)
        first, texts = len(self._lines), []
        for _ in range(count):
            score, *words = self._words("a candidate parent set")
            if not words or words[0] != str(len(words) - 1):
                raise self._error("expected a score, the number of parents and as many parents")
            texts.append(score)
            self._lines.append(self.line)
            self._sizes.append(len(words) - 1)
            self._members += [self._numbers.setdefault(w, len(self._numbers)) for w in words[1:]]

        def refuse(why: str, text: str) -> FormatError:
            return format_error(self.path, self._lines[first + texts.index(text)], why)

        return scanner.parse_numbers(texts, refuse)

    def _masks(self, child: IntArray) -> WordArray:
        """The candidates as masks."""
        index = {name: i for i, name in enumerate(self._names)}
        words = list(self._numbers)
        variables = np.array([index.get(scanner.unescape(w), -1) for w in words], dtype=np.int64)
        numbers = np.array(self._members, dtype=np.int64)
        row, member = np.repeat(np.arange(len(child)), self._sizes), variables[numbers]
        if (member < 0).any():
            first = int(np.argmax(member < 0))
            reason = f"there is no variable {shorten(scanner.unescape(words[numbers[first]]))}"
            raise format_error(self.path, self._lines[row[first]], reason)
        masks = masks_from_members(row, member, len(child), len(index))
        wrong = set_sizes(masks) < self._sizes
        wrong[row[member == child[row]]] = True
        if wrong.any():
            reason = "parents must be different and not the variable itself"
            raise format_error(self.path, self._lines[int(np.argmax(wrong))], reason)
        return masks

    def _words(self, what: str) -> list[str]:
        self.line, words = next(self._filled, (self.line, []))
        if not words:
            raise self._error(f"the file ends where {what} should be")
        return words

    def _whole(self, word: str, what: str) -> int:
        if word.isascii() and word.isdigit() and len(word) <= 18 and int(word) <= MAX_CANDIDATES:
            return int(word)
        reason = f"{what} must be a whole number, 0 to {MAX_CANDIDATES}, got {shorten(word)}"
        raise self._error(reason)

    def _error(self, reason: str) -> FormatError:
        return format_error(self.path, self.line, reason)


def _has_acyclic_choice(groups: list[WordArray]) -> bool:
    """Whether variables can be put in an order in which each has a set among those before it.

    Placing as many as possible never hurts, so placing until nothing changes tells.
    """
    waiting = list(range(len(groups)))
    placed = np.zeros(groups[0].shape[1], dtype=np.uint64)
    while waiting:
        ready = [i for i in waiting if not (groups[i] & ~placed).any(axis=1).all()]
        if not ready:
            return False
        placed |= np.bitwise_or.reduce(masks_of([ready], len(groups)), axis=0)
        waiting = [i for i in waiting if i not in set(ready)]
    return True
