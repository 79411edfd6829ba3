"""Property tests: replies with a valid form but arbitrary content are handled safely.

No reply crashes a role, and no verdict is stored without its quote, evidence or confidence.
"""

from __future__ import annotations

import math
from typing import Any, get_args, get_origin

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from masis.api.audits import audit_citations
from masis.audit import critique as critique_step
from masis.audit import evaluation as evaluation_step
from masis.audit import issues as issues_step
from masis.audit.claims import ClaimResults
from masis.errors import InvalidRevision
from masis.llm.roles import critic, evaluator, reviser
from masis.llm.roles.replies import (
    CheckedClaimsReply,
    Count,
    CritiqueReply,
    EvaluationReply,
    Number,
    RevisionReply,
    RoleReply,
    TextOrEmpty,
    VerdictsReply,
)
from masis.llm.roles.verdicts import SURE_FROM
from masis.llm.roles.verifier import Extractions, ModelVerifier
from masis.schema.case import ClaimVerdict, Evidence
from masis.schema.storable import is_storable
from masis.settings import Settings
from tests.audit.factories import JUDGED_BY, context, issue, verdict
from tests.llm.scripted_asker import ScriptedAsker

EVIDENCE = (
    Evidence(id="chunk_1", text="The bridge is 120 metres long."),
    Evidence(id="chunk_2", text="It opened in 1931."),
    Evidence(id="empty", text=""),
)
ANSWER = "The bridge is 120 metres long [chunk_1][empty]. It opened in 1932 [chunk_2]. It is red."
AUDIT = audit_citations(ANSWER, EVIDENCE)
CONTEXT = context(answer=ANSWER, evidence=EVIDENCE, citation_audit=AUDIT, claims=())

LOCATIONS = [
    "",
    "120 metres",
    "1931",
    "1932",
    "It opened in 1931.",
    "the bridge ... long",
    "\x00\ud800",
    "It is red.",
    ANSWER,
]
IN_THE_ANSWER = ("120 metres", "1932", "It is red.", ANSWER)
"""The locations that occur in the answer; each is a separate claim."""
SUPPORT = {"supported": 1.0, "partial": 0.5, "contradicted": 0.0, "unsupported": 0.0}
text = st.sampled_from(LOCATIONS) | st.text(max_size=20)
names = (
    st.sampled_from(
        ["chunk_1", "[chunk_2]", "2", "CHUNK 1", "empty", "chunk_9", "", "i1", "i9", "all"]
    )
    | text
)
any_value = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-200, 200),
    st.floats(),
    text,
    st.just(10**400),
    st.lists(st.integers()),
)
claim_number = st.integers(-1, 5) | st.sampled_from(
    ["1", "2.0", "²", None, True, math.nan, math.inf, 1.0, 10**400]
)
VERDICTS = [*get_args(ClaimVerdict), "either_way", "Partial", "", None, 3, ["supported"]]
BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "evidence_id": names,
    "evidence_ids": st.lists(names, max_size=3),
    "issue_ids": st.lists(names, max_size=2),
    "stance": st.sampled_from(
        [
            "supports",
            "supports_together",
            "contradicts",
            "leaves_open",
            "SUPPORTS",
            "partly",
            None,
            "bears",
        ]
    ),
    "calculation": (
        st.sampled_from(["", "60 * 2 = 120", "100 + 21 = 120", "1931 - 120", "= ="]) | text
    ),
    "verdict": st.sampled_from(VERDICTS),
    "type": st.sampled_from(["factual", "Missing info", "logical", "safety"]),
    "severity": st.sampled_from(["high", "LOW"]),
    "kind": st.sampled_from(["corrected", "dropped", "Rewritten"]),
}


def field_of(name: str, field: FieldInfo) -> st.SearchStrategy[Any]:
    """Return the values a model might write in a field, chosen by its name or else its type."""
    for kind, values in ((Number, any_value), (Count, claim_number)):
        if kind.__metadata__[1] in field.metadata:
            return values
    if get_origin(field.annotation) is list and name not in BY_NAME:
        (inner,) = get_args(field.annotation)
        return st.lists(reply_of(inner) if isinstance(inner, type) else text, max_size=4)
    values_by_name = BY_NAME.get(name, st.booleans() if field.annotation is bool else text)
    return (
        st.none() | values_by_name
        if TextOrEmpty.__metadata__[0] in field.metadata
        else values_by_name
    )


def reply_of(shape: type[RoleReply]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {name: field_of(name, field) for name, field in shape.model_fields.items()}
    )


