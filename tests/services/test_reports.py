"""The printable report: whole, self-contained, and with nothing in it that came from outside as
anything but text.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from masis.schema.case import Case
from masis.schema.labels import LabelPassage, TargetLabel
from masis.services import Workbench, demo_cases
from masis.services.reports import case_report
from masis.views.report import report_name
from tests.reviewing import ADA, decide

FABRICATED = "strategy-01"
HOSTILE = (
    "<script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)><iframe"
    " src=//evil.example></iframe><form"
    " action=//evil.example><input></form>[a](javascript:alert(3)) {{ 7*7 }} {% raw %} '\"; DROP"
    " TABLE cases; \u202eright to left\u202c zero\u200bwidth"
)


def demo_case(case_id: str) -> Case:
    return next(case for case in demo_cases() if case.id == case_id)


def report(bench: Workbench, case_id: str) -> str:
    return case_report(bench.cases.open(case_id), bench.store.decisions.head())


class Reading(HTMLParser):
    """The tags and attributes of a page, and its words."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_report_is_complete(
    bench: Workbench,
) -> None:
    case = demo_case(FABRICATED)
    bench.cases.add(ADA, [case])
    run = bench.audits.audit(ADA, case)
    answer, chunk = run.iterations[0].answer, case.evidence[0]
    labels = (
        TargetLabel(target="claim", start=0, end=4, text=answer[:4], label="supported"),
        TargetLabel(
            target="span",
            start=0,
            end=4,
            text=answer[:4],
            label="unsafe",
            severity="high",
            note="no",
            evidence=(
                LabelPassage(
                    evidence_id=chunk.id,
                    start=0,
                    end=9,
                    text=chunk.text[:9],
                    stance="contradicts",
                ),
            ),
        ),
        TargetLabel(target="answer", label="incomplete", severity="low"),
    )
    corrected, note = "It grew by 14.2% [chunk_2].", "checked against the annual report"
    said = {
        "iteration": 1,
        "reason": "wrong figure",
        "note": note,
        "corrected_answer": corrected,
        "labels": labels,
    }
    decide(bench, case.id, "override", "Ana", **said)
    html = report(bench, case.id)
    words = Reading(html).words
    for expected in (
        case.query,
        "chunk_99",
        "fabricated citation",
        "Overridden by Ana",
        "wrong figure",
        f"Reported: “{answer[:4]}”: unsafe, high (no)",
        f"{chunk.id} contradicts the words: “{chunk.text[:9]}”",
        "Reported: the whole answer: incomplete, low",
        "checked against the annual report",
        "It grew by 14.2% [chunk_2].",
        "Faithfulness",
        "Rules that changed a score in iteration 1",
        run.id,
        run.versions.rubric,
        case.digest(),
        bench.store.decisions.head().digest,
        f"claim “{answer[:4]}”: supported",
    ):
        assert expected in words
    assert re.search(r"Quality: \d\.\d\d\. Quality of the best revision: \d\.\d\d\.", words)
    assert all(chunk.id in words for chunk in case.evidence)
    assert "ref-fabricated" in html
    assert "line-through" in html


def test_the_report_is_self_contained_without_scripts(bench: Workbench) -> None:
    case = demo_case(FABRICATED)
    bench.cases.add(ADA, [case])
    bench.audits.audit(ADA, case)
    html = report(bench, case.id)
    reading = Reading(html)
    assert not reading.tags & {
        "script",
        "img",
        "link",
        "iframe",
        "form",
        "object",
        "embed",
        "base",
        "a",
    }
    assert not reading.attributes & {"src", "href", "srcset", "action", "background"}
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_hostile_text_is_escaped_everywhere(bench: Workbench) -> None:
    case = Case.model_validate(
        {
            "id": HOSTILE,
            "query": HOSTILE,
            "answer": f"{HOSTILE} [c1] and [{HOSTILE}].",
            "evidence": [{"id": "c1", "text": HOSTILE, "source": HOSTILE}],
            "metadata": {"field": HOSTILE},
        }
    )
    bench.cases.add(ADA, [case])
    bench.audits.audit(ADA, case)
    place = {"target": "claim", "start": 0, "end": len(HOSTILE), "text": HOSTILE}
    label = TargetLabel.model_validate({**place, "label": "unsupported", "note": HOSTILE})
    said = dict.fromkeys(("reason", "note", "corrected_answer"), HOSTILE)
    decide(bench, case.id, "override", HOSTILE[:200], labels=(label,), **said)
    html = report(bench, case.id)
    reading = Reading(html)
    assert not reading.tags & {"script", "img", "iframe", "form", "input"}
    assert not any(name.startswith("on") for name in reading.attributes)
    assert "alert(1)" in reading.words
    assert "{{ 7*7 }}" in reading.words


def test_an_unaudited_case_has_a_report_that_says_so(bench: Workbench) -> None:
    case = demo_case(FABRICATED)
    bench.cases.add(ADA, [case])
    words = Reading(report(bench, case.id)).words
    assert "No finished audit has checked it." in words
    assert "None yet." in words
    assert all(chunk.text in words for chunk in case.evidence)


def test_redacted_content_isnt_in_the_report(bench: Workbench) -> None:
    case = demo_case(FABRICATED)
    bench.cases.add(ADA, [case])
    bench.audits.audit(ADA, case)
    entry = decide(bench, case.id, "reject", reason="names a private person")
    bench.store.decisions.redact(entry.id, by="Ben", reason="personal data")
    words = Reading(report(bench, case.id)).words
    assert "names a private person" not in words
    assert f"Redacted entry {entry.id}" in words


@pytest.mark.parametrize(
    "case_id", ["../../etc/passwd", "a\nb", 'x"; rm -rf', "日本", "x" * 500, "CON"]
)
def test_the_report_has_a_safe_file_name(case_id: str) -> None:
    name = report_name(case_id)
    assert name.startswith("audit-")
    assert name.endswith(".html")
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.")
    assert len(name) < 100


def test_the_report_has_the_earlier_conversation_as_text(bench: Workbench) -> None:
    data = demo_case(FABRICATED).to_json_dict() | {
        "messages": [{"role": "user", "content": HOSTILE}]
    }
    bench.cases.add(ADA, [Case.model_validate(data)])
    page = Reading(report(bench, FABRICATED))
    assert "Earlier in the conversation" in page.words
    assert HOSTILE in page.words
    assert not page.tags & {"script", "img", "iframe", "form", "input"}
