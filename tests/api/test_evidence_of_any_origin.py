"""Evidence as texts, mappings, LangChain documents and LlamaIndex nodes, wherever it is taken;
errors in words.
"""

from __future__ import annotations

import datetime
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

import masis
from masis.api import audits
from masis.errors import InputError, SettingsError, StepError
from masis.offline.matching.evidence_index import EvidenceIndex
from masis.schema.case import Case, evidence_of
from masis.settings import ROLES, Settings
from tests.served_replies import Behaviour, Request
from tests.serving_models import ModelServer
from tests.waiting import PATIENCE_S, until

TEXT = "The bridge is 120 metres long."
OTHER = "It was opened in 1931."


class Document:
    """As ``langchain_core.documents.Document`` (1.2): iterable, for it is a pydantic model."""

    def __init__(self, text: str, name: str | None = None, **metadata: Any) -> None:
        self.page_content, self.id, self.metadata = text, name, metadata

    def __iter__(self) -> Any:
        return iter(vars(self).items())


class Node:
    """As ``llama_index.core.schema.TextNode`` (0.14)."""

    def __init__(self, text: str, name: str, **metadata: Any) -> None:
        self.text, self.node_id, self.metadata = text, name, metadata

    def get_content(self) -> str:
        return self.text


class NodeWithScore:
    def __init__(self, node: Node, score: float) -> None:
        self.node, self.score = node, score


FORMS: dict[str, Any] = {
    "texts": [TEXT, OTHER],
    "mappings": [{"id": "chunk_1", "text": TEXT}, {"id": "chunk_2", "text": OTHER}],
    "mappings of another tool": [{"page_content": TEXT}, {"content": OTHER}],
    "langchain": [Document(TEXT, "chunk_1"), Document(OTHER, "chunk_2")],
    "llamaindex": [NodeWithScore(Node(TEXT, "chunk_1"), 0.9), Node(OTHER, "chunk_2")],
    "with scores": [(Document(TEXT, "chunk_1"), 0.9), (Document(OTHER), 0.1)],
}
TAKERS: dict[str, Callable[[Any], object]] = {
    "Case": lambda given: masis.Case(id="a", query="How long?", evidence=given).evidence,
    "run_audit": lambda given: masis.run_audit(
        {"id": "a", "query": "How long?", "answer": f"{TEXT[:-1]} [1].", "evidence": given}
    ),
    "audit_many": lambda given: masis.audit_many(
        [{"id": "a", "query": "How long?", "evidence": given}], progress=False
    ),
    "audit_citations": lambda given: masis.audit_citations("So [1].", given),
    "verify_claims": lambda given: masis.verify_claims([TEXT], given),
    "critique_draft": lambda given: masis.critique_draft(
        "How long?", f"{TEXT} {OTHER} That is all.", given
    ),
    "assert_grounded": lambda given: masis.assert_grounded(f"{TEXT[:-1]} [1].", given),
    "audited": lambda given: masis.audited(lambda question, documents: f"{TEXT[:-1]} [1].")(
        "How long?", given
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_case_holds_evidence_of_any_origin(form: str) -> None:
    evidence = masis.Case(id="a", query="How long?", evidence=FORMS[form]).evidence
    assert [(chunk.id, chunk.text) for chunk in evidence] == [("chunk_1", TEXT), ("chunk_2", OTHER)]


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("form", ["texts", "langchain", "llamaindex"])
def test_every_function_accepts_evidence_of_any_origin(taker: str, form: str) -> None:
    assert TAKERS[taker](FORMS[form])


def test_a_documents_source_score_and_metadata_are_kept() -> None:
    document = Document(TEXT, source="bridges.txt", page=4, at=datetime.date(2024, 1, 1), score=0.5)
    (chunk,) = evidence_of([document])
    assert chunk.model_dump() == {
        "id": "chunk_1",
        "text": TEXT,
        "source": "bridges.txt",
        "score": 0.5,
        "metadata": {"source": "bridges.txt", "page": 4, "score": 0.5},
    }
    case = masis.Case(id="a", query="How long?", evidence=[document])
    assert Case.model_validate(case.to_json_dict()).digest() == case.digest()


def test_documents_with_one_id_are_kept_separate_unless_equal() -> None:
    parts = [Document(TEXT, doc_id="d"), Document(OTHER, doc_id="d"), Document(TEXT, doc_id="d")]
    assert [(chunk.id, chunk.text) for chunk in evidence_of(parts)] == [("d", TEXT), ("d#2", OTHER)]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: masis.Evidence(text=TEXT), "id: is missing."),
        (lambda: masis.Abstract(id="a", year="soon"), "year: is 'soon': "),
        (lambda: masis.run_audit(TEXT), "case: is text, not a case."),
        (lambda: masis.run_audit({"id": "a", "query": "Why?"}), "case.evidence: is missing."),
        (
            lambda: masis.run_audit(masis.Case(id="a", query="W", evidence=[TEXT]), {}),
            "settings: is an object, not Set",
        ),
        (lambda: masis.audit_many(TEXT), "cases: is one case, not several."),
        (lambda: masis.audit_many([{"id": True}], progress=False), "cases[0].id: is true"),
        (lambda: masis.audit_citations(5, [TEXT]), "answer: is a number, not text."),
        (lambda: masis.runs_to_pandas([5]), "runs[0]: is a number, not a Run."),
    ],
)
def test_invalid_arguments_are_reported_with_field_and_hint(
    make: Callable[[], object], says: str
) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        make()


