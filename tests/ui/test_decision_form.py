"""The decision form without a browser: what is read of a post, what is missing, what
becomes of it.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest

from masis import Case, run_audit
from masis.schema.review import Decision, LogEntry
from masis.schema.run import Run
from masis.schema.team import LabelTypes
from masis.services.decision_rules import DecidedAnswer, own_words, problems, reasons_for
from masis.services.drafts import read_form
from masis.ui.review import decision_form as forms
from masis.ui.review.decision_form import FormFields, decision_of, find_problem
from masis.ui.review.form_texts import LONGEST_NOTE
from masis.ui.review.label_form import label_rows, label_words, target_labels
from masis.ui.shell.keys import (
    GROUPS,
    LABEL_BAR,
    adjudication_keys,
    key_map,
    page_key_map,
)
from masis.views.words import DECIDE
from tests.cases import case_of
from tools import keys as keys_tool

CASE = case_of(
    "The bridge is 120 metres long [a]. The bridge was opened in 1950 [b]. It is made of gold [z].",
    {"a": "The bridge is 120 metres long.", "b": "The bridge was opened in 1931."},
    query="How long is the bridge, and when was it opened?",
)


@pytest.fixture(scope="module")
def run() -> Run:
    return run_audit(CASE)


ABOUT: dict[str, Any] = {
    "case_id": "bridge",
    "reviewer": " Ada ",
    "token": "t",
    "machine_shown": ("marks",),
}


def missing(answer: str = "as it is", reviewer: str = "Ada", **given: Any) -> str | None:
    fields = FormFields(**given)
    found = forms.find_problem(fields, reviewer)
    if found is None:
        decision = forms.decision_of(fields, run=None, index=0, **ABOUT)
        found = forms.to_mend(problems(decision, DecidedAnswer(answer)))
    return found.field if found else None


def test_missing_input_is_reported_with_its_field() -> None:
    assert missing() == "verdict"
    assert missing(verdict="approve") is None
    assert missing(verdict="approve", reviewer=" ") == "reviewer"
    assert missing(verdict="reject") == "reason"
    assert missing(verdict="reject", reason="contradicted") is None
    assert missing(verdict="reject", reason="findings_wrong") == "reason"
    assert missing(verdict="reject", reason="other", other=" ") == "other"
    assert missing(verdict="override", reason="contradicted") == "corrected"
    assert missing(verdict="override", reason="contradicted", corrected="  ") == "corrected"
    assert (
        missing(verdict="override", reason="contradicted", corrected="as \n it is") == "corrected"
    )
    assert missing(verdict="approve", reason="other") == "other"
    assert missing(verdict="override", reason="contradicted", corrected="another") is None
    assert missing(verdict="escalate") is None


@pytest.mark.parametrize(
    "posted",
    [
        None,
        7,
        [],
        "text",
        {"verdict": "destroy"},
        {"verdict": ["approve"]},
        {"labels": {"a": 1, "b": {"k": "nonsense"}}},
        {"reported": [1], "reporting": "text"},
        {
            "reported": {
                "digest": [
                    None,
                    {"start": 1},
                    {"start": -1, "end": 2, "text": "x"},
                    {"start": 1, "end": True},
                ]
            }
        },
        {
            "reported": {
                "digest": [{"text": "words without a place"}, {"start": 1, "end": 2, "text": ""}]
            }
        },
        {"reporting": {"type": "other", "note": "of no answer"}},
    ],
)
def test_an_invalid_post_is_an_empty_form(posted: object) -> None:
    assert read_form(FormFields, posted).empty


def test_unstorable_text_is_cleaned_and_truncated() -> None:
    fields = read_form(
        FormFields, {"note": "a\x00b\ud800c" + "x" * 10_000, "corrected": "", "verdict": "override"}
    )
    assert fields.note.startswith("abcx")
    assert len(fields.note) == LONGEST_NOTE
    assert fields.corrected == ""


REPORT = {
    "start": 4,
    "end": 10,
    "text": "bridge",
    "type": "unsupported",
    "severity": "high",
    "note": " no ",
}


def test_drafted_reports_are_kept_and_those_of_the_shown_answer_are_submitted(
    run: Run,
) -> None:
    whole = {"type": "incomplete", "severity": "low"}
    posted = {
        "reported": {"d": [REPORT, whole], "another": [whole]},
        "reporting": {"answer": "d", "place": 0, **REPORT},
    }
    fields = read_form(FormFields, posted)
    assert read_form(FormFields, fields.model_dump(mode="json")) == fields
    assert not fields.empty
    # an answer that was not audited, or whose audit is hidden, can be labelled too
    for audited in (run, None):
        approved = fields.model_copy(update={"verdict": "approve"})
        decision = forms.decision_of(approved, run=audited, index=0, shown="d", **ABOUT)
        assert [label.model_dump(exclude_defaults=True) for label in decision.labels] == [
            {**place, "label": "unsupported", "severity": "high", "note": "no"}
            for place in ({"target": "span", "start": 4, "end": 10, "text": "bridge"},)
        ] + [{"target": "answer", "label": "incomplete", "severity": "low"}]
        again = forms.fields_of_labels(decision, "d")
        assert again["reported"]["d"] == (
            fields.reported["d"][0].model_copy(update={"note": "no"}),
            fields.reported["d"][1],
        )
        assert again["labels"] == {}
    row = forms.history(
        [
            LogEntry(
                seq=1, id="1", at="", payload_digest="", previous="", digest="", decision=decision
            )
        ]
    )[0]
    assert (row["labels"], [issue["type"] for issue in row["reported"]]) == (
        [],
        ["unsupported", "incomplete"],
    )
    shown = forms.reporting(CASE.answer or "", LabelTypes(), decision)
    assert [label["type"] for label in shown["standing"]] == ["unsupported", "incomplete"]
    elsewhere = forms.reporting("Another answer.", LabelTypes(), decision)
    assert [label["type"] for label in elsewhere["standing"]] == ["incomplete"]


def test_a_reported_issue_without_type_or_severity_is_not_submitted() -> None:
    for lacking in ({"type": ""}, {"severity": "terrible"}):
        fields = read_form(
            FormFields, {"verdict": "approve", "reported": {"d": [REPORT | lacking]}}
        )
        found = forms.find_problem(fields, "Ada")
        assert found is not None
        assert found.field == "reported"


def test_selectable_sentences_start_without_markers() -> None:
    answer = (
        "# The 🌉\n\nIt is long. It is grey.\n\n- It cost nothing.\n  - Nothing.\n12. It is"
        " old.\n\n> So they say.\n\n#"
    )
    assert [answer[start:end] for start, end in forms.sentence_places(answer)][:7] == [
        *(
            "The 🌉",
            "It is long.",
            "It is grey.",
            "It cost nothing.",
            "Nothing.",
            "It is old.",
            "So they say.",
        ),
    ]


def test_the_decision_records_the_iteration_seen_and_what_was_shown(run: Run) -> None:
    rows = label_rows(run.iterations[0], CASE)
    contradicted = next(
        row for row in rows if row["kind"] == "claim" and row["verdict"] == "contradicted"
    )
    fabricated = next(row for row in rows if row["verdict"] == "fabricated")
    fields = FormFields(
        verdict="override",
        reason="contradicted",
        note=" seen ",
        corrected="It was opened in 1931 [b].",
        labels={
            forms.label_base(run, 0): {
                contradicted["key"]: {"label": "supported"},
                fabricated["key"]: {"label": "fabricated"},
            },
            "another-run/1": {contradicted["key"]: {"label": "partial"}},
        },
    )
    decision = forms.decision_of(fields, run=run, index=0, **ABOUT)
    assert (decision.run_id, decision.iteration, decision.machine_shown) == (run.id, 1, ("marks",))
    assert (decision.reviewer, decision.note, decision.reason) == (
        "Ada",
        "seen",
        "The evidence contradicts it",
    )
    assert decision.extra == {"reason_code": "contradicted", "answer": "the original answer"}
    assert decision.corrected_answer == "It was opened in 1931 [b]."
    labels = {label.target: label for label in decision.labels}
    assert (labels["claim"].label, labels["reference"].text) == ("supported", "z")
    # a note is what the reviewer wrote; the audit's verdict has columns of its own
    assert {label.note for label in labels.values()} == {""}
    for label in decision.labels:
        assert run.iterations[0].answer[label.start : label.end] == label.text


def test_an_uncited_sentence_can_be_labelled_as_needing_no_citation() -> None:
    answer = "The bridge is 120 metres long [a]. It is grey."
    case = case_of(answer, {"a": "The bridge is 120 metres long."})
    iteration = run_audit(case).iterations[0]
    (row,) = (row for row in label_rows(iteration, case) if row["kind"] == "sentence")
    assert [code for code, *_ in label_words()["choices"]["sentence"]] == [row["verdict"], "exempt"]
    posted = read_form(FormFields, {"labels": {"run/1": {row["key"]: {"label": "exempt"}}}})
    (label,) = target_labels(iteration, posted.labels["run/1"])
    assert (label.target, label.text, label.label) == ("sentence", "It is grey.", "exempt")


def test_a_correction_is_dropped_unless_overriding_and_unaudited_cases_can_be_decided(
    run: Run,
) -> None:
    approved = FormFields(verdict="approve", corrected="typed, then approved")
    assert forms.decision_of(approved, run=run, index=0, **ABOUT).corrected_answer is None
    unaudited = forms.decision_of(FormFields(verdict="escalate"), run=None, index=0, **ABOUT)
    assert (unaudited.run_id, unaudited.iteration, unaudited.machine_shown) == (None, None, ())


@pytest.mark.parametrize(
    ("added", "fabricated", "uncited"),
    [
        ("", [], []),
        (" It is old [z].", ["z"], []),
        (" It is old [q].", ["q"], []),
        (" It opened in spring.", [], ["It opened in spring."]),
        (" It is 120 metres long.", [], ["It is 120 metres long."]),
    ],
)
def test_a_blind_check_names_only_what_the_correction_adds(
    added: str, fabricated: list[str], uncited: list[str]
) -> None:
    shown = "It is long [a]. It opened in 1931 [q]. It is 120 metres long."
    checked = forms.check(shown + added, CASE, shown=shown, blind=True)
    assert (checked["fabricated"], checked["uncited"]) == (fabricated, uncited)
    assert (checked["fabricated_count"], checked["uncited_count"]) == tuple(
        map(len, (fabricated, uncited))
    )
    asked = " ".join(forms.doubts(shown + added, shown, CASE, "Another.", blind=True))
    assert "“q”" not in asked
    assert ("“z”" in asked) == (fabricated == ["z"])


def test_a_correction_is_checked_and_its_problems_are_listed_or_counted() -> None:
    checked = forms.check("It is long [a]. It opened in 1931 [q]. It is 120 metres long.", CASE)
    assert (checked["references"], checked["fabricated"], checked["fabricated_count"]) == (
        2,
        ["q"],
        1,
    )
    assert checked["uncited"] == ["It is 120 metres long."]
    checked = forms.check(" ".join(f"Bridge {n} is long [{n}]." for n in range(100, 150)), CASE)
    assert checked["fabricated_count"] == 50
    assert len(checked["fabricated"]) == forms.OFFENDERS_NAMED


@pytest.mark.parametrize(
    ("corrected", "doubt"),
    [
        ("Zinc is safe [c1]. The design of Ridgeway won [c3].", None),
        # it had no citation to lose
        ("Zinc is safe [c1, c3]. The design of Ridgeway won [c3]. It is old.", None),
        ("Zinc is safe [c1]c3]. The design of Ridgeway won [c3].", "it cites “c3]”"),
        ("Zinc is safe [c1. The design of Ridgeway won [c3].", "it cites “[c1”"),
        ("Zinc is safe [c1]. The design of Ridgeway won [c9].", "it cites “c9”"),
        (
            "Zinc is safe [c1]. The design of Ridgeway won.",
            "“The design of Ridgeway won.” has lost its citation",
        ),
        ("The first answer  [c1].", "it equals the original answer"),
    ],
)
def test_a_likely_slip_in_a_correction_is_questioned_with_its_change(
    corrected: str, doubt: str | None
) -> None:
    shown = "Zinc is safe [c1]. Tolland's design won [c3]."
    case = case_of(
        "The first answer [c1].", {"c1": "Zinc is safe.", "c3": "Ridgeway's design won."}
    )
    found = list(forms.doubts(corrected, shown, case, "The first answer [c1]."))
    assert [warning.startswith(doubt or "-") for warning in found[:1]] == ([True] if doubt else [])
    slip = forms.check(shown.replace("Toll", "TToll"), case, shown=shown)
    assert slip["dropped"] == []
    assert forms.check("Zinc is safe [c1]. It is old.", case, shown=shown)["dropped"] == ["c3"]
    twice = f"{shown} {shown}"
    once = forms.check(f"{shown} Tolland's design won [c3].", case, shown=twice)
    assert (once["dropped"], once["cited_less"]) == (
        [],
        [{"reference": "c1", "before": 2, "after": 1}],
    )
    assert forms.check(twice, case, shown=shown)["cited_less"] == []
    changed = slip["changed"]
    assert [words.strip() for kind, words in changed if kind != "same"] == ["Tolland", "TTolland"]
    assert all(
        len(words.split()) <= 2 * forms.NEIGHBOURS + 1 for kind, words in changed if kind == "same"
    )
    added = " ".join(f"Word{number} is changed." for number in range(40)) + " The last toldhe end."
    assert forms.check(f"{shown} {added}", case, shown=shown)["changed"][-1][1].endswith(
        "toldhe end."
    )


def test_a_correction_keeps_attached_citations_of_unchanged_sentences() -> None:
    answer = "The bridge is long. It opened in 1931."
    citations = [
        {"start": 0, "end": 19, "evidence_id": "a"},
        {"start": 20, "end": 38, "evidence_id": "a"},
    ]
    case = Case.model_validate({**CASE.to_json_dict(), "answer": answer, "citations": citations})
    untouched = forms.check(answer, case)
    assert (untouched["references"], untouched["beside"]) == (
        2,
        "2 of 2 citations attached to the original answer are kept.",
    )
    corrected = forms.check("The bridge is long. It opened in 1932.", case)
    assert (corrected["references"], corrected["uncited"]) == (1, ["It opened in 1932."])
    assert corrected["beside"].startswith(
        "1 of 2 citations attached to the original answer is kept: those of unchanged"
    )
    assert forms.check(answer, CASE)["beside"] == ""


def entry(seq: int, decision: Decision | None) -> LogEntry:
    place = {"payload_digest": "", "previous": "", "digest": "", "at": "2026-01-01T10:00:00.000Z"}
    return LogEntry.model_validate({"seq": seq, "id": f"e{seq}", "decision": decision, **place})


def test_log_entries_have_text_and_an_undo_names_its_decision() -> None:
    rejected = Decision(
        reviewer="Ada", case_id="c", run_id=None, verdict="reject", reason="why", note="note"
    )
    undo = Decision(kind="undo", reviewer="Bo", case_id="c", run_id=None, undoes="e1")
    rows = forms.history([entry(3, None), entry(2, undo), entry(1, rejected)])
    assert {row["when"] for row in rows} == {"1 Jan 2026 10:00 UTC"}
    assert [row["what"] for row in rows] == [
        "Redacted",
        "Undid “Rejected the original answer”",
        "Rejected the original answer",
    ]
    assert [row["undone"] for row in rows] == [False, False, True]
    assert (rows[2]["who"], rows[2]["why"], rows[2]["note"]) == ("Ada", "why", "note")


def test_no_shortcut_is_used_twice_or_conflicts_with_streamlit() -> None:
    shortcuts = [key.shortcut for _, keys in GROUPS for key in keys]
    assert len(set(shortcuts)) == len(shortcuts)
    assert not {"C", "R"} & set(shortcuts)
    # the bar has the keys alone while it's open
    assert sum(len(group["keys"]) for group in key_map()) == len(shortcuts) + len(LABEL_BAR)


def test_a_recorded_correction_is_compared_with_its_answer() -> None:
    case = case_of("It opened in 1950.", {"a": "It opened in 1931."})
    given = {
        "reviewer": "Ada",
        "case_id": case.id,
        "run_id": None,
        "verdict": "override",
        "reason": "It is wrong.",
    }
    decision = Decision.model_validate(given | {"corrected_answer": "It opened in 1931."})
    pieces = forms.correction(decision, None, case)
    assert "".join(text for kind, text in pieces if kind != "out") == "It opened in 1931."
    assert [text.strip() for kind, text in pieces if kind == "out"] == ["1950"]
    assert (
        forms.correction(decision.model_copy(update={"corrected_answer": None}), None, case) == []
    )


def test_an_approval_asks_about_the_claims_if_the_audit_confirmed_none(run: Run) -> None:
    original = run.iterations[0]
    assert any(check.verified for check in original.claims)
    assert forms.unconfirmed_rows(original) == forms.unconfirmed_rows(None) == []
    verdicts = cycle(["unverifiable", "unscored"])
    doubtful = tuple(
        check.model_copy(update={"verdict": next(verdicts)}) for check in original.claims
    )
    rows = forms.unconfirmed_rows(original.model_copy(update={"claims": doubtful}))
    assert [row["text"] for row in rows] == [check.claim.text for check in doubtful]
    assert rows[0]["key"] in {row["key"] for row in label_rows(original, CASE)}


def test_serious_issues_about_the_same_words_are_listed_once_before_an_approval(run: Run) -> None:
    found = forms.serious_issues(run, 0)
    first = found[0]
    safety = {"id": "another", "source": "critic", "rule": "critic_safety", "type": "safety"}
    twice = first.model_copy(update=safety)
    original = run.iterations[0].model_copy(update={"issues": (*run.iterations[0].issues, twice)})
    doubled = run.model_copy(update={"iterations": (original, *run.iterations[1:])})
    before, rows = forms.serious_rows(run, 0), forms.serious_rows(doubled, 0)
    assert len(rows) == len(before)
    assert rows[0]["number"] == 1
    (doubled_row,) = [row for row in rows if "another" in row["ids"]]
    assert "safety" in [word["text"] for word in doubled_row["labels"]]
    corrected = FormFields(verdict="override", corrected="Other.", reason="other", other="Wrong.")
    seen = forms.decision_of(
        corrected, run=doubled, index=0, acknowledged=["another"], **ABOUT
    ).extra["issues_seen"]
    assert [issue["id"] for issue in seen] == ["another"]
    listed = [case_id for row in rows for case_id in row["ids"]]
    assert sorted(listed) == sorted(issue.id for issue in forms.serious_issues(doubled, 0))
    approval = FormFields(verdict="approve")
    answer = DecidedAnswer(original.answer, forms.serious_issues(doubled, 0))
    for acknowledged, codes in (
        (listed, []),
        (listed[1:], ["serious_issues_open"]),
        ("all", ["serious_issues_open"]),
    ):
        decision = forms.decision_of(
            approval, run=doubled, index=0, acknowledged=acknowledged, **ABOUT
        )
        assert [problem.code for problem in problems(decision, answer)] == codes


def test_several_reasons_are_recorded_and_the_one_about_the_facts_counts() -> None:
    fields = FormFields(
        verdict="reject",
        reason="unclear",
        also=("unsafe", "other", "needs_evidence"),  # the last one isn't a reason to reject
        other="It is unkind.",
    )
    assert find_problem(fields, "Ada") is None
    made = decision_of(
        fields, case_id="c", run=None, index=0, reviewer="Ada", token="t", machine_shown=()
    )
    assert made.reason == "Could harm somebody; It is unkind.; Unclear or badly argued"
    codes = ["unsafe", "other", "unclear"]
    assert (made.extra["reason_code"], made.extra["reason_codes"]) == ("unsafe", codes)
    assert own_words(made.reason, codes) == "It is unkind."
    problem = find_problem(fields.model_copy(update={"other": " "}), "Ada")
    assert problem is not None
    assert problem.field == "other"


def test_only_those_who_see_an_audit_can_say_that_its_issues_are_wrong() -> None:
    about_issues = {"findings_wrong", "findings_harmless"}
    for run, expected in ((None, set()), (run_audit(CASE), about_issues)):
        offered = forms.reasons(run.iterations[0] if run else None)
        assert {reason["code"] for reason in offered["approve"]} & about_issues == expected
        assert {reason["code"] for reason in offered["reject"]}


def test_every_reason_has_a_digit() -> None:
    for verdict in DECIDE:
        assert len(reasons_for(verdict)) <= 10


def test_the_docs_list_every_key() -> None:
    page = keys_tool.PAGE.read_text(encoding="utf-8")
    assert keys_tool.update_page(page) == page, "run: python tools/keys.py"
    written = "\n".join(keys_tool.lines())
    for group in (*key_map(), *adjudication_keys(), *page_key_map("queue")["keys"]):
        for shown, does in group["keys"]:
            assert f"| `{shown}` | {does} |" in written
