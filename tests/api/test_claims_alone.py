"""Claims and citations checked without a case: what may be given, and how a check of many claims is stopped."""

from __future__ import annotations

from typing import Any

import pytest

import masis
from masis.api import audits
from masis.errors import InputError, StepError
from masis.offline.roles.verifier import OfflineVerifier
from masis.settings import ROLES, Settings
from tests.served_replies import Behaviour, Request
from tests.serving_models import ModelServer

CHUNK = {"id": "1", "text": "The bridge is 120 metres long.", "page": 3}
CLAIM = "The bridge is 120 metres long."


@pytest.mark.parametrize("evidence", [[CHUNK], (masis.Evidence.model_validate(CHUNK),), iter([CHUNK])])
def test_evidence_may_be_records_or_mappings(evidence: Any) -> None:
    (check,) = masis.verify_claims([CLAIM], evidence)
    assert (check.verdict, check.sources) == ("supported", ("1",))


def test_bare_texts_are_named_by_their_place() -> None:
    (check,) = masis.verify_claims([CLAIM], ["It was painted red.", CLAIM])
    assert check.sources == ("chunk_2",)
    assert masis.audit_citations("It is long [chunk_2].", ["a", "b"]).citations[0].status == "valid"


@pytest.mark.parametrize(
    ("claims", "evidence", "told"),
    [
        (CLAIM, [CHUNK], "claims: is one text"),
        ([CLAIM], "The bridge is 120 metres long.", "evidence: is one thing, not a list of chunks"),
        ([CLAIM], CHUNK, "evidence: is one thing, not a list of chunks"),
        ([CLAIM], [CHUNK, 7], r"evidence\[1\]: is no chunk of evidence"),
        ([CLAIM], [{"id": 7, "text": "x"}], r"evidence\[0\]\.id: is a number, must be text"),
        ([CLAIM, 7], [CHUNK], r"claims\[1\]: is a number, not text"),
    ],
)
def test_one_text_is_never_read_letter_by_letter(claims: Any, evidence: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        masis.verify_claims(claims, evidence)


def test_a_check_of_many_claims_can_be_stopped_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[int] = []
    verify = OfflineVerifier.verify

    def counted(self: Any, claims: Any, evidence: Any) -> Any:
        verified.append(len(claims))
        return verify(self, claims, evidence)

    monkeypatch.setattr(OfflineVerifier, "verify", counted)
    with pytest.raises(StepError, match="stopped"):
        audits.verify_claims([CLAIM] * 100, [CHUNK], cancelled=lambda: sum(verified) >= 30)
    assert sum(verified) == 30
    assert len(audits.verify_claims([CLAIM] * 25, [CHUNK])) == 25


def test_no_model_is_asked_on_after_a_stop() -> None:
    def slow(request: Request) -> Behaviour:
        return Behaviour(hang_s=600.0)

    with ModelServer(slow) as server:
        here = {"kind": "openai", "address": server.address}
        models = dict.fromkeys(ROLES, "offline") | {"verifier": "here:slow"}
        settings = Settings.model_validate({**models, "providers": {"here": here}, "call_deadline_s": 60})
        with pytest.raises(StepError, match="stopped"):
            audits.verify_claims([CLAIM], [CHUNK], settings, cancelled=lambda: bool(server.counts["requests"]))
        assert server.counts["requests"] == 1
