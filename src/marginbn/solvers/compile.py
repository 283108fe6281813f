"""How kernels are compiled, and where their machine code is kept.

**Entries and drafts.** Only an :func:`entry` becomes machine code, with everything that it calls
inside. A :func:`kernel` is called by other kernels, which contain a copy of it; so it stays a
*draft* in LLVM's representation, and is optimised and turned into machine code as a part of its
callers alone. That is more than half of all compile time, and the code is no slower. Kernels are
compiled for the types of their arguments, never for their values. The machine code of an entry
grows with all that is behind it, its wrapper for Python with the number of arrays in its arguments.

**Borrowed arrays.** numba counts references: a function adds one to every array
of its arguments, those inside records too, and takes it away at the end, with instructions that all
processors have to agree on. The caller keeps its arguments alive anyway, so kernels *borrow* them
(:class:`Borrowing`).

**Rounding.** ``fastmath`` stays off: bounds rely on IEEE rounding, and the error terms of the
kernels count operations in the order in which they are written. Only kernels that no bound depends
on are :data:`REORDERED`. ``error_model="numpy"`` only removes the zero-division checks.

**When.** A kernel is loaded or compiled when it is first called, while all clocks stand still
(:data:`~marginbn.solvers.interpreted.COMPILER`): a search compiles what it calls and nothing else.
A small problem is solved by the Python functions themselves (:mod:`marginbn.solvers.interpreted`).

**The disk.** Machine code lies in ``$MARGINBN_CACHE`` or in the user's cache folder; where that
cannot be written every process compiles again. A folder is named by a fingerprint of the texts of
all kernels behind it (:func:`kernel_sources`), of the versions of Python, numba and llvmlite, and
of the processor. What no process used for :data:`KEPT_DAYS` days is removed. What is loaded runs
with all rights of the user, so the folder must be the user's own (:func:`own_folder`).

Drafts and borrowing use parts of numba that carry no promise. Therefore ``pyproject.toml`` bounds
its version: newer ones must pass the tests first.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import platform
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import llvmlite
import numba
from llvmlite.binding import get_host_cpu_name
from numba.core import ir, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering
from numba.extending import overload
from platformdirs import user_cache_path

from marginbn.exceptions import InputError
from marginbn.files import PathLike, write_atomic
from marginbn.solvers.interpreted import COMPILER, MODE, interpret

F = TypeVar("F", bound=Callable[..., Any])

KEPT_DAYS = 30
"""Machine code that no process loaded for so long is removed."""

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

LEVEL = 1
"""Of LLVM's optimiser for kernels: they run as fast as with level 3 and compile in less time."""

_lock = threading.RLock()
_entries: dict[str, list[Any]] = {}  # by the package of the kernels
_seen: dict[Any, tuple[Any, ...]] = {}  # entries that were interpreted, and types of arguments
_told: list[object] = []  # why machine code is not kept, once stderr says so

# numba's annotations are incomplete
_arrays: Any = import_module("numba.np.arrayobj")
_compiler_lock: Any = import_module("numba.core.compiler_lock").global_compiler_lock
_dynfunc: Any = import_module("numba._dynfunc")
_normalise: Any = import_module("numba.core.cgutils").normalize_ir_text
_parse_assembly: Any = llvmlite.binding.parse_assembly
_pass: Any = register_pass
_passes: Any = DefaultPassBuilder
_rebuild: Any = import_module("numba.core.compiler").CompileResult._rebuild
_dumps: Any = import_module("numba.core.serialize").dumps
_without_value: Any = types.unliteral


def entry(function: F) -> F:
    """Compile a kernel that Python calls; without the interpreter lock. Other kernels may call it
    too.
    """
    source = Path(function.__code__.co_filename)
    compiled: Any = EntryKernel(function)
    with _lock:
        _entries.setdefault(function.__module__.rpartition(".")[0], []).append(compiled)
    is_own_text = source.is_file() and function.__closure__ is None
    folder = machine_code_folder(source.parent) if is_own_text else None
    if folder is not None:
        compiled._cache = Shelf(function, folder)
    return cast(F, compiled)


def kernel(function: F) -> F:
    """Compile a kernel that other kernels call, as a part of them. Python may call it too: for
    that it is compiled a second time.
    """
    return cast(F, DraftKernel(function, lambda: entry(function)))


def shared(function: F) -> F:
    """Compile a kernel that runs as plain Python where Python calls it; for the tiniest."""
    return cast(F, DraftKernel(function, lambda: function))


