"""The report of ``masis bench``: abstentions count as wrong, halves are disjoint, and files are
recognized by their keys.
"""

import json
from functools import cache
from pathlib import Path

import pytest

from masis.bench import render, run_bench
from masis.bench.metrics import Prediction, compute_metrics
from masis.bench.rows import group_keys, half_of
from masis.errors import InputError

pytestmark = pytest.mark.slow


def test_metrics_of_a_perfect_and_of_a_silent_judge() -> None:
    correct_predictions = [Prediction(True, True, 0.9, "a"), Prediction(False, False, 0.1, "b")] * 5
    assert {
        name: figure.value for name, figure in compute_metrics(correct_predictions, 0, 1).items()
    } == dict.fromkeys(compute_metrics(correct_predictions, 0, 1), 1.0)
    abstentions = [row._replace(predicted=None) for row in correct_predictions]
    metrics = compute_metrics(abstentions, 0, 1)
    assert (metrics["f1"].value, metrics["auroc"].value, metrics["coverage"].value) == (
        0.0,
        0.0,
        0.0,
    )


def test_an_undefined_metric_is_none() -> None:
    assert compute_metrics([Prediction(True, True, 0.9, "a")], 10, 1)["auroc"].value is None


def test_ties_count_half_for_auroc_and_intervals_contain_the_value() -> None:
    rows = [Prediction(bool(number % 2), True, 0.5, str(number)) for number in range(40)]
    auroc = compute_metrics(rows, 100, 1)["auroc"]
    assert auroc.value == 0.5
    assert auroc.low == auroc.high == 0.5


def test_rows_that_share_a_question_or_document_are_one_group() -> None:
    groups = group_keys([("q1", "d1"), ("q2", "d1"), ("q2", "d2"), ("q3", "d3")])
    assert groups[0] == groups[1] == groups[2] != groups[3]
    assert {half_of(str(number)) for number in range(50)} == {"fit", "report"}


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def hagrid(number: int, claim: str, label: str, references: list[str]) -> dict[str, object]:
    return {
        "id": f"h{number}",
        "question": f"Question {number}?",
        "response": claim,
        "claim": claim,
        "references": references,
        "attribution_label": label,
    }


def test_a_file_is_recognized_by_its_keys_and_measured_next_to_the_baselines(
    tmp_path: Path,
) -> None:
    rows = [
        hagrid(
            2 * number,
            f"Town {number} has {number} bridges [1].",
            "attributable",
            [f"[1] Town {number} has {number} bridges."],
        )
        for number in range(1, 15)
    ]
    rows += [
        hagrid(
            2 * number + 1,
            f"Hill {number} is {number}99 feet high [1].",
            "not attributable",
            [f"[1] Hill {number} is {number}11 feet high."],
        )
        for number in range(1, 15)
    ]
    report = run_bench(write(tmp_path / "h.jsonl", rows), half="all", bootstrap=20)
    assert report.task == "HAGRID"
    reading = report.readings[0]
    assert (reading.n, reading.positives) == (28, 14)
    assert [judge.judge for judge in reading.judges] == [
        "auditor",
        "always positive",
        "word overlap",
        "word overlap in a window",
    ]
    assert reading.judges[0].figures["macro_f1"].value == 1.0
    assert (
        json.loads(json.dumps(report.to_dict()))["readings"][0]["judges"][0]["figures"]["auroc"][
            "value"
        ]
        == 1.0
    )
    assert "auditor" in render(report)


