"""What the library advises, in the words of the command line.

Messages of the library name arguments of Python: ``missing='state' keeps them``. A reader of the
command line types ``--missing state``.
"""

from __future__ import annotations

import ast
import re
import shlex

OPTION_NAMES = {
    "required_arcs": "--require",
    "forbidden_arcs": "--forbid",
    "tiers": "--tier",
    "gap_tolerance": "--gap",
    "gamma": "--p",
    "gammas": "--p",
    "n_jobs": "--jobs",
    "dask": "--jobs",
    "n_folds": "--folds",
    "fold_time_limit": "--fold-time",
}
"""Options whose name is not that of the parameter."""

SAME_NAMES = (
    "class_weight",
    "encoding",
    "max_parents",
    "missing",
    "score",
    "time_limit",
)
"""Those of the others that messages speak of."""

_WITH_VALUES = "|".join((*SAME_NAMES, "gap_tolerance", "n_jobs"))
_UNMISTAKABLE = "|".join(name for name in (*SAME_NAMES, *OPTION_NAMES) if "_" in name)
_START, _END = r"(?<![\w'\"`.-])", r"(?![\w'\"`=.-]\w|[\w'\"`=])"
_CHOICE = r"'[a-z0-9-]+'"
_KIND = r"column_kinds=\{'(?P<column>[^']*)': '(?P<kind>[a-z-]+)'\}"
_TEXT = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_ARGUMENT = re.compile(
    rf"{_START}{_KIND}|{_START}(?P<name>{_WITH_VALUES})="
    rf"(?P<values>{_CHOICE}(?:(?:, | or ){_CHOICE})*|[\d.e+-]*\d)"
    rf"|{_START}(?P<work>search=Search\(work_limit=\.\.\.\))"
    rf"|{_START}X\.drop\(columns=(?P<dropped>\[{_TEXT}(?:, {_TEXT})*\])\)"
    rf"|{_START}delimiter=(?P<character>'.')"
    rf"|{_START}(?P<alone>{_UNMISTAKABLE}){_END}"
)


def option_name(parameter: str) -> str:
    """The option of a parameter.

    >>> option_name("time_limit"), option_name("n_jobs")
    ('--time-limit', '--jobs')
    """
    return OPTION_NAMES.get(parameter, f"--{parameter.replace('_', '-')}")


def in_options(message: str) -> str:
    """A message with options in place of arguments; names in quotes are left alone.

    >>> in_options("use missing='drop', 'state' or 'auto'; a larger time_limit helps")
    'use --missing drop, state or auto; a larger --time-limit helps'
    >>> in_options("column_kinds={'paid on': 'date'} makes year, month, weekday")
    "--kind 'paid on=date' makes year, month, weekday"
    >>> in_options("give delimiter=' '")
    "give --delimiter ' '"
    """
    return _ARGUMENT.sub(_as_option, message)


def _as_option(found: re.Match[str]) -> str:
    if found["alone"]:
        return option_name(found["alone"])
    if found["work"]:
        return "--method max-margin --time-limit SECONDS"
    if found["dropped"]:
        names = ast.literal_eval(found["dropped"])
        return " ".join(f"--drop {shlex.quote(name)}" for name in names)
    if found["character"]:
        return f"--delimiter {found['character']}"
    if found["kind"]:
        return f"--kind {shlex.quote(found['column'] + '=' + found['kind'])}"
    return f"{option_name(found['name'])} {found['values'].replace(chr(39), '')}"
