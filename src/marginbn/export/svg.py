"""A network as a picture in SVG, on its own or in HTML; any name is harmless."""

from __future__ import annotations

from marginbn.atomic import PathLike, write_text
from marginbn.network.network import BayesianNetwork
from marginbn.network.svg import draw_structure


def network_to_svg(network: BayesianNetwork) -> str:
    """SVG text of the structure; pointing at a variable shows its name, parents and states.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn.data.encode import Variable
    >>> from marginbn.problem.structure import Structure
    >>> network = BayesianNetwork(
    ...     Structure(((),)), (Variable("<class>", ("a", "b")),), (np.log([0.5, 0.5]),)
    ... )
    >>> "<class>" in network_to_svg(network), "&lt;class&gt;" in network_to_svg(network)
    (False, True)
    """
    return draw_structure(network.structure, network.variables)


def network_to_html(network: BayesianNetwork) -> str:
    """The picture with a caption, as notebooks show a network."""
    return network._repr_html_()


def save_svg(network: BayesianNetwork, path: PathLike) -> None:
    """Write :func:`network_to_svg` to a file."""
    write_text(path, f"{network_to_svg(network)}\n")
