"""Scores, margins, formats, solvers and defaults exist once; everything else agrees with them.

The command line and the docstrings write names and defaults down, so that help needs no heavy
import and a reader no search. Each of them is compared here with the registry or the signature that
decides.
"""

from __future__ import annotations

import inspect
import math
import re
from typing import Any, get_args

import pytest

import marginbn
from marginbn import classifiers
from marginbn.classifiers.base import ParameterKind
from marginbn.classifiers.deployment import DEPLOYMENTS
from marginbn.classifiers.max_margin_cv import PAPER_PROBABILITIES, SCORINGS
from marginbn.classifiers.model_file import _ESTIMATORS
from marginbn.cli import fit, learn, model, options, problems
from marginbn.cli.running import command
from marginbn.data.labelled import MissingPolicy
from marginbn.export import formats
from marginbn.problem.candidates import ClassArcs
from marginbn.problem.margins import MarginKind
from marginbn.problem.scores import SCORES, ScoreName
from marginbn.report import page
from marginbn.solvers import solver_names
from marginbn.solvers.run import RowsInUse
from marginbn.solvers.solve import SolverName

CLASSIFIERS = [
    getattr(classifiers, name) for name in classifiers.__all__ if name != "BaseBNClassifier"
]
NAMES = {
    "score": tuple(SCORES),
    "margin": get_args(MarginKind),
    "class_arcs": get_args(ClassArcs),
    "missing": get_args(MissingPolicy),
    "parameters": get_args(ParameterKind),
    "identifiers": ("ignore", "use"),
    "rows": get_args(RowsInUse),
    "scoring": tuple(SCORINGS),
    "solver": ("auto", *solver_names()),
    "format": (*formats.NETWORK_FORMATS, *DEPLOYMENTS),
}
"""Names by the parameter or option that takes them, from the registries."""


def test_types_name_what_the_registries_hold() -> None:
    """A type checker accepts the names that work, and no others."""
    assert get_args(ScoreName) == tuple(SCORES)
    assert get_args(SolverName) == ("auto", *solver_names())


def defaults_of(function: Any) -> dict[str, Any]:
    """Parameters that have a default."""
    signature = inspect.signature(function).parameters
    return {k: p.default for k, p in signature.items() if p.default is not p.empty}


def option_help(function: Any, name: str) -> str:
    (info,) = inspect.signature(command(function)).parameters[name].annotation.__metadata__
    return str(info.help)


def default_in_help(text: str) -> str:
    """What a help text says in brackets at its end."""
    match = re.search(r"\[default: ([^\]]+)\]$", text)
    assert match, text
    return match[1]


@pytest.mark.parametrize(
    ("choices", "name"),
    [
        (options.Score, "score"),
        (options.Missing, "missing"),
        (options.Solver, "solver"),
        (model.Format, "format"),
    ],
)
def test_choices_of_the_command_line_are_the_registries(choices: Any, name: str) -> None:
    assert get_args(choices) == NAMES[name]


def test_methods_are_all_classifiers() -> None:
    """Every classifier can be asked for on the command line and saved in a file; a learner, too."""
    names = {cls.__name__ for cls in CLASSIFIERS}
    assert set(options.CLASSES) == set(get_args(options.Method))
    assert set(options.CLASSES.values()) == names
    assert names | {"BayesianNetworkLearner"} == set(_ESTIMATORS)
    assert names <= set(marginbn.__all__)


def test_help_names_every_format() -> None:
    words = re.findall(r"[\w-]+", option_help(model.export, "to"))
    assert [word for word in words if word in NAMES["format"]] == list(NAMES["format"])


@pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda cls: cls.__name__)
def test_docstrings_give_the_defaults_of_the_signature(cls: Any) -> None:
    """``name : type, default=value`` in a docstring is what the constructor has."""
    defaults = defaults_of(cls)
    given = re.findall(r"^(\w+) : .*default=(.+)$", inspect.getdoc(cls) or "", re.MULTILINE)
    assert given or cls is marginbn.TANClassifier  # which refers to naive Bayes
    for name, value in given:
        assert eval(value, {"log": math.log}) == pytest.approx(defaults[name]), name


@pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda cls: cls.__name__)
def test_docstrings_list_the_names_of_the_registries(cls: Any) -> None:
    """``name : {"a", "b"}`` in a docstring holds the registry."""
    listed = re.findall(r"^(\w+) : \{(.+)\}", inspect.getdoc(cls) or "", re.MULTILINE)
    for name, choices in listed:
        found = tuple(re.findall(r'"(\w+)"', choices))
        assert found == NAMES[name], name


def test_classifiers_agree_on_shared_defaults() -> None:
    """A parameter that several classifiers have has one default, the grid of the CV apart."""
    seen: dict[str, Any] = {}
    for cls in CLASSIFIERS:
        own = defaults_of(cls)
        if cls is marginbn.BNClassifier:
            assert own.pop("time_limit") is None  # it stops after a fixed amount of work
        if cls is marginbn.MaxMarginBNClassifierCV:
            assert max(own.pop("max_parents")) == seen["max_parents"]
            assert own.pop("time_limit") > seen["time_limit"]  # for many searches
        for name, value in own.items():
            assert seen.setdefault(name, value) == value, name


def test_the_paper_s_grid_is_written_as_it_is() -> None:
    """The docstring of the CV classifier lists the probabilities behind its gammas."""
    text = " ".join((inspect.getdoc(marginbn.MaxMarginBNClassifierCV) or "").split())
    assert f"for p in {', '.join(map(str, PAPER_PROBABILITIES))}." in text


@pytest.mark.parametrize("option", ["max_parents", "missing", "time_limit"])
def test_help_gives_the_defaults_of_the_classifiers(option: str) -> None:
    """``[default: 60]`` in a help text is the classifier's own."""
    default = defaults_of(marginbn.BNClassifier)[option]
    text = default_in_help(option_help(fit.fit, option)).partition(",")[0]
    assert text == str(default).lower(), f"the help of --{option} in cli/options.py"


def test_help_gives_the_time_limits_of_methods() -> None:
    """``60 for max-margin-cv`` is the default of that classifier."""
    told = re.findall(r"(\d+) for ([\w-]+)", default_in_help(option_help(fit.fit, "time_limit")))
    assert {method for _, method in told} >= {"max-margin", "max-margin-cv"}
    for limit, method in told:
        own = defaults_of(getattr(marginbn, options.CLASSES[method]))["time_limit"]
        assert own == float(limit), f"{method} in the help of --time-limit in cli/options.py"


def test_options_have_the_defaults_of_the_learner() -> None:
    """`learn` and `problem solve`."""
    known = defaults_of(marginbn.Search) | defaults_of(marginbn.BayesianNetworkLearner)
    asked = options.SolverOptions()
    assert asked.search() == marginbn.Search()
    assert asked.time_limit == known["time_limit"]
    bins = defaults_of(learn.PlainTableOptions)["bins"]
    assert bins == defaults_of(problems.score)["bins"] == known["n_bins"]
    scoring = options.ScoreOptions()
    names = ("score", "max_parents", "equivalent_sample_size")
    assert [getattr(scoring, name) for name in names] == [known[name] for name in names]


def test_help_gives_the_defaults_that_are_computed() -> None:
    """gamma is log 9 by p = 0.9; one worker is what None stands for."""
    gamma = defaults_of(marginbn.MaxMarginBNClassifier)["gamma"]
    assert gamma == pytest.approx(math.log(9))
    assert default_in_help(option_help(fit.fit, "p")).startswith("0.9,")
    assert defaults_of(marginbn.MaxMarginBNClassifier)["n_jobs"] is None


def test_commands_have_the_defaults_of_what_they_call() -> None:
    assert defaults_of(model.report)["folds"] == defaults_of(page.make_report)["n_folds"]


def test_the_default_share_held_out_is_in_the_help() -> None:
    assert float(default_in_help(option_help(fit.fit, "holdout"))) == options.DEFAULT_HOLDOUT


def test_docstrings_of_exports_list_the_formats() -> None:
    def named(function: Any) -> list[str]:
        section = (inspect.getdoc(function) or "").split("\nformat\n")[1].split("by\n")[0]
        return re.findall(r'``"([\w-]+)"``', section)

    assert named(formats.save_network) == list(formats.NETWORK_FORMATS)
    readable = [n for n, f in formats.NETWORK_FORMATS.items() if f.readable]
    assert named(formats.load_network) == readable
