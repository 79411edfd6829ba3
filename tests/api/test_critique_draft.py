"""What becomes of a draft: options, strictness, failures, revisions, the pipeline around it, the
metrics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from masis.api.draft_critique import critique_draft, metrics
from masis.audit.critique import CritiqueJudgement, RawIssue
from masis.errors import InputError, ProviderFailed, ReviserFailed, StepError
from masis.pipeline import query_with_critique
from masis.schema.audit import Claim, ClaimCheck
from masis.schema.base import Unscored
from masis.schema.case import Evidence
from masis.schema.drafts import CritiqueOptions, CritiqueResult, DraftCritiqueRequest
from masis.settings import Settings
from tests import scripted
from tests.api import asker as script
from tests.llm import canned
from tests.llm.scripted_asker import ScriptedAsker

SOURCES = [{"id": "1", "content": "Timeout: 60 seconds", "type": "doc"}]
QUERY = "What is the timeout?"
RIGHT, WRONG = "The timeout is 60 seconds.", "The timeout is 30 seconds."
BRIDGE = [{"id": "chunk_1", "content": "The bridge is 120 metres long.", "type": "doc"}]


def raw_issue(severity: str, type_: str = "factual", quote: str | None = None) -> RawIssue:
    return RawIssue(type_, "test", severity, f"{severity} fault", "Because.", "Mend it.", quote)  # type: ignore[arg-type]


def criticize(*raw_issues: RawIssue, options: dict[str, object] | None = None) -> CritiqueResult:
    """A draft whose claims hold, with these issues of a critic."""
    roles = scripted.roles(
        critic=scripted.ScriptedCritic([scripted.judgement_with(raw_issues=raw_issues)])
    )
    return critique_draft(QUERY, RIGHT, SOURCES, options, roles=roles)


@pytest.mark.spec("DRAFT-CRITIQUE-STRICTNESS")
@pytest.mark.parametrize(
    ("strictness", "kept"),
    [
        ("lenient", ["high", "high"]),
        ("moderate", ["high", "high", "medium"]),
        ("strict", ["high", "high", "medium", "low"]),
    ],
)
def test_strictness_filters_reported_issues(strictness: str, kept: list[str]) -> None:
    grades = [raw_issue(grade) for grade in ("critical", "high", "medium", "low")]
    found = criticize(*grades, options={"strictness": strictness})
    assert [issue.severity for issue in found.issues] == kept


@pytest.mark.spec("DRAFT-CRITIQUE-VALID")
def test_a_draft_is_valid_without_high_issues() -> None:
    assert criticize(raw_issue("medium"), raw_issue("low")).is_valid
    assert not criticize(raw_issue("high")).is_valid
    assert not criticize(raw_issue("critical")).is_valid


@pytest.mark.spec("DRAFT-CRITIQUE-OPTIONS")
@pytest.mark.parametrize(
    ("options", "types"),
    [
        ({}, ["unsupported", "contradiction"]),
        ({"checkContradictions": False}, ["unsupported"]),
        ({"checkFactual": False}, ["contradiction"]),
        ({"checkFactual": False, "checkContradictions": False}, []),
    ],
)
def test_a_contradicted_claim_fails_the_enabled_checks(
    options: dict[str, bool], types: list[str]
) -> None:
    found = critique_draft(QUERY, WRONG, SOURCES, options)
    assert [issue.type for issue in found.issues] == types
    assert found.is_valid is (not types)


@pytest.mark.spec("DRAFT-CRITIQUE-OPTIONS", "DRAFT-CRITIQUE-COMPLETENESS")
def test_missing_points_are_reported_only_if_completeness_is_checked() -> None:
    left_out = raw_issue("medium", "missing_info")
    assert [issue.type for issue in criticize(left_out).issues] == ["incomplete"]
    assert criticize(left_out, options={"checkCompleteness": False}).issues == ()


def test_fabricated_references_and_unsafe_advice_are_always_reported() -> None:
    off = {
        "checkFactual": False,
        "checkCompleteness": False,
        "checkContradictions": False,
        "strictness": "lenient",
    }
    found = critique_draft(
        QUERY, "The timeout is 60 seconds [99].", [*SOURCES, {"id": "2", "content": "Rain."}], off
    )
    assert [(issue.type, issue.severity) for issue in found.issues] == [("hallucination", "high")]
    assert criticize(raw_issue("critical", "safety"), options=off).issues != ()


@pytest.mark.spec("DRAFT-CRITIQUE-CONFIG", "DRAFT-CRITIQUE-OPTIONS")
def test_omitted_options_come_from_the_settings() -> None:
    settings = Settings(strictness="lenient", draft_auto_revise=True, draft_max_revisions=2)
    assert critique_draft(QUERY, WRONG, SOURCES, settings=settings).revised_draft is not None
    assert (
        critique_draft(QUERY, WRONG, SOURCES, {"autoRevise": False}, settings).revised_draft is None
    )
    given = CritiqueOptions(check_factual=False, check_contradictions=False)
    assert critique_draft(QUERY, WRONG, SOURCES, given, settings).issues == ()


@pytest.mark.spec("DRAFT-CRITIQUE-CONFIG")
def test_the_defaults_match_the_spec() -> None:
    assert CritiqueOptions().model_dump(by_alias=True) == {
        "strictness": "moderate",
        "checkFactual": True,
        "checkCompleteness": True,
        "checkContradictions": True,
        "autoRevise": False,
        "maxRevisions": 1,
    }
    settings = Settings()
    assert (settings.draft_critique, settings.draft_auto_revise, settings.draft_max_revisions) == (
        True,
        False,
        1,
    )
    assert settings.draft_min_length == 50


def test_field_names_are_read_in_both_spellings_and_written_as_in_the_spec() -> None:
    request = {
        "query": QUERY,
        "draft": RIGHT,
        "sources": [SOURCES[0] | {"relevanceScore": 0.5, "path": "a/b.md"}],
    }
    read = DraftCritiqueRequest.model_validate_json(
        json.dumps(request | {"options": {"auto_revise": True}})
    )
    assert (read.sources[0].relevance_score, read.options and read.options.auto_revise) == (
        0.5,
        True,
    )
    written = critique_draft(read.query, read.draft, read.sources, read.options).model_dump(
        by_alias=True
    )
    assert {
        "isValid",
        "confidence",
        "issues",
        "suggestions",
        "revisedDraft",
        "metadata",
    } <= written.keys()
    assert {"factsChecked", "factsVerified", "sourcesUsed", "critiqueTimeMs"} <= written[
        "metadata"
    ].keys()
    with pytest.raises(ValidationError):
        CritiqueOptions.model_validate({"strictnes": "strict"})


@pytest.mark.parametrize(
    ("sources", "told"),
    [
        ("The timeout is 60 seconds.", "sources: is one thing, not a list of sources"),
        ([SOURCES[0], 7], r"sources\[1\]: is a int\. Give texts, mappings"),
        ([SOURCES[0], {"id": "2"}], r"sources\[1\]\.content: Field required"),
    ],
)
def test_an_invalid_source_is_reported_with_its_position(sources: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        critique_draft(QUERY, RIGHT, sources)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"strictnes": "strict"},
            "options: there is no option strictnes (did you mean strictness?). There are: ",
        ),
        (
            {"strictness": "hard"},
            "options: strictness: input should be 'lenient', 'moderate' or 'strict'",
        ),
        (
            {"maxRevisions": 9, "x": 1},
            "maxRevisions: input should be less than or equal to 4; there is no option x.",
        ),
    ],
)
def test_the_error_for_an_unknown_option_suggests_the_nearest_one(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        critique_draft(QUERY, RIGHT, SOURCES, options)
    with pytest.raises(InputError, match="critiqueOptions"):
        query_with_critique(QUERY, lambda query: SOURCES, {"critiqueOptions": options})


def test_the_error_for_an_unknown_pipeline_option_suggests_the_nearest_one() -> None:
    with pytest.raises(
        InputError, match=r"no option enablecritique \(did you mean enableCritique\?\)"
    ):
        query_with_critique(QUERY, lambda query: SOURCES, {"enablecritique": True})
    with pytest.raises(
        InputError, match=r"no option critiqueOptions.autorevise \(did you mean autoRevise\?\)"
    ):
        query_with_critique(QUERY, lambda query: SOURCES, {"critiqueOptions": {"autorevise": True}})


class Silent(scripted.ContentVerifier):
    """Gives no verdict on any claim."""

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence], question: str = ""
    ) -> tuple[ClaimCheck, ...]:
        return ()


class Failing(scripted.ContentVerifier):
    """Can't find the claims."""

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence], question: str = ""
    ) -> tuple[ClaimCheck, ...]:
        raise ProviderFailed("the provider can't be reached")


