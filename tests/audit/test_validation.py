"""The last gate: what an improved answer must be, who may judge it, and what becomes of one that does not pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from masis.api import stepwise
from masis.api.roles import build_roles, check_models
from masis.audit import loop, output_validation
from masis.audit.output_validation import LONGEST_ANSWER, OutputValidator, PydanticValidator
from masis.errors import InvalidRevision, SettingsError
from masis.observers.observation import run_to_completion
from masis.schema.audit import Revision
from masis.schema.case import Case
from masis.schema.run import Run
from masis.settings import Settings
from tests.audit.factories import EVIDENCE, JUDGED_BY, context
from tests.scripted import MAJOR, ScriptedCritic, ScriptedReviser, roles, said

ANSWER = "The bridge is 120 metres long [chunk_1]."
GOOD = "The bridge is 120 metres long [chunk_1]. It opened in 1931 [chunk_2]."


def revision(answer: Any, **changes: Any) -> Revision:
    values: dict[str, Any] = {
        "revised_answer": answer,
        "changes_explanation": "",
        "updated_confidence": None,
        "judged_by": JUDGED_BY,
    }
    return Revision.model_construct(**(values | changes))


def run_with(*answers: str, validator: OutputValidator | None = None) -> Run:
    case = Case(id="bridge", query="How long?", answer=ANSWER, evidence=EVIDENCE)
    filled = roles(
        critic=ScriptedCritic([said(0.4, objections=(MAJOR,)), said(0.6, objections=(MAJOR,)), said(0.9)]),
        reviser=ScriptedReviser(answers),
    )
    if validator is not None:
        filled = replace(filled, validator=validator)
    return run_to_completion(loop.audit(case, filled, Settings(), run_id="run", case_digest=case.digest()))


@pytest.mark.parametrize(
    "answer", [GOOD, ANSWER, "Line one.\n\n- a\tb [1, 2]\r\n", "x" * LONGEST_ANSWER, "Ja 🌉 [^1]."]
)
def test_an_answer_that_can_be_stored_and_audited_passes_as_it_is(answer: str) -> None:
    assert PydanticValidator().validated(revision(answer), context(answer=ANSWER)).revised_answer == answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "it is empty"),
        (" \n\t", "it is empty"),
        ("x" * (LONGEST_ANSWER + 1), "100,001 characters"),
        (GOOD + "\x00", "control characters"),
        (GOOD + "\x1b[31m", "control characters"),
        (GOOD + "\ud800", "control characters"),
        ('{"revised_answer": "The bridge', "form of a reply"),
        ("```json\n{'revised_answer': 'The bridge'}\n```", "form of a reply"),
        ("The bridge is 120 metres long []", "names nothing"),
        ("The bridge is 120 metres long 【 】", "names nothing"),
        ("The bridge is 120 metres long [chunk_1. It opened in 1931", "not closed"),
        ("The bridge is 120 metres long [chunk_1\nIt opened in 1931 [chunk_2].", "not closed"),
        ("The bridge is 120 metres long [chu", "not closed"),
        ("The bridge is 120 metres long [", "not closed"),
    ],
)
def test_what_can_not_leave_is_refused_with_the_reason(answer: str, why: str) -> None:
    with pytest.raises(InvalidRevision, match=why) as raised:
        PydanticValidator().validated(revision(answer), context(answer=ANSWER))
    assert raised.value.code == "CRITIC-ERR-006"


def test_what_the_answer_before_had_is_the_audits_to_find() -> None:
    before = "A \x00 stands here [] and here [chunk_1 and {"
    found = PydanticValidator().validated(revision(before + " more"), context(answer=before))
    assert found.revised_answer == before + " more"
    with pytest.raises(InvalidRevision):
        PydanticValidator().validated(revision(before + " \x00"), context(answer=before))


def test_the_reason_quotes_nothing_of_the_answer() -> None:
    with pytest.raises(InvalidRevision) as raised:
        PydanticValidator().validated(revision("SECRET \x00"), context())
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    "given", [None, "text", {"revised_answer": GOOD}, revision(None), revision(GOOD, updated_confidence=7)]
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_reviser_that_hands_over_no_revision_is_refused(given: Any) -> None:
    with pytest.raises(InvalidRevision, match="out of form"):
        PydanticValidator().validated(given, context())


@given(st.text(max_size=200))
def test_any_text_passes_or_is_refused_and_is_never_changed(text: str) -> None:
    try:
        found = PydanticValidator().validated(revision(text), context(answer=ANSWER))
    except InvalidRevision:
        return
    assert found.revised_answer == text


@pytest.mark.spec("REQ-CRITIC-028", "REQ-CRITIC-031", "CRITIC-ERR-006")
def test_an_answer_that_does_not_pass_ends_the_loop_with_the_best_so_far() -> None:
    run = run_with(GOOD, "Broken [chunk_1")
    assert run.termination_reason == "error"
    assert [iteration.answer for iteration in run.iterations] == [ANSWER, GOOD]
    assert run.final_answer == GOOD
    (warning,) = run.warnings
    assert (warning.code, warning.step, warning.iteration) == ("CRITIC-ERR-006", "revision", 2)
    assert "not closed" in warning.message


@pytest.mark.spec("REQ-CRITIC-028")
def test_every_improved_answer_passes_the_validator_and_nothing_else_does() -> None:
    seen: list[str] = []

    class Listening(PydanticValidator):
        def validated(self, revision: Revision, context: Any) -> Revision:
            seen.append(revision.revised_answer)
            return super().validated(revision, context)

    run = run_with(GOOD, GOOD + " More.", validator=Listening())
    assert seen == [GOOD, GOOD + " More."]
    assert run.total_iterations == 3


def test_a_validator_that_breaks_costs_the_revision_and_not_the_run() -> None:
    class Broken(PydanticValidator):
        def validated(self, revision: Revision, context: Any) -> Revision:
            raise ZeroDivisionError("its own fault")

    run = run_with(GOOD, validator=Broken(name="ours"))
    assert (run.final_answer, run.termination_reason) == (ANSWER, "error")
    assert run.warnings[0].code == "CRITIC-ERR-006"
    assert "validator 'ours' failed (ZeroDivisionError): its own fault" in run.warnings[0].message


@pytest.mark.spec("REQ-CRITIC-028")
def test_a_revision_made_alone_for_another_loop_passes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_with(GOOD)
    filled = roles(reviser=ScriptedReviser(["Broken [chunk_1"]))
    monkeypatch.setattr(stepwise, "build_roles", lambda settings: filled)
    with pytest.raises(InvalidRevision, match="not closed"):
        stepwise.revise_once(Case(id="bridge", query="How long?", answer=ANSWER, evidence=EVIDENCE), run, Settings())


class Answered(BaseModel):
    """A team's own form of an answer."""

    text: str
    sources: list[str]


