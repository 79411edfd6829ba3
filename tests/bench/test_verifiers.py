"""Verifiers side by side: shares as counted by hand, the same rows for each, and the command that prints them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from masis.bench.metrics import Estimate
from masis.bench.verifiers import Comparison, compare_verifiers, render_comparison
from masis.cli import main
from masis.errors import SettingsError
from masis.schema.providers import Price, ProviderSettings
from masis.settings import Settings
from tests.integrations.tiny_models import save_model
from tests.serving_models import ModelServer

WORDS = {"proven": (9.0, 0, 0), "refuted": (0, 0, 9.0), "nothing": (0, 9.0, 0)}
# word that decides the model's verdict, and what people found
CLAIMS = [
    [("proven", "supported"), ("proven", "supported")],  # a true answer, accepted
    [("proven", "supported"), ("nothing", "supported")],  # a true answer with an accused claim
    [("proven", "unsupported"), ("proven", "supported")],  # a faulty answer, accepted
    [("refuted", "contradicted"), ("else", "supported")],  # a faulty answer, caught; a claim left open
]


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    file = tmp_path / "mine.jsonl"
    lines = []
    for number, claims in enumerate(CLAIMS):
        texts = [f"The bridge number {number} is {word} {at}." for at, (word, _) in enumerate(claims)]
        lines.append(
            {
                "id": f"case {number}",
                "query": "How is it?",
                "answer": " ".join(texts),
                "evidence": [{"id": "c", "text": f"The bridge number {number} is here."}],
                "labels": {
                    "claims": [
                        {"text": text, "verdict": verdict} for text, (_, verdict) in zip(texts, claims, strict=True)
                    ]
                },
            }
        )
    file.write_text("\n".join(json.dumps(line) for line in lines))
    return file


@pytest.fixture
def nli(tmp_path: Path) -> str:
    vocabulary = "the bridge number is here 0 1 2 3"
    return f"local:{save_model(tmp_path / 'nli', WORDS, vocabulary=vocabulary)}"


def shares(found: Comparison, at: int = 0) -> dict[str, tuple[float | None, int]]:
    return {share.name: (share.estimate.value, share.of) for share in found.verifiers[at].shares}


def test_the_shares_are_those_counted_by_hand(labelled: Path, nli: str) -> None:
    found = compare_verifiers(labelled, [nli], Settings(), half="all", bootstrap=50)
    assert (found.rows, found.faulty, found.groups) == (8, 2, 4)
    assert shares(found) == {
        "faulty accepted": (0.5, 2),
        "accusations right": (0.5, 2),
        "true accused": (0.1667, 6),
        "true confirmed": (0.6667, 6),
        "left open": (0.125, 8),
        "unscored": (0.0, 8),
        "faulty answers accepted": (0.5, 2),
        "true answers accepted": (0.5, 2),
    }


def test_the_curve_falls_and_agrees_with_the_threshold_in_use(labelled: Path, nli: str) -> None:
    found = compare_verifiers(labelled, [nli], Settings(), half="all", bootstrap=0)
    curve = found.verifiers[0].curve
    confirmed = [point.true_confirmed.value or 0.0 for point in curve]
    assert confirmed == sorted(confirmed, reverse=True)
    (used,) = [point for point in curve if point.threshold == 0.75]
    assert used.true_confirmed == Estimate(0.6667, None, None)
    assert used.faulty_accepted.value == 0.5


def test_thresholds_of_the_settings_are_those_of_an_audit(labelled: Path, nli: str) -> None:
    strict = compare_verifiers(labelled, [nli], Settings(local_supported_from=1.0), half="all", bootstrap=0)
    assert shares(strict)["true confirmed"] == (0.0, 6)


def test_several_are_measured_on_the_same_claims(labelled: Path, nli: str) -> None:
    with ModelServer() as server:
        settings = Settings(
            providers={"scripted": ProviderSettings(address=server.address)},
            prices={"scripted:m": Price(input=1.0, output=1.0)},
        )
        found = compare_verifiers(
            labelled, ["offline", nli, f"offline,{nli}", "scripted:m"], settings, half="all", bootstrap=20
        )
    names = [report.verifier for report in found.verifiers]
    assert names[0] == "offline"
    assert names[1].startswith(f"{nli}#")
    assert names[3] == "scripted:m"
    assert found.verifiers[3].usage.calls == len(CLAIMS)
    assert found.verifiers[3].usage.cost_usd
    assert "calls to models 4, $" in render_comparison(found)


def test_a_limit_takes_whole_groups_and_always_the_same(labelled: Path, nli: str) -> None:
    limited = [compare_verifiers(labelled, [nli], Settings(), half="all", bootstrap=0, limit=5) for _ in range(2)]
    assert [found.rows for found in limited] == [4, 4]
    assert limited[0] == limited[1]


def test_the_command_prints_tables_or_json(labelled: Path, nli: str) -> None:
    arguments = ["bench", str(labelled), "--half", "all", "--bootstrap", "20", "--verifier", "offline"]
    shown = CliRunner().invoke(main, [*arguments, "--verifier", nli])
    assert shown.exit_code == 0, shown.output
    assert "faulty accepted" in shown.stdout
    assert "if accepted from support" in shown.stdout
    as_json: dict[str, Any] = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    assert as_json["verifiers"][0]["shares"]["true confirmed"]["of"] == 6
    assert as_json["verifiers"][0]["curve"][0]["threshold"] == 0.3


def test_a_verifier_that_can_not_be_used_is_named_before_anything_is_judged(labelled: Path) -> None:
    shown = CliRunner().invoke(main, ["bench", str(labelled), "--verifier", "offline", "--verifier", "local:./nowhere"])
    assert shown.exit_code == 2
    assert "no such folder" in shown.output
    with pytest.raises(SettingsError):
        compare_verifiers(labelled, ["local:./nowhere"], Settings(), half="all")