@pytest.mark.spec("DRAFT-CRITIQUE-VALID", "DRAFT-CRITIQUE-VERIFY")
@pytest.mark.parametrize("strictness", ["lenient", "moderate", "strict"])
def test_a_draft_with_unjudged_claims_isnt_valid(strictness: str) -> None:
    silent = critique_draft(
        QUERY, RIGHT, SOURCES, {"strictness": strictness}, roles=scripted.roles(verifier=Silent())
    )
    assert not silent.is_valid
    assert silent.metadata.facts_unscored == silent.metadata.facts_checked == 1
    assert "1 of 1 claims have no verdict" in silent.unscored[0]
    failed = critique_draft(QUERY, RIGHT, SOURCES, roles=scripted.roles(verifier=Failing()))
    assert (failed.is_valid, failed.confidence) == (False, None)
    assert "the provider can't be reached" in failed.unscored[0]


def test_a_draft_with_textless_sources_isnt_valid() -> None:
    found = critique_draft(QUERY, RIGHT, [{"id": "1", "content": ""}])
    assert not found.is_valid
    assert any("no verdict" in reason for reason in found.unscored)


@pytest.mark.spec("DRAFT-CRITIQUE-VALID")
def test_a_draft_whose_critic_failed_isnt_valid() -> None:
    critic = scripted.ScriptedCritic([Unscored(reason="it refused", code="CRITIC-ERR-001")])
    found = critique_draft(QUERY, RIGHT, SOURCES, roles=scripted.roles(critic=critic))
    assert (found.is_valid, found.needs_review) == (False, True)
    assert "unscored" in {reason.code for reason in found.review_reasons}
    assert found.unscored == ("The critique is unscored: it refused",)


