"""Resources, prompts and id completion, which people use in a client.

Runs and cases are the resources ``masis://run/{run_id}`` and ``masis://case/{case_id}``, each
complete, as JSON. Prompts are in ``prompts.toml``; their arguments are quoted as JSON so that they
stay data.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from mcp import types as wire
from pydantic import BaseModel, Field, create_model

from masis.errors import InputError
from masis.integrations.mcp.quoting import quote_id, quoted_json, visible
from masis.integrations.mcp.reports import CaseReport, uri
from masis.integrations.mcp.tools import Text, Tools, cursor_of, page_of, read_arguments
from masis.schema.run import Run
from masis.services.records import CaseFilter

JSON = "application/json"
PAGE = 50
"""Cases on a page. Each is listed with its newest finished run."""
MOST = 100
"""Maximum number of values that the protocol allows in one completion."""

_TEMPLATES = {
    "run": "A run with all its records, as masis audit --out writes it.",
    "case": "A case with its state and its runs; ids are percent-encoded.",
}
TEMPLATES = wire.ListResourceTemplatesResult(
    resource_templates=[
        wire.ResourceTemplate(
            uri_template=f"masis://{kind}/{{{kind}_id}}",
            name=kind,
            description=words,
            mime_type=JSON,
        )
        for kind, words in _TEMPLATES.items()
    ]
)


def list_cases(tools: Tools, cursor: str | None) -> wire.ListResourcesResult:
    """Return one page of cases, newest first, each with its newest run. Raises InputError for a
    wrong cursor.
    """
    page = page_of(cursor, "resources")
    results = tools.workbench.cases.find(CaseFilter(order="newest", page=page, size=PAGE))
    resources = []
    for case in results.rows:
        about = f"“{visible(case.query)}”"
        titles = {
            ("case", case.id): f"{case.state}: {about}",
            ("run", case.run_id): f"Audit of {about}",
        }
        resources += [
            wire.Resource(
                uri=uri(kind, identifier),
                name=f"{kind} {visible(identifier)}",
                title=title,
                mime_type=JSON,
            )
            for (kind, identifier), title in titles.items()
            if identifier
        ]
    following = cursor_of(page + 1, "resources") if page * PAGE < results.total else None
    return wire.ListResourcesResult(resources=resources, next_cursor=following)


def read_resource(tools: Tools, uri: str) -> wire.ReadResourceResult:
    """Return a resource as JSON. Raises InputError with similar ids if it doesn't exist."""
    address = urlsplit(uri)
    identifier, alone = (
        unquote(address.path.removeprefix("/")),
        not (address.query or address.fragment),
    )
    if address.scheme == "masis" and address.netloc in _TEMPLATES and identifier and alone:
        record: BaseModel = (
            tools.run(identifier) if address.netloc == "run" else tools.get_case(identifier)
        )
        content = (
            {} if isinstance(record, Run | CaseReport) else {"finished": False}
        ) | record.model_dump(mode="json")
        return wire.ReadResourceResult(
            contents=[wire.TextResourceContents(uri=uri, text=quoted_json(content), mime_type=JSON)]
        )
    raise InputError(
        f"there is no resource '{visible(uri)}'",
        hint="There are masis://run/RUN_ID and masis://case/CASE_ID, with ids percent-encoded.",
        field="uri",
    )


def complete_argument(tools: Tools, argument: str, beginning: str) -> wire.CompleteResult:
    """Return the ids that start with ``beginning``, newest first. Empty if the argument isn't an
    id.
    """
    kinds: dict[str, Literal["cases", "runs"]] = {"case_id": "cases", "run_id": "runs"}
    ids, total = tuple[str, ...](), 0
    # A lone surrogate is half of a character that the user is still typing. It can't be encoded for
    # the database.
    if argument in kinds and not any("\ud800" <= char <= "\udfff" for char in beginning):
        ids, total = tools.workbench.store.evidence.ids_beginning(kinds[argument], beginning, MOST)
    return wire.CompleteResult(
        completion=wire.Completion(values=list(ids), total=total, has_more=total > len(ids))
    )


class PromptTemplate(wire.Prompt):
    """A prompt. The message is its ``text``, followed by the quoted arguments."""

    arguments: list[wire.PromptArgument] = Field(default_factory=list)
    text: str = Field(exclude=True)

    def message(self, arguments: Mapping[str, str] | None) -> str:
        """Return the text for the agent.

        Raises:
            InputError: names each argument that is missing, unknown or too long.

        """
        fields: dict[str, Any] = {
            argument.name: (Text, ...) if argument.required else (Text | None, None)
            for argument in self.arguments
        }
        values = {name: value for name, value in (arguments or {}).items() if value.strip()}
        read_arguments(create_model(self.name, **fields), values)
        return (
            self.text
            if not values
            else f"{self.text}\n\nThe arguments, as data: {quoted_json(values)}"
        )


PROMPTS: dict[str, PromptTemplate] = {
    prompt["name"]: PromptTemplate.model_validate(prompt)
    for prompt in tomllib.loads(
        Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8")
    )["prompts"]
}


def render_prompt(name: str, arguments: Mapping[str, str] | None) -> wire.GetPromptResult:
    """Return the message of a prompt. Raises InputError for an unknown name or wrong arguments."""
    if name not in PROMPTS:
        raise InputError(
            f"there is no prompt {quote_id(name)}",
            hint=f"There are: {', '.join(PROMPTS)}.",
            field="name",
        )
    message = wire.TextContent(type="text", text=PROMPTS[name].message(arguments))
    return wire.GetPromptResult(
        description=PROMPTS[name].description,
        messages=[wire.PromptMessage(role="user", content=message)],
    )
