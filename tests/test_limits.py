"""How much is taken at once: every door refuses what passes a limit, names it, and takes what stays
within it.
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


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


def sized(name: str, over: int) -> dict[str, Any]:
    """A case that is at a limit, or over it by so much."""
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
        "nesting_levels": lambda: case("a", metadata={"deep": nested(limits.LEVELS - 2 + over)}),
    }[name]()


OF_CASES = (
    "question_characters",
    "answer_characters",
    "chunk_characters",
    "evidence_characters",
    "evidence_chunks",
)


class Doors:
    """Each door as a function that hands a case in: what it says where it refuses it, None where it
    takes it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.bench = folder, Workbench.open(folder / "doors.db")

    def http(self, given: dict[str, Any]) -> str | None:
        source = ProgramSource(name="chatbot", token_sha256=DIGEST)
        served = web.application(self.bench.ingestion, {"chatbot": source})
        with TestClient(served, base_url="http://127.0.0.1:8700") as client:
            answer = client.post("/v1/cases", json=given, headers=SEND)
        assert answer.status_code in (202, 422)
        return None if answer.status_code == 202 else str(answer.json()["error"]["problem"])

    def http_lines(self, given: dict[str, Any]) -> str | None:
        read = list(read_cases("ndjson", lines(given)))
        return next((str(each) for each in read if isinstance(each, InputError)), None)

    def page(self, given: dict[str, Any]) -> str | None:
        file = self.folder / "cases.jsonl"
        file.write_bytes(lines(given))
        steps = list(self.bench.imports.add_file(ADA, file, name=file.name))
        return next((str(each) for step in steps for each in step.problems), None)

    def command(self, given: dict[str, Any], *arguments: str) -> str | None:
        file = self.folder / "cases.jsonl"
        file.write_bytes(lines(given))
        arguments = arguments or ("import", str(file))
        done = CliRunner().invoke(main, [*arguments, "--db", str(self.folder / "command.db")])
        return None if done.exit_code == 0 else done.output

    def audit_command(self, given: dict[str, Any]) -> str | None:
        return self.command(
            given, "audit", str(self.folder / "cases.jsonl"), "--set", "depth=quick"
        )

    def mcp(self, given: dict[str, Any]) -> str | None:
        pytest.importorskip("mcp")
        from tests.integrations.with_mcp.mcp_server import inside

        with inside(self.folder / "doors.db", Settings(depth="quick")) as door:
            result = door.call("run_audit", {"case": given})
        return str(result.content[0].text) if result.is_error else None

    def api(self, given: dict[str, Any]) -> str | None:
        return self._raised(lambda: masis.run_audit(given, Settings(depth="quick")))

    def audited(self, given: dict[str, Any]) -> str | None:
        errors: list[Exception] = []

        @masis.audited(settings=Settings(depth="quick"), on_error=errors.append)
        def answer(question: str, evidence: Any) -> str:
            return str(given["answer"])

        answer(given["query"], given["evidence"])
        return str(errors[0]) if errors else None

    def draft(self, given: dict[str, Any]) -> str | None:
        sources = [{"id": each["id"], "content": each["text"]} for each in given["evidence"]]
        return self._raised(lambda: masis.critique_draft(given["query"], given["answer"], sources))

    def new_audit(self, given: dict[str, Any]) -> str | None:
        pasted = PastedEvidence(Case.model_validate(given).evidence, None)
        return self._raised(lambda: form.case_of(given["query"], pasted, given["answer"]))

    def _raised(self, work: Callable[[], object]) -> str | None:
        try:
            work()
        except InputError as error:
            return str(error)
        return None


DOORS = (
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
RECORDS = ("http", "http_lines", "page", "command", "audit_command", "mcp", "api")
"""Doors by which whole records come in, with what else they hold."""


@pytest.mark.parametrize("name", OF_CASES)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_a_case_over_a_limit_and_names_it(
    tmp_path: Path, door: str, name: str
) -> None:
    refused = getattr(Doors(tmp_path), door)(sized(name, 1))
    assert f"({name})" in refused


@pytest.mark.parametrize("door", RECORDS)
def test_every_door_refuses_what_is_nested_too_deeply(tmp_path: Path, door: str) -> None:
    doors = Doors(tmp_path)
    refused = getattr(doors, door)(sized("nesting_levels", 2))
    assert "(nesting_levels)" in refused


@pytest.mark.parametrize("name", [*OF_CASES, "nesting_levels"])
@pytest.mark.parametrize("door", ["http", "page"])
def test_a_case_at_a_limit_is_taken(tmp_path: Path, door: str, name: str) -> None:
    assert getattr(Doors(tmp_path), door)(sized(name, 0)) is None


def test_no_audit_can_be_set_to_check_more_than_a_door_takes() -> None:
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
