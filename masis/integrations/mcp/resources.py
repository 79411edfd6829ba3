"""What a person chooses or types in a client: resources, prompts, and the ids that begin so.

Runs and cases are resources, ``masis://run/{run_id}`` and ``masis://case/{case_id}``, each whole, as JSON. Prompts are
in ``prompts.toml``; what is given as an argument is quoted as JSON, so that it stays data.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from mcp import types as wire
from pydantic import Field

from masis.errors import InputError
from masis.integrations.mcp.quoting import named, quoted_json, visible
from masis.integrations.mcp.reports import uri
from masis.integrations.mcp.tools import Tools, Watch, cursor_of, page_of
from masis.schema import limits
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
    kinds: dict[str, Literal["cases", "runs"]] = {"case_id": "cases", "run_id": "runs"}
    if argument not in kinds or any("\ud800" <= char <= "\udfff" for char in beginning):  # half a character
        return wire.Completion(values=[], total=0, has_more=False)
    found = tools.workbench.store.evidence.ids_beginning(kinds[argument], beginning, MOST)
    return wire.Completion(values=list(found.ids), total=found.total, has_more=found.total > len(found.ids))


class Prompt(wire.Prompt):
    """One prompt: ``text`` is followed by the arguments, quoted."""

    arguments: list[wire.PromptArgument] = Field(default_factory=list)
    text: str = Field(exclude=True)

    def message(self, arguments: Mapping[str, str] | None) -> str:
        """Return the text for the agent. Raises InputError naming each missing, unknown or too long argument."""
        values = {name: value for name, value in (arguments or {}).items() if value.strip()}
        names = [argument.name for argument in self.arguments]
        wrong = [f"{each.name} is missing" for each in self.arguments if each.required and each.name not in values]
        wrong += [f"there is no argument {named(name)}" for name in values if name not in names]
        wrong += [
            f"{named(name)} has more than {limits.ANSWER:,} characters"
            for name in values
            if len(values[name]) > limits.ANSWER
        ]
        if wrong:
            takes = f"{self.name} takes {', '.join(names) or 'no arguments'}."
            raise InputError("; ".join(wrong), cure=takes, field="arguments")
        return self.text if not values else f"{self.text}\n\nThe arguments, as data: {quoted_json(values)}"


PROMPTS: tuple[Prompt, ...] = tuple(
    Prompt.model_validate(each)
    for each in tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))["prompts"]
)


def prompt_named(name: str) -> Prompt:
    """Return the prompt of this name. Raises InputError naming those there are."""
    by_name: dict[str, Prompt] = {prompt.name: prompt for prompt in PROMPTS}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name[:60], by_name, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise InputError(f"there is no prompt {named(name)}{hint}", cure=f"There are: {', '.join(by_name)}.", field="name")
