"""Mutation testing: small errors are planted in a module, one at a time, and its tests must notice.

``scripts/mutants [MODULE ...]`` goes through the modules of :mod:`mutation.judges`, whose numbers
everything else relies on; ``mutation/REPORT.md`` lists what survived and why it may.

**Why not mutmut.** Its release 3.8 leaves decorated functions alone: compiled kernels, properties
and cached properties, which is where most of the arithmetic of these modules is (6 mutants of
``verify/forests.py`` instead of 114), and constants of modules. It also asks pytest for something
that pytest 9.2 no longer has. What is needed here is little: mutants come from the syntax tree
(:mod:`mutation.mutants`), each is judged by a forked process in which the module is replaced in
memory (:mod:`mutation.trial`), no file is ever changed.

**Compiled kernels.** Mutants of them are judged as plain Python, without numba: its cache looks at
the files, which do not change, and would run the machine code of the original, or worse, keep that
of a mutant.
"""
