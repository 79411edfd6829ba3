"""What the citation engine says of an answer: the spec's rules, and where ours reach further."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masis.audit.citations import audit_citations
from masis.schema.audit import CitationAudit
from masis.schema.case import Evidence

CHUNKS = tuple(Evidence(id=f"chunk_{number}", text="...") for number in (1, 2, 11))
NUMBERS = tuple(Evidence(id=str(number)) for number in range(1, 6))


def statuses(audit: CitationAudit) -> list[str]:
    return [sentence.status for sentence in audit.sentences]


@pytest.mark.spec("MASIS-CRITIC-P3")
def test_a_reference_to_a_chunk_that_does_not_exist_is_a_fabrication() -> None:
    audit = audit_citations("Revenue declined [chunk_99].", CHUNKS)
    assert audit.invalid_citations == ("chunk_99",)
    assert audit.hallucination_detected
    assert audit.needs_retry
    assert audit.penalty_factor == 0.5


@pytest.mark.spec("MASIS-CRITIC-P3")
def test_each_reference_of_a_marker_is_judged_on_its_own() -> None:
    answer = "Sales rose [1, 99]."
    audit = audit_citations(answer, NUMBERS)
    valid, invalid = audit.citations
    assert (valid.reference, valid.status, valid.evidence_id, valid.resolved_by) == ("1", "valid", "1", "exact")
    assert (invalid.reference, invalid.status, invalid.evidence_id, invalid.resolved_by) == (
        "99",
        "invalid",
        None,
        None,
    )
    assert answer[invalid.start : invalid.end] == "99"
    assert answer[invalid.marker_start : invalid.marker_end] == "[1, 99]"
    assert audit.invalid_citations == ("99",)
    assert audit.sentences[0].citation_ids == ("1",)


@pytest.mark.spec("MASIS-CRITIC-P3")
def test_an_answer_whose_references_all_name_evidence_costs_nothing() -> None:
    audit = audit_citations("Sales rose [chunk_1]. Costs fell [chunk_2].", CHUNKS)
    assert audit.invalid_citations == audit.uncited_claims == ()
    assert not audit.hallucination_detected
    assert not audit.needs_retry
    assert audit.penalty_factor == 1.0


@pytest.mark.spec("MASIS-CRITIC-P4")
def test_a_sentence_that_asserts_and_carries_no_citation_is_uncited() -> None:
    audit = audit_citations("Sales rose [1]. The company's strategy is primarily defensive.", NUMBERS)
    assert audit.uncited_claims == ("The company's strategy is primarily defensive.",)
    assert statuses(audit) == ["cited", "uncited"]
    assert not audit.hallucination_detected


@pytest.mark.spec("MASIS-CRITIC-P4", "MASIS-CRITIC-P6")
@pytest.mark.parametrize(
    ("answer", "factor"),
    [
        ("Sales rose [1].", 1.0),
        ("Sales rose [1]. Costs fell in every region.", 0.9),
        ("Sales rose [9].", 0.5),
        ("Sales rose [9]. Costs fell in every region.", 0.45),
        ("Sales rose in Europe. Costs fell in every region.", 1.0),
        ("", 1.0),
    ],
)
def test_the_penalties_are_the_spec_s(answer: str, factor: float) -> None:
    assert audit_citations(answer, NUMBERS).penalty_factor == pytest.approx(factor)


@pytest.mark.spec("MASIS-CRITIC-P6")
def test_the_penalties_can_be_set() -> None:
    audit = audit_citations(
        "Sales rose [9]. Costs fell in every region.", NUMBERS, invalid_penalty=0.2, uncited_penalty=0.5
    )
    assert audit.penalty_factor == pytest.approx(0.1)


def test_a_sentence_that_carries_only_a_fabricated_reference_is_cited_and_says_so() -> None:
    audit = audit_citations("Sales rose [9].", NUMBERS)
    assert audit.sentences[0].status == "cited"
    assert audit.sentences[0].citation_ids == ()
    assert "names no evidence" in audit.sentences[0].why


def test_a_citation_behind_the_stop_counts_for_the_sentence_before_it() -> None:
    audit = audit_citations("Sales rose. [1] Costs fell. [2]", NUMBERS)
    assert [sentence.citation_ids for sentence in audit.sentences] == [("1",), ("2",)]


def test_decimals_abbreviations_and_addresses_make_no_uncited_sentences() -> None:
    answer = "Smith et al. put it at 0.002% (Fig. 3), i.e. less than Dr. Brown, see https://a.example/x.y?z=1 [1]."
    assert statuses(audit_citations(answer, NUMBERS)) == ["cited"]


def test_references_of_a_source_list_are_checked_but_the_list_is_no_claim() -> None:
    audit = audit_citations("Sales rose [1].\n\nSources: [1], [9]", NUMBERS)
    assert audit.invalid_citations == ("9",)
    assert [(s.status, s.why) for s in audit.sentences][1] == ("exempt", "a list of sources")


def test_a_sentence_that_begins_with_sources_of_is_no_source_list() -> None:
    audit = audit_citations("Sources of energy vary by region [1]. Sources of heat vary too.", NUMBERS)
    assert statuses(audit) == ["cited", "uncited"]


def test_the_entries_under_a_references_heading_are_no_claims() -> None:
    sources = "## References\n[1] Annual report, 2023\n[2] Press release, 2024"
    answer = f"Sales rose [1].\n\n{sources}\n\n## Outlook\nIt is bright."
    audit = audit_citations(answer, NUMBERS)
    assert statuses(audit) == ["cited", "exempt", "exempt", "exempt", "exempt", "uncited"]


def test_list_items_under_a_cited_lead_in_are_covered_by_it() -> None:
    covered = audit_citations("The causes are, by share [1]:\n- smoking\n- bad air in cities", NUMBERS)
    assert statuses(covered) == ["cited", "exempt", "exempt"]
    open_ = audit_citations("The causes are:\n- smoking causes most\n- bad air in cities is next", NUMBERS)
    assert statuses(open_) == ["exempt", "uncited", "uncited"]


def test_no_evidence_makes_every_reference_invalid() -> None:
    assert audit_citations("Sales rose [1].", ()).invalid_citations == ("1",)


LITERAL = "Revenue fell 2.5% [chunk_1]. Margins shrank [sic] [chunk_99]! Is it bad? Data is not provided. So it goes"


@pytest.mark.spec("MASIS-CRITIC-P3", "MASIS-CRITIC-P4")
def test_literal_mode_is_the_source_s_code_to_the_letter() -> None:
    audit = audit_citations(LITERAL, CHUNKS, mode="literal")
    citations = re.findall(r"\[(.*?)\]", LITERAL)
    valid_ids = {chunk.id for chunk in CHUNKS}
    assert [citation.reference for citation in audit.citations] == citations
    assert list(audit.invalid_citations) == [c for c in citations if c not in valid_ids]
    assert list(audit.uncited_claims) == source_s_uncited(LITERAL)
    assert audit.penalty_factor == pytest.approx(0.45)


@pytest.mark.parametrize("mode", ["standard", "literal"])
@pytest.mark.spec("MASIS-CRITIC-LITERAL")
def test_a_sentence_that_asks_for_a_citation_has_none(mode: Literal["standard", "literal"]) -> None:
    answer = "Revenue fell [citation needed]. Margins shrank. [Citation needed] Costs rose [chunk_1]."
    audit = audit_citations(answer, CHUNKS, mode=mode)
    assert [citation.reference for citation in audit.citations] == ["chunk_1"]
    assert len(audit.uncited_claims) == 2
    assert not audit.hallucination_detected


def source_s_uncited(answer: str) -> list[str]:
    """The list comprehension of the masis-critic spec, Problem 4."""
    return [
        s.strip()
        for s in re.split(r"[.!?]", answer)
        if s.strip()
        and "[" not in s
        and "insufficient evidence" not in s.lower()
        and "not provided" not in s.lower()
        and "cannot provide" not in s.lower()
    ]


ODD_TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from(list("[]()【】†^.!?:,;-–_ \n`$\\*#|0123456789acdehknu")), st.characters(codec="utf-8")
    ),
    max_size=120,
)


@pytest.mark.slow
@given(ODD_TEXT)
@settings(max_examples=300, deadline=None)
def test_literal_mode_agrees_with_the_source_s_code_on_any_text(answer: str) -> None:
    audit = audit_citations(answer, CHUNKS, mode="literal")
    assert [citation.reference for citation in audit.citations] == re.findall(r"\[(.*?)\]", answer)
    assert list(audit.uncited_claims) == source_s_uncited(answer)


@pytest.mark.parametrize("mode", ["standard", "literal"])
@given(answer=ODD_TEXT)
@settings(max_examples=300, deadline=None)
def test_offsets_are_true_on_any_text(mode: str, answer: str) -> None:
    audit = audit_citations(answer, CHUNKS, mode=mode)  # type: ignore[arg-type]
    for part in (*audit.citations, *audit.sentences):
        assert answer[part.start : part.end] == part.text
    for citation in audit.citations:
        assert citation.marker_start <= citation.start <= citation.end <= citation.marker_end
        assert (citation.status == "valid") == (citation.evidence_id is not None)
    validated = CitationAudit.model_validate(audit.model_dump())
    assert validated == audit
    assert validated.model_dump_json(exclude_unset=True) == audit.model_dump_json(exclude_unset=True)
    assert audit_citations(answer, CHUNKS, mode=mode) == audit  # type: ignore[arg-type]


PLAIN = st.text(alphabet="abcIRXYZ 0123456789.,!?%-'\"\n:;/()*_#>|é漢。", max_size=80)
FABRICATED = ["[99]", "[chunk_99]", "【99†source】", "[98, 99]", "(Source 99)", "[Doc 99]", "[^99]", "[97-99]"]


@pytest.mark.slow
@given(before=PLAIN, after=PLAIN, marker=st.sampled_from(FABRICATED), evidence=st.sampled_from([CHUNKS, NUMBERS]))
@settings(max_examples=400, deadline=None)
def test_a_fabricated_marker_is_found_wherever_it_stands(
    before: str, after: str, marker: str, evidence: tuple[Evidence, ...]
) -> None:
    invalid = audit_citations(f"{before} {marker} {after}", evidence).invalid_citations
    assert any(reference.endswith("99") for reference in invalid)


def test_the_records_are_whole_and_frozen() -> None:
    audit = audit_citations("Sales rose [1].", NUMBERS)
    for record in (audit, audit.citations[0], audit.sentences[0]):
        assert record.model_fields_set == set(record.__dict__) == set(type(record).model_fields)
        assert record == type(record)(**record.model_dump())
        assert record.model_copy() == record
        with pytest.raises(ValueError, match="frozen"):
            record.text = "else"  # type: ignore[union-attr]