REORDERED = {"reassoc", "contract", "nsz", "nnan"}
"""What the compiler may do where no bound depends on a number: add sums in any order, multiply and
add at once, and take it that there is no NaN.
"""


def vectorised(plain: Callable[..., Any], *, is_reordered: bool = False) -> Callable[[F], F]:
    """Compile a kernel of one loop; interpreted kernels call ``plain`` instead, which does the same
    with numpy. The results must be equal in every bit unless the kernel ``is_reordered``.

    The innermost loops take most of the time of an interpreted search: with them in numpy it is
    twice as fast.
    """
    more = {"fastmath": REORDERED} if is_reordered else {}

    def decorate(function: F) -> F:
        return cast(F, DraftKernel(function, lambda: entry(function), plain, **more))

    return decorate


@cache
def machine_code_folder(sources: Path) -> Path | None:
    """Where the machine code of a folder of kernels is; None if there is no place to keep it."""
    try:
        folder = own_folder(cache_root() / f"{sources.parent.name}-{fingerprint(sources)}")
        os.utime(folder)
        for other in folder.parent.iterdir():
            with suppress(FileNotFoundError):  # another process may have removed it just now
                if time.time() - other.stat().st_mtime > 86_400 * KEPT_DAYS:
                    shutil.rmtree(other, ignore_errors=True)
    except OSError as error:
        _tell_not_kept(f"{error.strerror or error}: {error.filename}" if error.filename else error)
        return None
    return folder


def _tell_not_kept(reason: object) -> None:
    if not _told:
        _told.append(reason)
        sys.stderr.write(
            f"marginbn: compiled code is not kept on disk, so every process compiles again "
            f"({reason}); set MARGINBN_CACHE to a folder that only you can write\n"
        )


