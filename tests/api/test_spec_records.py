"""The records of the draft-critique spec field by field, and where this one departs from the spec's
code.
"""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import BaseModel

from masis import audit_citations
from masis.api.draft_critique import critique_draft
from masis.schema import drafts
from masis.schema.case import Evidence
from tests.api import asker as script
from tests.llm import canned
from tests.llm.scripted_asker import ScriptedAsker
from tests.scripted import MAJOR, ScriptedCritic, judgement_with, roles

QUERY = "How long is the bridge?"
DRAFT = "The bridge is 130 metres long. The bridge is made of steel."
SOURCES: list[dict[str, Any]] = [
    {"id": "1", "content": "The bridge is 120 metres long.", "type": "doc"},
    {
        "id": "2",
        "content": "The bridge is made of steel.",
        "type": "code",
        "path": "a/b.md",
        "relevanceScore": 0.5,
    },
]


def names(model: type[BaseModel]) -> set[str]:
    """The names of the fields as the spec writes them."""
    return {field.alias or name for name, field in model.model_fields.items()}


def required_fields(model: type[BaseModel]) -> set[str]:
    return {
        field.alias or name for name, field in model.model_fields.items() if field.is_required()
    }


@pytest.mark.spec("DRAFT-CRITIQUE-REQUEST")
def test_a_request_has_the_fields_of_the_spec() -> None:
    assert names(drafts.DraftCritiqueRequest) == {"query", "draft", "sources", "options"}
    assert required_fields(drafts.DraftCritiqueRequest) == {"query", "draft", "sources"}
    options = {
        "strictness",
        "checkFactual",
        "checkCompleteness",
        "checkContradictions",
        "autoRevise",
        "maxRevisions",
    }
    assert names(drafts.CritiqueOptions) == options


@pytest.mark.spec("DRAFT-CRITIQUE-SOURCE")
def test_a_source_has_the_fields_of_the_spec() -> None:
    assert names(drafts.SourceDocument) == {"id", "content", "type", "path", "relevanceScore"}
    assert {"path", "relevanceScore"}.isdisjoint(required_fields(drafts.SourceDocument))
    assert drafts.SourceDocument.model_validate(SOURCES[1]).model_dump(by_alias=True) == SOURCES[1]


@pytest.mark.spec("DRAFT-CRITIQUE-RESULT", "DRAFT-CRITIQUE-METADATA", "DRAFT-CRITIQUE-SUGGESTIONS")
def test_a_result_has_the_fields_of_the_spec() -> None:
    found = critique_draft(QUERY, DRAFT, SOURCES, {"autoRevise": True})
    written = found.model_dump(by_alias=True)
    assert {
        "isValid",
        "confidence",
        "issues",
        "suggestions",
        "revisedDraft",
        "metadata",
    } <= written.keys()
    assert (found.is_valid, bool(found.issues)) == (False, True)
    assert "120" in found.revised_draft
    metadata = written["metadata"]
    assert (metadata["factsChecked"], metadata["factsVerified"]) == (2, 1)
    assert sorted(metadata["sourcesUsed"]) == ["1", "2"]
    assert metadata["critiqueTimeMs"] > 0


@pytest.mark.spec("DRAFT-CRITIQUE-SUGGESTIONS")
def test_suggestions_come_from_the_issues() -> None:
    without = MAJOR._replace(
        suggestion="", description="It is unclear.", quote="The bridge is made of steel."
    )
    critic = ScriptedCritic((judgement_with(0.5, raw_issues=(MAJOR, without)),))
    found = critique_draft(QUERY, DRAFT, SOURCES, roles=roles(critic=critic))
    assert len(found.issues) == 2
    assert [issue.suggestion for issue in found.issues if issue.suggestion] == ["Mend it."]
    assert found.suggestions == ("Mend it.",)


@pytest.mark.spec("DRAFT-CRITIQUE-ISSUE")
def test_an_issue_has_the_fields_of_the_spec() -> None:
    assert names(drafts.CritiqueIssue) == {
        "type", "severity", "description", "location", "suggestion", "relatedSource",
    }  # fmt: skip
    assert required_fields(drafts.CritiqueIssue) == {"type", "severity", "description"}
    kinds = {"hallucination", "unsupported", "incomplete", "contradiction", "outdated"}
    assert set(get_args(drafts.DraftIssueType)) == kinds
    assert set(get_args(drafts.DraftSeverity)) == {"low", "medium", "high"}
    issue = critique_draft(QUERY, DRAFT, SOURCES).issues[0]
    assert issue.location == "The bridge is 130 metres long."
    assert (issue.related_source, bool(issue.suggestion)) == ("1", True)


