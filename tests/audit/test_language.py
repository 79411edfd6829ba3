"""Languages are recognised carefully, and a verifier judges only those it supports."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from masis import Case, Evidence, Settings, run_audit, verify_claims
from masis.api.roles import build_roles
from masis.audit.language import WithinLanguages, detect_language, within_languages
from masis.offline.roles.verifier import OfflineVerifier
from masis.schema.audit import Claim, ClaimCheck
from masis.schema.run import Run

FOREIGN = {
    "de": "Aspirin verhindert Schlaganfälle bei allen Erwachsenen, die es jeden Tag einnehmen.",
    "fr": "L'aspirine prévient les accidents vasculaires cérébraux chez tous les adultes.",
    "es": "La aspirina previene los accidentes cerebrovasculares en todos los adultos.",
    "it": "L'aspirina previene gli ictus in tutti gli adulti che la prendono ogni giorno.",
    "pt": "A aspirina previne os acidentes vasculares cerebrais em todos os adultos.",
    "nl": "Aspirine voorkomt beroertes bij alle volwassenen die het elke dag gebruiken.",
    "pl": "Aspiryna zapobiega udarom u wszystkich dorosłych, którzy przyjmują ją codziennie.",
    "sv": "Aspirin förebygger stroke hos alla vuxna som tar det varje dag.",
    "ru": "Аспирин предотвращает инсульт у всех взрослых.",
    "zh": "阿司匹林可以预防所有成年人的中风。",
    "ja": "アスピリンはすべての成人の脳卒中を予防します。",
    "ko": "아스피린은 모든 성인의 뇌졸중을 예방합니다.",
}


@pytest.mark.parametrize("code", sorted(FOREIGN))
def test_the_main_languages_are_recognised_in_a_sentence(code: str) -> None:
    assert detect_language(FOREIGN[code]) == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42 mg/dl (95% CI 1.2–3.4)",
        "Paris, Lyon, Marseille, Bordeaux, Toulouse",
        "Prof. Dr. Angela Müller-Schmidt, Universität Zürich",
        "Lericolais, G., Schneider, J., Guichard, F. (2009)",
        "E. coli, S. aureus, P. aeruginosa",
        "for i in range(10): print(x[i])",
        "`select * from tabelle where name is not null`",
        "E = mc², ΔG = ΔH − TΔS",
        "αβγδε",
        "in vitro",
        "Carpe diem!",
        "https://www.beispiel.example/das-ist-ein-langer-deutscher-titel",
        "Ja.",
    ],
)
def test_what_is_short_or_made_of_names_code_or_formulas_is_no_language(text: str) -> None:
    assert detect_language(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Mirabegron and solifenacin reduce micturition frequency.",
        "Habeas corpus and res judicata bar relitigation de novo.",
        "Ventricular tachycardia requires immediate defibrillation.",
        "Il Duomo di Milano was begun in 1386 by Gian Galeazzo Visconti.",
    ],
)
def test_english_with_latin_terms_or_foreign_names_is_never_called_foreign(text: str) -> None:
    assert detect_language(text) in ("en", None)


@pytest.mark.parametrize("name", ["expertqa_cases", "pubmedqa_cases"])
def test_medical_and_legal_texts_are_never_called_foreign(name: str, public_data: Path) -> None:
    lines = (public_data / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    cases = [json.loads(line) for line in lines if line]
    answers = [case["answer"] for case in cases if case.get("answer")]
    assert len(answers) > 100
    assert not [text for text in answers if detect_language(text) not in ("en", None)]


def audited(answer: str, *evidence: str) -> Run:
    chunks = [Evidence(id=f"chunk_{number}", text=text) for number, text in enumerate(evidence, 1)]
    return run_audit(Case(id="c", query="Does aspirin prevent strokes?", answer=answer, evidence=chunks), Settings())


ENGLISH = "Aspirin prevents strokes in adults who take it every day, according to the trial."


@pytest.mark.parametrize("code", ["de", "ru", "zh"])
def test_a_claim_in_another_language_than_the_verifier_s_is_not_confirmed(code: str) -> None:
    claim = FOREIGN[code]
    run = audited(claim, ENGLISH)
    (check,) = run.iterations[0].claims
    assert (check.verdict, check.abstained, check.support) == ("unverifiable", "language", None)
    assert run.needs_review
    assert "language" in [reason.code for reason in run.review_reasons]
    assert not [reason for reason in run.review_reasons if reason.code in ("unsupported_claim", "contradicted_claim")]


def test_english_claims_against_evidence_in_another_language_are_not_judged_either() -> None:
    (check,) = audited(f"{ENGLISH[:-1]} [chunk_1].", FOREIGN["de"]).iterations[0].claims
    assert (check.verdict, check.abstained) == ("unverifiable", "language")
    assert [each.finding for each in check.references] == ["unchecked"]


def test_evidence_that_could_not_be_read_might_support_what_the_rest_does_not() -> None:
    (check,) = audited("The moon is made of green cheese from Holland.", ENGLISH, FOREIGN["de"]).iterations[0].claims
    assert check.abstained == "language"


def test_a_passage_copied_word_for_word_is_supported_in_any_language() -> None:
    (check,) = audited(FOREIGN["de"], f"{FOREIGN['de']} Das zeigt die Studie.").iterations[0].claims
    assert (check.verdict, check.abstained) == ("supported", None)


def test_claims_alone_are_held_to_the_language_as_well() -> None:
    (check,) = verify_claims([FOREIGN["fr"]], [{"id": "1", "text": ENGLISH}])
    assert check.abstained == "language"


class Polyglot(OfflineVerifier):
    """A verifier that supports any language."""

    languages = None

    def verify(self, claims: Sequence[Claim], evidence: Sequence[Evidence]) -> tuple[ClaimCheck, ...]:
        return tuple(ClaimCheck(claim=claim, verdict="unsupported", support=0.1, confidence=0.9) for claim in claims)


def test_a_verifier_without_languages_of_its_own_takes_any() -> None:
    verifier = Polyglot()
    assert within_languages(verifier) is verifier
    assert within_languages(object()).__class__ is object


def test_the_offline_verifier_supports_english_and_is_held_to_it() -> None:
    verifier = build_roles(Settings()).verifier
    assert isinstance(verifier, WithinLanguages)
    assert verifier.languages == {"en"}


def test_nothing_is_loaded_before_a_language_must_be_detected() -> None:
    code = "import sys, masis, masis.cli; assert 'py3langid' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
