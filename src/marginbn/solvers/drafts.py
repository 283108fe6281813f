"""Kernels without machine code of their own.

numba makes each function a finished library: it links everything the function calls, optimises the
whole once more and turns it into machine code. A kernel that only other kernels call needs none of
that: its callers contain a copy of it anyway. So a *draft* stops at LLVM's representation, and the
work on it is done once, in the function that Python calls. That is a third of all compile time, and
the code is no slower: the optimiser sees the same functions.

Two more things spare compilations. A draft is compiled for the types of its arguments, never for
their values: numba would compile ``f(0)`` apart from ``f(k)``. And its wrapper for Python is made
when Python first calls it (in tests, mostly), apart from everything else.

This uses parts of numba that carry no promise. With versions that nobody has tried kernels are
compiled the usual way, only slower: the module is not even imported (``compile.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

# numba's annotations are incomplete
_dynfunc: Any = import_module("numba._dynfunc")
_passes: Any = DefaultPassBuilder
_pass: Any = register_pass
_without_value: Any = types.unliteral


class Draft(JITCodeLibrary):
    """A function and everything it calls, linked but neither optimised nor compiled."""

    def finalize(self) -> None:
        """Link; whoever links this library in turn does the rest."""
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(self, "_reload_init"):  # newer versions of numba
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


@_pass(mutates_CFG=True, analysis_only=False)
class DraftLowering(NativeLowering):
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


class DraftCompiler(CompilerBase):
    """numba's compiler with another last step."""

    def define_pipelines(self) -> list[Any]:
        """The usual passes, the lowering replaced."""
        passes = _passes.define_nopython_pipeline(self.state)
        passes.passes = [
            (DraftLowering if step is NativeLowering else step, description)
            for step, description in passes.passes
        ]
        passes._finalized = False
        passes.finalize()
        return [passes]


class DraftKernel(CPUDispatcher):
    """A function that others link as a draft.

    Parameters
    ----------
    function
        What is compiled.
    options
        Options of numba's decorator.
    for_python
        What to call when Python calls the kernel; made at the first such call.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        for_python: Callable[[], Callable[..., Any]],
    ) -> None:
        super().__init__(function, {}, options, pipeline_class=DraftCompiler)
        self._make_for_python = for_python
        self._for_python: Callable[..., Any] | None = None

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What a call from compiled code refers to: by the types of arguments, not their values."""
        plain = {name: _without_value(value) for name, value in kws.items()}
        return super().get_call_template(tuple(map(_without_value, args)), plain)

    def __call__(self, *args: Any) -> Any:
        """Called by Python."""
        if self._for_python is None:
            self._for_python = self._make_for_python()
        return self._for_python(*args)