def test_cases_with_labeled_claims_are_measured(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"c{number}",
            "query": "How many bridges?",
            "evidence": [
                {
                    "id": "1",
                    "text": f"Town {number} has {number + 12} bridges over the river Lenne.",
                }
            ],
            "answer": (
                f"Town {number} has {number + 12} bridges over the river Lenne [1]. Zebras cross the dusty"
                " plains [1]."
            ),
            "labels": {
                "claims": [
                    {
                        "text": f"Town {number} has {number + 12} bridges over the river Lenne [1].",
                        "supported": True,
                    },
                    {"text": "Zebras cross the dusty plains [1].", "supported": False},
                ]
            },
        }
        for number in range(1, 6)
    ]
    report = run_bench(write(tmp_path / "l.jsonl", rows), half="all", bootstrap=0)
    assert (report.task, report.readings[0].n, report.readings[0].positives) == (
        "Labeled cases",
        10,
        5,
    )
    assert (report.counts["true claims confirmed"], report.counts["faulty claims confirmed"]) == (
        5,
        0,
    )


def test_uncited_claims_are_measured_with_and_without_the_citation_rule(tmp_path: Path) -> None:
    rows = [
        hagrid(1, "It rains (2004).", "not attributable", []),
        hagrid(3, "It snows [7].", "not attributable", []),
        hagrid(2, "It rains [1].", "attributable", ["[1] It rains."]),
    ]
    with_rule, without_rule = run_bench(
        write(tmp_path / "h.jsonl", rows), half="all", bootstrap=0
    ).readings
    assert with_rule.judges[0].figures["coverage"].value == 1.0
    assert without_rule.judges[0].figures["coverage"].value == pytest.approx(1 / 3, abs=1e-3)


def test_our_cases_are_measured_for_altered_facts_and_fabricated_references(
    tmp_path: Path,
) -> None:
    case: dict[str, object] = {
        "id": "c1",
        "query": "How much?",
        "answer": "It grew by 21% in 2021 [chunk_1]. It has two yards [chunk_9].",
        "evidence": [
            {"id": "chunk_1", "text": "It grew by 12% in 2021. It has two yards."},
            {"id": "chunk_2", "text": "Rain."},
        ],
        "labels": {
            "clean": False,
            "claims": [
                {
                    "text": "It grew by 21% in 2021 [chunk_1].",
                    "verdict": "contradicted",
                    "planted": "altered_number",
                },
                {"text": "It has two yards [chunk_9].", "verdict": "supported"},
            ],
            "citations": [
                {"reference": "chunk_1", "status": "valid"},
                {"reference": "chunk_9", "status": "invalid"},
            ],
        },
    }
    report = run_bench(write(tmp_path / "c.jsonl", [case]), half="all", bootstrap=0)
    by_name = {reading.name: reading.judges[0].figures for reading in report.readings}
    assert by_name["altered facts"]["f1"].value == 1.0
    assert by_name["fabricated references"]["f1"].value == 1.0


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("{not json", 1),
        ('{"id": 1}', 1),
        ("[1]", 1),
        ('{"doc": "a", "summary": "b", "label": 1, "id": "x"}\n{"doc": "a"}', 2),
    ],
)
def test_input_that_cant_be_measured_is_reported_with_file_and_line(
    tmp_path: Path, content: str, line: int
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        run_bench(path)
    assert (caught.value.file, caught.value.line) == ("bad.jsonl", line)


def test_an_empty_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()
    with pytest.raises(InputError):
        run_bench(path)


MISSED_TARGET = pytest.mark.xfail(reason="a missed target, see docs/models.md", strict=False)


@cache
def auditor_metrics(path: Path) -> dict[str, float | None]:
    """Return the auditor's metrics on the report half, measured once per file."""
    return {
        name: figure.value
        for name, figure in run_bench(path, bootstrap=0).readings[0].judges[0].figures.items()
    }


@pytest.mark.parametrize(
    ("file", "metric", "minimum"),
    [
        ("summedits.jsonl", "auroc", 0.62),
        ("wice_claims.jsonl", "auroc", 0.76),
        ("hagrid_claims.jsonl", "auroc", 0.80),
        pytest.param("hagrid_claims.jsonl", "macro_f1", 0.80, marks=MISSED_TARGET),
    ],
)
def test_targets_are_met_on_data_not_used_for_tuning(
    public_data: Path, file: str, metric: str, minimum: float
) -> None:
    value = auditor_metrics(public_data / file)[metric]
    assert value >= minimum
