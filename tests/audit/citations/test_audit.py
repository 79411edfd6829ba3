"""The citation engine: the spec's rules, the additional ones, and the sentences that need no
citation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masis import Case, run_audit
from masis.audit.citations import audit_citations, carry_over_citations
from masis.audit.citations.hedges import hedges, language, tables
from masis.audit.markers.styles import STYLES
from masis.schema.audit import CitationAudit, Sentence
from masis.schema.case import Evidence, GivenCitation
from tests.rules import for_each

CHUNKS = tuple(Evidence(id=f"chunk_{number}", text="...") for number in (1, 2, 11))
NUMBERS = tuple(Evidence(id=str(number)) for number in range(1, 6))


def statuses(audit: CitationAudit) -> list[str]:
    return [sentence.status for sentence in audit.sentences]


@pytest.mark.spec("MASIS-CRITIC-P3")
def test_each_reference_of_a_marker_is_judged_separately() -> None:
    answer = "Sales rose [1, 99]."
    audit = audit_citations(answer, NUMBERS)
    valid, invalid = audit.citations
    assert (valid.reference, valid.status, valid.evidence_id, valid.resolved_by) == (
        "1",
        "valid",
        "1",
        "exact",
    )
    assert (invalid.reference, invalid.status, invalid.evidence_id, invalid.resolved_by) == (
        "99",
        "invalid",
        None,
        None,
    )
    assert answer[invalid.start : invalid.end] == "99"
    assert answer[invalid.marker_start : invalid.marker_end] == "[1, 99]"
    assert (audit.invalid_citations, audit.hallucination_detected, audit.needs_retry) == (
        ("99",),
        True,
        True,
    )
    assert audit.sentences[0].citation_ids == ("1",)


@pytest.mark.spec("MASIS-CRITIC-P4", "MASIS-CRITIC-P6", "MASIS-CRITIC-NO-CITATION")
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
def test_the_penalties_match_the_spec(answer: str, factor: float) -> None:
    assert audit_citations(answer, NUMBERS).penalty_factor == pytest.approx(factor)


@pytest.mark.spec("MASIS-CRITIC-P6")
def test_the_penalties_are_configurable() -> None:
    audit = audit_citations(
        "Sales rose [9]. Costs fell in every region.",
        NUMBERS,
        invalid_penalty=0.2,
        uncited_penalty=0.5,
    )
    assert audit.penalty_factor == pytest.approx(0.1)


def test_a_sentence_with_only_a_fabricated_reference_counts_as_cited() -> None:
    audit = audit_citations("Sales rose [9].", NUMBERS)
    assert audit.sentences[0].status == "cited"
    assert audit.sentences[0].citation_ids == ()
    assert "doesn't match any evidence" in audit.sentences[0].why


def test_references_in_a_source_list_are_checked_but_the_list_isnt_a_claim() -> None:
    audit = audit_citations("Sales rose [1].\n\nSources: [1], [9]", NUMBERS)
    assert audit.invalid_citations == ("9",)
    assert [(s.status, s.why) for s in audit.sentences][1] == ("exempt", "a list of sources")


def test_entries_under_a_references_heading_arent_claims() -> None:
    sources = "## References\n[1] Annual report, 2023\n[2] Press release, 2024"
    answer = f"Sales rose [1].\n\n{sources}\n\n## Outlook\nIt is bright."
    audit = audit_citations(answer, NUMBERS)
    assert statuses(audit) == ["cited", "exempt", "exempt", "exempt", "exempt", "uncited"]


def test_a_cited_lead_in_covers_its_list_items() -> None:
    cited_list = audit_citations(
        "The causes are, by share [1]:\n- smoking\n- bad air in cities", NUMBERS
    )
    assert statuses(cited_list) == ["cited", "exempt", "exempt"]
    uncited_list = audit_citations(
        "The causes are:\n- smoking causes most\n- bad air in cities is next", NUMBERS
    )
    assert statuses(uncited_list) == ["exempt", "uncited", "uncited"]


def test_without_evidence_every_reference_is_invalid() -> None:
    assert audit_citations("Sales rose [1].", ()).invalid_citations == ("1",)


LITERAL = (
    "Revenue fell 2.5% [chunk_1]. Margins shrank [sic] [chunk_99]! Is it bad? Data is not provided."
    " So it goes"
)


@pytest.mark.spec("MASIS-CRITIC-P3", "MASIS-CRITIC-P4")
def test_literal_mode_equals_the_code_of_the_spec() -> None:
    audit = audit_citations(LITERAL, CHUNKS, mode="literal")
    citations = re.findall(r"\[(.*?)\]", LITERAL)
    valid_ids = {chunk.id for chunk in CHUNKS}
    assert [citation.reference for citation in audit.citations] == citations
    assert list(audit.invalid_citations) == [c for c in citations if c not in valid_ids]
    assert list(audit.uncited_claims) == uncited_by_spec(LITERAL)
    assert audit.penalty_factor == pytest.approx(0.45)


@pytest.mark.parametrize("mode", ["standard", "literal"])
@pytest.mark.spec("MASIS-CRITIC-LITERAL")
def test_a_citation_needed_tag_isnt_a_citation(mode: Literal["standard", "literal"]) -> None:
    answer = (
        "Revenue fell [citation needed]. Margins shrank. [Citation needed] Costs rose [chunk_1]."
    )
    audit = audit_citations(answer, CHUNKS, mode=mode)
    assert [citation.reference for citation in audit.citations] == ["chunk_1"]
    assert len(audit.uncited_claims) == 2
    assert not audit.hallucination_detected


def uncited_by_spec(answer: str) -> list[str]:
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
        st.sampled_from(list("[]()【】†^.!?:,;-–_ \n`$\\*#|0123456789acdehknu")),
        st.characters(codec="utf-8"),
    ),
    max_size=120,
)


@pytest.mark.slow
@given(ODD_TEXT)
@settings(max_examples=300, deadline=None)
def test_literal_mode_equals_the_code_of_the_spec_on_any_text(answer: str) -> None:
    audit = audit_citations(answer, CHUNKS, mode="literal")
    assert [citation.reference for citation in audit.citations] == re.findall(r"\[(.*?)\]", answer)
    assert list(audit.uncited_claims) == uncited_by_spec(answer)


@pytest.mark.parametrize("mode", ["standard", "literal"])
@given(answer=ODD_TEXT)
@settings(max_examples=300, deadline=None)
def test_offsets_are_correct_on_any_text(mode: str, answer: str) -> None:
    audit = audit_citations(answer, CHUNKS, mode=mode)
    for part in (*audit.citations, *audit.sentences):
        assert answer[part.start : part.end] == part.text
    for citation in audit.citations:
        assert citation.marker_start <= citation.start <= citation.end <= citation.marker_end
        assert (citation.status == "valid") == (citation.evidence_id is not None)
    validated = CitationAudit.model_validate(audit.model_dump())
    assert validated == audit
    assert validated.model_dump_json(exclude_unset=True) == audit.model_dump_json(
        exclude_unset=True
    )
    assert audit_citations(answer, CHUNKS, mode=mode) == audit


PLAIN = st.text(alphabet="abcIRXYZ 0123456789.,!?%-'\"\n:;/()*_#>|é漢。", max_size=80)
MAY_BE_EXPONENTS = ("superscript",)
"""Styles whose markers have another meaning after a number or a sign."""
FABRICATED = [
    style.write(["99"]) for style in STYLES if style.write and style.name not in MAY_BE_EXPONENTS
]
# Further forms of names and brackets.
FABRICATED += [
    "[chunk_99]",
    "[98, 99]",
    "[Doc 99]",
    "[97-99]",
    "[ID:99]",
    "[来源99]",
    "<cite>chunk_99</cite>",
    "##99$$",
    "[99 (p. 4)]",
    "〔99〕",
    "[S99]",
    "[^99^]",
    "[Source: Document 99]",
    "[Doc. 99]",
    "[99.1 source]",
    "\ue200cite\ue202turn0search99\ue201",
]


@pytest.mark.slow
@given(
    before=PLAIN,
    after=PLAIN,
    marker=st.sampled_from(FABRICATED),
    evidence=st.sampled_from([CHUNKS, NUMBERS]),
)
@settings(max_examples=400, deadline=None)
def test_a_fabricated_marker_is_found_anywhere(
    before: str, after: str, marker: str, evidence: tuple[Evidence, ...]
) -> None:
    invalid = audit_citations(f"{before} {marker} {after}", evidence).invalid_citations
    assert any(reference.endswith("99") for reference in invalid)


# Sentences that need no citation

ONE = (Evidence(id="1"),)


def sentences_of(answer: str) -> list[Sentence]:
    return list(audit_citations(answer, ONE).sentences)


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("# Results in 2023", "a heading"),
        ("Is that much?", "a question"),
        ("这是什么？", "a question"),
        ("Here are the main causes:", "speaks about the answer itself"),
        ("The main causes are:", "announces what follows"),
        ("There are several reasons for this.", "announces what follows"),
        ("**Background.**", "a title"),
        ("I hope this helps!", "a greeting"),
        ("Let me know if you have further questions.", "speaks about the answer itself"),
        ("Certainly!", "a greeting"),
        ("Yes.", "a bare answer, which the next sentences carry"),
        ("Please consult a doctor before taking it.", "advises to ask a professional"),
        ("It is important to consult a qualified professional.", "advises to ask a professional"),
        ("```\nx = rows[7]\n```", "a code block"),
        ("---", "a rule between parts"),
        ("On the other hand.", "a transition"),
        ("***", "a rule between parts"),
        ("The sources do not mention the price.", "says what is not known"),
    ],
)
def test_sentences_that_assert_nothing_are_exempt_with_a_reason(sentence: str, why: str) -> None:
    first = sentences_of(f"{sentence}\n\nIt rose [1].")[0]
    assert (first.status, first.why) == ("exempt", why)


@pytest.mark.parametrize(
    "sentence",
    [
        "Paris is the capital of France.",
        "Paris.",
        "However, revenue fell by 12%.",
        "In conclusion, the drug works.",
        "First, the plant was closed in 2004.",
        "Revenue fell by 12% in 2004 for these reasons:",
        "The doctor advised a change of diet.",
        "See the doctor paid by the firm in 2004 for 3 million.",
        "Sources of energy vary by region.",
        "Sure signs of the disease are fever and rash in most patients.",
        "Thanks to the new plant, output rose by a third in a year.",
        (
            "There are several hundred species of oak in the region and most of them are threatened"
            " by drought."
        ),
        "Consider the fact that the sales of 2023 were lower than those of 2022.",
        "These are the largest whales in the southern ocean and eat krill.",
    ],
)
def test_sentences_that_assert_something_arent_exempt(sentence: str) -> None:
    assert sentences_of(f"{sentence}\n\nIt rose [1].")[0].status == "uncited"


def test_table_headers_are_exempt_but_rows_arent() -> None:
    table = "| year | sales |\n|---|---|\n| 2023 | 5 million |\n| 2024 | 6 million [1] |"
    assert [(s.status, s.why) for s in sentences_of(table)] == [
        ("exempt", "a table header"),
        ("exempt", "a table separator row"),
        ("uncited", "asserts something and carries no citation"),
        ("cited", "has a citation"),
    ]


def test_footnote_definitions_are_a_source_list() -> None:
    audit = audit_citations("Sales rose [^1].\n\n[^1]: Annual report, 2023", ONE)
    assert [c.evidence_id for c in audit.citations] == ["1"]
    assert [s.status for s in audit.sentences] == ["cited", "exempt"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("Paris.", "uncited"),
        ("Yes.", "uncited"),
        ("The report [1] does not mention the price.", "cited"),
    ],
)
def test_a_one_word_answer_needs_a_citation_and_a_hedge_may_have_one(
    answer: str, status: str
) -> None:
    assert sentences_of(answer)[0].status == status


PAGE = Path(__file__).resolve().parents[3] / "docs" / "audits.md"


def table_rows(table: str) -> Iterator[list[str]]:
    """Yield the cells of each row of the tables below the comment with this name."""
    for part in PAGE.read_text(encoding="utf-8").split(f"<!-- {table} -->")[1:]:
        lines = part.strip().splitlines()
        for line in lines[2:]:
            if not line.startswith("|"):
                break
            yield [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def without_backticks(cell: str) -> str:
    return cell.strip("`").strip(" " if cell.startswith("``") else "").replace("⏎", "\n")


def parse_evidence(cell: str) -> list[Evidence]:
    pairs = [entry.partition("=") for entry in cell.split(", ")]
    return [Evidence(id=id_, source=source or None) for id_, _, source in pairs]


@pytest.mark.spec("MASIS-CRITIC-P3")
@for_each(table_rows("markers"), lambda row: row[0])
def test_documented_markers_resolve_as_documented(row: list[str]) -> None:
    answer, ids, documented = row
    resolutions = [
        (
            f"{citation.evidence_id} ({citation.resolved_by})"
            if citation.evidence_id
            else f"**{citation.reference}**"
        )
        for citation in audit_citations(without_backticks(answer), parse_evidence(ids)).citations
    ]
    assert (", ".join(resolutions) or "nothing") == documented


@pytest.mark.spec("MASIS-CRITIC-P3", "MASIS-CRITIC-P4")
@for_each(table_rows("departures"), lambda row: row[0])
def test_documented_departures_from_the_spec_are_real(row: list[str]) -> None:
    answer, ids, in_literal_mode, standard, _ = row
    for mode, documented in (("literal", in_literal_mode), ("standard", standard)):
        audit = audit_citations(without_backticks(answer), parse_evidence(ids), mode=mode)
        assert (
            f"{', '.join(audit.invalid_citations) or '-'}; {len(audit.uncited_claims)}"
            == documented
        ), mode


def test_the_documentation_has_its_examples() -> None:
    assert len(list(table_rows("markers"))) > 50
    assert len(list(table_rows("departures"))) > 10
    assert not re.search(r"/(?:work|tmp|home)/", PAGE.read_text(encoding="utf-8"))


# Hedges: sentences that only say that something isn't known

HERE = Path(__file__).parent


def read_lines(name: str) -> list[str]:
    """Return the lines of a file in this folder, each of which is a sentence."""
    return [line for line in (HERE / name).read_text(encoding="utf-8").splitlines() if line]


@pytest.mark.spec("MASIS-CRITIC-P4")
@for_each(read_lines("hedges.txt"))
def test_a_sentence_about_what_isnt_known_is_a_hedge(sentence: str) -> None:
    assert hedges(sentence)


@for_each(read_lines("assertions.txt"))
def test_a_negative_assertion_isnt_a_hedge(sentence: str) -> None:
    assert not hedges(sentence)


@pytest.mark.spec("MASIS-CRITIC-P4")
def test_a_hedge_inside_an_assertion_doesnt_exempt_it() -> None:
    sentence = "The margin is not provided, but revenue rose 12% in the third quarter."
    assert audit_citations(f"Sales rose [1]. {sentence}", [Evidence(id="1")]).uncited_claims == (
        sentence,
    )


def test_every_pattern_of_every_language_compiles_and_is_fast() -> None:
    long_text = "the evidence does not, " * 60
    for name in tables():
        language(name).has_hedge(long_text)
        assert not language(name).has_hedge("plain words"), name
        assert language(name).turns.search("plain words") is None, name


@given(st.text(alphabet=st.sampled_from("notbuт,; :.aé不。、없 그-"), max_size=300))
def test_any_text_is_classified_without_an_error(text: str) -> None:
    assert hedges(text) in (True, False)


# Citations attached to an answer count like markers, and their quotes must be in the evidence

ANSWER = "The bridge is 120 metres long. It was opened in 1931. Nobody knows why."
BRIDGE = (
    Evidence(
        id="a",
        text=(
            "The bridge is 120 metres long and made of stone. It crosses the Marle near the old"
            " mill."
        ),
    ),
    Evidence(id="b", text="It was opened in 1931.", source="https://example.org/b"),
)


def cited_at(text: str, evidence_id: str, quote: str | None = None) -> GivenCitation:
    start = ANSWER.index(text)
    return GivenCitation(start=start, end=start + len(text), evidence_id=evidence_id, quote=quote)


def audit_with(*citations: GivenCitation, **options: Any) -> CitationAudit:
    return audit_citations(ANSWER, BRIDGE, given=citations, **options)


def test_sentences_covered_by_an_attached_citation_count_as_cited() -> None:
    audit = audit_with(cited_at("The bridge is 120 metres long. It was opened in 1931.", "a"))
    assert [sentence.status for sentence in audit.sentences] == ["cited", "cited", "uncited"]
    assert [(c.text, c.evidence_id, c.resolved_by) for c in audit.citations] == [
        ("The bridge is 120 metres long.", "a", "given"),
        ("It was opened in 1931.", "a", "given"),
    ]
    assert all(ANSWER[c.start : c.end] == c.text for c in audit.citations)


def test_a_position_without_a_span_cites_the_preceding_sentence() -> None:
    position = len("The bridge is 120 metres long.")
    audit = audit_with(GivenCitation(start=position, end=position, evidence_id="a"))
    assert [sentence.status for sentence in audit.sentences] == ["cited", "uncited", "uncited"]


def test_an_attached_citation_with_an_unknown_id_is_fabricated() -> None:
    audit = audit_with(
        cited_at("It was opened", "https://example.org/b"), cited_at("Nobody knows why.", "zzz")
    )
    assert [citation.evidence_id for citation in audit.citations] == ["b", None]
    assert audit.invalid_citations == ("zzz",)
    assert audit.hallucination_detected


def test_literal_mode_ignores_attached_citations() -> None:
    assert audit_with(cited_at("It was opened", "b"), mode="literal").citations == ()


@pytest.mark.parametrize(
    ("quote", "finding"),
    [
        ("The bridge is 120 metres long and made of stone.", "verbatim"),
        ("the bridge is  120 metres long", "verbatim"),
        ("The bridge is 120 metres near the old mill.", "spliced"),
        ("The bridge is 120 metres long ... near the old mill.", "spliced"),
        ("It was opened in 1931.", "other_document"),
        ("The bridge is 150 metres long.", "fabricated"),
    ],
)
def test_a_quote_is_searched_in_its_evidence(quote: str, finding: str) -> None:
    (check,) = audit_with(cited_at("The bridge is 120 metres long.", "a", quote)).quotes
    assert check.finding == finding
    if finding == "verbatim":
        assert (
            BRIDGE[0]
            .text[check.evidence_start : check.evidence_end]
            .split()[-1]
            .startswith(quote.split()[-1][:4])
        )


def test_an_audit_raises_an_issue_for_each_quote_not_in_its_evidence() -> None:
    quotes = {
        "It was opened in 1931.": "other_document",
        "The bridge is 150 metres long.": "fabricated",
    }
    case = Case(
        id="1",
        query="How long is the bridge?",
        answer=ANSWER,
        evidence=BRIDGE,
        citations=tuple(cited_at("The bridge is 120 metres long.", "a", quote) for quote in quotes),
    )
    first = run_audit(case).iterations[0]
    rules = {issue.rule: issue for issue in first.issues}
    assert rules["fabricated_quote"].severity == "critical"
    assert rules["quote_from_another_document"].evidence_ids == ("b",)
    assert first.claims[0].claim.cited == ("a",)
    assert first.claims[0].claim.text == "The bridge is 120 metres long."


def test_a_revision_keeps_citations_of_unchanged_sentences() -> None:
    citations = (cited_at("It was opened in 1931.", "b"), cited_at("Nobody knows why.", "a"))
    revised = "It is long. It was opened in 1931."
    (citation,) = carry_over_citations(citations, ANSWER, revised)
    assert revised[citation.start : citation.end] == "It was opened in 1931."


@pytest.mark.parametrize(
    ("covered_text", "revised", "kept_text"),
    [
        ("1931", "It is long. It was opened in 1931.", "1931"),  # part of an unchanged sentence
        (
            "1931",
            "It is long. It was opened in 1931 by the king.",
            None,
        ),  # the sentence was extended
        # it isn't clear which of the two sentences is meant
        ("1931", "It was opened in 1931. It was opened in 1931.", None),
        ("1931", "It was not opened in 1931.", None),
    ],
)
def test_an_attached_citation_is_dropped_with_its_sentences(
    covered_text: str, revised: str, kept_text: str | None
) -> None:
    kept_citations = carry_over_citations((cited_at(covered_text, "b"),), ANSWER, revised)
    assert [revised[citation.start : citation.end] for citation in kept_citations] == (
        [kept_text] if kept_text else []
    )


def test_a_position_only_citation_is_dropped_with_the_preceding_sentence() -> None:
    end = ANSWER.index("It was opened in 1931.") + len("It was opened in 1931.")
    citation = GivenCitation(start=end, end=end, evidence_id="b")
    (kept_citation,) = carry_over_citations(
        (citation,), ANSWER, "It was opened in 1931. It is long."
    )
    assert (kept_citation.start, kept_citation.end) == (22, 22)


def test_a_revision_with_attached_citations_keeps_whitespace() -> None:
    case = Case(
        id="1",
        query="How long is the bridge?",
        answer="The bridge is 120 metres long. It was opened in 1931.",
        evidence=BRIDGE,
        citations=(
            GivenCitation(start=0, end=30, evidence_id="zz"),
            GivenCitation(start=31, end=53, evidence_id="a"),
        ),
    )
    run = run_audit(case)
    assert run.total_iterations > 1
    for iteration in run.iterations:
        assert "The bridge is 120 metres long" in iteration.answer


def test_an_unrelated_key_of_the_same_name_is_kept() -> None:
    data = {
        "id": "1",
        "query": "Why?",
        "evidence": [{"id": "1", "text": "So."}],
        "citations": ["Smith 2004"],
    }
    case = Case.model_validate(data)
    assert case.to_json_dict() == data
    assert case.given_citations == ()


ADDRESSED = [
    Evidence(id="a", text="The lake is deep.", source="https://a.example/x"),
    Evidence(id="b", text="It is cold.", source="https://b.example/?page=2"),
]


@pytest.mark.parametrize(
    ("answer", "valid", "invalid"),
    [
        ("The lake is deep ([a](https://a.example/x?utm_source=openai)).", ["a"], 0),
        (
            "It is cold ([b](https://b.example/?page=2&utm_source=chatgpt.com&utm_medium=x)).",
            ["b"],
            0,
        ),
        ("It is cold ([b](https://b.example/?page=3&utm_source=chatgpt.com)).", [], 1),
        ("According to https://made-up.example/lake, the lake is deep.", [], 1),
        ("The lake is deep, as reported by https://a.example/x.", ["a"], 0),
        ("Laut https://made-up.example/see ist der See tief.", [], 1),
        ("Visit https://help.example for advice on swimming.", [], 0),
    ],
)
def test_urls_are_compared_without_tracking_parameters(
    answer: str, valid: list[str], invalid: int
) -> None:
    audit = audit_citations(answer, ADDRESSED)
    assert [
        citation.evidence_id for citation in audit.citations if citation.status == "valid"
    ] == valid
    assert len(audit.invalid_citations) == invalid


def test_a_dagger_in_brackets_ends_the_reference() -> None:
    audit = audit_citations("It is deep [1:0†manual.pdf]. It is cold [9:1†manual.pdf].", ADDRESSED)
    assert [citation.reference for citation in audit.citations] == ["1", "9"]
    assert audit.invalid_citations == ("9",)


@pytest.mark.parametrize(
    "answer",
    [
        "Apply online (https://forms.example/apply) [1].",
        "Apply [here](https://forms.example/apply) before May [1].",
        "Apply at <https://forms.example/apply> [1].",
        "Fill in [form_7.pdf] [1].",
    ],
)
def test_a_url_or_file_named_in_the_evidence_isnt_fabricated(answer: str) -> None:
    text = "Apply at https://forms.example/apply before May, with form_7.pdf."
    chunk = Evidence(id="1", text=text, source="https://city.example/rules.pdf")
    audit = audit_citations(answer, [chunk])
    assert [citation.evidence_id for citation in audit.citations] == ["1"]
    assert not audit.invalid_citations
    unmentioned = audit_citations(
        answer, [chunk.model_copy(update={"text": "Apply online before May."})]
    )
    assert len(unmentioned.invalid_citations) == 1
