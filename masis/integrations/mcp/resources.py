"""Runs and cases as resources: ``masis://run/{run_id}`` and ``masis://case/{case_id}``, each whole, as JSON."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from masis.errors import InputError
from masis.integrations.mcp.arguments import cursor, page_of
from masis.integrations.mcp.quoting import quoted_json, visible
from masis.integrations.mcp.reports import case_uri, run_uri
from masis.integrations.mcp.tool_handlers import ToolHandlers
from masis.schema.run import Run
from masis.services.records import CaseFilter

JSON = "application/json"
PAGE = 50
"""Cases a page; each brings its newest finished run with it."""

TEMPLATES = (
    ("masis://run/{run_id}", "run", "A run with all its records, as masis audit --out writes it."),
    ("masis://case/{case_id}", "case", "A case with where it stands and its runs; ids are percent-encoded."),
)


class Listed(NamedTuple):
    """A resource in a list. ``title`` quotes the question."""

    uri: str
    name: str
    title: str


class Page(NamedTuple):
    """One page of the list."""

    listed: tuple[Listed, ...]
    next_cursor: str | None


def listed(handlers: ToolHandlers, given: str | None) -> Page:
    """One page of cases, newest first, each with its newest finished run. Raises InputError for a wrong cursor."""
    page = page_of(given, "resources")
    found = handlers.workbench.cases.find(CaseFilter(order="newest", page=page, size=PAGE))
    rows: list[Listed] = []
    for case in found.rows:
        title = f"{case.state}: “{visible(case.query)}”"
        rows.append(Listed(case_uri(case.id), f"case {visible(case.id)}", title))
        if case.run_id:
            rows.append(
                Listed(run_uri(case.run_id), f"run {visible(case.run_id)}", f"Audit of “{visible(case.query)}”")
            )
    return Page(tuple(rows), cursor(page + 1, "resources") if page * PAGE < found.total else None)


def read(handlers: ToolHandlers, uri: str) -> str:
    """The JSON of a resource. Raises InputError for an address that names nothing, with near ones."""
    address = urlsplit(uri)
    identifier = unquote(address.path.removeprefix("/"))
    if address.scheme == "masis" and identifier and not (address.query or address.fragment):
        if address.netloc == "run":
            found = handlers.run(identifier)
            whole: dict[str, Any] = found.model_dump(mode="json")
            return quoted_json(whole if isinstance(found, Run) else {"finished": False, **whole})
        if address.netloc == "case":
            return quoted_json(handlers.case(identifier).model_dump(mode="json"))
    raise InputError(
        f"there is no resource '{visible(uri)}'",
        cure="There are masis://run/RUN_ID and masis://case/CASE_ID, with ids percent-encoded.",
        field="uri",
    )
