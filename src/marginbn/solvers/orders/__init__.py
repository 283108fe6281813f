"""Decomposable scores as sorted lists of parent sets: bounds by dual ascent, search over orders.

Importing this package is cheap; numba is loaded when :func:`warm_up` is called.
"""

from __future__ import annotations


def warm_up() -> None:
    """Compile or load the kernels by calling them once; later calls return at once."""
    import numpy as np

    from marginbn.solvers.compile import prepare
    from marginbn.solvers.orders.ascent import dual_ascent
    from marginbn.solvers.orders.kernels.word_sets import Lists
    from marginbn.solvers.orders.local_search import OrderSearch
    from marginbn.solvers.orders.parent_lists import ParentLists

    def exercise() -> None:
        lists = Lists(
            np.array([0, 2, 4]),
            np.array([[2], [0], [1], [0]], dtype=np.uint64),
            np.array([0.0, 1.0, 0.0, 2.0]),
        )
        parents = ParentLists(lists, np.arange(4), np.zeros(2), 3.0)
        dual_ascent(parents, passes=1, rounds=1)
        OrderSearch(parents, 0).search(1)

    prepare(__package__, exercise, "the search over orders, once; this takes some seconds")
