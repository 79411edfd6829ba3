"""What the answer view shows of a real offline audit: every mark with its reason, no character
lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from masis import Settings, run_audit
from masis.api.audits import audit_citations
from masis.schema.audit import ClaimCheck, JudgedBy, MarkedWords, Quote, RejectedIssue, Revision
from masis.schema.base import Unscored
from masis.schema.case import Case, NoAnswer
from masis.schema.penalties import penalty_causes
from masis.schema.rules import ReviewCode
from masis.schema.run import AcceptanceCheck, ReviewReason, Run, RunWarning
from masis.views.answer import (
    EVIDENCE_SHOWN,
    ISSUES_SHOWN,
    LONGEST_SENTENCE,
    AnswerViewData,
    answer_view,
    for_browser,
    unaudited_answer_view,
)
from masis.views.charts import course_chart, score_rows
from masis.views.headline import headline
from masis.views.issue_history import follow_groups
from masis.views.numbering import numbered_issues
from masis.views.scores import (
    changing_rules,
    measured_frame,
    origin_frame,
    score_cells,
    score_frame,
    score_origins,
)
from masis.views.story import (
    OFFLINE_TEXT,
    checks_passed,
    end_text,
    failure_message,
    no_issues_text,
    review_messages,
    run_ending_text,
    story,
)
from masis.views.verdicts import WITHOUT_PASSAGE, claims_data
from masis.views.words import SCORE
from tests.cases import case_of

LENNE = {
    "c1": "The Lenne bridge is 120 metres long. It carries two lanes.",
    "c2": "The Lenne bridge was opened on 4 May 1931 by the mayor.",
}


def a_case(answer: str | None, evidence: Mapping[str, str] = LENNE) -> Case:
    return case_of(answer, evidence, query="How long is the Lenne bridge, and when was it opened?")


WRONG = (
    "The Lenne bridge is 210 metres long [c1]. It was opened in 1931 [c9]. It is painted grey and"
    " rarely used."
)


@pytest.fixture(scope="module")
def case() -> Case:
    return a_case(WRONG)


@pytest.fixture(scope="module")
def run(case: Case) -> Run:
    return run_audit(case)


def test_issues_are_sorted_with_the_headline_first_then_by_severity_and_position(
    case: Case, run: Run
) -> None:
    issues = answer_view(case, run, 0)["issues"]
    names = [issue["label"]["text"] for issue in issues]
    assert headline(run).text == "Cites [c9], which doesn't exist: “It was opened in 1931”"
    assert names == ["fabricated", "contradicted", "uncited"]
    assert [issue["number"] for issue in issues] == [1, 2, 3]


@pytest.fixture(scope="module")
def shown(case: Case, run: Run) -> AnswerViewData:
    return answer_view(case, run, 0)


def test_pieces_add_up_to_the_answer_and_the_evidence(case: Case, shown: AnswerViewData) -> None:
    assert "".join(piece["text"] for piece in shown["pieces"]) == WRONG
    texts = {
        card["id"]: "".join(piece["text"] for piece in card["pieces"]) for card in shown["evidence"]
    }
    assert texts == {chunk.id: chunk.text for chunk in case.evidence}


def test_the_view_is_valid_json(shown: AnswerViewData) -> None:
    assert json.loads(json.dumps(shown)) == shown


def test_a_fabricated_reference_is_marked_in_place(shown: AnswerViewData) -> None:
    (piece,) = [piece for piece in shown["pieces"] if piece.get("reference") == "fabricated"]
    assert piece["text"] == "[c9]"
    (number,) = piece["ends"]
    issue = shown["issues"][number - 1]
    assert (issue["number"], issue["severity"]) == (number, "critical")
    assert issue["reason"]


def test_an_altered_number_is_marked_in_the_answer_and_in_the_evidence(
    shown: AnswerViewData,
) -> None:
    facts = [piece["text"] for piece in shown["pieces"] if piece.get("fact")]
    assert any("210" in fact for fact in facts)
    against = [
        piece["text"]
        for card in shown["evidence"]
        for piece in card["pieces"]
        if piece.get("against")
    ]
    assert any("120" in text for text in against)


def test_uncited_sentences_are_marked_with_their_reason(shown: AnswerViewData) -> None:
    uncited = [piece for piece in shown["pieces"] if piece.get("status") == "uncited"]
    assert "".join(piece["text"] for piece in uncited) == "It is painted grey and rarely used."
    assert all(piece["why"] for piece in uncited)


@pytest.mark.parametrize(
    ("verdict", "sources", "reason"),
    [
        ("supported", ("c2",), "It is supported by c2."),
        ("supported", (), f"{WITHOUT_PASSAGE} No chunk speaks of paint."),
        ("unsupported", (), ""),
    ],
)
def test_an_uncited_sentence_shows_its_check_and_can_be_labelled(
    case: Case, run: Run, verdict: str, sources: tuple[str, ...], reason: str
) -> None:
    first = run.iterations[0]
    found = {
        "verdict": verdict,
        "sources": sources,
        "steps": "No chunk speaks of paint.",
        "issue": None,
    }
    grey = WRONG.index("It is painted")
    claims = tuple(
        claim.model_copy(update=found) if claim.claim.start == grey else claim
        for claim in first.claims
    )
    changed = run.model_copy(update={"iterations": (first.model_copy(update={"claims": claims}),)})
    (issue,) = (
        issue
        for issue in answer_view(case, changed, 0)["issues"]
        if issue["label"]["text"] == "uncited"
    )
    assert (issue["reason"], issue["target"]) == (reason, f"sentence:{grey}-{len(WRONG)}")


def test_only_the_claims_that_a_chunk_supports_are_called_supported_by_it(
    case: Case, run: Run
) -> None:
    first = run.iterations[0]
    grey = WRONG.index("It is painted")
    painted = next(claim for claim in first.claims if claim.claim.start == grey)
    end = WRONG.index(" and rarely")
    said = {"verdict": "supported", "issue": None, "steps": ""}
    parts = [
        painted.model_copy(
            update=said
            | {
                "sources": sources,
                "claim": painted.claim.model_copy(
                    update={"start": start, "end": stop, "text": WRONG[start:stop], "markers": ()}
                ),
            }
        )
        for start, stop, sources in [(grey, end, ("c2",)), (end + 5, len(WRONG), ())]
    ]
    claims = (*(claim for claim in first.claims if claim is not painted), *parts)
    shown = answer_view(case, with_first(run, claims=claims), 0)
    (issue,) = (issue for issue in shown["issues"] if issue["label"]["text"] == "uncited")
    denied = next(issue for issue in shown["issues"] if issue["label"]["text"] == "contradicted")
    assert denied["reason"] != "No evidence supports this claim."
    assert issue["reason"] == "c2 supports “It is painted grey”, and the rest needs no passage."


def test_each_fault_is_numbered_once_whichever_role_found_it(case: Case, run: Run) -> None:
    wrong = next(issue for issue in run.iterations[0].issues if issue.rule == "contradicted_claim")
    assert wrong.start is not None
    critic = {"source": "critic", "rule": "critic_contradiction", "end": len(WRONG)}
    raised = [
        wrong.model_copy(update=critic | {"id": name, "severity": "low"}) for name in ("x", "y")
    ]
    whole = wrong.model_copy(
        update=critic | {"id": "z", "start": None, "end": None, "severity": "low"}
    )
    issues = (*raised, *run.iterations[0].issues, whole)
    twice = run.model_copy(
        update={"iterations": (run.iterations[0].model_copy(update={"issues": issues}),)}
    )
    shown = answer_view(case, twice, 0)
    assert [issue["number"] for issue in shown["issues"]] == [1, 2, 3, 4]
    in_answer = [number for piece in shown["pieces"] for number in piece.get("ends", [])]
    assert sorted(in_answer) == [issue["number"] for issue in shown["issues"] if issue["placed"]]
    (fault,) = [issue for issue in shown["issues"] if issue["label"]["text"] == "contradicted"]
    assert [issue["label"]["text"] for issue in fault["also"]] == ["contradiction", "contradiction"]
    # the words in question are quoted once, and by whom nothing else is said
    assert wrong.quote in fault["description"]
    assert not any(issue["description"] for issue in fault["also"])
    assert all(issue["restates"] for issue in fault["also"]), (
        "the check that found it has a reason of its own"
    )
    about = "".join(
        piece["text"] for piece in shown["pieces"] if fault["number"] in piece.get("issues", [])
    )
    assert about == WRONG[wrong.start :]


def test_a_fault_has_the_highest_severity_among_its_issues(case: Case, run: Run) -> None:
    first = run.iterations[0]
    wrong = next(issue for issue in first.issues if issue.rule == "contradicted_claim")
    graver = wrong.model_copy(
        update={"source": "critic", "rule": "critic_safety", "id": "x", "severity": "critical"}
    )
    found = with_first(run, issues=(wrong, graver))
    (fault,) = answer_view(case, found, 0)["issues"]
    assert wrong.severity != "critical" == fault["severity"]


@pytest.mark.parametrize(
    ("verdict", "says"), [("partial", "partly supported"), ("unsupported", "unsupported")]
)
def test_a_critic_issue_uses_the_label_of_the_claims_mark(
    case: Case, run: Run, verdict: str, says: str
) -> None:
    first = run.iterations[0]
    claim = first.claims[0].model_copy(update={"verdict": verdict})
    about = {
        "start": claim.claim.start,
        "end": claim.claim.end,
        "source": "critic",
        "rule": "critic_unsupported",
    }
    found = with_first(run, claims=(claim,), issues=(first.issues[0].model_copy(update=about),))
    (issue,) = answer_view(case, found, 0)["issues"]
    assert issue["label"]["text"] == says


def with_first(run: Run, **changes: Any) -> Run:
    return run.model_copy(update={"iterations": (run.iterations[0].model_copy(update=changes),)})


def test_a_missing_point_is_listed_once_with_its_evidence_sentence(case: Case, run: Run) -> None:
    point = (
        run.iterations[0]
        .issues[0]
        .model_copy(
            update={
                "rule": "missing_information",
                "source": "claims",
                "severity": "medium",
                "start": None,
                "end": None,
                "description": (
                    "However it is worded: The Ministry of Works surveys the bridge in full."
                ),
                "point": "The Ministry of Works surveys the bridge in full.",
                "suggestion": "Consider adding: The Ministry of Works surveys the bridge in full.",
                "evidence_ids": ("c1",),
            }
        )
    )
    long = case.model_copy(
        update={
            "evidence": tuple(
                chunk.model_copy(
                    update={
                        "text": (
                            f"{chunk.text} A full survey of the bridge is made by the ministry of"
                            " works."
                        )
                    }
                )
                for chunk in case.evidence
            )
        }
    )
    shown = answer_view(long, with_first(run, issues=(point,)), 0)
    (issue,) = shown["issues"]
    assert (issue["description"], issue["suggestion"]) == (
        "The Ministry of Works surveys the bridge in full.",
        "",
    )
    # whether it was asked for is not known
    assert issue["reason"] == "The evidence says it, but the answer doesn't."
    assert issue["insert"]["text"] == "The Ministry of Works surveys the bridge in full [c1]."
    assert issue["insert"]["says"] == "The Ministry of Works surveys the bridge in full"
    last = [
        citation
        for citation in run.iterations[0].citation_audit.citations
        if citation.evidence_id == "c1"
    ][-1]
    after = issue["insert"]["after"]
    assert after.endswith(run.iterations[0].answer[last.marker_start : last.marker_end] + ".")
    assert after in run.iterations[0].answer
    found = [
        (card["id"], piece["text"])
        for card in shown["evidence"]
        for piece in card["pieces"]
        if issue["claim"] in piece.get("claims", [])
    ]
    assert found == [("c1", "A full survey of the bridge is made by the ministry of works.")]


def test_a_missing_point_is_inserted_after_the_related_cited_sentence(
    run: Run,
) -> None:
    first, second = (
        "The Lenne bridge carries lanes for traffic [c1].",
        "It is 120 metres long [c1].",
    )
    missing = {
        "rule": "missing_information",
        "source": "claims",
        "start": None,
        "end": None,
        "evidence_ids": ("c1",),
    }
    for point, after in (
        ("Two lanes carry the traffic.", first),
        ("Nobody paints it.", second),
        ("Letters to the bridge count.", second),  # one word in common is no topic
    ):
        case = a_case(f"{first} {second}")
        issue = run.iterations[0].issues[0].model_copy(update={**missing, "description": point})
        (shown,) = answer_view(case, with_first(run_audit(case), issues=(issue,)), 0)["issues"]
        assert shown["insert"]["after"] == after


@pytest.mark.parametrize(
    ("marker", "written"),
    [
        ("[c1]", "[c2]"),
        ("[1]", "[2]"),
        ("(Source 1)", "(Source 2)"),
        ("【1†source】", "【2†source】"),
        ("<sup>1</sup>", "<sup>2</sup>"),
        ("\\cite{c1}", "\\cite{c2}"),
    ],
)
def test_an_evidence_sentence_is_inserted_with_its_citation_in_the_style_of_the_answer(
    marker: str, written: str
) -> None:
    wrong = "The Lenne bridge was closed to traffic in 1931."
    case = case_of(
        f"The Lenne bridge is 120 metres long {marker}. {wrong}",
        {
            "c1": "The Lenne bridge is 120 metres long.",
            "c2": "It spans a gorge. The Lenne bridge was closed to traffic in 1987 [12].",
        },
    )
    issues = answer_view(case, run_audit(case), 0)["issues"]
    (contradicted,) = (issue for issue in issues if issue["label"]["text"] == "contradicted")
    says = "The Lenne bridge was closed to traffic in 1987"
    assert contradicted["insert"] == {"text": f"{says} {written}.", "says": says, "after": wrong}


@pytest.mark.parametrize(
    ("sentence", "cited", "after"),
    [
        (
            "The Lenne bridge was closed in 1987.",
            "(Source 2)",
            "The Lenne bridge was closed in 1987",
        ),
        (
            "- The Lenne bridge was closed in 1987",
            "(Source 2)",
            "The Lenne bridge was closed in 1987",
        ),
        ("The Lenne bridge was closed in 1999.", "", ""),
    ],
)
def test_an_uncited_sentence_gets_the_citation_of_what_supports_it(
    sentence: str, cited: str, after: str
) -> None:
    case = case_of(
        f"The Lenne bridge is 120 metres long (Source 1).\n{sentence}",
        {
            "c1": "The Lenne bridge is 120 metres long.",
            "c2": "The Lenne bridge was closed in 1987.",
        },
    )
    issues = answer_view(case, run_audit(case), 0)["issues"]
    uncited = [issue["insert"] for issue in issues if issue.get("insert", {}).get("cites")]
    if not cited:
        assert not uncited
        return
    (insert,) = uncited
    assert insert["after"].endswith(after)
    assert insert["after"] in (case.answer or "")
    assert insert["text"] == cited
    assert insert["says"] == f"{insert['after']} {cited}"


def test_an_issue_that_names_no_evidence_has_no_sentence_to_insert(run: Run) -> None:
    first = run.iterations[0].issues[0]
    missing = {"rule": "missing_information", "start": None, "end": None, "evidence_ids": ()}
    critic = {"rule": "critic_clarity", "source": "critic"}
    for changed in (missing, critic):
        issue = first.model_copy(update=changed)
        case = a_case("The Lenne bridge carries lanes for traffic [c1].")
        (shown,) = answer_view(case, with_first(run_audit(case), issues=(issue,)), 0)["issues"]
        assert "insert" not in shown


@pytest.mark.parametrize(
    ("rule", "finding"),
    [
        ("misattributed_reference", "misattributed"),
        ("redundant_reference", "redundant"),
        ("contradicted_claim", None),
        ("critic_factual", None),
    ],
)
def test_a_citation_fault_explains_the_resolution(
    case: Case, run: Run, rule: str, finding: str | None
) -> None:
    issue = run.iterations[0].issues[0].model_copy(update={"rule": rule})
    (shown,) = answer_view(case, with_first(run, issues=(issue,)), 0)["issues"]
    assert shown.get("reference") == finding


def test_a_conflict_found_by_the_critic_has_a_card_with_its_sources(case: Case, run: Run) -> None:
    named = {"conflicting_evidence": ("c1 (1931) and c10 (1932) disagree.",)}
    found = with_first(run, issues=(), critique=run.iterations[0].critique.model_copy(update=named))
    (issue,) = answer_view(case, found, 0)["issues"]
    assert (issue["label"]["text"], issue["reason"]) == (
        "source conflict",
        "c1 (1931) and c10 (1932) disagree.",
    )
    assert issue["evidence"] == ["c1"]  # c10 is none of this case


def test_every_issue_explains_itself_without_repetition(shown: AnswerViewData) -> None:
    assert shown["issues"]
    why = {issue["label"]["text"]: issue["reason"] for issue in shown["issues"]}
    assert all(issue["description"] for issue in shown["issues"])
    assert why.pop("uncited") == "", "the description has said it"
    assert all(why.values())


def test_the_legend_lists_exactly_the_kinds_of_marks_in_use(shown: AnswerViewData) -> None:
    marks = {entry["mark"]: entry["count"] for entry in shown["legend"]}
    assert marks["ref-fabricated"] == 1
    assert marks["sentence-uncited"] == 1
    assert "ref-misattributed" not in marks
    assert all(marks.values())


def test_the_legend_counts_figures_missing_from_the_evidence() -> None:
    case = a_case("It cost 3 million [c1]. Some 44 men and 17 women built it [c1].")
    shown = answer_view(case, run_audit(case), 0)
    (entry,) = [line for line in shown["legend"] if line["mark"] == "fact-figure"]
    assert (entry["label"]["text"], entry["label"]["tone"]) == ("not in the evidence", "calm")
    assert entry["count"] == 3


def test_words_marked_by_a_tagger_are_framed_and_counted() -> None:
    case = a_case("The bridge is 120 metres long [c1].")
    run = run_audit(case)
    first = run.iterations[0]
    words = MarkedWords(claim_start=14, claim_end=24, claim_text="120 metres")
    elsewhere = MarkedWords(claim_start=0, claim_end=3, claim_text="not what stands there")
    for verdict in ("unverifiable", "supported"):
        check = first.claims[0].model_copy(
            update={"marked": (words, elsewhere), "verdict": verdict}
        )
        tagged = run.model_copy(
            update={"iterations": (first.model_copy(update={"claims": (check,)}),)}
        )
        shown = answer_view(case, tagged, 0)
        assert (
            "".join(piece["text"] for piece in shown["pieces"] if piece.get("fact") == "marked")
            == "120 metres"
        )
        (entry,) = [line for line in shown["legend"] if line["mark"] == "fact-marked"]
        assert (entry["label"]["text"], entry["label"]["tone"], entry["count"]) == (
            "marked by a tagger",
            "calm",
            1,
        )
        assert any(
            "finds no support for “120 metres”" in says
            for says in claims_data(tagged.iterations[0])[0]["says"]
        )
        assert "marked words" in tagged._repr_html_()


def test_references_of_one_marker_are_marked_one_by_one() -> None:
    case = a_case("The Lenne bridge is 120 metres long [c1, c9].")
    shown = answer_view(case, run_audit(case), 0)
    references = [
        (piece["text"], piece["reference"]) for piece in shown["pieces"] if "reference" in piece
    ]
    assert references == [("c1", "valid"), ("c9", "fabricated")]


def judged_claims(
    answer: str, claims: list[tuple[str, str, str]], evidence: Mapping[str, str] | None = None
) -> AnswerViewData:
    """Return the view of an answer with these claims: words, verdict and deciding chunk.

    As a model does, the verifier reports each cited chunk with a supported claim of its sentence.
    """
    case = a_case(answer, evidence or {"chunk_1": LENNE["c1"], "chunk_2": LENNE["c2"]})
    run = run_audit(case)
    audit = run.iterations[0].citation_audit
    checks = []
    for words, verdict, chunk in claims:
        start = answer.index(words)
        sentence = next(
            place for place, span in enumerate(audit.sentences) if span.start <= start < span.end
        )
        references = [{"evidence_id": chunk, "finding": "supports", "support": 1.0}]
        denied = {
            "kind": "stated",
            "evidence_id": chunk,
            "claim_text": words,
            "claim_start": 0,
            "claim_end": len(words),
            "evidence_text": "The Lenne bridge",
            "evidence_start": 0,
            "evidence_end": 16,
            "strength": 1.0,
            "reason": "",
        }
        checks.append(
            ClaimCheck.model_validate(
                {
                    "claim": {
                        "text": words,
                        "start": start,
                        "end": start + len(words),
                        "sentence": sentence,
                    },
                    "verdict": verdict,
                    "support": 1.0 if verdict == "supported" else 0.0,
                    "confidence": 1.0,
                    "sources": [chunk],
                    "references": references if verdict == "supported" else [],
                    "contradictions": [denied] if verdict == "contradicted" else [],
                    "judged_by": "model:x",
                }
            )
        )
    return answer_view(case, with_first(run, claims=tuple(checks)), 0)


TWO_IN_A_SENTENCE = [
    ("It is 120 metres long", "supported", "chunk_1"),
    ("it has nine lanes", "contradicted", "chunk_1"),
]


@pytest.mark.parametrize(
    ("answer", "claims", "words"),
    [
        (
            "It is 120 metres long and it has nine lanes (Source 1).",
            TWO_IN_A_SENTENCE,
            ["contradicts this"],
        ),
        ("It has nine lanes [1].", [("It has nine lanes", "contradicted", "chunk_1")], None),
        # each marker is for the words in front of it
        (
            "It is 120 metres long [1] and it has nine lanes [2].",
            TWO_IN_A_SENTENCE,
            ["matches evidence", "matches evidence"],
        ),
        (
            "It is 120 metres long [2] and it has nine lanes [1].",
            TWO_IN_A_SENTENCE,
            ["matches evidence", "contradicts this"],
        ),
        (
            "It is 120 metres long and it has nine lanes [2][1].",
            TWO_IN_A_SENTENCE,
            ["matches evidence", "contradicts this"],
        ),
        (
            "By [1], It is 120 metres long and it has nine lanes.",
            TWO_IN_A_SENTENCE,
            ["contradicts this"],
        ),
        (
            "It is 120 metres long and it has nine lanes [1-2].",
            TWO_IN_A_SENTENCE,
            ["contradicts this", "matches evidence"],
        ),
    ],
)
def test_a_reference_says_that_its_chunk_contradicts_any_claim_that_it_is_for(
    answer: str, claims: list[tuple[str, str, str]], words: list[str] | None
) -> None:
    view = judged_claims(answer, claims)
    found = [reference["label"]["text"] for reference in view["references"]]
    assert found == (words or ["contradicts this"])


def test_a_card_quotes_the_claims_that_a_chunk_decides_differently() -> None:
    view = judged_claims(
        "It is 120 metres long and it has nine lanes (Source 1).", TWO_IN_A_SENTENCE
    )
    [reference] = view["references"]
    assert reference["text"] == "(Source 1)"
    assert reference["says"] == [
        "“(Source 1)” means chunk_1, the only id that ends in 1.",
        "chunk_1 contradicts “it has nine lanes”.",
        "chunk_1 supports “It is 120 metres long”.",
    ]
    # a click on the marker highlights the passages of both
    assert reference["claims"] == [0, 1]


def test_a_range_explains_each_of_its_chunks() -> None:
    view = judged_claims("It is 120 metres long and it has nine lanes [1-2].", TWO_IN_A_SENTENCE)
    assert [reference["says"][0] for reference in view["references"]] == [
        "“1-2” is a range. Its 1 means chunk_1, the only id that ends in 1.",
        "“1-2” is a range. Its 2 means chunk_2, the only id that ends in 2.",
    ]
    [piece] = [piece for piece in view["pieces"] if "reference" in piece]
    assert piece["members"] == [0, 1]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("*The Spice Islands*, p. 4", "The Spice Islands, p. 4"),
        ("In **Nature**, 2020", "In Nature, 2020"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("a*b*c.txt", "a*b*c.txt"),
        ("data/*.csv and *.json", "data/*.csv and *.json"),
        ("* a note", "* a note"),
    ],
)
def test_a_title_of_a_source_has_no_asterisks_of_markdown(source: str, shown: str) -> None:
    case = a_case("It is long [c1].")
    chunks = [chunk.model_copy(update={"source": source}) for chunk in case.evidence]
    view = unaudited_answer_view(case.model_copy(update={"evidence": tuple(chunks)}), "1")
    assert view["evidence"][0]["source"] == shown


def test_a_later_iteration_shows_its_changes(case: Case, run: Run) -> None:
    assert len(run.iterations) > 1
    shown = answer_view(case, run, 1)
    assert "".join(piece["text"] for piece in shown["pieces"]) == run.iterations[1].answer
    assert shown["changes"]
    assert all(change["why"] for change in shown["changes"])


def test_an_unaudited_case_shows_answer_and_evidence_without_marks(case: Case) -> None:
    shown = unaudited_answer_view(case, "v")
    assert [piece["text"] for piece in shown["pieces"]] == [WRONG]
    assert not shown["issues"]
    assert not shown["audited"]
    assert unaudited_answer_view(a_case(None), "v")["pieces"] == []


@pytest.mark.parametrize(
    ("code", "why"),
    [("refused", "its system refused"), ("failed", "the call of its system failed")],
)
def test_a_refused_answer_isnt_called_drafted(code: Any, why: str) -> None:
    assert unaudited_answer_view(a_case("It is long."), "v")["no_answer"] == ""
    without = a_case(None)
    said = unaudited_answer_view(without, "v")["no_answer"]
    assert said == "This case has no answer. An audit drafts one from the evidence first."
    refused = without.model_copy(update={"no_answer": NoAnswer(code=code, message="Declined.")})
    assert refused.unanswered
    said = unaudited_answer_view(refused, "v")["no_answer"]
    assert said.startswith(f"This case has no answer because {why}. An audit drafts one only if")


def test_cited_chunks_are_shown_among_thousands() -> None:
    evidence = {
        f"chunk_{number}": f"Tower {number} is {number} metres high." for number in range(1_000)
    }
    case = a_case("Tower 900 is 900 metres high [chunk_900].", evidence)
    shown = answer_view(case, run_audit(case), 0)
    assert len(shown["evidence"]) == EVIDENCE_SHOWN
    assert shown["evidence_total"] == 1_000
    assert shown["evidence"][0]["id"] == "chunk_900"


@pytest.mark.slow
def test_an_issue_about_a_very_long_sentence_is_shortened() -> None:
    case = a_case("The bridge is " + "very " * 20_000 + "long.")
    shown = answer_view(case, run_audit(case), 0)
    assert all(len(issue["description"]) <= LONGEST_SENTENCE + 2 for issue in shown["issues"])


def test_characters_beyond_the_basic_plane_do_not_shift_the_marks() -> None:
    answer = "\U0001f309\U0001f309 The Lenne bridge is 120 metres long [c9]."
    case = a_case(answer)
    shown = answer_view(case, run_audit(case), 0)
    assert [
        piece["text"] for piece in shown["pieces"] if piece.get("reference") == "fabricated"
    ] == ["[c9]"]


def test_scores_are_reported_for_every_iteration_with_what_changed(run: Run) -> None:
    table = score_frame(run)
    assert list(table["Score"]) == [word.text for word in SCORE.values()]
    assert len(table.columns) == 1 + len(run.iterations)
    assert sum("suggested" in title for title in table.columns) == 1
    assert (score_cells(run)["quality_score"][1].delta or 0) > 0
    assert (
        "▲" in score_frame(run, "text").set_index("Score").loc["Quality", "Iteration 2, suggested"]
    )
    assert any("fabricated" in rule for rule in changing_rules(run.iterations[0]))


def test_the_chart_draws_every_scored_value(run: Run) -> None:
    rows = score_rows(run)
    assert {row["iteration"] for row in rows} == {
        iteration.iteration_number for iteration in run.iterations
    }
    assert {row["score"] for row in rows} == {word.text for word in SCORE.values()}
    described: Any = course_chart().to_dict()
    assert {layer["mark"]["type"] for layer in described["layer"]} == {"rule", "line", "point"}


def test_score_tables_show_their_inputs(run: Run) -> None:
    shown = score_frame(run).set_index("Score")
    assert ":orange-badge" in shown.loc["Quality", "Iteration 1"]
    assert ":green[▲" in shown.loc["Quality", "Iteration 2, suggested"]
    table = origin_frame(score_origins(run, 0))
    assert len(table) == len(SCORE)
    assert table["How it was calculated"].str.contains("fabricated").any()
    assert set(measured_frame(score_origins(run, 0))["Score"]) <= {
        word.text for word in SCORE.values()
    }


def test_penalties_and_caps_are_shown_as_calculations(run: Run) -> None:
    found = {origin.word.text: origin for origin in score_origins(run, 0)}
    penalty = run.iterations[0].citation_audit.penalty_factor
    (quality,) = found["Quality"].steps
    assert f"× {penalty:g} for 1 fabricated reference and 1 uncited sentence = " in quality
    assert f"× {penalty:g}" in found["Confidence"].steps[0]
    assert re.match(
        r"0\.35 × [\d.]+ \+ 0\.25 × [\d.]+ \+ 0\.25 × [\d.]+ \+ 0\.15 × ", found["Overall"].steps[0]
    )
    assert found["Relevance"].steps == ["As measured; no rule changed it."]
    assert all(origin.measurements for name, origin in found.items() if name != "Overall")


def test_an_applied_cap_is_named_and_explained() -> None:
    run = run_audit(a_case("The Lenne bridge is 120 metres long [c1]. It carries two lanes [c9]."))
    cells = score_cells(run)
    assert cells["faithfulness"][0].bent == ["at most 0.4"]
    assert cells["quality_score"][0].bent == cells["confidence"][0].bent == ["× 0.5"]
    found = {origin.word.text: origin for origin in score_origins(run, 0)}
    assert "but at most 0.40: fabricated reference" in found["Faithfulness"].steps[0]


def test_every_reference_and_claim_explains_its_verdict(run: Run, shown: AnswerViewData) -> None:
    assert len(shown["references"]) == len(run.iterations[0].citation_audit.citations)
    assert len(shown["claims"]) == len(run.iterations[0].claims)
    assert all(mark["says"] for mark in (*shown["references"], *shown["claims"]))
    fabricated = next(
        reference for reference in shown["references"] if reference["label"]["text"] == "fabricated"
    )
    assert "c9" in fabricated["says"][0]
    for piece in shown["pieces"]:
        if "citation" in piece:
            assert shown["references"][piece["citation"]]["text"] in piece["text"]


def test_a_claim_shows_its_method_and_notes_about_its_support() -> None:
    case = a_case("The Lenne bridge is 120 metres long [c1].")
    run = run_audit(case)
    (check,) = run.iterations[0].claims
    read = check.claim.model_copy(
        update={"statement": "The bridge over the Lenne is 120 metres long."}
    )
    odd = check.model_copy(
        update={"claim": read, "issue": "The words quoted from c1 are not there."}
    )
    iteration = run.iterations[0].model_copy(update={"claims": (odd,)})
    shown = answer_view(
        case, run.model_copy(update={"iterations": (iteration, *run.iterations[1:])}), 0
    )
    assert shown["claims"][0]["says"] == [
        "Read as “The bridge over the Lenne is 120 metres long.”",
        "The evidence supports it.",
        "The words quoted from c1 are not there.",
    ]


def test_a_claims_mark_ends_once_with_its_verdict() -> None:
    case = a_case("The Lenne bridge is 120 metres long [c1]. It carries two lanes [c1].")
    shown = answer_view(case, run_audit(case), 0)
    closing = [piece["closes"] for piece in shown["pieces"] if "closes" in piece]
    assert (
        closing
        == [check["label"]["text"] for check in shown["claims"]]
        == ["supported", "supported"]
    )


@pytest.mark.parametrize(
    ("claims", "ticked"),
    [
        # a claim within another supported one
        (["It cost 51 million", "It cost 51 million [1]."], ["."]),
        (["51 million", "It cost 51 million [1]."], ["."]),
        # a lone word that leads to a claim
        (["It failed", "because", "the tide came"], ["It failed", "the tide came"]),
        (["It failed", "because"], ["It failed", "because"]),
        (["It failed", "It cost 51 million"], ["It cost 51 million", "It failed"]),
    ],
)
def test_words_have_one_tick(claims: list[str], ticked: list[str]) -> None:
    answer = "It cost 51 million [1]. It failed, because the tide came."
    judged = judged_claims(answer, [(words, "supported", "chunk_1") for words in claims])
    assert [piece["text"] for piece in judged["pieces"] if "closes" in piece] == ticked


def test_a_contradicted_claim_within_a_supported_one_keeps_its_end() -> None:
    claims = [
        ("51 million", "contradicted", "chunk_1"),
        ("It cost 51 million.", "supported", "chunk_1"),
    ]
    judged = judged_claims("It cost 51 million.", claims)
    ends = [piece["closes"] for piece in judged["pieces"] if "closes" in piece]
    assert ends == ["contradicted", "supported"]


def test_a_comparison_shows_the_earlier_iteration_first(case: Case, run: Run) -> None:
    for index, against in ((0, 1), (1, 0)):
        shown = answer_view(case, run, index, against=against)["difference"]
        assert (shown["left"], shown["right"]) == (1, 2)
        assert (
            "".join(text for kind, text in shown["changes"] if kind != "in")
            == run.iterations[0].answer
        )
        assert (
            "".join(text for kind, text in shown["changes"] if kind != "out")
            == run.iterations[1].answer
        )
        assert shown["words_out"] > 0
    assert answer_view(case, run, 0)["difference"] is None


def test_a_fixed_fault_is_listed_once_whichever_role_found_it(case: Case, run: Run) -> None:
    first, revised = run.iterations[0], run.iterations[1].model_copy(update={"issues": ()})
    denied = next(issue for issue in first.issues if issue.rule == "contradicted_claim")
    again = {"id": "x", "key": "x", "source": "critic", "rule": "critic_factual"}
    issues = (*first.issues, denied.model_copy(update=again))
    original = first.model_copy(update={"issues": issues})
    both = run.model_copy(update={"iterations": (original, revised)})
    listed = answer_view(case, both, 0)["issues"]
    assert len(original.issues) > len(listed) == len(answer_view(case, both, 1)["fixed"])


def test_a_conflict_between_sources_counts_in_the_history_as_in_the_list(run: Run) -> None:
    first = run.iterations[0]
    named = first.critique.model_copy(update={"conflicting_evidence": ("a says 1906, b 1946.",)})
    iteration = first.model_copy(update={"critique": named})
    assert len(follow_groups([iteration])) == len(numbered_issues(iteration))
    assert len(follow_groups([iteration])) == len(follow_groups([first])) + 1


def test_the_next_iteration_lists_fixed_and_open_issues(case: Case, run: Run) -> None:
    first, second = answer_view(case, run, 0), answer_view(case, run, 1)
    assert not first["fixed"]
    assert {issue["label"]["text"] for issue in second["fixed"]} == {"contradicted"}
    [left_open] = [issue for issue in second["issues"] if issue["label"]["text"] == "fabricated"]
    assert left_open["course"]["text"] == "persisting"
    assert "Raised in iteration 1: the sentence is still there" in left_open["reason"]
    assert all("course" not in issue for issue in first["issues"])
    assert all(issue["course"]["text"] in ("new", "persisting") for issue in second["issues"])


@pytest.mark.slow
def test_only_the_most_severe_of_many_issues_are_sent_to_the_browser() -> None:
    case = a_case(
        " ".join(f"Arch {number} is painted grey and rarely used." for number in range(400))
        + " Old [c9]."
    )
    whole = answer_view(case, run_audit(case), 0)
    kept = for_browser(whole)
    assert whole["issues_total"] == kept["issues_total"] == len(whole["issues"]) > ISSUES_SHOWN
    assert len(kept["issues"]) == ISSUES_SHOWN
    assert "critical" in {issue["severity"] for issue in kept["issues"]}
    numbers = [issue["number"] for issue in kept["issues"]]
    assert numbers == sorted(numbers)


def test_more_evidence_is_shown_on_request() -> None:
    case = a_case("Tower 3.", {f"chunk_{number}": f"Tower {number}." for number in range(500)})
    assert len(unaudited_answer_view(case, "v", shown=400)["evidence"]) == 400
    assert (
        unaudited_answer_view(case, "v")["version"]
        != unaudited_answer_view(case, "v", shown=400)["version"]
    )


def test_the_story_shows_the_chosen_answer_and_the_ending(run: Run) -> None:
    told = {row.title: row.lines for row in story(run, 0)}
    best = run.best_iteration
    assert told["Suggested"][0].startswith(
        f"Iteration {best.iteration_number}: it has the highest quality, "
    )
    assert "because" in told["Ended"][0]
    assert told["Judged by"] == [OFFLINE_TEXT]


def test_warnings_are_shown_with_their_step(run: Run) -> None:
    warning = RunWarning(
        code="CRITIC-ERR-003", step="critique", iteration=2, message="The critic failed."
    )
    told = {
        row.title: row for row in story(run.model_copy(update={"warnings": (warning,) * 20}), 0)
    }
    lines = told["Warnings"].lines
    assert lines[0] == "The critic failed. (critique, iteration 2, CRITIC-ERR-003)"
    assert lines[-1] == "and 8 more"


def test_errors_of_an_audit_are_separate_from_review_reasons(
    run: Run,
) -> None:
    warning = RunWarning(
        code="CRITIC-ERR-003", step="critique", iteration=1, message="The server can't be reached."
    )
    reasons = tuple(ReviewReason(code=code, message=f"{code}.") for code in ("unscored", "error"))
    failed = run.model_copy(update={"review_reasons": reasons, "warnings": (warning,)})
    assert (review_messages(failed), failure_message(failed)) == (
        ["unscored.", "error."],
        warning.message,
    )
    assert failure_message(failed.model_copy(update={"review_reasons": reasons[:1]})) == ""


def test_must_look_reasons_precede_uncertified_ones(run: Run) -> None:
    codes: tuple[ReviewCode, ...] = ("revised", "unconfirmed_claim", "serious_issue")
    reasons = tuple(ReviewReason(code=code, message=f"{code}.") for code in codes)
    assert (
        review_messages(run.model_copy(update={"review_reasons": reasons}))[0] == "serious_issue."
    )


def test_only_accepted_answers_show_their_passed_checks() -> None:
    accepted = run_audit(a_case("The Lenne bridge is 120 metres long [c1]."))
    assert not accepted.needs_review
    lines = {row.title: row.lines for row in story(accepted, 0)}["Checks passed"]
    assert "Claims: 1 of 1 claim supported" in lines
    faulty = run_audit(a_case(WRONG))
    assert "Checks passed" not in {row.title for row in story(faulty, 0)}


def test_an_unchecked_answer_isnt_called_supported(run: Run) -> None:
    decided = tuple(
        check.model_copy(update={"verdict": "supported"}) for check in run.iterations[-1].claims
    )
    sound = run.iterations[-1].model_copy(update={"claims": decided})
    assert no_issues_text(sound).endswith("its evidence supports it.")
    assert "could be checked against the evidence" in no_issues_text(
        sound.model_copy(update={"claims": ()})
    )
    unread = {"verdict": "unverifiable", "support": None}  # the evidence has no text
    unverifiable = tuple(check.model_copy(update=unread) for check in sound.claims)
    assert "could be checked against the evidence" in no_issues_text(
        sound.model_copy(update={"claims": unverifiable})
    )
    left_open = tuple(
        check.model_copy(update={"verdict": "unverifiable", "support": 0.5})
        for check in sound.claims
    )
    said = no_issues_text(sound.model_copy(update={"claims": left_open}))
    assert said == "No issues found by the offline checks, which could not confirm 3 of 3 claims."
    silent = sound.critique.model_copy(
        update={"unscored": Unscored(reason="no reply", code="CRITIC-ERR-001")}
    )
    assert "has no result" in no_issues_text(sound.model_copy(update={"critique": silent}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (0.03, "improved the answer by less than the threshold"),
        (-0.2, "made the answer worse"),
        (0.0, "didn't improve the answer"),
        (None, "no further revision improved the answer enough"),
    ],
)
def test_an_ending_says_an_improvement_only_if_there_was_one(
    run: Run, change: float | None, said: str
) -> None:
    last = run.iterations[-1].model_copy(update={"improvement_delta": change})
    ended = run.model_copy(
        update={
            "iterations": (run.iterations[0], last),
            "termination_reason": "convergence",
        }
    )
    assert run_ending_text(ended).endswith(said)
    assert end_text(ended).endswith(f"{said}.")


def test_a_penalty_has_the_same_words_and_numbers_everywhere() -> None:
    case = Case(
        id="p",
        query="How long is it?",
        answer="It is 120 m long [9]. It opened in 1931. It cost 3 million.",
        evidence=[{"id": "1", "text": "It is 120 m long."}],
    )
    penalized = run_audit(case, Settings(max_iterations=1))
    causes = "1 fabricated reference and 2 uncited sentences"
    [rule] = [line for line in changing_rules(penalized.iterations[0]) if "×" in line]
    assert rule.endswith(f"× 0.45 for {causes}")
    steps = {origin.word.text: origin.steps for origin in score_origins(penalized, 0)}
    for name in ("Quality", "Confidence"):
        assert any(f"× 0.45 for {causes}" in step for step in steps[name])


def test_an_uncited_sentence_of_an_answer_without_citations_is_no_cause_of_a_penalty() -> None:
    audit = audit_citations("It opened in 1931.", ())
    assert (audit.penalty_factor, [*penalty_causes(audit)]) == (1, [])
    carried = audit.model_copy(update={"carried_references": ("9",)})
    assert [*penalty_causes(carried)] == [
        "1 fabricated reference of an earlier iteration, not corrected"
    ]


def test_an_audit_without_a_revision_says_why(run: Run) -> None:
    one = run.model_copy(update={"iterations": run.iterations[:1]})
    settled = one.model_copy(update={"termination_reason": "no_issues"})
    check = AcceptanceCheck(name="ending", passed=True, detail="ended by no_issues")
    passed = settled.model_copy(
        update={
            "review_reasons": (),
            "acceptance": settled.acceptance.model_copy(update={"checks": (check,)}),
        }
    )
    assert checks_passed(passed) == ["End of the loop: no serious issue was left"]
    limited = one.model_copy(update={"termination_reason": "max_iterations"})
    failed = one.model_copy(update={"termination_reason": "error"})
    assert "no issue of severity high or critical, so nothing was revised" in end_text(settled)
    assert "allow no revision (max_iterations = 1)" in end_text(limited)
    assert end_text(failed) == "After 1 iteration, because a step failed."
    assert len(run.iterations) > 1
    assert end_text(run).startswith(f"After {len(run.iterations)} iterations, because")


def test_a_rejected_issue_shows_the_revisers_reason_and_a_derived_claim_its_derivation(
    case: Case, run: Run
) -> None:
    first = run.iterations[0]
    issue = first.issues[0]
    revision = Revision(
        revised_answer=WRONG,
        changes_explanation="",
        updated_confidence=None,
        rejected=(RejectedIssue(issue_id=issue.id, reason="c2 says so."),),
        judged_by=JudgedBy(model="m", version="1"),
    )
    steps = first.claims[0].model_copy(update={"steps": "60 + 60 = 120"})
    changed = {"revision": revision, "claims": (steps, *first.claims[1:])}
    altered = run.model_copy(
        update={"iterations": (first.model_copy(update=changed), *run.iterations[1:])}
    )
    data = answer_view(case, altered, 0)
    (reason,) = [
        issue["reason"]
        for issue in data["issues"]
        if "The reviser rejected this: c2 says so." in issue["reason"]
    ]
    assert reason.startswith(issue.reason[:20])
    assert "60 + 60 = 120" in data["claims"][0]["says"]


def test_a_chunk_carries_the_marker_with_which_the_answer_cites_it() -> None:
    def cited_as(answer: str) -> list[str]:
        case = a_case(answer)
        return [card["cited_as"] for card in answer_view(case, run_audit(case), 0)["evidence"]]

    assert cited_as("The bridge is 120 metres long (Source 1).")[0] == "(Source 1)"
    assert set(cited_as("The bridge is 120 metres long [c1].")) == {""}
    assert cited_as("The bridge is 120 metres long [1, 2].")[:2] == ["[1]", "[2]"]
    assert set(cited_as("The bridge is 120 metres long [c1, c2].")) == {""}


def test_the_label_of_a_misattributed_or_fabricated_citation_is_about_the_citation(
    case: Case, run: Run
) -> None:
    data = answer_view(case, run, 0)
    (fabricated,) = [issue for issue in data["issues"] if issue["label"]["text"] == "fabricated"]
    (reference,) = [item for item in data["references"] if item["text"] == "[c9]"]
    assert fabricated["target"] == reference["target"]
    claim = run.iterations[0].claims[0].claim
    at = {"start": claim.start, "end": claim.end, "evidence_ids": ("c1", "c2")}
    issue = (
        run.iterations[0]
        .issues[0]
        .model_copy(update={**at, "rule": "misattributed_reference", "source": "claims"})
    )
    view = answer_view(case, with_first(run, issues=(issue,)), 0)
    (reference,) = [item for item in view["references"] if item["text"] == "[c1]"]
    assert view["issues"][0]["target"] == reference["target"]


def test_only_the_nearest_passages_of_an_unconfirmed_claim_are_highlighted() -> None:
    texts = {"1": "The loan lasts 4 weeks. It can be renewed.", "2": "A fee is due. Pay it."}
    case = case_of("You can keep a book for a month [1].", texts)
    iteration = run_audit(case).iterations[0]
    (check,) = iteration.claims

    def read_highlighted(verdict: str, *scores: float) -> set[str]:
        places = [("1", 0, 23), ("1", 24, 42), ("2", 0, 13)]
        quotes = tuple(
            Quote(evidence_id=name, start=start, end=end, text=texts[name][start:end], score=score)
            for (name, start, end), score in zip(places, scores, strict=True)
        )
        judged = check.model_copy(update={"verdict": verdict, "quotes": quotes})
        shown = iteration.model_copy(update={"claims": (judged,), "issues": ()})
        run = run_audit(case).model_copy(update={"iterations": (shown,)})
        return {
            piece["text"]
            for card in answer_view(case, run, 0)["evidence"]
            for piece in card["pieces"]
            if piece.get("claims")
        }

    loan, renewal, fee = "The loan lasts 4 weeks.", "It can be renewed.", "A fee is due."
    assert read_highlighted("unverifiable", 0.5, 0.4, 0.3) == {loan}
    assert read_highlighted("unverifiable", 0.3, 0.29, 0.3) == {loan, renewal}
    assert read_highlighted("unverifiable", 0.1, 0.1, 0.5) == {fee}
    assert read_highlighted("supported", 1.0, 0.4, 0.3) == {loan, renewal, fee}
