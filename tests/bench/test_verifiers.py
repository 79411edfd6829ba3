"""The comparison of verifiers on the same labeled claims, and the command that prints it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from masis import Case, Evidence, Run, run_audit, verify_claims
from masis.bench.metrics import MetricEstimate
from masis.bench.verifiers import VerifierComparison, compare_verifiers, render_comparison
from masis.cli import main
from masis.errors import SettingsError
from masis.schema.providers import Price, ProviderSettings
from masis.settings import ROLES, Settings
from tests.cases import case_of
from tests.cli.running import lines
from tests.integrations.tiny_models import save_model
from tests.rooms import HAS_INTEGRATIONS
from tests.serving_models import ModelServer

WORDS = {"proven": (9.0, 0, 0), "refuted": (0, 0, 9.0), "nothing": (0, 9.0, 0)}
# The word that decides the model's verdict, and the human label.
CLAIMS = [
    [("proven", "supported"), ("proven", "supported")],  # a true answer, accepted
    [("proven", "supported"), ("nothing", "supported")],  # a true answer with a flagged claim
    [("proven", "unsupported"), ("proven", "supported")],  # a faulty answer, accepted
    # a faulty answer that is detected, with one undecided claim
    [("refuted", "contradicted"), ("else", "supported")],
]


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    cases = []
    for number, claims in enumerate(CLAIMS):
        texts = [
            f"The bridge number {number} is {word} {position}."
            for position, (word, _) in enumerate(claims)
        ]
        labels = [
            {"text": text, "verdict": verdict}
            for text, (_, verdict) in zip(texts, claims, strict=True)
        ]
        evidence = {"c": f"The bridge number {number} is here."}
        case = case_of(
            " ".join(texts), evidence, case_id=f"case {number}", labels={"claims": labels}
        )
        cases.append(case.to_json_dict())
    file = tmp_path / "mine.jsonl"
    file.write_bytes(lines(*cases))
    return file


@pytest.fixture
def nli(tmp_path: Path) -> str:
    if not HAS_INTEGRATIONS:
        pytest.skip("masis/integrations isn't here")
    vocabulary = "the bridge number is here 0 1 2 3"
    return f"local:{save_model(tmp_path / 'nli', WORDS, vocabulary=vocabulary)}"


def shares(comparison: VerifierComparison, index: int = 0) -> dict[str, tuple[float | None, int]]:
    return {
        share.name: (share.estimate.value, share.of) for share in comparison.verifiers[index].shares
    }


def test_the_shares_match_a_count_by_hand(labelled: Path, nli: str) -> None:
    comparison = compare_verifiers(labelled, [nli], Settings(), half="all", bootstrap=50)
    assert (comparison.rows, comparison.faulty, comparison.groups) == (8, 2, 4)
    assert shares(comparison) == {
        "faulty accepted": (0.5, 2),
        "accusations right": (0.5, 2),
        "true accused": (0.1667, 6),
        "true confirmed": (0.6667, 6),
        "left open": (0.125, 8),
        "unscored": (0.0, 8),
        "faulty answers accepted": (0.5, 2),
        "true answers accepted": (0.5, 2),
    }


def test_the_curve_descends_and_agrees_with_the_current_threshold(labelled: Path, nli: str) -> None:
    comparison = compare_verifiers(labelled, [nli], Settings(), half="all", bootstrap=0)
    curve = comparison.verifiers[0].curve
    confirmed = [point.true_confirmed.value or 0.0 for point in curve]
    assert confirmed == sorted(confirmed, reverse=True)
    (current_point,) = [point for point in curve if point.threshold == 0.75]
    assert current_point.true_confirmed == MetricEstimate(0.6667, None, None)
    assert current_point.faulty_accepted.value == 0.5


def test_thresholds_from_the_settings_match_those_of_an_audit(labelled: Path, nli: str) -> None:
    strict = compare_verifiers(
        labelled, [nli], Settings(local_supported_from=1.0), half="all", bootstrap=0
    )
    assert shares(strict)["true confirmed"] == (0.0, 6)


def test_several_verifiers_are_measured_on_the_same_claims(labelled: Path, nli: str) -> None:
    with ModelServer() as server:
        settings = Settings(
            providers={"scripted": ProviderSettings(address=server.address)},
            prices={"scripted:m": Price(input=1.0, output=1.0)},
        )
        comparison = compare_verifiers(
            labelled,
            ["offline", nli, f"offline,{nli}", "scripted:m"],
            settings,
            half="all",
            bootstrap=20,
        )
    names = [report.verifier for report in comparison.verifiers]
    assert names[0] == "offline"
    assert names[1].startswith(f"{nli}#")
    assert names[3] == "scripted:m"
    assert comparison.verifiers[3].usage.calls == len(CLAIMS)
    assert comparison.verifiers[3].usage.cost_usd
    assert "calls to models 4, $" in render_comparison(comparison)


def test_a_limit_selects_whole_groups_deterministically(labelled: Path, nli: str) -> None:
    limited = [
        compare_verifiers(labelled, [nli], Settings(), half="all", bootstrap=0, limit=5)
        for _ in range(2)
    ]
    assert [comparison.rows for comparison in limited] == [4, 4]
    assert limited[0] == limited[1]


def test_the_command_prints_tables_or_json(labelled: Path, nli: str) -> None:
    arguments = [
        "bench",
        str(labelled),
        "--half",
        "all",
        "--bootstrap",
        "20",
        "--verifier",
        "offline",
    ]
    result = CliRunner().invoke(main, [*arguments, "--verifier", nli])
    assert result.exit_code == 0, result.output
    assert "faulty accepted" in result.stdout
    assert "if accepted from support" in result.stdout
    as_json: dict[str, Any] = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    assert as_json["verifiers"][0]["shares"]["true confirmed"]["of"] == 6
    assert as_json["verifiers"][0]["curve"][0]["threshold"] == 0.3


def test_an_unusable_verifier_is_reported_before_anything_is_judged(labelled: Path) -> None:
    result = CliRunner().invoke(
        main, ["bench", str(labelled), "--verifier", "offline", "--verifier", "local:./nowhere"]
    )
    assert result.exit_code == 2
    assert "no such folder" in result.output
    with pytest.raises(SettingsError):
        compare_verifiers(labelled, ["local:./nowhere"], Settings(), half="all")


# Results of offline checks and a model on answers that hadn't been used for tuning when they were
# first judged.

FOLDER = Path(__file__).parent / "unseen"
FLAGGED = ("contradicted", "unsupported", "partial")


def read_rows(name: str) -> Iterator[dict[str, Any]]:
    for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def audit_cases(
    name: str, labels: str, settings: Settings | None = None
) -> list[tuple[Run, dict[str, Any]]]:
    label_of = {label["id"]: label for label in read_rows(labels)}
    return [(run_audit(Case(**case), settings), label_of[case["id"]]) for case in read_rows(name)]


def is_in_faulty_sentence(
    run: Run, label: dict[str, Any], start: int | None, end: int | None
) -> bool:
    """Return whether a span of the answer is in the sentence labeled as faulty."""
    if not label["faulty"] or start is None or end is None:
        return False
    fault_start = run.iterations[0].answer.find(label["wrong_sentence"])
    return start < fault_start + len(label["wrong_sentence"]) and fault_start < end


def test_an_altered_near_copy_is_never_confirmed_and_a_copy_is() -> None:
    copies = near_copies = 0
    for row in read_rows("pairs"):
        evidence = [Evidence(**chunk) for chunk in row["evidence"]]
        copy, near_copy = verify_claims([row["copy"], row["near_copy"]], evidence)
        copies += copy.verdict == "supported"
        near_copies += near_copy.verdict == "supported"
    assert near_copies == 0
    assert copies >= 53  # 44 of the 45 that are word for word


def test_offline_no_faulty_short_answer_passes_and_decisions_are_right() -> None:
    confirmed = flagged = 0
    for run, label in audit_cases("short_cases", "short_labels"):
        assert run.needs_review or not label["faulty"], label
        wrong_citation = label["kind"] in ("fabricated_citation", "wrong_chunk")
        for check in run.iterations[0].claims:
            faulty = (
                is_in_faulty_sentence(run, label, check.claim.start, check.claim.end)
                and not wrong_citation
            )
            confirmed += check.verdict == "supported"
            flagged += check.verdict in FLAGGED
            assert check.verdict != "supported" or not faulty, check.claim.text
            assert check.verdict not in FLAGGED or faulty, check.claim.text
    assert (confirmed, flagged) >= (75, 18)


@pytest.mark.slow
def test_a_model_finds_every_fault_and_flags_no_true_claim() -> None:
    replay = dict.fromkeys(ROLES, f"replay:{FOLDER / 'replies.jsonl'}")
    settings = Settings().model_copy(
        update={**replay, "max_iterations": 1, "accept_without_exam": True}
    )
    for run, label in audit_cases("cases", "labels", settings):
        first = run.iterations[0]
        assert run.needs_review == label["faulty"], label
        issues_in_fault = [
            issue
            for issue in first.issues
            if is_in_faulty_sentence(run, label, issue.start, issue.end)
        ]
        assert bool(issues_in_fault) == label["faulty"], label
        for check in first.claims:
            if not is_in_faulty_sentence(run, label, check.claim.start, check.claim.end):
                assert check.verdict not in FLAGGED, check.claim.text