@pytest.mark.spec("REQ-CRITIC-028")
def test_a_team_has_its_answers_held_against_its_own_model() -> None:
    ours = PydanticValidator(answer=Answered, name="ours")
    good = '{"text": "120 metres [chunk_1].", "sources": ["chunk_1"]}'
    assert run_with(good, validator=ours).iterations[1].answer == good
    for bad, why in [("plain", "it is no JSON"), ('{"text": 1}', "wrong in text, sources"), ("[" * 99_999, "")]:
        run = run_with(bad, validator=ours)
        assert run.final_answer == ANSWER
        assert f"is no Answered: {why}" in run.warnings[0].message or not why
        assert run.warnings[0].code == "CRITIC-ERR-006"


def test_an_unknown_validator_is_named_with_the_nearest_before_anything_is_done() -> None:
    with pytest.raises(SettingsError, match=r"no 'pydantics'. Did you mean 'pydantic'\? There are: pydantic, baml"):
        build_roles(Settings(output_validator="pydantics"))
    with pytest.raises(SettingsError):
        check_models(Settings(output_validator="bam"))


def test_the_default_needs_no_look_at_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    output_validation.chosen.cache_clear()
    monkeypatch.setattr(output_validation, "entry_points", lambda **_: pytest.fail("looked"))
    assert output_validation.chosen("pydantic").name == "pydantic"
