"""Every fuzzing target over its seeds and everything it ever found; the watch itself."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzz.frames import Script
from fuzz.guard import FindingError, run_watched, watched
from fuzz.seeds import kept_inputs, seeds, warm_up
from fuzz.targets import TARGETS

from marginbn.exceptions import FormatError

MAX_KEPT_BYTES = 20_000


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.filterwarnings("ignore")
def test_every_kept_input_is_read_or_refused(name: str, tmp_path: Path) -> None:
    """No crash, no hang, no foreign error, no other file, nothing executed."""
    if name == "parquet":
        pytest.importorskip("pyarrow")
    target = TARGETS[name]
    warm_up(target, tmp_path)
    inputs = seeds(name)
    assert inputs
    for data in inputs:
        run_watched(target.run, data, tmp_path)


def test_kept_inputs_are_small_and_belong_to_a_target() -> None:
    folders = [p for p in (Path(__file__).parents[1] / "fuzz_corpus").iterdir() if p.is_dir()]
    assert {folder.name for folder in folders} <= set(TARGETS)
    for folder in folders:
        known = set(seeds(folder.name))
        for path in kept_inputs(folder.name):
            assert path.stat().st_size <= MAX_KEPT_BYTES
            assert path.read_bytes() in known


def _open_elsewhere(_data: bytes, folder: Path) -> None:
    (folder.parent / "elsewhere").write_bytes(b"")


def _swallow(_data: bytes, folder: Path) -> None:
    try:
        _open_elsewhere(_data, folder)
    except BaseException:
        return


CRIMES: dict[str, Callable[[bytes, Path], object]] = {
    "writes elsewhere": _open_elsewhere,
    "writes elsewhere and hides it": _swallow,
    "reads elsewhere": lambda data, folder: Path("/etc/passwd").read_bytes(),
    "removes": lambda data, folder: os.remove("/nowhere/file"),
    "starts a process": lambda data, folder: subprocess.run(["true"], check=False),
    "calls a shell": lambda data, folder: os.system("true"),
    "opens a socket": lambda data, folder: socket.socket(),
    "unpickles a function": lambda data, folder: pickle.loads(pickle.dumps(os.getcwd)),
    "evaluates": lambda data, folder: eval("1 + 1"),
    "executes": lambda data, folder: exec("x = 1"),
    "never ends": lambda data, folder: [None for _ in iter(int, 1)],
}


@pytest.mark.parametrize("name", CRIMES)
def test_the_watch_sees(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    with pytest.raises(FindingError), watched(folder, cpu_seconds=0.2):
        CRIMES[name](b"", folder)


def test_the_watch_lets_reading_be(tmp_path: Path) -> None:
    def honest(data: bytes, folder: Path) -> None:
        (folder / "a").write_bytes(data)
        assert (folder / "a").read_bytes() == data
        raise FormatError("as it should be")

    run_watched(honest, b"x", tmp_path)
    with pytest.raises(ZeroDivisionError):
        run_watched(lambda data, folder: divmod(1, 0), b"", tmp_path)


def test_scripts_read_zeros_after_their_end() -> None:
    """Each decision takes one byte, and the first option once there are none."""
    script = Script(bytes([5, 1]))
    assert [script.number(4), script.choose("ab"), script.choose("ab")] == [1, "b", "a"]


def test_the_command_lists_its_targets() -> None:
    """``python -m fuzz run --help`` names every target without importing the fuzzer."""
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "run", "--help"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(name in done.stdout for name in TARGETS)
