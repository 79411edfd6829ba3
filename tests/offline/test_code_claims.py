"""Claims about code, borne by the identifiers they name."""

from __future__ import annotations

import pytest

from masis.offline.contradictions.code_claims import by_identifiers, identifiers, is_code
from masis.offline.roles.verifier import OfflineVerifier
from masis.schema.audit import Claim, ClaimCheck
from masis.schema.case import Evidence

SERVICE = Evidence.model_validate(
    {"id": "auth_service.py", "text": "def refresh_token(self): return self.post('/auth/refresh', max_age=900)"}
)


def check(claim: str, *evidence: Evidence) -> ClaimCheck:
    [found] = OfflineVerifier().verify([Claim(text=claim)], evidence or (SERVICE,))
    return found


def test_identifiers_are_what_is_set_as_code_paths_and_names_with_humps_or_underscores() -> None:
    text = "Call `run()` or AuthService with max_age at /auth/refresh, not plain Words or words."
    assert list(identifiers(text)) == ["run", "AuthService", "max_age", "/auth/refresh"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"id": "a", "type": "code"}, True),
        ({"id": "src/Auth.ts"}, True),
        ({"id": "a", "source": "lib/auth.py"}, True),
        ({"id": "a", "type": "doc"}, False),
        ({"id": "a", "source": "https://example.org/auth.py"}, False),
        ({"id": "chunk_1"}, False),
    ],
)
def test_code_is_known_by_its_type_or_by_the_name_of_its_file(fields: dict[str, str], code: bool) -> None:
    assert is_code(Evidence.model_validate({"text": ""} | fields)) is code


def test_a_claim_whose_names_the_code_has_is_supported_with_the_places_quoted() -> None:
    text = "Contains `refreshToken()` method using httpOnly cookies"
    found = check(
        "AuthService uses a refresh token stored in httpOnly cookies.", Evidence(id="AuthService.ts", text=text)
    )
    assert found.verdict == "supported"
    assert found.sources == ("AuthService.ts",)
    assert [text[quote.start : quote.end] for quote in found.quotes] == ["httpOnly"]


@pytest.mark.parametrize(
    "claim",
    [
        "The session is kept in localStorage by `refresh_token`.",
        "`refresh_token` never posts to `/auth/refresh`.",
        "`refresh_token` posts to `/auth/refresh` with a max_age of 300.",
        "When the disk is full, the gardener sells bananas, ladders and buckets through `/auth/refresh`.",
    ],
)
def test_an_invented_name_a_denial_another_number_and_another_story_are_not_supported(claim: str) -> None:
    assert check(claim).verdict != "supported"


def test_an_invented_name_is_named_and_leaves_little_support() -> None:
    found = check("The token is kept in localStorage.")
    assert found.support is not None
    assert found.support <= 0.2
    assert found.issue == "No source names localStorage."


def test_claims_against_prose_and_claims_without_names_are_left_as_they_were() -> None:
    prose = Evidence(id="1", text="AuthService refreshes tokens.")
    before = ClaimCheck(claim=Claim(text="AuthService sleeps."), verdict="unsupported", support=0.4, confidence=0.5)
    assert by_identifiers(before, [prose]) is before
    plain = before.model_copy(update={"claim": Claim(text="It sleeps.")})
    assert by_identifiers(plain, [SERVICE]) is plain


def test_hostile_lengths_take_time_in_proportion() -> None:
    for text in ("`" * 100_000, "/a" * 50_000, "aB" * 50_000, "a_" * 50_000, "`a" * 50_000):
        list(identifiers(text))
