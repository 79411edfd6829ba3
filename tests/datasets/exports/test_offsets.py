"""In every export, the offsets of each label select the labeled words in the text of the same
row.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masis.audit.citations import audit_citations
from masis.datasets.exports.export import Selection
from masis.datasets.exports.formats import export_formats
from masis.datasets.writers.lines import escape_formula
from masis.schema.audit import ClaimCheck
from masis.schema.case import Case, Severity
from masis.schema.labels import LABEL_CHOICES, TargetLabel
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.schema.team import LabelTypes
from masis.services import Workbench
from masis.store.records import CaseFilter
from tests.reviewing import ADA, submit, undone
from tests.store.factories import a_run, an_iteration

ANSWERS = (
    (
        "=The bridge is 120 metres long [1]. It opened in 1931 [9]. It opened in 1931 [9]. 🌉 It is"
        " red."
    ),
    "- The bridge is 12 metres long [1].\n- It never opened 𝒾n 1931 [2].",
    "'+Ten workers built it [2]. It cost nothing. Ça coûte 10 € [1].",
)

EVIDENCE = {"1": "The bridge is 120 metres long.", "2": "It opened in 1931."}


class Audited(NamedTuple):
    bench: Workbench
    runs: dict[str, Run]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    bench = Workbench.open(tmp_path_factory.mktemp("offsets") / "offsets.db")
    evidence = [{"id": name, "text": text} for name, text in EVIDENCE.items()]
    runs = {}
    for number, answer in enumerate(ANSWERS):
        case = Case.model_validate(
            {
                "id": f"case-{number}",
                "query": f"How long is bridge {number}?",
                "answer": answer,
                "evidence": evidence,
            }
        )
        bench.cases.add_one(ADA, case)
        run = bench.audits.audit(ADA, case)
        assert run is not None
        runs[case.id] = run
    yield Audited(bench, runs)
    bench.close()


def report_issue(draw: st.DrawFn, answer: str) -> TargetLabel:
    """Return an issue as the page reports it: for words of the answer or for the whole answer."""
    what = {
        "label": draw(st.sampled_from(LabelTypes().names)),
        "severity": draw(st.sampled_from(get_args(Severity))),
        "note": draw(st.sampled_from(("", "not in the survey"))),
    }
    if draw(st.booleans()):
        return TargetLabel.model_validate({"target": "answer", **what})
    start = draw(st.integers(0, len(answer) - 1))
    end = draw(st.integers(start + 1, len(answer)))
    return TargetLabel.model_validate(
        {"target": "span", "start": start, "end": end, "text": answer[start:end], **what}
    )


@st.composite
def decisions(draw: st.DrawFn, runs: dict[str, Run]) -> Decision:
    """Draw a decision as a page or a program would send it, usually with valid offsets and
    sometimes with invalid ones.
    """
    run = runs[draw(st.sampled_from(sorted(runs)))]
    iteration = draw(st.sampled_from(run.iterations))
    labels = []
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(iteration.answer) - 1))
        end = draw(st.integers(start + 1, len(iteration.answer)))
        text, shift = iteration.answer[start:end], draw(st.sampled_from((0, 0, 0, 1, -2)))
        if draw(st.booleans()) and iteration.claims and iteration.claims[0].claim.start is not None:
            claim = iteration.claims[0].claim
            start, end, text = (
                claim.start or 0,
                claim.end or 0,
                iteration.answer[claim.start : claim.end],
            )
        target = draw(st.sampled_from(("sentence", "reference", "claim")))
        labels.append(
            TargetLabel(
                target=target,
                start=max(0, start + shift),
                end=end + shift,
                text=text,
                label=draw(st.sampled_from(LABEL_CHOICES[target])),
            )
        )
    labels += [report_issue(draw, iteration.answer) for _ in range(draw(st.integers(0, 2)))]
    verdict = draw(st.sampled_from(("approve", "override", "reject", "escalate")))
    return Decision.model_validate(
        {
            "reviewer": draw(st.sampled_from(("Ada", "Ben"))),
            "case_id": run.case_id,
            "run_id": run.id,
            "iteration": (
                draw(st.sampled_from((iteration.iteration_number, None)))
                if iteration is run.iterations[0]
                else iteration.iteration_number
            ),
            "verdict": verdict,
            "corrected_answer": (
                f"Corrected. {iteration.answer[:20]}x" if verdict == "override" else None
            ),
            "reason": "read",
            "labels": labels,
        }
    )


def unescape(cell: str) -> str:
    return cell[1:] if escape_formula(cell[1:]) == cell else cell


def export_rows(bench: Workbench, form: str, encoding: str = "jsonl") -> list[dict[str, Any]]:
    out = io.BytesIO()
    done = bench.exports.write(ADA, out, form, Selection(CaseFilter()), encoding=encoding)
    if encoding == "csv":
        rows = list(csv.DictReader(io.StringIO(out.getvalue().decode(), newline="")))
        found: list[dict[str, Any]] = [
            {name: unescape(cell) for name, cell in row.items()} for row in rows
        ]
    elif encoding == "parquet":
        found = pyarrow.parquet.read_table(io.BytesIO(out.getvalue())).to_pylist()
    else:
        text = out.getvalue().decode()
        found = (
            json.loads(text)
            if export_formats()[form].suffix == ".json"
            else [json.loads(line) for line in text.split("\n") if line]
        )
    assert len(found) == done.rows
    return found


def assert_cuts(text: str | None, label: dict[str, Any]) -> int:
    """Check one label and return whether it has offsets. Words that are missing or occur twice have
    none.
    """
    if label["start"] in (None, ""):
        assert label["end"] in (None, "")
        return 0
    assert text[int(label["start"]) : int(label["end"])] == label["text"]
    return 1


def assert_reported(bench: Workbench, rows: list[dict[str, Any]]) -> None:
    """Check that the rows contain every issue reported by an effective decision, each with its
    offsets.
    """
    entries = {
        entry.id: entry.decision
        for entry in bench.store.decisions.iterate()
        if entry.decision is not None
    }
    given_by: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        if row["severity"]:
            place = tuple(
                None if row[name] in (None, "") else int(row[name]) for name in ("start", "end")
            )
            found = (row["target"], *place, row["text"], row["label"], row["severity"], row["note"])
            given_by.setdefault(row["entry_id"], []).append(found)
    for entry_id in {row["entry_id"] for row in rows}:
        assert given_by.get(entry_id, []) == [
            (
                issue.target,
                issue.start,
                issue.end,
                issue.text,
                issue.label,
                issue.severity,
                issue.note,
            )
            for issue in entries[entry_id].reported
        ]


@pytest.mark.slow
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_offsets_in_every_export_select_the_labeled_words(
    audited: Audited, data: st.DataObject
) -> None:
    bench = audited.bench
    for _ in range(data.draw(st.integers(1, 5))):
        # Draw both in every case, because the draws must not depend on the database.
        undoes, decision = not data.draw(st.integers(0, 3)), data.draw(decisions(audited.runs))
        if not (undoes and _undo_one(bench, audited.runs)):
            # Straight into the log, because the services refuse labels at a wrong offset. Logs of
            # earlier versions may have them.
            bench.store.decisions.append(decision)
    for form in ("claims", "sentences", "labels"):
        plain = export_rows(bench, form)
        for encoding in ("jsonl", "csv", "parquet"):
            rows = export_rows(bench, form, encoding)
            assert [row["text"] for row in rows] == [row["text"] for row in plain]
            placed = sum(assert_cuts(row["answer"], row) for row in rows)
            for row in rows:
                assert_passage(row, EVIDENCE)
            assert placed or form == "labels"
            if form == "labels":
                assert_reported(bench, rows)
    for row in export_rows(bench, "attribution"):
        assert assert_cuts(row["answer"], row)
        chunk = EVIDENCE[row["passage_evidence_id"]]
        assert chunk[row["passage_start"] : row["passage_end"]] == row["passage_text"]
    for row in export_rows(bench, "decided"):
        for label in (*row["labels"], *row["claims"], *row["citations"], *row["issues"]):
            assert_cuts(row["judged_answer"], label)
    for row in export_rows(bench, "spans"):
        for label in row["labels"]:
            assert assert_cuts(row["response"], label)
        for label in row["reported"]:
            assert assert_cuts(row["response"], label) or label["text"] == ""
    for task in export_rows(bench, "label-studio"):
        for result in (*task["predictions"], *task["annotations"]):
            for region in result["result"]:
                if region["type"] == "choices":
                    assert region["value"]["choices"][0] in LabelTypes().names
                else:
                    assert assert_cuts(task["data"]["text"], region["value"])
            ids = [
                region["id"]
                for region in result["result"]
                if region.get("meta", {"text": []})["text"][1:]
            ]
            assert len(set(ids)) == len(ids)


HOSTILE = (
    "𝒾n 𝟙𝟡𝟛𝟙",
    "e\u0301\u0302xact a" + "\u0301" * 40,
    "one\r\ntwo",
    "\x01\x02\x1f\x7f",
    "\u202eright to left\u202c مرحبا הגשר",
    "👩‍👩‍👧‍👦🌉 \u200b\ufeff",
    "\u2028\x85",
    "İstanbul ß ﬁ Ａ",
    "=1+1",
)
"""Words whose length differs between bytes, code units, characters and what is seen."""


def test_offsets_in_every_export_select_the_labeled_words_of_hostile_unicode(
    tmp_path: Path,
) -> None:
    chunks = {"1": "; ".join(HOSTILE), "2": "; ".join(reversed(HOSTILE))}
    evidence = [{"id": name, "text": text} for name, text in chunks.items()]
    bench = Workbench.open(tmp_path / "hostile.db")
    placed = 0
    for number, words in enumerate(HOSTILE):
        answer = f"{words} It is {words} [1]. {'; '.join(HOSTILE)} {words} [2]. It is {words} [9]."
        content = {
            "id": f"case-{number}",
            "query": f"Is it {words}?",
            "answer": answer,
            "evidence": evidence,
        }
        add_hostile(bench, Case.model_validate(content), words, chunks)
    for form, encodings in ((name, ("jsonl", "csv", "parquet")) for name in TABLES):
        for encoding in encodings:
            for row in export_rows(bench, form, encoding):
                placed += assert_cuts(row["answer"], row)
                assert_passage(row, chunks)
    for row in export_rows(bench, "decided"):
        for part in (*row["labels"], *row["claims"], *row["citations"], *row["issues"]):
            placed += assert_cuts(row["judged_answer"], part)
    for row in export_rows(bench, "spans"):
        placed += sum(assert_cuts(row["response"], label) for label in row["labels"])
    for task in export_rows(bench, "label-studio"):
        for results in (*task["predictions"], *task["annotations"]):
            for region in results["result"]:
                if region["type"] != "choices":
                    placed += assert_cuts(task["data"]["text"], region["value"])
    bench.exports.write_file(ADA, tmp_path / "hf", "hf", Selection(CaseFilter()))
    for path in (tmp_path / "hf" / "data").iterdir():
        for row in map(json.loads, path.read_text(encoding="utf-8").split("\n")[:-1]):
            placed += sum(assert_cuts(row["answer"], label) for label in row["labels"])
    # Three labels a case are in four tables as three encodings each, and in four other formats.
    assert placed > len(HOSTILE) * 3 * (len(TABLES) * 3 + 4) / 2
    bench.close()


TABLES = ("claims", "sentences", "labels", "attribution")


def add_hostile(bench: Workbench, case: Case, words: str, chunks: dict[str, str]) -> None:
    """Store a case whose run has a claim on each sentence, and labels on the hostile words."""
    answer = case.answer or ""
    audit = audit_citations(answer, case.evidence)
    claims = tuple(
        ClaimCheck.model_validate(
            {
                "claim": {
                    "text": sentence.text,
                    "start": sentence.start,
                    "end": sentence.end,
                    "cited": sentence.citation_ids,
                },
                "verdict": "unsupported",
                "support": 0.1,
                "confidence": 0.9,
                "sources": [],
                "quotes": [],
            }
        )
        for sentence in audit.sentences
    )
    iteration = an_iteration(answer=answer).model_copy(
        update={"citation_audit": audit, "claims": claims}
    )
    bench.cases.add_one(ADA, case)
    run = a_run(case, f"run-{case.id}", iterations=(iteration,))
    bench.store.runs.finish(run)
    passages = []
    for name, text in chunks.items():
        start = text.index(words)
        passage = {"evidence_id": name, "start": start, "end": start + len(words), "text": words}
        passages.append(passage)
    last, sentence = answer.rindex(words), audit.sentences[0]
    places = [(last, last + len(words)), (0, len(words)), (sentence.start, sentence.end)]
    labels = [
        TargetLabel.model_validate(
            {
                "target": "claim",
                "start": start,
                "end": end,
                "text": answer[start:end],
                "label": "unsupported",
                "evidence": passages,
            }
        )
        for start, end in places
    ]
    decision = {"reviewer": "Ada", "case_id": case.id, "run_id": run.id, "iteration": 1}
    given_ = decision | {"verdict": "reject", "reason": "unsupported", "labels": labels}
    submit(bench, Decision.model_validate(given_))


def assert_passage(row: dict[str, Any], chunks: dict[str, str]) -> None:
    """Check that the passage of a row, if it has one, is selected by its offsets."""
    if row.get("passage_text") not in (None, ""):
        start, end = int(row["passage_start"]), int(row["passage_end"])
        assert chunks[row["passage_evidence_id"]][start:end] == row["passage_text"]


def test_a_label_with_correct_offsets_keeps_them_even_if_its_words_occur_twice(
    audited: Audited,
) -> None:
    run = audited.runs["case-0"]
    words = "It opened in 1931 [9]."
    answer = run.iterations[0].answer
    second = answer.index(words, answer.index(words) + 1)
    label = TargetLabel(
        target="claim", start=second, end=second + len(words), text=words, label="unsupported"
    )
    given_ = {
        "reviewer": "Cleo",
        "case_id": "case-0",
        "run_id": run.id,
        "verdict": "approve",
        "iteration": 1,
    }
    submit(audited.bench, Decision(**given_, labels=(label,)))
    rows = [row for row in export_rows(audited.bench, "labels") if row["reviewer"] == "Cleo"]
    assert [(row["start"], row["text"]) for row in rows] == [(second, words)]


def _undo_one(bench: Workbench, runs: dict[str, Run]) -> bool:
    for case_id in runs:
        current = bench.reviews.current(case_id)
        if (
            current is not None
            and current.decision is not None
            and current.decision.kind == "decision"
        ):
            undone(bench, case_id, "Ada")
            return True
    return False


@given(st.text(alphabet="'=+-@ \tabＡ＝", max_size=8))
def test_a_csv_cell_round_trips_its_text(text: str) -> None:
    assert unescape(escape_formula(text)) == text
    assert not escape_formula(text).lstrip().startswith(("=", "+", "-", "@", "＝"))


def test_a_file_matches_its_manifest(audited: Audited, tmp_path: Path) -> None:
    file = tmp_path / "claims.csv"
    audited.bench.exports.write_file(ADA, file, "claims", Selection(CaseFilter()), encoding="csv")
    manifest = json.loads((tmp_path / "claims.csv.manifest.json").read_text())
    assert manifest["files"][0]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert manifest["files"][0]["bytes"] == file.stat().st_size
    assert sum(manifest["class_balance"]["verdict"].values()) == manifest["counts"]["rows"]