@pytest.mark.spec("DRAFT-CRITIQUE-REVISE")
def test_any_issue_triggers_a_revision() -> None:
    reviser = scripted.ScriptedReviser(["The bridge is 120 metres long."])
    judgements = [
        scripted.judgement_with(0.6, raw_issues=(raw_issue("medium"),)),
        scripted.judgement_with(0.9),
    ]
    roles = scripted.roles(critic=scripted.ScriptedCritic(judgements), reviser=reviser)
    found = critique_draft("How long?", "It is long.", BRIDGE, {"autoRevise": True}, roles=roles)
    assert (found.is_valid, found.revised_draft, found.remaining_issues) == (
        True,
        "The bridge is 120 metres long.",
        (),
    )
    content = scripted.roles(reviser=reviser)
    assert (
        critique_draft(
            "How long?", "It is long.", BRIDGE, {"autoRevise": True}, roles=content
        ).revised_draft
        is None
    )
    assert len(reviser.seen) == 1


@pytest.mark.spec("DRAFT-CRITIQUE-REVISE")
@pytest.mark.parametrize("most", [1, 2, 3])
def test_revisions_are_limited_and_the_best_one_is_kept(most: int) -> None:
    grades = ["high", "medium", "high", "high"]
    judgements = [
        scripted.judgement_with(0.5 + n / 10, raw_issues=(raw_issue(grade),))
        for n, grade in enumerate(grades)
    ]
    reviser = scripted.ScriptedReviser([f"Revision {n} of it." for n in (1, 2, 3)])
    roles = scripted.roles(critic=scripted.ScriptedCritic(judgements), reviser=reviser)
    options = {"autoRevise": True, "maxRevisions": most}
    found = critique_draft("How long?", "It is long.", BRIDGE, options, roles=roles)
    assert len(reviser.seen) == most
    assert found.revised_draft == "Revision 1 of it."
    assert [issue.severity for issue in found.remaining_issues] == ["medium"]


