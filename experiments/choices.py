"""What the rules that choose gamma and the number of parents are worth, on the same searches.

python -m experiments.choices --data FOLDER [--sets NAME ...] [--seeds N ...] [--folds N]
python -m experiments.choices

The first searches all settings of the paper's grid on every inner split and on the whole training
part of an outer split, and appends one line per outer split to results/choices/choices.jsonl:
accuracy and log loss on the test rows under every rule. What is there is skipped. The second prints
the table. A search ends after 400 nodes and not by the clock, so a busy machine changes nothing;
the largest gap that was left is in the record.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import settings as presets
from experiments.protocol import HERE, N_FOLDS, Task, load, read_specs, task_of
from marginbn import BayesianNetwork, enumerate_candidates, margin_problem, solve_structure
from marginbn.classifiers.choosing import SCORINGS, HeldOut, choose, class_codes
from marginbn.classifiers.committee import log_average, log_normalised
from marginbn.data.encode import encode_training
from marginbn.data.labelled import LabelledTable, stratified_folds
from marginbn.problem.encoded import with_class_column

JOURNAL = HERE / "results" / "choices" / "choices.jsonl"
SETS = ("iris", "glass2", "diabetes", "corral", "heart", "glass", "cleve", "hepatitis")
SEEDS = (11, 12, 13, 14, 15)
NODES = 400
GAMMAS = tuple(sorted(presets.full().gammas, reverse=True))
SETTINGS = [(k, gamma) for k in (1, 2) for gamma in GAMMAS]
AVERAGES = {
    "average, p >= 0.7": [s for s, (_, gamma) in enumerate(SETTINGS) if gamma > 0.8],
    "average, p >= 0.7, two parents": [s for s, (k, g) in enumerate(SETTINGS) if g > 0.8 and k > 1],
    "average, all settings": list(range(len(SETTINGS))),
}
FIXED = SETTINGS.index((2, min(GAMMAS, key=lambda gamma: abs(gamma - np.log(9)))))

FloatArray = NDArray[np.float64]


def posteriors(rows: LabelledTable, test: Any, classes: NDArray[Any]) -> tuple[FloatArray, float]:
    """Log posteriors of the test rows under every setting, (settings, rows, classes), and the
    largest gap. Each search starts from the answer of the larger gamma.
    """
    training = encode_training(rows, "drop")
    data, codes = training.data, with_class_column(training.coding.encode(test))
    result = np.full((len(SETTINGS), len(codes), len(classes)), -np.inf)
    columns, gap = np.searchsorted(classes, training.classes), 0.0
    for k in (1, 2):
        candidates = enumerate_candidates(data.n_variables, k, constant=data.constant)
        problem = margin_problem(data, candidates, margin="multiclass", gamma=1.0, smoothing=1.0)
        start = None
        for gamma in GAMMAS:
            start = solve_structure(problem.with_gamma(gamma), node_limit=NODES, start=start)
            network = BayesianNetwork.fit(data, start.structure)
            posterior = log_normalised(network.log_joint_per_class(codes))
            result[SETTINGS.index((k, gamma))][:, columns] = posterior
            gap = max(gap, start.gap)
    return result, gap


def chosen_by_rules(parts: list[FloatArray], truths: list[NDArray[np.intp]]) -> dict[str, int]:
    """The setting that every rule takes, by its log posteriors on the held-out parts."""
    chosen = {}
    for name, rule in SCORINGS.items():
        scores = [
            [float(rule.of_rows(setting, truth).mean()) for setting in part]
            for part, truth in zip(parts, truths, strict=True)
        ]
        sizes = np.array([float(len(truth)) for truth in truths])
        held_out = HeldOut(np.array(scores).T, sizes, int(sizes.sum()))
        chosen[name] = choose(held_out, rule, SETTINGS)
    return chosen


def measure(task: Task, classes: NDArray[Any]) -> dict[str, Any]:
    """Accuracy and log loss on the test rows under every rule, and the largest gap."""
    rows = LabelledTable.of(task.train, task.labels)
    parts, truths, gaps = [], [], []
    for train, held_out in task.inner:
        part, gap = posteriors(rows.take(train), rows.take(held_out).features, classes)
        parts.append(part)
        truths.append(class_codes(task.labels[held_out], classes))
        gaps.append(gap)
    tested, gap = posteriors(rows, task.test, classes)
    truth = class_codes(task.test_labels, classes)
    answers = {name: tested[s] for name, s in chosen_by_rules(parts, truths).items()}
    for name, members in AVERAGES.items():
        weights = np.full(len(members), 1 / len(members))
        answers[name] = log_average((tested[s] for s in members), weights)
    answers["p = 0.9, two parents"] = tested[FIXED]
    return {
        "rules": {name: judge(answer, truth) for name, answer in answers.items()},
        "max_gap": max(gap, *gaps),
    }


def judge(log_posterior: FloatArray, truth: NDArray[np.intp]) -> dict[str, float]:
    hits = SCORINGS["accuracy"].of_rows(log_posterior, truth)
    gains = SCORINGS["log_loss"].of_rows(log_posterior, truth)
    return {"accuracy": float(hits.mean()), "log_loss": -float(gains.mean())}


def read_journal() -> list[dict[str, Any]]:
    lines = JOURNAL.read_text(encoding="utf-8").splitlines() if JOURNAL.exists() else []
    return [json.loads(line) for line in lines]


def run(folder: Path, sets: list[str], seeds: list[int], n_folds: int) -> None:
    """One line per outer split that has none yet."""
    done = {(r["set"], r["seed"], r["fold"]) for r in read_journal()}
    JOURNAL.parent.mkdir(parents=True, exist_ok=True)
    wanted = [(name, seed, fold) for seed in seeds for name in sets for fold in range(n_folds)]
    for name, seed, fold in wanted:
        if (name, seed, fold) not in done:
            data = load(read_specs()[name], folder)
            split = stratified_folds(data.labels, N_FOLDS, seed)[fold]
            task = task_of(data, split, seed, presets.full())
            record = {"set": name, "seed": seed, "fold": fold}
            record |= measure(task, np.unique(data.labels))
            with JOURNAL.open("a", encoding="utf-8") as journal:
                journal.write(f"{json.dumps(record)}\n")


def table(records: list[dict[str, Any]]) -> Iterator[str]:
    """Markdown: means over the sets, gains over the rule of the paper with standard errors."""
    sets = sorted({r["set"] for r in records})
    n_seeds = min(len({r["seed"] for r in records if r["set"] == s}) for s in sets)
    gap = max(r["max_gap"] for r in records)
    yield f"{len(records)} outer splits of {len(sets)} sets ({', '.join(sets)}), at least"
    yield f"{n_seeds} seeds each; largest gap {gap:.2g}\n"
    yield "| rule | accuracy | gain (se) | up/down | log loss | gain (se) | better/worse |"
    yield "|---|---|---|---|---|---|---|"
    means = {
        rule: np.array([_means([r["rules"][rule] for r in records if r["set"] == s]) for s in sets])
        for rule in records[0]["rules"]
    }
    for rule, mean in means.items():
        gain = mean - means["accuracy"]
        error = gain.std(axis=0, ddof=1) / np.sqrt(len(sets))
        up, down = (gain > 1e-9).sum(axis=0), (gain < -1e-9).sum(axis=0)
        yield (
            f"| {rule} | {mean[:, 0].mean():.2f} | {gain[:, 0].mean():+.2f} ({error[0]:.2f}) "
            f"| {up[0]}/{down[0]} | {mean[:, 1].mean():.3f} | {gain[:, 1].mean():+.3f} "
            f"({error[1]:.3f}) | {down[1]}/{up[1]} |"
        )


def _means(values: list[dict[str, float]]) -> list[float]:
    return [
        100 * float(np.mean([v["accuracy"] for v in values])),
        float(np.mean([v["log_loss"] for v in values])),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of data sets; without it the table")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--folds", type=int, default=2, help="outer folds of each seed")
    options = parser.parse_args()
    if options.data is not None:
        run(options.data, options.sets, options.seeds, options.folds)
    sys.stdout.write("\n".join(table(read_journal())) + "\n")


if __name__ == "__main__":
    main()
