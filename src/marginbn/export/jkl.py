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
from pathlib import Path

import numpy as np

from marginbn.data.text_files import decode_text, format_error, load_bytes
from marginbn.exceptions import FormatError, InputError
from marginbn.export import scanner
from marginbn.files import PathLike, shorten, write_atomic, write_text
from marginbn.problem.array_types import FloatArray, WordArray
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
    reader = _ScoreReader(text, path)
    names, blocks = reader.read()
    masks, scores = [], []
    for i, (own, values) in enumerate(blocks):
        order = sorting_order(own)
        if (own[order[1:]] == own[order[:-1]]).all(axis=1).any():
            reason = f"variable {shorten(names[i])} has a candidate parent set twice"
            raise format_error(path, reader.lines_of[i], reason)
        masks.append(own[order])
        scores.append(values[order])
    if not _has_acyclic_choice(masks):
        raise format_error(path, None, "every choice of parent sets has a directed cycle")
    child = np.repeat(np.arange(len(names), dtype=np.int32), [len(own) for own in masks])
    candidates = CandidateSets(len(names), child, ParentSets(np.concatenate(masks)))
    variables = tuple(Variable(name, ()) for name in names)
    return StructureProblem(candidates, np.concatenate(scores), variables)


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


Block = tuple[WordArray, FloatArray]
"""Parent sets and scores of a variable."""


class _ScoreReader:
    """Lines of words; parents are resolved once all variables are known.

    The candidates of a variable are read together: a million lines take seconds.
    """

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.line = 0
        self.lines_of: list[int] = []
        self._lines = text.split("\n")
        starts = (line.lstrip()[:1] for line in self._lines)
        self._filled = [k for k, start in enumerate(starts) if start and start != "#"]
        self._next = 0  # among the filled lines

    def read(self) -> tuple[list[str], list[Block]]:
        head = self._words("the number of variables")
        n_variables = self._whole(head[0], "the number of variables", MAX_CANDIDATES)
        if len(head) != 1 or n_variables == 0:
            raise self._error("the first line must be the number of variables, 1 or more")
        names: list[str] = []
        blocks: list[list[int]] = []
        try:
            for _ in range(n_variables):
                name, count = self._header()
                names.append(name)
                self.lines_of.append(self.line)
                self._next += count
                blocks.append(self._filled[self._next - count : self._next])
                self._refuse_incomplete(count, blocks)
            if self._next < len(self._filled):
                self.line = self._filled[self._next] + 1
                raise self._error("there is text after the last variable")
        except FormatError:
            for lines in blocks:  # a wrong count shows first where a candidate is none
                self._words_of(lines)
            raise
        index = {name: i for i, name in enumerate(names)}
        if len(index) < n_variables:
            raise format_error(self.path, None, "two variables have the same name")
        return names, [self._block(i, lines, index) for i, lines in enumerate(blocks)]

    def _header(self) -> tuple[str, int]:
        words = self._words("a variable")
        if len(words) != 2:
            raise self._error("expected a variable and the number of its candidate parent sets")
        count = self._whole(words[1], "the number of candidate parent sets", MAX_CANDIDATES)
        if count == 0:
            raise self._error(f"variable {shorten(words[0])} has no candidate parent sets")
        return scanner.unescape(words[0]), count

    def _refuse_incomplete(self, count: int, blocks: list[list[int]]) -> None:
        """Every variable has the candidates that it announces; all together are not too many."""
        if sum(map(len, blocks[:-1])) + count > MAX_CANDIDATES:
            raise self._error(f"there are more than {MAX_CANDIDATES} candidate parent sets")
        if len(blocks[-1]) < count:
            self.line = self._filled[-1] + 1
            raise self._error("the file ends where a candidate parent set should be")

    def _words_of(self, lines: list[int]) -> list[list[str]]:
        """The words of candidates, as many as they say."""
        block = [self._lines[k].split() for k in lines]
        for k, words in zip(lines, block, strict=True):
            if len(words) < 2 or (
                words[1] != str(len(words) - 2)
                and scanner.parse_whole(words[1], MAX_CANDIDATES) != len(words) - 2
            ):
                reason = "expected a score, the number of parents and as many parents"
                raise format_error(self.path, k + 1, reason)
        return block

    def _block(self, child: int, lines: list[int], index: dict[str, int]) -> Block:
        """Parent sets and scores of a variable."""
        block = self._words_of(lines)
        numbers = _Numbers(index)
        sizes = np.fromiter((len(words) - 2 for words in block), np.int64, len(block))
        own = np.repeat(np.arange(len(block)), sizes)
        flat = (word for words in block for word in words[2:])
        members = np.fromiter(map(numbers.__getitem__, flat), np.int64, len(own))
        if (members < 0).any():
            row = own[np.argmax(members < 0)]
            unknown = next(word for word in block[row][2:] if numbers[word] < 0)
            reason = f"there is no variable {shorten(scanner.unescape(unknown))}"
            raise format_error(self.path, lines[row] + 1, reason)
        masks = masks_from_members(own, members, len(block), len(index))
        wrong = (set_sizes(masks) < sizes) | np.isin(np.arange(len(block)), own[members == child])
        if wrong.any():
            reason = "parents must be different and not the variable itself"
            raise format_error(self.path, lines[int(np.argmax(wrong))] + 1, reason)
        texts = [words[0] for words in block]

        return masks, scanner.parse_numbers(
            texts, lambda why, text: format_error(self.path, lines[texts.index(text)] + 1, why)
        )

    def _words(self, what: str) -> list[str]:
        if self._next == len(self._filled):
            raise self._error(f"the file ends where {what} should be")
        self.line = self._filled[self._next] + 1
        self._next += 1
        return self._lines[self.line - 1].split()

    def _whole(self, word: str, what: str, largest: int) -> int:
        number = scanner.parse_whole(word, largest)
        if number is None:
            reason = f"{what} must be a whole number, 0 to {largest}, got {shorten(word)}"
            raise self._error(reason)
        return number

    def _error(self, reason: str) -> FormatError:
        return format_error(self.path, max(self.line, 1), reason)


class _Numbers(dict[str, int]):
    """From a word to the number of the variable behind it, -1 if there is none."""

    def __init__(self, index: dict[str, int]) -> None:
        self._index = index

    def __missing__(self, word: str) -> int:
        number = self._index.get(scanner.unescape(word), -1)
        self[word] = number
        return number
