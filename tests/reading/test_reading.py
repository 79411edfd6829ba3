"""Small inputs taken from public bug reports, each with its expected result (see README.md in this
folder).
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import masis
from masis.errors import InputError
from masis.schema.case import Case
from masis.settings import Settings

CASES = (Path(__file__).parent / "cases.jsonl").read_text(encoding="utf-8")
# Split only at "\n", because texts contain other line breaks.
ROWS: list[dict[str, Any]] = [json.loads(line) for line in CASES.split("\n") if line]
NO_SPOT_CHECKS = Settings(spot_check_share=0.0)
FLAGGED = ("contradicted", "unsupported")


def of_kind(kind: str) -> pytest.MarkDecorator:
    rows = [row for row in ROWS if row["kind"] == kind]
    return pytest.mark.parametrize("row", rows, ids=[row["id"] for row in rows])


@of_kind("citations")
def test_markers_and_sentences_are_read_as_intended(row: dict[str, Any]) -> None:
    audit, expect = masis.audit_citations(row["answer"], row["evidence"]), row["expect"]
    valid = [found.evidence_id for found in audit.citations if found.status == "valid"]
    invalid = [found.reference for found in audit.citations if found.status == "invalid"]
    uncited = [sentence.text for sentence in audit.sentences if sentence.status == "uncited"]
    found = {
        "valid": valid,
        "invalid": invalid,
        "invalid_n": len(invalid),
        "sentences": len(audit.sentences),
        "uncited": len(uncited),
        "uncited_text": uncited[0] if len(uncited) == 1 else uncited,
    }
    expected = {key: value for key, value in expect.items() if key in found and value is not None}
    assert {key: found[key] for key in expected} == expected
    assert set(expect.get("valid_has", ())) <= set(valid)
    assert set(expect.get("invalid_has", ())) <= set(invalid)
    assert len(audit.citations) >= expect.get("markers_n", 0)


@of_kind("verify")
def test_a_claim_is_supported_contradicted_or_undecided(row: dict[str, Any]) -> None:
    (check,) = masis.verify_claims([row["claim"]], row["evidence"])
    match row["expect"]:
        case "supported":
            assert check.verdict == "supported", check.issue
        case "not_supported":
            assert check.verdict != "supported"
        case "not_accused":
            assert check.verdict not in FLAGGED, check.issue
        case "accused":
            assert check.verdict in FLAGGED, check.issue


@of_kind("accepted")
def test_a_faulty_answer_never_passes_without_review(row: dict[str, Any]) -> None:
    case = {
        "id": "x",
        "query": row["query"],
        "answer": row.get("answer"),
        "evidence": row["evidence"],
    }
    assert masis.run_audit(case, settings=NO_SPOT_CHECKS).needs_review


def read_case_file(row: dict[str, Any], folder: Path) -> list[Case] | InputError:
    """Return the cases of the row's file, or the error that rejects it."""
    file = folder / row["name"]
    file.write_bytes(base64.b64decode(row["content_b64"]))
    try:
        return list(masis.read_cases(file, **row["args"]))
    except InputError as error:
        return error


@of_kind("no_answer")
def test_a_refusal_or_a_failed_call_never_passes_as_an_answer(
    row: dict[str, Any], tmp_path: Path
) -> None:
    cases = read_case_file(row, tmp_path)
    if not isinstance(cases, InputError):
        assert masis.run_audit(cases[0], settings=NO_SPOT_CHECKS).needs_review


@of_kind("import")
def test_a_file_is_read_as_intended_or_rejected_with_a_hint(
    row: dict[str, Any], tmp_path: Path
) -> None:
    expect, cases = row["expect"], read_case_file(row, tmp_path)
    if isinstance(cases, InputError):
        must_be_read = {"cases", "evidence", "evidence_n", "answer"} & expect.keys()
        expected_error = expect.get("error") or expect.get("or_error")
        assert expected_error is not None or not must_be_read, str(cases)
        assert (expected_error or "") in str(cases)
        return
    assert "error" not in expect
    first = cases[0]
    texts, ids = [chunk.text for chunk in first.evidence], [chunk.id for chunk in first.evidence]
    answer = first.answer or ""
    labels = first.labels.claims if first.labels else ()
    valid = [
        found
        for found in masis.audit_citations(answer, first.evidence).citations
        if found.status == "valid"
    ]
    found = {
        "cases": len(cases),
        "evidence": texts,
        "evidence_n": len(texts),
        "evidence_last": texts[-1:] and texts[-1],
        "answer": first.answer,
        "query": first.query,
        "ids": ids,
        "given": len(first.given_citations),
        "cited_valid": len(valid),
    }
    expected = {key: value for key, value in expect.items() if key in found}
    assert {key: found[key] for key in expected} == expected
    text_by_id = dict(zip(ids, texts, strict=True))
    assert {key: text_by_id.get(key) for key in expect.get("ids_has", {})} == expect.get(
        "ids_has", {}
    )
    assert expect.get("answer_not", "\0") not in answer
    assert not ("no_answer_nan" in expect and answer.lower() == "nan")
    assert len(first.given_citations) >= expect.get("given_least", 0)
    if "given_text" in expect:
        assert expect["given_text"] in [
            answer[citation.start : citation.end].strip() for citation in first.given_citations
        ]
    if "label_text" in expect:
        assert any(
            label.text == expect["label_text"] and (label.start is None or label.text in answer)
            for label in labels
        )
