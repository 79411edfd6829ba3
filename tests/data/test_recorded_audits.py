"""The demo's recorded audits: what the loop makes of real replies of a model, case by case."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from masis.audit.acceptance import RULE_VERSION
from masis.schema.run import Run
from masis.services import demo_cases
from masis.views.words import model_words
from tools.recorded_audits import EXPECTED, audited, outcome, whole

RECORDED = {case.id: case for case in demo_cases()}


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return audited()


def test_each_audit_comes_to_what_is_written_down(runs: dict[str, Run]) -> None:
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    assert runs.keys() == expected.keys(), "python tools/recorded_audits.py writes it"
    changed = {name: outcome(run) for name, run in runs.items() if outcome(run) != expected[name]}
    assert not changed, (
        f"read what changed; if it is right: python tools/recorded_audits.py\n{json.dumps(changed, indent=1)}"
    )


def test_every_step_has_a_recorded_reply_and_no_model_is_called(runs: dict[str, Run]) -> None:
    for name, run in runs.items():
        assert whole(run), name
        assert {call.source for call in run.calls} == {"replay"}, name
        assert run.usage.calls == 0, name
        assert model_words(run.models["critic"]).startswith("recorded replies of "), name
        assert model_words(run.models["critic"]).endswith("; no model was called"), name


def test_they_show_every_field_every_kind_of_fault_and_clean_answers(runs: dict[str, Run]) -> None:
    cases = [CASES[name] for name in runs]
    assert len(cases) == len(CASES) >= 40
    assert min(Counter(name.rpartition("-")[0].partition("-")[0] for name in runs).values()) >= 4
    labels = [case.labels for case in cases if case.labels is not None]
    assert {claim.verdict for label in labels for claim in label.claims} >= {
        "supported",
        "partial",
        "contradicted",
        "unsupported",
        "unverifiable",
    }
    assert {each.status for label in labels for each in label.citations} >= {
        "valid",
        "invalid",
        "misattributed",
        "redundant",
    }
    assert sum(label.clean is True for label in labels) >= 10
    assert max(run.total_iterations for run in runs.values()) == 3


def test_no_faulty_answer_passes_and_most_clean_ones_do(runs: dict[str, Run]) -> None:
    labelled = {name: CASES[name].labels for name in runs}
    faulty = [name for name, label in labelled.items() if label is not None and label.clean is False]
    clean = [name for name, label in labelled.items() if label is not None and label.clean]
    assert [name for name in faulty if not runs[name].needs_review] == []
    assert sum(not runs[name].needs_review for name in clean) >= 0.85 * len(clean)
    assert {run.acceptance.rule for run in runs.values()} == {RULE_VERSION}