@pytest.mark.spec("DRAFT-CRITIQUE-CHECK")
def test_a_claim_has_the_fields_of_the_spec() -> None:
    answer = (
        "The bridge is 130 metres long. The bridge is made of steel. It is made of steel and glass."
    )
    said_of_claims = script.verdicts(
        script.verdict(
            1, "contradicted", ("1", "contradicts", "120 metres long"), issue="It is 120 metres."
        ),
        script.verdict(2, "supported", ("2", "supports", "made of steel")) | {"confidence": 0.7},
        script.verdict(
            3, "partial", ("2", "supports", "made of steel"), issue="Of glass nothing is known."
        ),
    )
    replies = canned.ALL | {
        "claims_extract": script.claims(*sentences(answer)),
        "claims_verify": said_of_claims,
    }
    verifier = script.roles(ScriptedAsker(replies)).verifier
    evidence = [Evidence(id=source["id"], text=source["content"]) for source in SOURCES]
    claims = verifier.extract(answer, audit_citations(answer, evidence), QUERY)
    wrong, right, half = verifier.verify(claims, evidence)
    assert [check.claim.text for check in (wrong, right, half)] == sentences(answer)
    assert [check.verified for check in (wrong, right, half)] == [False, True, False]
    assert (wrong.confidence, right.confidence, half.confidence) == (0.9, 0.7, 0.9)
    assert (wrong.support, right.support, half.support) == (0.0, 1.0, 0.5)
    assert (wrong.sources, right.sources, half.sources) == (("1",), ("2",), ("2",))
    assert [(quote.evidence_id, quote.text) for quote in right.quotes] == [("2", "made of steel")]
    assert [(quote.evidence_id, quote.text) for quote in wrong.quotes] == [("1", "120 metres long")]
    assert (wrong.issue, right.issue, half.issue) == (
        "It is 120 metres.",
        None,
        "Of glass nothing is known.",
    )


def sentences(text: str) -> list[str]:
    return [f"{part.rstrip('.')}." for part in text.split(". ")]


def judge(verdicts: object, content: str) -> tuple[drafts.CritiqueResult, ScriptedAsker]:
    """A draft with one claim, these verdicts on it and one issue, revised; and the model that
    was asked.
    """
    replies = canned.ALL | {"claims_extract": script.claims("A is B."), "claims_verify": verdicts}
    asker = ScriptedAsker(
        replies | {"critic": script.critique(canned.critic_issue(location="A is B."))}
    )
    source = drafts.SourceDocument(id="1", content=content)
    return (
        critique_draft(QUERY, "A is B.", [source], {"autoRevise": True}, roles=script.roles(asker)),
        asker,
    )


@pytest.mark.spec("DRAFT-CRITIQUE-UNREADABLE")
@pytest.mark.parametrize("reply", ["I can't tell.", {"verdicts": []}])
def test_an_unreadable_verdict_has_no_score(reply: object) -> None:
    found, _ = judge(reply, "A is C.")
    assert (found.is_valid, found.metadata.facts_verified, found.metadata.facts_unscored) == (
        False,
        0,
        1,
    )
    assert "1 of 1 claims have no verdict" in found.unscored[0]


@pytest.mark.spec("DRAFT-CRITIQUE-WHOLE")
def test_sources_arent_truncated_and_reply_limits_match_the_spec() -> None:
    long = "word " * 2_000 + "the very end"
    verdicts = script.verdicts(script.verdict(1, "supported", ("1", "supports", "word")))
    _, asker = judge(verdicts, long)
    rooms = {"claims_extract": 500, "claims_verify": 200, "completeness": 300, "reviser": 1_000}
    for prompt, room in rooms.items():
        assert asker.requests_for(prompt)[0].max_tokens >= room, prompt
    for prompt in ("claims_verify", "completeness", "reviser"):
        assert "the very end" in asker.requests_for(prompt)[0].text, prompt


@pytest.mark.spec("DRAFT-CRITIQUE-TEMPERATURES")
def test_the_temperatures_of_the_spec_are_sent() -> None:
    verdicts = script.verdicts(script.verdict(1, "supported", ("1", "supports", "C")))
    _, asker = judge(verdicts, "A is C.")
    sent = {request.file: request.temperature for request in asker.requests}
    wanted = {"claims_extract": 0.1, "claims_verify": 0.1, "completeness": 0.2, "reviser": 0.3}
    assert {prompt: sent[prompt] for prompt in wanted} == wanted


@pytest.mark.spec("DRAFT-CRITIQUE-MISSING")
def test_each_missing_point_is_a_medium_issue() -> None:
    left_out = {
        "description": "The year is left out.",
        "evidence_id": "1",
        "quote": "since 1931",
        "importance": 0.9,
    }
    replies = canned.ALL | {
        "claims_extract": script.claims("A is B."),
        "claims_verify": script.verdicts(
            script.verdict(1, "supported", ("1", "supports", "A is B"))
        ),
        "completeness": {"missing": [left_out]},
    }
    case = [{"id": "1", "content": "A is B since 1931."}]
    roles = script.roles(ScriptedAsker(replies))
    found = critique_draft(
        "Since when is A B?", "A is B.", case, {"strictness": "strict"}, roles=roles
    )
    told = [(issue.severity, issue.description, issue.related_source) for issue in found.issues]
    assert told == [("medium", "Missing information: The year is left out.", "1")]
    assert found.is_valid
