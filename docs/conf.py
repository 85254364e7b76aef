"""How Sphinx builds the site: `tox run -e docs`. The reference pages are written first, from the code."""

import sys
from functools import partialmethod
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from nbclient import NotebookClient  # noqa: E402
from reference_pages import pages  # noqa: E402

import asyncfl  # noqa: E402 - found by the path set above
from benchmarks.commands.group import asyncfl as commands  # noqa: E402

project = "asyncfl-bench"
author = copyright = "The asyncfl-bench authors"  # noqa: A001 - Sphinx's name
try:
    release = metadata.version(project)
except metadata.PackageNotFoundError:
    release = "not installed"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
# Generated tables are included by other pages
INCLUDED = ("names", "peers", "readings", "repeats", "switches")
exclude_patterns = ["_build", *(f"reference/generated/{name}.md" for name in INCLUDED)]
suppress_warnings = ["misc.highlighting_failure"]  # Pygments knows no CSV
html_theme = "furo"
html_title = project
html_static_path = ["_static", "../reports/templates/tables.js"]  # tables.js sorts and filters
html_css_files = ["print.css", "tables.css"]
html_js_files = [(name, {"defer": "defer"}) for name in ("sortable.js", "tables.js")]
smartquotes = False  # options in prose keep their two dashes

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

nb_execution_mode = "force"  # outputs are never stored, so they are those of this version
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
# Outputs arrive in pieces of a hundred letters; nb_merge_streams would break the line after each.
NotebookClient.__init__ = partialmethod(NotebookClient.__init__, coalesce_streams=True)
nb_output_stderr = "remove"  # warnings of libraries about the machine that builds the site

default_role = "code"
highlight_language = "text"  # commands, and what they print
autodoc_member_order = "bysource"
autodoc_typehints = "signature"

GENERATED = HERE / "reference" / "generated"
GENERATED.mkdir(exist_ok=True)
for _name, _text in pages(commands, asyncfl).items():
    _page = GENERATED / f"{_name}.md"
    if not _page.exists() or _page.read_text() != _text:  # or Sphinx would read it again
        _page.write_text(_text)
