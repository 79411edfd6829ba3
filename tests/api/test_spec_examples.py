"""The examples and tests of the draft-critique spec as written: offline and by a scripted model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from masis.api.draft_critique import critique_draft
from masis.audit.loop import Roles
from masis.schema.drafts import CritiqueResult
from tests.api import asker as script
from tests.llm import canned
from tests.llm.scripted_asker import Reply, ScriptedAsker

Judges = Callable[..., Roles | None]
Source = dict[str, str]

UPLOAD = "The maximum file upload size is 100MB."
TIERS: list[Source] = [
    {"id": "A", "content": "Free tier: 10MB limit", "type": "doc"},
    {"id": "B", "content": "Pro tier: 100MB limit", "type": "doc"},
]
FREE = "Free users have a 10MB limit"
PRO = "Pro users can upload files up to 100MB"
BOTH = f"The maximum file upload size depends on your tier: {FREE}, while {PRO}."

REFRESH = "AuthService uses a refresh token stored in httpOnly cookies."
EXPIRES = "When the access token expires, it automatically calls `/auth/refresh` to get a new one."
CODE: list[Source] = [
    {
        "id": "AuthService.ts",
        "content": "Contains `refreshToken()` method using httpOnly cookies",
        "type": "code",
    },
    {"id": "auth-routes.ts", "content": "Shows `/auth/refresh` endpoint", "type": "code"},
]
SIXTY: list[Source] = [{"id": "1", "content": "Timeout: 60 seconds", "type": "doc"}]
LIMITS: list[Source] = [
    {"id": "1", "content": "Free: 10", "type": "doc"},
    {"id": "2", "content": "Pro: 100", "type": "doc"},
]


def offline(**_: object) -> None:
    return None


def by_model(**replies: list[Reply]) -> Roles:
    return script.roles(ScriptedAsker(canned.ALL | replies))


@pytest.fixture(params=[offline, by_model], ids=["offline", "scripted model"])
def judges(request: pytest.FixtureRequest) -> Judges:
    """Who judges: nobody but rules, or a model below the roles (behind HTTP:
    ``tests/llm/test_providers.py``).
    """
    judging: Judges = request.param
    return judging


def nothing_confirmed_and_nothing_added(found: CritiqueResult) -> None:
    """Assert what the offline checks say of a draft that is a copy of no source: no condition is
    understood by rule.
    """
    assert found.needs_review
    assert found.metadata.facts_verified == 0
    assert found.revised_draft is None


@pytest.mark.spec("DRAFT-CRITIQUE-EXAMPLES", "DRAFT-CRITIQUE-REVISE")
def test_an_answer_that_assumes_a_tier_is_incomplete_and_revised(
    judges: Judges,
) -> None:
    assumed = script.issue(
        "incomplete",
        "high",
        "Answer assumes Pro tier without clarification",
        "Specify that limit varies by tier",
        UPLOAD,
        "B",
        "A",
    )
    roles = judges(
        claims_extract=[script.claims(UPLOAD), script.claims(FREE, PRO)],
        claims_verify=[
            script.verdicts(
                script.verdict(1, "partial", ("B", "supports_together", "Pro tier: 100MB limit"))
            ),
            script.verdicts(
                script.verdict(1, "supported", ("A", "supports", "Free tier: 10MB limit")),
                script.verdict(2, "supported", ("B", "supports", "Pro tier: 100MB limit")),
            ),
        ],
        critic=[script.critique(assumed, quality=0.6), script.critique()],
        reviser=[canned.revision(BOTH)],
    )
    found = critique_draft(
        "What's the maximum file upload size?", UPLOAD, TIERS, {"autoRevise": True}, roles=roles
    )
    if roles is None:
        nothing_confirmed_and_nothing_added(found)
        return
    assert not found.is_valid
    [issue] = found.issues
    assert (issue.type, issue.severity, issue.location) == ("incomplete", "high", UPLOAD)
    assert "assumes" in issue.description
    assert "Pro tier" in issue.description
    assert issue.suggestion in found.suggestions
    assert "tier" in issue.suggestion
    assert found.confidence < 0.8
    assert all(word in found.revised_draft for word in ("Free", "10MB", "Pro", "100MB"))
    assert found.revised_is_valid


@pytest.mark.spec("DRAFT-CRITIQUE-EXAMPLES", "DRAFT-CRITIQUE-VALID")
def test_a_correct_answer_about_code_is_valid(judges: Judges) -> None:
    parts = (
        REFRESH,
        "When the access token expires, it automatically calls `/auth/refresh`",
        "to get a new one",
    )
    roles = judges(
        claims_extract=[script.claims(*parts)],
        claims_verify=[
            script.verdicts(
                script.verdict(
                    1, "supported", ("AuthService.ts", "supports", "using httpOnly cookies")
                ),
                script.verdict(
                    2, "supported", ("auth-routes.ts", "supports", "`/auth/refresh` endpoint")
                ),
                script.verdict(
                    3, "supported", ("AuthService.ts", "supports", "`refreshToken()` method")
                ),
            )
        ],
        critic=[script.critique()],
    )
    found = critique_draft(
        "How does AuthService handle token refresh?", f"{REFRESH} {EXPIRES}", CODE, roles=roles
    )
    assert found.is_valid
    assert found.issues == ()
    assert found.revised_draft is None
    if roles is None:  # code is not a language the offline checks read: they confirm nothing of it
        assert (
            found.needs_review,
            found.metadata.facts_checked,
            found.metadata.facts_verified,
        ) == (True, 2, 0)
        return
    assert found.confidence >= 0.9
    assert found.metadata.facts_checked == found.metadata.facts_verified == 3
    assert found.metadata.sources_used == ("AuthService.ts", "auth-routes.ts")


def timeout(seconds: int, judges: Judges) -> CritiqueResult:
    draft = f"The timeout is {seconds} seconds."
    right = script.verdict(1, "supported", ("1", "supports", "Timeout: 60 seconds"))
    wrong = script.verdict(
        1, "contradicted", ("1", "contradicts", "Timeout: 60 seconds"), issue="It is 60."
    )
    roles = judges(
        claims_extract=[script.claims(draft)],
        claims_verify=[script.verdicts(right if seconds == 60 else wrong)],
        critic=[script.critique()],
    )
    return critique_draft("What is the timeout?", draft, SIXTY, roles=roles)


@pytest.mark.spec("DRAFT-CRITIQUE-EXAMPLES", "DRAFT-CRITIQUE-VALID")
def test_unsupported_claims_are_detected(judges: Judges) -> None:
    found = timeout(30, judges)
    assert not found.is_valid
    assert "unsupported" in {issue.type for issue in found.issues}
    assert {issue.related_source for issue in found.issues} == {"1"}


@pytest.mark.spec("DRAFT-CRITIQUE-EXAMPLES", "DRAFT-CRITIQUE-VALID")
def test_valid_answers_pass(judges: Judges) -> None:
    found = timeout(60, judges)
    assert found.is_valid
    # "Timeout: 60 seconds" has other words: the offline checks leave it open
    if found.metadata.facts_verified == 0:
        nothing_confirmed_and_nothing_added(found)
        return
    assert found.confidence > 0.8


@pytest.mark.spec("DRAFT-CRITIQUE-EXAMPLES", "DRAFT-CRITIQUE-REVISE")
def test_a_draft_is_revised_if_enabled(judges: Judges) -> None:
    draft = "The limit is 100."
    revised = "The limit is 10 for Free and 100 for Pro."
    roles = judges(
        claims_extract=[script.claims(draft), script.claims(revised)],
        claims_verify=[
            script.verdicts(
                script.verdict(
                    1, "unsupported", ("2", "supports_together", "Pro: 100"), issue="Only for Pro."
                )
            ),
            script.verdicts(script.verdict(1, "supported", ("1", "supports", "Free: 10"))),
        ],
        critic=[script.critique(quality=0.5), script.critique()],
        reviser=[canned.revision(revised)],
    )
    found = critique_draft("What is the limit?", draft, LIMITS, {"autoRevise": True}, roles=roles)
    if roles is None:
        nothing_confirmed_and_nothing_added(found)
        return
    assert "Free" in found.revised_draft
    assert "Pro" in found.revised_draft
