"""The network as a picture with matplotlib, the extra ``plot``."""

from __future__ import annotations

from marginbn.plotting.graph import plot_network

__all__ = ["plot_network"]