def test_a_worse_or_unjudged_revision_isnt_returned() -> None:
    worse = [
        scripted.judgement_with(0.6, raw_issues=(raw_issue("medium"),)),
        scripted.judgement_with(0.9, raw_issues=(raw_issue("high"),)),
    ]
    roles = scripted.roles(critic=scripted.ScriptedCritic(worse))
    assert (
        critique_draft(
            "How long?", "It is long.", BRIDGE, {"autoRevise": True}, roles=roles
        ).revised_draft
        is None
    )
    failing: list[CritiqueJudgement | Unscored] = [
        worse[0],
        Unscored(reason="it refused", code="CRITIC-ERR-001"),
    ]
    roles = scripted.roles(critic=scripted.ScriptedCritic(failing))
    assert (
        critique_draft(
            "How long?", "It is long.", BRIDGE, {"autoRevise": True}, roles=roles
        ).revised_draft
        is None
    )


def test_a_failing_reviser_is_reported_and_the_issues_are_kept() -> None:
    roles = scripted.roles(
        critic=scripted.ScriptedCritic([scripted.judgement_with(raw_issues=(raw_issue("high"),))]),
        reviser=scripted.ScriptedReviser([ReviserFailed("it refused")]),
    )
    found = critique_draft("How long?", "It is long.", BRIDGE, {"autoRevise": True}, roles=roles)
    assert (found.is_valid, found.revised_draft) == (False, None)
    assert found.unscored == ("it refused",)


def test_a_cancelled_critique_says_so() -> None:
    with pytest.raises(StepError):
        critique_draft(QUERY, WRONG, SOURCES, cancelled=lambda: True)
    reviser = scripted.ScriptedReviser()
    critic = scripted.ScriptedCritic([scripted.judgement_with(raw_issues=(raw_issue("high"),))])
    found = critique_draft(
        QUERY,
        WRONG,
        SOURCES,
        {"autoRevise": True},
        roles=scripted.roles(critic=critic, reviser=reviser),
        cancelled=lambda: bool(critic.seen),
    )
    assert (found.is_valid, found.revised_draft, reviser.seen) == (False, None, [])
    assert found.unscored == ("The critique was stopped before it ended.",)


def test_a_loop_past_its_deadline_returns_its_issues() -> None:
    critic = scripted.ScriptedCritic([scripted.judgement_with(raw_issues=(raw_issue("high"),))])
    settings = Settings(loop_deadline_s=0.5)
    roles, clock = scripted.roles(critic=critic), scripted.ticking(1.0)
    found = critique_draft(
        QUERY, WRONG, SOURCES, {"autoRevise": True}, settings, roles, clock=clock
    )
    assert (found.is_valid, found.revised_draft) == (False, None)
    assert "deadline" in found.unscored[0]


@pytest.mark.parametrize(
    ("draft", "sources", "field"), [("  ", SOURCES, "draft"), (RIGHT, [], "sources")]
)
def test_an_empty_draft_or_no_sources_is_rejected(
    draft: str, sources: list[dict[str, str]], field: str
) -> None:
    with pytest.raises(InputError) as caught:
        critique_draft(QUERY, draft, sources)
    assert caught.value.field == field


@pytest.mark.spec("DRAFT-CRITIQUE-METRICS")
def test_the_metrics_have_the_names_of_the_spec() -> None:
    results = [critique_draft(QUERY, draft, SOURCES) for draft in (RIGHT, WRONG, WRONG, RIGHT)]
    found = metrics(results).model_dump()
    assert found["critique_hallucination_rate"] == found["critique_revision_rate"] == 0.5
    assert found["claims_per_draft"] == 1
    assert found["critique_confidence_avg"] == pytest.approx(
        sum(r.confidence or 0 for r in results) / 4
    )
    assert found["critique_latency_ms"] == pytest.approx(
        sum(r.metadata.critique_time_ms for r in results) / 4
    )
    assert set(metrics([]).model_dump().values()) == {None}


@pytest.mark.spec("DRAFT-CRITIQUE-CACHE")
def test_a_repeated_draft_is_cached_and_claims_are_batched() -> None:
    asker = ScriptedAsker(canned.ALL | {"claims_extract": script.claims("A is B.", "C is D.")})
    roles = script.roles(asker)
    for _ in range(2):
        critique_draft("What?", "A is B. C is D.", BRIDGE, roles=roles)
    assert len(asker.requests_for("claims_extract")) == 1
    assert len(asker.requests_for("claims_verify")) == 2
