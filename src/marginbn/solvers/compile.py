"""How every kernel is compiled, and where its machine code is kept.

``fastmath`` stays off: bounds rely on IEEE rounding, and the error terms of the kernels count
operations in the order in which they are written. ``error_model="numpy"`` only removes the
zero-division checks.

**Stale machine code.** numba's disk cache looks at the file of a function, not at the functions it
calls in other files; after an upgrade it would run old code. So the code of a file lives in a
folder named by a fingerprint of the text of that file and of everything it imports from this
package, directly or not, of the versions of Python, numba and llvmlite, and of the processor.
Another text is another folder; folders that nobody used for :data:`KEPT_DAYS` days are removed when
a new one is made. The folders lie in ``$MARGINBN_CACHE`` or in the user's cache folder; where they
cannot be written everything is compiled anew in every process.

**Compile time.** Only an :func:`entry` becomes machine code, with everything it calls inside; a
:func:`kernel` is analysed once and then linked into its callers (``drafts.py``). So a call costs
nothing, a further entry costs the machine code of all that is behind it, and its wrapper for Python
grows with the number of arrays in its arguments.
"""

from __future__ import annotations

import gc
import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
from llvmlite.binding import get_host_cpu_name
from numba import njit

F = TypeVar("F", bound=Callable[..., Any])

KEPT_DAYS = 30
"""Machine code that no process loaded for so long is removed."""

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

TRIED = ((0, 61), (0, 69))
"""Drafts were tried with the first of these versions of numba and with the last before the second;
others compile every kernel on its own.
"""

AVAILABLE = TRIED[0] <= numba.version_info.short < TRIED[1]

READY = "ready"
"""A file of this name says that the kernels behind a folder have been compiled."""

PACKAGE = Path(__file__).parents[1]

_IMPORT = re.compile(r"^\s*(?:from|import)\s+(marginbn[\w.]*)", re.MULTILINE)
_FOLDER = re.compile(r"\w+-[0-9a-f]{24}")

_lock = threading.RLock()
_folders: dict[str, Path | None] = {}
_prepared: set[str] = set()

_config: Any = numba.config  # its attributes are made at run time
_compile: Any = njit  # its annotations know neither NamedTuple arguments nor all options


def entry(function: F) -> F:
    """Compile a kernel that Python calls; without the interpreter lock. Other kernels may call it
    too.
    """
    return _cached(function)


def kernel(function: F) -> F:
    """Compile a kernel that other kernels call, as a part of them (``drafts.py``). Python may call
    it too: for that it is compiled a second time.
    """
    return _draft(function, lambda: entry(function))


def shared(function: F) -> F:
    """Compile a kernel that runs as plain Python where Python calls it; for the tiniest."""
    return _draft(function, lambda: function)


def _draft(function: F, for_python: Callable[[], F]) -> F:
    if not AVAILABLE:
        return entry(function)
    from marginbn.solvers.drafts import DraftKernel

    options = {"nopython": True, "no_cpython_wrapper": True, **OPTIONS}
    draft: Any = DraftKernel(function, options, for_python)
    return cast(F, draft)


def _cached(function: F) -> F:
    """Compile with the disk cache in the folder of the function's file."""
    folder = machine_code_folder(Path(function.__code__.co_filename))
    with _lock:
        _folders[function.__module__] = folder
        before = _config.CACHE_DIR
        _config.CACHE_DIR = "" if folder is None else str(folder)  # read while decorating
        try:
            compiled: F = _compile(cache=folder is not None, **OPTIONS)(function)
        finally:
            _config.CACHE_DIR = before
    return compiled


@cache
def machine_code_folder(source: Path) -> Path | None:
    """Folder for the machine code of a file; None if there is no place where it could be kept."""
    try:
        folder = cache_root() / f"{source.stem}-{fingerprint(source, PACKAGE)}"
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        os.utime(folder)
    except OSError:
        return None
    if is_new:
        remove_old_folders(folder.parent)
    return folder


def cache_root() -> Path:
    """``$MARGINBN_CACHE``, or the place where this platform keeps caches of a user."""
    chosen = os.environ.get("MARGINBN_CACHE")
    if chosen:
        return Path(chosen).expanduser() / "kernels"
    try:
        home = Path.home()
    except RuntimeError as error:  # nobody to ask
        raise OSError("no home folder") from error
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "marginbn" / "kernels"


def remove_old_folders(root: Path) -> None:
    """Forget machine code that no process has used for a long time.

    Every process touches the folders it uses, so nothing in use is removed; two processes that
    clean at once do not disturb each other.
    """
    oldest = time.time() - 86_400 * KEPT_DAYS
    for folder in root.iterdir():
        with suppress(OSError):
            if _FOLDER.fullmatch(folder.name) and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)


def fingerprint(source: Path, package: Path) -> str:
    """Hash of a file, of all files of the package behind it, of versions and processor."""
    digest = hashlib.sha256()
    versions = (platform.python_version(), numba.__version__, llvmlite.__version__)
    for part in (*versions, platform.machine(), get_host_cpu_name()):
        digest.update(part.encode() + b"\0")
    for path in sorted(_sources_behind(source, package)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def _sources_behind(source: Path, package: Path) -> set[Path]:
    """The file and everything it imports from the package, directly or not."""
    found, waiting = {source}, [source]
    while waiting:
        for path in _imported_sources(waiting.pop().read_text(encoding="utf-8"), package):
            if path not in found:
                found.add(path)
                waiting.append(path)
    return found


def _imported_sources(text: str, package: Path) -> set[Path]:
    """Files of imported modules; a package that is imported counts with all its files."""
    found: set[Path] = set()
    for name in _IMPORT.findall(text):
        place = package.joinpath(*name.split(".")[1:])
        if place.with_suffix(".py").is_file():
            found.add(place.with_suffix(".py"))
        elif place != package and place.is_dir():
            found.update(place.rglob("*.py"))
    return found


def prepare(package: str, exercise: Callable[[], object], hint: str) -> None:
    """Compile the kernels of a package before a clock starts, by running ``exercise`` once.

    Says so on stderr if the machine code is not yet on disk. Later calls return at once.
    """
    with _lock:
        if package in _prepared:
            return
        _prepared.add(package)  # first: the exercise itself may come back here
        ready = _is_ready(package)
        if not ready:
            sys.stderr.write(f"marginbn: compiling {hint}\n")
            sys.stderr.flush()
        try:
            with nullcontext() if ready else _rare_collections():
                exercise()
        except BaseException:
            _prepared.discard(package)
            raise
        if not ready:
            _mark_ready(package)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """A compiler makes millions of objects that stay; looking through them for garbage as often as
    Python does takes a fifth of its time (rarely: 80 MB more memory).
    """
    before = gc.get_threshold()
    gc.set_threshold(50_000, 50, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _folders_of(package: str) -> list[Path | None]:
    return [folder for name, folder in _folders.items() if name.startswith(package + ".")]


def _is_ready(package: str) -> bool:
    return all(f is not None and (f / READY).exists() for f in _folders_of(package))


def _mark_ready(package: str) -> None:
    with suppress(OSError):
        for folder in _folders_of(package):
            if folder is not None:
                (folder / READY).touch()