class Shelf:
    """Machine code of one function in a folder: a file for each list of types of arguments, which
    processes write in one step. Whatever goes wrong with a file, the function is compiled.
    """

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        code = function.__code__
        self.cache_path = str(folder)  # read by numba
        self._folder = folder
        self._name = f"{Path(code.co_filename).stem}.{code.co_name}-{code.co_firstlineno}"

    @property
    def is_used(self) -> bool:
        """Whether there is machine code of the function, for whatever types."""
        return any(self._folder.glob(f"{self._name}.*"))

    def _path(self, sig: Any, target_context: Any) -> Path:
        target = target_context.codegen().magic_tuple()
        text = "\0".join(map(str, (*sig, *target)))
        return self._folder / f"{self._name}.{hashlib.sha256(text.encode()).hexdigest()[:24]}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The function for these types of arguments; None if it must be compiled."""
        target_context.refresh()
        path = self._path(sig, target_context)
        try:
            return _rebuild(target_context, *pickle.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except Exception:  # damaged data raise whatever they like
            with suppress(OSError):
                path.unlink()
            return None

    def save_overload(self, sig: Any, made: Any) -> None:
        """Keep a function; if that fails it is compiled again by the next process."""
        try:
            write_atomic(self._path(sig, made.target_context), _dumps(made._reduce()), 0o644)
        except InputError as error:
            _tell_not_kept(error)


def cache_root() -> Path:
    """``$MARGINBN_CACHE``, or the place where this platform keeps caches of a user."""
    chosen = os.environ.get("MARGINBN_CACHE")
    if chosen:
        return Path(chosen).expanduser() / "kernels"
    folder = user_cache_path("marginbn", appauthor=False)
    if not folder.is_absolute():
        raise OSError("no home folder")
    return folder / "kernels"


def kernel_sources(folder: Path) -> list[Path]:
    """The files that kernels of a folder depend on, in the order of their names: their own, the
    engine's records (``arrays.py``), shared random numbers and this one.
    """
    shared = Path(__file__).parent / "orders" / "kernels" / "word_sets.py"
    files = {*folder.glob("*.py"), folder.parent / "arrays.py", shared, Path(__file__)}
    return sorted((path for path in files if path.is_file()), key=lambda path: path.name)


def fingerprint(folder: Path) -> str:
    """Hash of all that the machine code of a folder depends on."""
    digest = hashlib.sha256()
    versions = (platform.python_version(), numba.__version__, llvmlite.__version__)
    for part in (*versions, platform.machine(), get_host_cpu_name()):
        digest.update(part.encode() + b"\0")
    for path in kernel_sources(folder):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def _refuse_shapes(source: Any, target: Any) -> None:
    """Raise the error of an assignment between arrays of different shapes."""
    raise NotImplementedError


@overload(_refuse_shapes)
def _without_numbers(source: Any, target: Any) -> Any:
    def refuse(source: Any, target: Any) -> None:
        raise ValueError("arrays of different shapes")

    return refuse


@contextmanager
def _compiling() -> Iterator[None]:
    """Settings that make compiling take less time, whatever other functions of this process have.

    * LLVM optimises at :data:`LEVEL`.
    * A compiler makes millions of objects that stay. Looking through them for garbage as often as
      Python does takes a fifth of its time (rarely: 80 MB more memory).
    * The error of an assignment between arrays has no numbers in its message: the code that writes
      them took a fifth of the time.
    """
    config: Any = numba.config
    with _compiler_lock:
        if _arrays.raise_with_shape_context is _refuse_shapes:  # a function behind another one
            yield
            return
        level, often, message = config.OPT, gc.get_threshold(), _arrays.raise_with_shape_context
        config.OPT = type(level)(LEVEL)
        gc.set_threshold(50_000, 50, 1_000)
        _arrays.raise_with_shape_context = _refuse_shapes
        try:
            yield
        finally:
            config.OPT, _arrays.raise_with_shape_context = level, message
            gc.set_threshold(*often)


def is_at_hand(function: Callable[..., Any]) -> bool:
    """Whether machine code of a kernel need not be made: it is on disk, or this process has it."""
    compiled: Any = function
    if isinstance(compiled, DraftKernel):
        compiled = compiled.for_python()
    shelf = compiled._cache
    return bool(compiled.overloads) or (isinstance(shelf, Shelf) and shelf.is_used)


def _count_left(package: str) -> int:
    """Functions of a package that have yet to be compiled for its entries without machine code."""
    found: set[Any] = set()
    left = [own for own in _entries.get(package, []) if not is_at_hand(own)]
    while left:
        function = left.pop()
        if function not in found and not function.overloads:
            found.add(function)
            left += _called_by(function.py_func)
    return len(found)


def _called_by(function: Any) -> list[Any]:
    """Kernels that a function calls, by the names in its code."""
    names, known = function.__code__.co_names, function.__globals__
    modules = [value for value in map(known.get, names) if isinstance(value, ModuleType)]
    spaces = [known, *map(vars, modules)]
    values = (space.get(name) for name in names for space in spaces)
    return [value for value in values if hasattr(value, "py_func")]


def compile_seen(package: str) -> None:
    """Machine code for all entries of a package that were interpreted, for the same types."""
    for own, types_of_arguments in list(_seen.items()):
        if own.py_func.__module__.startswith(package):
            own.compile(types_of_arguments)


class Draft(JITCodeLibrary):
    """A function and everything it calls, linked but neither optimised nor compiled."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Take in a function. It is verified with the one that Python calls."""
        module = _parse_assembly(_normalise(str(ir_module)))
        module.name = ir_module.name
        usual: Any = super()
        usual.add_llvm_module(module)

    def finalize(self) -> None:
        """Link; whoever links this library in turn does the rest."""
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(self, "_reload_init"):  # since numba 0.62
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


class Borrowing(Lower):
    """Makes LLVM's representation without counting references of arguments (counted: x1.68).

    A parameter that is assigned to in the function is not only an argument: it is counted.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        usual: Any = super()
        usual.__init__(*args, **options)
        self._borrowed: set[str] = set()
        self._is_borrowing = False

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """The value of an assignment."""
        usual: Any = super()
        name, blocks = inst.target.name, list(cast(Any, self.blocks).values())
        assigned = [other.target.name for block in blocks for other in block.find_insts(ir.Assign)]
        if not isinstance(inst.value, ir.Arg) or assigned.count(name) > 1:
            return usual.lower_assign(ty, inst)
        self._borrowed.add(name)
        with self._borrowing(name):
            return usual.lower_assign(ty, inst)

    def delvar(self, name: str) -> None:
        """The end of a variable."""
        usual: Any = super()
        with self._borrowing(name):
            usual.delvar(name)

    @contextmanager
    def _borrowing(self, name: str) -> Iterator[None]:
        self._is_borrowing = name in self._borrowed
        try:
            yield
        finally:
            self._is_borrowing = False

    def incref(self, typ: Any, val: Any) -> None:
        """One more reference."""
        usual: Any = super()
        if not self._is_borrowing:
            usual.incref(typ, val)

    def decref(self, typ: Any, val: Any) -> None:
        """One reference less."""
        usual: Any = super()
        if not self._is_borrowing:
            usual.decref(typ, val)


@_pass(mutates_CFG=True, analysis_only=False)
class EntryLowering(NativeLowering):
    """The last step of a compilation, with machine code."""

    _name = "marginbn_entry_lowering"

    @property
    def lowering_class(self) -> Any:
        """What makes LLVM's representation."""
        return Borrowing

    def run_pass(self, state: Any) -> bool:
        """Lower."""
        COMPILER.step()
        usual: Any = super()
        return bool(usual.run_pass(state))


@_pass(mutates_CFG=True, analysis_only=False)
class DraftLowering(EntryLowering):
    """The last step of a compilation, without machine code."""

    _name = "marginbn_draft_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower to a draft and let other functions call it."""
        library: Any = Draft
        usual: Any = super()
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        usual.run_pass(state)
        lowered = state["cr"]
        described = lowered.fndesc
        name = described.qualname.split(".")[-1]
        never_called = _dynfunc.make_function(
            described.lookup_module(), name, name, 0, lowered.env, (state.library,)
        )
        state.targetctx.insert_user_function(never_called, described, [state.library])
        state["cr"] = lowered._replace(cfunc=never_called)
        return True


class EntryCompiler(CompilerBase):
    """numba's compiler with another last step."""

    last: Any = EntryLowering

    def define_pipelines(self) -> list[Any]:
        """The usual passes, the lowering replaced."""
        passes = _passes.define_nopython_pipeline(self.state)
        passes.passes = [
            (self.last if step is NativeLowering else step, description)
            for step, description in passes.passes
        ]
        passes._finalized = False
        passes.finalize()
        return [passes]


class DraftCompiler(EntryCompiler):
    """The same for drafts."""

    last: Any = DraftLowering


class PlainCalls(CPUDispatcher):
    """A function that is compiled for the types of its arguments, never for their values."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What a call from compiled code refers to."""
        plain = {name: _without_value(value) for name, value in kws.items()}
        return super().get_call_template(tuple(map(_without_value, args)), plain)


class EntryKernel(PlainCalls):
    """A function that Python calls as machine code or as it is."""

    def __init__(self, function: Callable[..., Any]) -> None:
        options = {"nopython": True, **OPTIONS}
        super().__init__(function, {}, options, pipeline_class=EntryCompiler)

    def __call__(self, *args: Any) -> Any:
        """Called by Python."""
        if not MODE.is_on:
            return super().__call__(*args)
        if self not in _seen:
            _seen[self] = tuple(map(self.typeof_pyval, args))
        return interpret(self.py_func, args)

    def compile(self, sig: Any) -> Any:
        """Machine code for types of arguments, from the disk or new. Clocks stand still."""
        package = self.py_func.__module__.rpartition(".")[0]
        with COMPILER.working(package, lambda: _count_left(package)), _compiling():
            usual: Any = super()
            return usual.compile(sig)


class DraftKernel(PlainCalls):
    """A function that others link as a draft. Interpreted kernels call ``plain`` instead; Python
    calls what ``for_python`` makes at the first such call. ``more`` are options of numba's.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        for_python: Callable[[], Callable[..., Any]],
        plain: Callable[..., Any] | None = None,
        **more: Any,
    ) -> None:
        options = {"nopython": True, "no_cpython_wrapper": True, **OPTIONS, **more}
        super().__init__(function, {}, options, pipeline_class=DraftCompiler)
        self.plain, self.for_python = plain or function, cache(for_python)

    def __call__(self, *args: Any) -> Any:
        """Called by Python."""
        return (self.plain if MODE.is_on else self.for_python())(*args)


def own_folder(path: PathLike) -> Path:
    """The folder, made if need be, once it is sure that no other user can put files there.

    It and everything above it must belong to this user or to root, and not everybody may write in
    it. Above it there may be a folder such as ``/tmp``, writable for all but sticky: there nobody
    can rename or remove what belongs to others. On systems without such owners nothing is checked.

    Raises
    ------
    OSError
        If others could change what is in the folder, or it cannot be made.
    """
    folder = Path(os.path.realpath(path))
    for place in (*reversed(folder.parents), folder):
        if not place.exists():
            place.mkdir(0o755, exist_ok=True)
    for place in (folder, *folder.parents):
        status = place.stat()
        is_sticky = place != folder and status.st_mode & stat.S_ISVTX
        is_open = status.st_mode & stat.S_IWOTH and not is_sticky
        if hasattr(os, "geteuid") and (is_open or status.st_uid not in (0, os.geteuid())):
            raise PermissionError(0, "other users can write in it", str(place))
    return folder
