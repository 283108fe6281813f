"""Networks as objects of pgmpy and pyAgrum, there and back, and their opinions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exchange import SEEDS, assert_same_posteriors, garden, nasty_network, plain_network
from marginbn.exceptions import InputError, MissingDependencyError
from marginbn.export.formats import load_network, save_network
from marginbn.export.interop import from_pgmpy, from_pyagrum, to_pgmpy, to_pyagrum
from seeds import seeds

EVIDENCE = {"grass": "wet"}


@pytest.fixture
def pgmpy() -> Any:
    return pytest.importorskip("pgmpy", exc_type=ImportError)


@pytest.fixture
def pyagrum() -> Any:
    return pytest.importorskip("pyagrum", exc_type=ImportError)


@pytest.mark.parametrize("convert", [to_pgmpy, to_pyagrum])
def test_a_missing_package_is_told_in_one_line(
    convert: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is the command that installs it."""
    for name in ("pgmpy", "pgmpy.models", "pyagrum"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=r'pip install "marginbn\[interop\]"'):
        convert(garden())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("pgmpy")
class TestPgmpy:
    def test_its_posterior_is_ours(self) -> None:
        from pgmpy.inference import VariableElimination

        found = VariableElimination(to_pgmpy(garden())).query(
            ["rain"], evidence=EVIDENCE, show_progress=False
        )
        order = [found.state_names["rain"].index(s) for s in ("no", "yes")]
        wanted = garden().posterior_array("rain", EVIDENCE)
        np.testing.assert_allclose(found.values[order], wanted, atol=1e-9)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_there_and_back(self, seed: int) -> None:
        network = nasty_network(seed)
        model = to_pgmpy(network)
        assert model.check_model()
        assert from_pgmpy(model, target=network.names[0]) == network

    @pytest.mark.parametrize("seed", seeds(2, 6))
    def test_it_reads_our_files(self, seed: int, tmp_path: Path) -> None:
        """Plain names and all digits: the network read there is ours to 1e-9."""
        from pgmpy import readwrite

        network = plain_network(seed)
        path = str(tmp_path / "n.bif")
        save_network(network, path)
        back = from_pgmpy(readwrite.BIFReader(path).get_model(), target="x0")
        assert_same_posteriors(back, network, seed, tolerance=1e-9)

    @pytest.mark.parametrize("seed", range(6))
    def test_we_read_its_files(self, seed: int, tmp_path: Path) -> None:
        from pgmpy import readwrite

        network = plain_network(seed)
        path = str(tmp_path / "n.bif")
        readwrite.BIFWriter(to_pgmpy(network)).write(path)
        back = load_network(path, target="x0")
        assert_same_posteriors(back, network, seed, tolerance=1e-9)

    def test_a_model_without_a_table(self) -> None:
        model = to_pgmpy(garden())
        model.remove_cpds("sprinkler")
        with pytest.raises(InputError, match="model has no table for 'sprinkler'"):
            from_pgmpy(model)

    def test_states_in_another_order(self) -> None:
        """A parent's states may be listed in another order in its child's table."""
        from pgmpy.factors.discrete import TabularCPD

        model = to_pgmpy(garden())
        model.remove_cpds("sprinkler")
        names = {"sprinkler": ["off", "low", "high"], "rain": ["yes", "no"]}
        values = [[0.97, 0.6], [0.02, 0.3], [0.01, 0.1]]
        model.add_cpds(TabularCPD("sprinkler", 3, values, ["rain"], [2], state_names=names))
        assert from_pgmpy(model, target="rain") == garden()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("pyagrum")
class TestPyAgrum:
    def test_its_posterior_is_ours(self) -> None:
        import pyagrum as gum

        inference = gum.LazyPropagation(to_pyagrum(garden()))
        inference.setEvidence(EVIDENCE)
        found = inference.posterior("rain").toarray()
        np.testing.assert_allclose(found, garden().posterior_array("rain", EVIDENCE), atol=1e-9)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_there_and_back(self, seed: int) -> None:
        network = nasty_network(seed)
        assert from_pyagrum(to_pyagrum(network)) == network

    @pytest.mark.parametrize("seed", seeds(2, 6))
    def test_it_reads_our_files(self, seed: int, tmp_path: Path) -> None:
        """It reads numbers in single precision."""
        import pyagrum as gum

        network = plain_network(seed)
        path = str(tmp_path / "n.bif")
        save_network(network, path)
        back = from_pyagrum(gum.loadBN(path), target="x0")
        assert_same_posteriors(back, network, seed, tolerance=1e-6)

    @pytest.mark.parametrize("seed", range(6))
    def test_we_read_its_files(self, seed: int, tmp_path: Path) -> None:
        import pyagrum as gum

        network = plain_network(seed)
        path = str(tmp_path / "n.bif")
        gum.saveBN(to_pyagrum(network), path)
        back = load_network(path)
        assert back.names == network.names
        wanted, found = network.marginals(), back.marginals()
        for name in network.names:
            np.testing.assert_allclose(found[name], wanted[name], atol=1e-9)
