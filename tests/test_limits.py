"""The limits on the size of a case. Every way to add a case rejects one that exceeds a limit, names
the limit, and accepts a case at the limit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import masis
from masis.cli import main
from masis.datasets.readers.pasted import PastedEvidence
from masis.errors import InputError
from masis.schema import limits
from masis.schema.case import Case
from masis.schema.limits import LIMITS
from masis.server import ingestion as web
from masis.services import Workbench
from masis.services.arrivals.ingestion import ProgramSource, new_token, read_cases
from masis.settings import Settings
from masis.ui.new_audit import form
from tests.cli.running import case, lines
from tests.reviewing import ADA

TOKEN, DIGEST = new_token()
SEND = {"authorization": f"Bearer {TOKEN}"}


def nest_lists(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


def case_of_size(name: str, over: int) -> dict[str, Any]:
    """Return a case that exceeds a limit by ``over``, or is exactly at it if ``over`` is 0."""
    chunk = {"id": "1", "text": "The bridge is 120 metres long."}
    parts = limits.EVIDENCE // limits.CHUNK
    return {
        "question_characters": lambda: case("a", query="q" * (limits.QUESTION + over)),
        "answer_characters": lambda: case("a", answer="a" * (limits.ANSWER + over)),
        "chunk_characters": lambda: case(
            "a", evidence=[{**chunk, "text": "e" * (limits.CHUNK + over)}]
        ),
        "evidence_characters": lambda: case(
            "a",
            evidence=[{"id": str(n), "text": "e" * limits.CHUNK} for n in range(parts)]
            + [{"id": "over", "text": "e" * over}] * bool(over),
        ),
        "evidence_chunks": lambda: case(
            "a", evidence=[{"id": str(n), "text": "So."} for n in range(limits.CHUNKS + over)]
        ),
        "nesting_levels": lambda: case(
            "a", metadata={"deep": nest_lists(limits.LEVELS - 2 + over)}
        ),
    }[name]()


CASE_LIMITS = (
    "question_characters",
    "answer_characters",
    "chunk_characters",
    "evidence_characters",
    "evidence_chunks",
)


class Entries:
    """The ways to add a case. Each method returns the message of a rejection, or None if the case
    was accepted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.bench = folder, Workbench.open(folder / "doors.db")

    def http(self, record: dict[str, Any]) -> str | None:
        source = ProgramSource(name="chatbot", token_sha256=DIGEST)
        application = web.application(self.bench.ingestion, {"chatbot": source})
        with TestClient(application, base_url="http://127.0.0.1:8700") as client:
            response = client.post("/v1/cases", json=record, headers=SEND)
        assert response.status_code in (202, 422)
        return None if response.status_code == 202 else str(response.json()["error"]["problem"])

    def http_lines(self, record: dict[str, Any]) -> str | None:
        results = list(read_cases("ndjson", lines(record)))
        return next((str(result) for result in results if isinstance(result, InputError)), None)

    def page(self, record: dict[str, Any]) -> str | None:
        file = self.folder / "cases.jsonl"
        file.write_bytes(lines(record))
        steps = list(self.bench.imports.add_file(ADA, file, name=file.name))
        return next((str(problem) for step in steps for problem in step.problems), None)

    def command(self, record: dict[str, Any], *arguments: str) -> str | None:
        file = self.folder / "cases.jsonl"
        file.write_bytes(lines(record))
        arguments = arguments or ("import", str(file))
        result = CliRunner().invoke(main, [*arguments, "--db", str(self.folder / "command.db")])
        return None if result.exit_code == 0 else result.output

    def audit_command(self, record: dict[str, Any]) -> str | None:
        return self.command(
            record, "audit", str(self.folder / "cases.jsonl"), "--set", "depth=quick"
        )

    def mcp(self, record: dict[str, Any]) -> str | None:
        pytest.importorskip("mcp")
        from tests.integrations.with_mcp.mcp_server import inside

        with inside(self.folder / "doors.db", Settings(depth="quick")) as server:
            result = server.call("run_audit", {"case": record})
        return str(result.content[0].text) if result.is_error else None

    def api(self, record: dict[str, Any]) -> str | None:
        return self._find_error(lambda: masis.run_audit(record, Settings(depth="quick")))

    def audited(self, record: dict[str, Any]) -> str | None:
        errors: list[Exception] = []

        @masis.audited(settings=Settings(depth="quick"), on_error=errors.append)
        def answer(question: str, evidence: Any) -> str:
            return str(record["answer"])

        answer(record["query"], record["evidence"])
        return str(errors[0]) if errors else None

    def draft(self, record: dict[str, Any]) -> str | None:
        sources = [{"id": chunk["id"], "content": chunk["text"]} for chunk in record["evidence"]]
        return self._find_error(
            lambda: masis.critique_draft(record["query"], record["answer"], sources)
        )

    def new_audit(self, record: dict[str, Any]) -> str | None:
        pasted = PastedEvidence(Case.model_validate(record).evidence, None)
        return self._find_error(lambda: form.case_of(record["query"], pasted, record["answer"]))

    def _find_error(self, function: Callable[[], object]) -> str | None:
        try:
            function()
        except InputError as error:
            return str(error)
        return None


ENTRIES = (
    "http",
    "http_lines",
    "page",
    "command",
    "audit_command",
    "mcp",
    "api",
    "audited",
    "draft",
    "new_audit",
)
RECORD_ENTRIES = ("http", "http_lines", "page", "command", "audit_command", "mcp", "api")
"""The ways to add a whole record, with its other fields."""


@pytest.mark.parametrize("name", CASE_LIMITS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_rejects_a_case_over_a_limit_and_names_it(
    tmp_path: Path, entry: str, name: str
) -> None:
    rejection = getattr(Entries(tmp_path), entry)(case_of_size(name, 1))
    assert f"({name})" in rejection


@pytest.mark.parametrize("entry", RECORD_ENTRIES)
def test_every_entry_rejects_a_record_that_is_nested_too_deeply(tmp_path: Path, entry: str) -> None:
    entries = Entries(tmp_path)
    rejection = getattr(entries, entry)(case_of_size("nesting_levels", 2))
    assert "(nesting_levels)" in rejection


@pytest.mark.parametrize("name", [*CASE_LIMITS, "nesting_levels"])
@pytest.mark.parametrize("entry", ["http", "page"])
def test_a_case_at_a_limit_is_accepted(tmp_path: Path, entry: str, name: str) -> None:
    assert getattr(Entries(tmp_path), entry)(case_of_size(name, 0)) is None


def test_no_setting_of_an_audit_can_exceed_the_limit_of_an_entry() -> None:
    bounded = [limit for limit in LIMITS if limit.setting]
    assert len(bounded) == 3
    for limit in bounded:
        assert getattr(Settings(), limit.setting) <= limit.most
        assert getattr(Settings(**{limit.setting: limit.most}), limit.setting) == limit.most
        with pytest.raises(ValueError, match=limit.setting):
            Settings(**{limit.setting: limit.most + 1})
    for name in ("max_body_bytes", "max_cases", "requests_per_minute", "burst"):
        (declared,) = (limit for limit in LIMITS if limit.name == name)
        assert ProgramSource.model_fields[name].default == declared.most
    assert {limit.status for limit in LIMITS} == {413, 422, 429}
