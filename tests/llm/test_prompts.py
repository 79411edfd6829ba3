"""Prompts: what they say, that a change shows in their version, and that calls of one run share what they can."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from string import Template
from typing import Any

import pytest

from masis.audit.citations import audit_citations
from masis.llm.client import schemas
from masis.llm.roles import replies
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.critic import prompt as critic_prompt
from masis.llm.roles.evaluator import ModelEvaluator, constants
from masis.llm.roles.evaluator import prompt as evaluator_prompt
from masis.llm.roles.prompting import FOLDER, load, question_and_evidence
from masis.llm.roles.reviser import ModelReviser
from masis.llm.roles.verifier import Extractions, ModelVerifier
from masis.schema.audit import IssueType
from masis.schema.case import Evidence
from masis.settings import Settings
from tests.audit.factories import EVIDENCE, check, citations, context, issue, verdict
from tests.llm import canned
from tests.llm.scripted_asker import MARK, ScriptedAsker

VERSIONS = {
    "claims": "claims/1+d8437348",
    "claims_extract": "claims_extract/3+2aed9f22",
    "claims_verify": "claims_verify/3+0a48ac62",
    "completeness": "completeness/2+f0e4d34f",
    "critic": "critic/3+d1796ccb",
    "drafter": "drafter/3+e5b58ef0",
    "evaluator": "evaluator/3+669f8ddf",
    "frame": "frame/3+49d03c02",
    "grader": "grader/3+c4f9a660",
    "reviser": "reviser/4+33ea913d",
}
"""A prompt that changes gets a higher number: results keep the version that made them."""


def test_a_prompt_that_changed_has_a_new_version() -> None:
    assert {file.stem: load(file.stem).version for file in FOLDER.glob("*.md")} == VERSIONS


@pytest.mark.parametrize("name", sorted(VERSIONS))
def test_no_placeholder_is_left_in_a_prompt(name: str) -> None:
    file = load(name)
    text = Template(file.before).substitute(constants(Settings())) if name == "evaluator" else file.before
    assert "$" not in text + file.after
    assert "{{" not in text + file.after


@pytest.mark.parametrize("name", sorted(set(VERSIONS) - {"frame"}))
def test_our_words_come_before_the_texts_to_judge_and_again_behind_them(name: str) -> None:
    assert load(name).before
    assert load(name).after


@pytest.mark.spec("MASIS-CRITIC-P1")
def test_the_critic_is_an_auditor_who_goes_by_the_evidence_alone() -> None:
    assert "You are an AI Auditor." in load("critic").before
    assert "Evaluate the answer strictly using the provided evidence." in load("critic").before


@pytest.mark.spec("MASIS-CRITIC-P1", "MASIS-CRITIC-P6")
def test_the_critic_is_not_shown_what_code_and_verifier_found() -> None:
    bare = context(claims=(), citation_audit=citations(), issues=(), missing=())
    found = context(claims=(check("contradicted", 0.0),), citation_audit=citations(3, 4), issues=(issue(),))
    assert critic_prompt(bare, MARK) == critic_prompt(found, MARK)


@pytest.mark.spec("REQ-CRITIC-003")
def test_the_critic_is_given_every_type_of_issue() -> None:
    told = set(re.findall(r"^- (\w+): ", load("critic").before.partition("Severity,")[0], re.MULTILINE))
    assert told == set(IssueType.__args__)  # type: ignore[attr-defined]


@pytest.mark.spec("REQ-CRITIC-002")
def test_the_critic_sees_answer_question_evidence_and_reasoning() -> None:
    sent = critic_prompt(context(reasoning_steps=("First, the length.",)), MARK)
    for text in ("How long is the bridge?", *(chunk.text for chunk in EVIDENCE)):
        assert text in sent.shared
    for text in ("The bridge is long.", "First, the length."):
        assert text in sent.task


@pytest.mark.spec("MASIS-EVAL-P3")
def test_the_rubric_has_three_anchors_a_dimension_and_is_strict() -> None:
    rubric = load("evaluator").before
    dimensions = re.split(r"^(Faithfulness|Relevance|Completeness|Reasoning quality): ", rubric, flags=re.MULTILINE)
    assert dimensions[1::2] == ["Faithfulness", "Relevance", "Completeness", "Reasoning quality"]
    for text in dimensions[2::2]:
        assert re.findall(r"^(1|0\.5|0) = ", text, re.MULTILINE) == ["1", "0.5", "0"]
    assert "Be strict. Do NOT default to 1." in rubric
    assert "Use the citation audit findings to calibrate Faithfulness accurately." in rubric.replace("\n", " ")
    assert "1 = every claim directly supported by cited evidence" in rubric


@pytest.mark.spec("MASIS-EVAL-P4")
def test_the_judge_gets_the_citation_audit_as_hard_constraints() -> None:
    sent = evaluator_prompt(context(citation_audit=citations(1, 6)), verdict(), Settings(), MARK)
    sent = sent.system + sent.task
    assert '{"invalid_citations": ["chunk_90"], "uncited_sentences": 6, "hallucination_detected": true}' in sent
    for rule in (
        "If uncited_sentences >= 5, Faithfulness MUST be <= 0.5",
        "If uncited_sentences >= 10, Faithfulness MUST be <= 0.3",
        "If hallucination_detected is true, Faithfulness MUST be <= 0.4",
        "If invalid_citations is not empty, Faithfulness MUST be <= 0.4",
        "do not override them",
    ):
        assert rule in sent


@pytest.mark.spec("MASIS-EVAL-P4")
def test_the_constraints_are_those_that_the_clamps_go_by() -> None:
    settings = Settings(hallucination_faithfulness_cap=0.2, uncited_cap_from=3, uncited_faithfulness_cap=0.45)
    sent = evaluator_prompt(context(), verdict(), settings, MARK).system
    assert "hallucination_detected is true, Faithfulness MUST be <= 0.2" in sent
    assert "uncited_sentences >= 3, Faithfulness MUST be <= 0.45" in sent


def test_a_hallucination_that_only_the_critic_found_is_passed_on_to_the_judge() -> None:
    sent = evaluator_prompt(context(), verdict(hallucination_detected=True), Settings(), MARK).task
    assert '"hallucination_detected": true' in sent


@pytest.mark.spec("MASIS-EVAL-P2")
def test_the_judge_reads_the_question_before_the_answer() -> None:
    sent = evaluator_prompt(context(), verdict(), Settings(), MARK)
    whole = sent.shared + sent.task
    assert whole.index("How long is the bridge?") < whole.index("The bridge is long.")


def test_a_chunk_comes_with_what_tells_its_subject_and_date_and_not_how_it_was_found() -> None:
    known = {
        "id": "c",
        "text": "It rose.",
        "title": "Acme 2021",
        "date": 2021,
        "score": 0.93,
        "type": "",
        "author": None,
    }
    (_, section) = question_and_evidence("Q?", [Evidence.model_validate(known | {"section": "x" * 1000})])
    assert json.loads(section.text.splitlines()[0]) == {
        "id": "c",
        "source": None,
        "title": "Acme 2021",
        "section": "x" * 300,
        "date": "2021",
    }


@pytest.mark.spec("REQ-CRITIC-NFR-013")
def test_every_judge_of_a_run_is_sent_the_same_question_and_evidence_byte_for_byte() -> None:
    asker = ScriptedAsker(canned.ALL)
    audited = context()
    verifier = ModelVerifier(asker, Settings(claims_batch=1), Extractions())
    claims = [check().claim, check().claim.model_copy(update={"text": "It opened in 1931.", "start": 20, "end": 38})]
    verifier.check(claims, audited.query, audited.answer, audited.evidence, completeness=True)
    ModelCritic(asker).critique(audited)
    ModelEvaluator(asker, Settings()).evaluate(audited, verdict())
    ModelReviser(asker).revise(audited, verdict(), (issue(),))
    ModelCritic(asker).critique(context(answer="Another answer of the same run."))
    assert [asked.file for asked in asker.asked if asked.file == "claims_verify"] == ["claims_verify"] * 2
    assert len(asker.asked) == 7
    assert len({asked.prompt.shared for asked in asker.asked}) == 1
    assert len({asked.prompt.frame for asked in asker.asked}) == 1


@pytest.mark.spec("REQ-CRITIC-NFR-013")
def test_the_calls_of_a_role_begin_with_the_same_four_thousand_characters_in_every_case_and_all_three_are_short() -> (
    None
):
    """What a cache of prompts serves in a batch, and what a standard audit of any answer costs beside the texts."""
    asker, fixed = ScriptedAsker(canned.ALL), 0
    for audited in (context(), context(query="How wide is it?", evidence=EVIDENCE[:1], answer="It is 9 m wide.")):
        ModelVerifier(asker, Settings(), Extractions()).check_answer(
            audited.answer, audit_citations(audited.answer, audited.evidence), audited.query, audited.evidence,
            completeness=True,
        )  # fmt: skip
        ModelCritic(asker).critique(audited)
        ModelEvaluator(asker, Settings()).evaluate(audited, verdict())
        ModelReviser(asker).revise(audited, verdict(), (issue(),))
    for name in ("claims", "critic", "evaluator", "reviser"):
        first, second = asker.of(name)
        assert first.prompt.system == second.prompt.system
        assert len(first.prompt.system) >= 4_000, name
        if name != "reviser":
            fixed += len(first.prompt.system) + len(schemas.of(first.shape).text)
    assert fixed <= 19_500


def objects(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects in a schema, the outermost first."""
    if "properties" in schema:
        yield schema
    for part in schema.values():
        for each in part if isinstance(part, list) else [part]:
            if isinstance(each, dict):
                yield from objects(each)


@pytest.mark.parametrize("shape", canned.PROMPT_OF)
def test_every_field_of_a_reply_is_explained_in_its_prompt(shape: type[replies.Reply]) -> None:
    text = load(canned.PROMPT_OF[shape]).before
    parts = list(objects(schemas.of(shape).schema))
    assert not any("description" in part for part in parts)  # it is said in the prompt, which has a version
    fields = {name for part in parts for name in part["properties"]}
    assert {name for name in fields if not re.search(rf"\b{name}\b", text)} == set()
