"""Provably optimal Bayesian-network classifiers.

The public names stand in ``__init__.pyi``, where type checkers and editors look for them. Each is
imported when it is first used, so ``import marginbn`` stays fast.
"""

from __future__ import annotations

import lazy_loader

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
