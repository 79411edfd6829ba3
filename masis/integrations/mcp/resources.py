"""Runs and cases as resources: ``masis://run/{run_id}`` and ``masis://case/{case_id}``, each whole, as JSON.

Also the ids that begin as somebody types them, for the templates of resources and the arguments of prompts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from mcp import types as wire

from masis.errors import InputError
from masis.integrations.mcp.quoting import quoted_json, visible
from masis.integrations.mcp.reports import uri
from masis.integrations.mcp.tools import Tools, Watch, cursor_of, page_of
from masis.schema.run import Run
from masis.services.records import CaseFilter

JSON = "application/json"
PAGE = 50
"""Cases a page; each brings its newest finished run with it."""
MOST = 100
"""Values that the protocol takes in one completion."""

TEMPLATES = (
    ("masis://run/{run_id}", "run", "A run with all its records, as masis audit --out writes it."),
    ("masis://case/{case_id}", "case", "A case with where it stands and its runs; ids are percent-encoded."),
)


def listed(tools: Tools, cursor: str | None) -> wire.ListResourcesResult:
    """Return one page of cases, newest first, each with its newest run. Raises InputError for a wrong cursor."""
    page = page_of(cursor, "resources")
    found = tools.workbench.cases.find(CaseFilter(order="newest", page=page, size=PAGE))

    def resources() -> Iterator[wire.Resource]:
        for case in found.rows:
            about = f"“{visible(case.query)}”"
            yield _resource("case", case.id, f"{case.state}: {about}")
            if case.run_id:
                yield _resource("run", case.run_id, f"Audit of {about}")

    following = cursor_of(page + 1, "resources") if page * PAGE < found.total else None
    return wire.ListResourcesResult(resources=list(resources()), next_cursor=following)


def _resource(kind: str, identifier: str, title: str) -> wire.Resource:
    name = f"{kind} {visible(identifier)}"
    return wire.Resource(uri=uri(kind, identifier), name=name, title=title, mime_type=JSON)


def read(tools: Tools, given: str) -> str:
    """Return the JSON of a resource. Raises InputError for an address that names nothing, with near ones."""
    address = urlsplit(given)
    identifier = unquote(address.path.removeprefix("/"))
    if address.scheme == "masis" and identifier and not (address.query or address.fragment):
        if address.netloc == "run":
            found = tools.run(identifier)
            whole: dict[str, Any] = found.model_dump(mode="json")
            return quoted_json(whole if isinstance(found, Run) else {"finished": False, **whole})
        if address.netloc == "case":
            return quoted_json(tools.get_case(Watch(), identifier).model_dump(mode="json"))
    raise InputError(
        f"there is no resource '{visible(given)}'",
        cure="There are masis://run/RUN_ID and masis://case/CASE_ID, with ids percent-encoded.",
        field="uri",
    )


def completed(tools: Tools, argument: str, beginning: str) -> wire.Completion:
    """Return the ids that begin so, newest first; none for an argument that takes no id."""
    kinds: dict[str, Literal["case", "run"]] = {"case_id": "case", "run_id": "run"}
    if argument not in kinds or any("\ud800" <= char <= "\udfff" for char in beginning):  # half a character
        return wire.Completion(values=[], total=0, has_more=False)
    found = tools.workbench.store.evidence.ids_beginning(kinds[argument], beginning, MOST)
    return wire.Completion(values=list(found.ids), total=found.total, has_more=found.total > len(found.ids))
