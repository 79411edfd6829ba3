"""How Sphinx builds the docs: ``make docs`` writes the site to ``build/docs``, and a warning is an
error.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from tools import figures

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

project = "MASIS Workbench"
version = release = _PROJECT["version"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["images"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"{project} {version}"
html_show_copyright = False
html_copy_source = False
highlight_language = "none"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"


def _titled(link: re.Match[str]) -> str:
    """Return a link with the title of its page: a reader of the site has no files."""
    title = (ROOT / "docs" / link[1]).read_text("utf-8").partition("\n")[0]
    return f"[{title.removeprefix('# ').partition(':')[0]}]({link[2]})"


def _name_files_of_the_repository(app: object, page: str, source: list[str]) -> None:
    """Show measured figures as text, and name what lies outside of the docs: the site doesn't hold
    it.
    """
    source[0] = figures.LINK.sub(lambda link: figures.figure(link[2], link[3]), source[0])
    source[0] = re.sub(r"\[([\w-]+\.md)\]\(((?:[\w-]+\.md)?(?:#[\w-]+)?)\)", _titled, source[0])
    source[0] = re.sub(r"\[[^\]]+\]\(\.\./([^)\s]+)\)", r"`\1`", source[0])


def _list_fields(
    app: object, kind: str, name: str, documented: Any, options: object, lines: list[str]
) -> None:
    """List the fields of a record under what its docstring says (settings have a page); leave out a
    module's.
    """
    if kind == "module":
        lines.clear()
    if kind == "class" and hasattr(documented, "model_fields") and name != "masis.Settings":
        named = (f"``{field}``" for field in documented.model_fields)
        lines += ["", f"Fields: {', '.join(named)}."]


def _without_fields(
    app: object, kind: str, name: str, documented: Any, *_: object
) -> tuple[str, str] | None:
    """Leave a record's fields out of its signature, where they fill half a page."""
    return ("(**fields)", "") if kind == "class" and hasattr(documented, "model_fields") else None


def _skip(app: object, kind: str, name: str, *_: object) -> bool | None:
    """Leave out what pydantic adds to each record."""
    return True if name == "model_config" else None


def setup(app: Any) -> None:
    """Register what is done to each page before it is read, and to each docstring."""
    app.connect("source-read", _name_files_of_the_repository)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _list_fields)
    app.connect("autodoc-process-signature", _without_fields)