def test_invalid_settings_are_reported_without_their_value() -> None:
    with pytest.raises(
        SettingsError, match=r"^max_iterations: input should be less than or equal to 5\.$"
    ):
        masis.Settings(max_iterations=99)
    with pytest.raises(SettingsError) as raised:
        masis.Settings(critic={"key": "sk-secret"})
    assert "secret" not in str(raised.value)


CHUNK = {"id": "1", "text": "The bridge is 120 metres long.", "page": 3}
CLAIM = "The bridge is 120 metres long."


@pytest.mark.parametrize(
    ("claims", "evidence", "told"),
    [
        (CLAIM, [CHUNK], "claims: is one text"),
        (
            [CLAIM],
            "The bridge is 120 metres long.",
            "evidence: is a single item, not a list of chunks",
        ),
        ([CLAIM], CHUNK, "evidence: is a single item, not a list of chunks"),
        ([CLAIM], [CHUNK, 7], r"evidence\[1\]: isn't a chunk of evidence"),
        ([CLAIM], [{"id": True, "text": "x"}], r"evidence\[0\]\.id: is true, must be text"),
        ([CLAIM, 7], [CHUNK], r"claims\[1\]: is a number, not text"),
    ],
)
def test_a_string_isnt_read_as_a_list_of_characters(claims: Any, evidence: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        masis.verify_claims(claims, evidence)


def test_verifying_many_claims_can_be_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assessed, left = list[str](), threading.Event()
    assess = EvidenceIndex.assess

    def waiting(self: Any, claim: str, *arguments: Any, **context: Any) -> Any:
        assessed.append(claim)
        if len(assessed) == 3:
            left.wait(PATIENCE_S)
        return assess(self, claim, *arguments, **context)

    monkeypatch.setattr(EvidenceIndex, "assess", waiting)
    with pytest.raises(StepError, match="stopped"):
        audits.verify_claims([TEXT] * 100, [CHUNK], cancelled=lambda: len(assessed) == 3)
    left.set()
    until(
        lambda: all(thread.name != "claims" for thread in threading.enumerate()), "the check ends"
    )
    assert len(assessed) == 3
    assert len(audits.verify_claims([TEXT] * 25, [CHUNK])) == 25


def test_no_model_is_called_after_a_stop() -> None:
    def slow(request: Request) -> Behaviour:
        return Behaviour(hang_s=600.0)

    with ModelServer(slow) as server:
        here = {"kind": "openai", "address": server.address}
        models = dict.fromkeys(ROLES, "offline") | {"verifier": "here:slow"}
        settings = Settings.model_validate(
            {**models, "providers": {"here": here}, "call_deadline_s": 60}
        )
        with pytest.raises(StepError, match="stopped"):
            audits.verify_claims(
                [CLAIM], [CHUNK], settings, cancelled=lambda: bool(server.counts["requests"])
            )
        assert server.counts["requests"] == 1