@given(reply_of(CheckedClaimsReply), reply_of(VerdictsReply))
@settings(max_examples=60)
def test_every_claim_and_assertion_is_judged(reply: dict[str, Any], second: dict[str, Any]) -> None:
    """Every row of the reply and every sentence with an assertion gets a verdict."""
    asker = ScriptedAsker({"claims": reply, "claims_verify": second})
    claims, results = ModelVerifier(asker, Settings(), Extractions()).check_answer(
        ANSWER, AUDIT, "How long is it?", EVIDENCE, completeness=True
    )
    assert [check.claim for check in results.checks] == list(claims)
    for claim in claims:
        assert claim.start is None or ANSWER[claim.start : claim.end] == claim.text
    assert len(claims) >= len(
        {row["words"] for row in reply["claims"] if row["words"] in IN_THE_ANSWER}
    )
    for sentence in AUDIT.sentences:
        assert any(
            (claim.start or 0) < sentence.end and (claim.end or 0) > sentence.start
            for claim in claims
        )
    assert_verdicts_are_backed_by_quotes(results)


def assert_verdicts_are_backed_by_quotes(results: ClaimResults) -> None:
    texts = {chunk.id: chunk.text for chunk in EVIDENCE}
    for check in results.checks:
        assert is_storable(check.model_dump())
        assert (check.verdict == "unscored") == (check.unscored is not None)
        assert check.support == SUPPORT.get(check.verdict)
        if check.verdict == "contradicted":
            assert check.contradictions
        if check.verdict == "supported":
            assert check.quotes
        if check.verdict in ("supported", "contradicted"):
            assert check.confidence is not None
            assert check.confidence >= SURE_FROM
            assert check.sources
        if check.abstained is not None:
            assert (check.verdict, bool(check.issue)) == ("unverifiable", True)
        assert set(check.sources) <= texts.keys()
        for quote in check.quotes:
            assert texts[quote.evidence_id][quote.start : quote.end] == quote.text != ""
        for contradiction in check.contradictions:
            claim_words = check.claim.text[contradiction.claim_start : contradiction.claim_end]
            assert claim_words == contradiction.claim_text
            chunk = texts[contradiction.evidence_id]
            evidence_words = chunk[contradiction.evidence_start : contradiction.evidence_end]
            assert evidence_words == contradiction.evidence_text
        assert {reference.evidence_id for reference in check.references} <= set(check.claim.cited)
    judged = [
        (check.claim.sentence, reference.evidence_id)
        for check in results.checks
        for reference in check.references
    ]
    claims = [check.claim for check in results.checks]
    assert sorted(judged) == sorted(
        {(claim.sentence, cited) for claim in claims for cited in claim.cited}
    )
    for point in results.missing:
        assert point.start is None or texts[point.evidence_id or ""][point.start : point.end]


@given(reply_of(CritiqueReply))
@settings(max_examples=50)
def test_critiques_have_valid_quotes_and_evidence_ids(given_critique: dict[str, Any]) -> None:
    judgement = critic.judgement(CritiqueReply.model_validate(given_critique), CONTEXT)
    raised = issues_step.raise_issues("critic", judgement.raw_issues, ANSWER, ())
    for critic_issue in raised.issues:
        if critic_issue.start is not None:
            assert ANSWER[critic_issue.start : critic_issue.end] == critic_issue.quote
        assert set(critic_issue.evidence_ids) <= {chunk.id for chunk in EVIDENCE}
    ruled = critique_step.apply_critique_rules(
        judgement, AUDIT, raised.issues, JUDGED_BY, raised.notes
    )
    assert is_storable(ruled.model_dump())


@given(reply_of(EvaluationReply))
@settings(max_examples=50)
def test_an_evaluation_with_a_missing_score_has_no_overall_score(
    given_evaluation: dict[str, Any],
) -> None:
    judgement = evaluator.judgement(EvaluationReply.model_validate(given_evaluation))
    ruled = evaluation_step.apply_evaluation_rules(
        judgement, AUDIT, verdict(), Settings(), JUDGED_BY
    )
    scores = (ruled.faithfulness, ruled.relevance, ruled.completeness, ruled.reasoning_quality)
    assert (ruled.overall_score is None) == any(score is None for score in scores)
    assert is_storable(ruled.model_dump())


@given(reply_of(RevisionReply))
@settings(max_examples=50)
def test_revisions_have_text_and_address_only_known_issues(given_revision: dict[str, Any]) -> None:
    reply = RevisionReply.model_validate(given_revision)
    try:
        revision = reviser.revision(reply, CONTEXT, (issue(id="i1"),), JUDGED_BY)
    except InvalidRevision:
        assert not reviser.without_fences(reply.revised_answer)
        return
    assert revision.revised_answer.strip()
    assert set(revision.issues_addressed) <= {"i1"}
    assert is_storable(revision.model_dump())
