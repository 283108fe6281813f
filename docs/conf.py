"""Settings of the documentation; ``scripts/docs`` builds it.

Nothing is downloaded while building, and the pages need no network either: mathematics is drawn
by a copy of MathJax that lies beside them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "agg")
# the map is drawn from the list, and by the reader of imports, that the layer test uses
sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests" / "support")]

import typer
from layers_map import draw_map, list_modules

import marginbn
from marginbn.cli import app as command_line

project = "marginbn"
author = "The marginbn developers"
project_copyright = author
version = release = marginbn.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
default_role = "code"  # some docstrings write names in single quotes
highlight_language = "python3"

# -- references ------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    # members of these bases are described where they come from
    "inherited-members": "BaseEstimator, ClassifierMixin, TransformerMixin, "
    "OneToOneFeatureMixin, _SetOutputMixin, _MetadataRequester, Sequence, Exception, tuple, "
    "str, object",
    "exclude-members": "set_fit_request, set_score_request, set_transform_request, "
    "set_inverse_transform_request",
}
napoleon_google_docstring = False
napoleon_use_param = False  # types in docstrings are words for people, not references
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_preprocess_types = False
python_use_unqualified_type_names = True

# References into this package must name something that exists (see resolve_home); those into others
# are not looked up, because the lists of their pages would have to be downloaded.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!marginbn).*")]

# -- gallery ---------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"customers\.py",  # makes the table of the first story
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,  # its page would load scripts from elsewhere
    "remove_config_comments": True,
    "doc_module": ("marginbn",),
    "reference_url": {"marginbn": None},
    "backreferences_dir": None,
    "matplotlib_animations": False,
    "capture_repr": (),
    "image_scrapers": ("matplotlib",),
}

# -- pages -----------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"marginbn {release}"
html_static_path = ["_static"]
html_css_files = ["marginbn.css"]
html_favicon = "_static/favicon.svg"
html_show_sphinx = False
html_theme_options = {
    "light_logo": "logo-light.svg",
    "dark_logo": "logo-dark.svg",
    "sidebar_hide_name": True,
    "light_css_variables": {
        "color-brand-primary": "#1f5f99",
        "color-brand-content": "#1f5f99",
        "color-brand-visited": "#5b4b8a",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7db8ea",
        "color-brand-content": "#7db8ea",
        "color-brand-visited": "#b7a6e6",
    },
}
pygments_style = "tango"
pygments_dark_style = "monokai"

_offline = find_spec("sphinx-mathjax-offline")
if _offline is not None and _offline.origin is not None:
    # One file that draws formulas as SVG and needs no fonts; else MathJax comes from its site.
    html_static_path.append(str(Path(_offline.origin).parent / "static" / "mathjax" / "tex-svg.js"))
    mathjax_path = "tex-svg.js"
mathjax3_config = {"svg": {"scale": 0.95}}

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3


def write_command_help(app: Any) -> None:
    """The help of every command, as it is now, for the page about the command line."""
    program = typer.main.get_command(command_line)
    named = dict(program.commands)
    named |= {f"problem {name}": command for name, command in named["problem"].commands.items()}
    sections = []
    for name, command in named.items():
        with command.make_context(f"marginbn {name}", [], resilient_parsing=True) as context:
            context.terminal_width = 88
            text = textwrap.indent(command.get_help(context), "   ")
        title = f"marginbn {name}"
        sections.append(f"{title}\n{'~' * len(title)}\n\n.. code-block:: text\n\n{text}\n")
    target = Path(app.srcdir) / "api" / "generated" / "commands.txt"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(sections), encoding="utf-8")


def write_architecture(app: Any) -> None:
    """The map of the layers and the list of their modules, for the page about the architecture."""
    target = Path(app.srcdir) / "api" / "generated"
    target.mkdir(exist_ok=True)
    (target / "layers.svg").write_text(draw_map(), encoding="utf-8")
    (target / "modules.txt").write_text(list_modules(), encoding="utf-8")


def write_results(app: Any) -> None:
    """The pages of results and benchmarks with their figures, made of the committed records."""
    for module, page in (
        ("experiments", "page"),
        ("experiments", "unseen-page"),
        ("benchmarks", "page"),
    ):
        subprocess.run(
            [sys.executable, "-m", module, page], cwd=Path(app.srcdir).parent, check=True
        )


def resolve_home(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Link a name given with the module it is written in to where users import it from.

    What exists but has no page, such as an internal type in a signature, stays plain text; Sphinx
    complains about the rest.
    """
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("marginbn."):
        return None
    public = f"marginbn.{target.rpartition('.')[2]}"
    kind, page = node["reftype"], node["refdoc"]
    found = env.get_domain("py").resolve_xref(env, page, app.builder, kind, public, node, contnode)
    return found or (contnode if exists(target) else None)


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(import_module(module), attribute) or import_module(name) is not None
    except ImportError:
        return False


_ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[\w+\]\]")


def shorten_arrays(app: Any, what: str, name: str, item: Any, options: Any, *texts: Any) -> Any:
    """Arrays in signatures are written as ``ndarray``; docstrings tell type and shape."""
    return tuple(text and _ARRAY.sub("ndarray", text) for text in texts)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", shorten_arrays)
    app.connect("builder-inited", write_command_help)
    app.connect("builder-inited", write_architecture)
    app.connect("builder-inited", write_results)
    app.connect("missing-reference", resolve_home)
