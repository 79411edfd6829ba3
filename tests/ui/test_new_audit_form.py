"""The case and the settings a form makes, and what it says about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis import run_audit
from masis.datasets.readers.pasted import read_pasted
from masis.errors import InputError, SettingsError
from masis.settings import Settings
from masis.ui.new_audit.form import CHOICES, case_of, destination_text, form_panel, settings_of
from masis.ui.new_audit.page import ANSWER, QUESTION, AuditForm
from masis.ui.new_audit.page import EVIDENCE as EXAMPLE

EVIDENCE = read_pasted("[1] The bridge is 120 metres long.\n[2] It was opened in 1931.")


def test_equal_content_gives_the_same_case_id() -> None:
    one = case_of("How long is the bridge?", EVIDENCE, "120 metres [1].")
    assert one == case_of(" How long is the bridge?\n", EVIDENCE, "120 metres [1].\n")
    assert one.id.startswith("how-long-is-the-bridge-")
    assert one.id != case_of("How long is the bridge?", EVIDENCE, "121 metres [1].").id


@pytest.mark.parametrize("question", ["Wie lang ist die Brücke?", "橋の長さは?", "?" * 5000])
def test_every_question_yields_an_id(question: str) -> None:
    assert 9 < len(case_of(question, EVIDENCE, "").id) < 80


def test_without_an_answer_the_case_has_none() -> None:
    assert case_of("How long?", EVIDENCE, " \n").answer is None


@pytest.mark.parametrize(
    ("question", "evidence", "answer", "problem"),
    [
        (" ", "[1] A.", "", "question is missing"),
        ("Why?", "", "", "no evidence"),
        ("Why?", "[1] A.\n[1] B.", "", "repeats the id"),
        ("Why\x00?", "[1] A.", "", "null byte"),
        ("Why?", "[1] A.", "half \ud83d", "surrogate"),
    ],
)
def test_missing_or_invalid_input_is_reported_with_a_hint(
    question: str, evidence: str, answer: str, problem: str
) -> None:
    with pytest.raises(InputError, match=problem) as raised:
        case_of(question, read_pasted(evidence), answer)
    assert raised.value.hint


def test_invalid_settings_are_ignored() -> None:
    base = Settings()
    wanted = {
        "max_iterations": 2,
        "strictness": "cruel",
        "critic": ["gpt"],
        "no_such": 1,
        "evaluate": ["every"],
    }
    assert settings_of(base, wanted) == base.model_copy(update={"max_iterations": 2})
    assert AuditForm(settings=wanted).count_changed(base) == 1
    assert AuditForm(settings={"max_iterations": base.max_iterations}).count_changed(base) == 0


def test_a_typed_model_name_is_used_and_its_server_is_shown(tmp_path: Path) -> None:
    local = settings_of(Settings(), {"critic": "ollama:llama3.3", "verifier": " "})
    assert local.models() == {**Settings().models(), "critic": "ollama:llama3.3"}
    assert (
        destination_text(local)
        == "The audit sends question, evidence and answer to 127.0.0.1:11434."
    )
    assert "sends no data" in destination_text(Settings())
    replies = tmp_path / "replies.jsonl"
    replies.touch()
    replayed = settings_of(Settings(), {"critic": f"replay:{replies}"})
    assert destination_text(replayed).startswith(
        "The audit runs on this machine with recorded replies. It calls no model"
    )
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        destination_text(settings_of(Settings(), {"critic": "openai"}))


def test_every_option_is_valid_and_includes_the_default() -> None:
    for choice in CHOICES:
        assert getattr(Settings(), choice.name) in choice.values
        for value in choice.values:
            Settings.model_validate({choice.name: value})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("", "drafted from the evidence"),
        ("It is long.", "uncited"),
        ("It is long [1].", "Each one matches a chunk"),
        ("It is long [1][9].", "No chunk has the id 9"),
        ("It is long [8][9].", "None of them matches a chunk"),
    ],
)
def test_the_answer_is_previewed_before_its_audit(answer: str, words: str) -> None:
    assert words in form_panel("Why?", EVIDENCE, answer)["lines"][1]["rest"]


def test_the_panel_names_chunks_and_errors() -> None:
    shown = form_panel("Why?", read_pasted("[1] A.\n[2]\n[3] C."), "")
    assert shown["lines"][0]["head"] == "2 chunks:"
    assert "1, 3" in shown["lines"][0]["rest"]
    assert shown["errors"] == [
        {
            "place": "Line 2",
            "problem": "[2] has no text",
            "hint": "Write the text after the label, or remove the label.",
        }
    ]


def test_many_chunks_are_counted_and_some_shown() -> None:
    shown = form_panel("Why?", read_pasted("\n\n".join(f"Chunk {n}." for n in range(500))), "")
    assert shown["lines"][0]["head"] == "500 chunks:"
    assert len(shown["chunks"]) < 100
    assert "more chunks" in shown["more"]


def test_the_example_has_typical_issues() -> None:
    run = run_audit(case_of(QUESTION, read_pasted(EXAMPLE), ANSWER))
    rules = {issue.rule for issue in run.iterations[0].issues}
    assert {"fabricated_reference", "contradicted_claim", "uncited_sentence"} <= rules
    assert any(check.verified for check in run.iterations[0].claims)
    assert len(run.iterations) >= 2
    assert (run.final_quality_score or 0) > (run.iterations[0].quality_score or 1)


SOURCES = (
    (
        "The northern dam was built in 1931 by local farmers.",
        "Its reservoir holds forty million litres.",
    ),
    (
        "Salmon returned to the valley after the weir was removed.",
        "Anglers counted three hundred in spring.",
    ),
    (
        "Electricity prices doubled during the drought of 2018.",
        "Households received a rebate that winter.",
    ),
)
CITING = (
    "The northern dam was built in 1931 by local farmers [1]. Salmon returned to the valley after"
    " the weir was removed [2]. Electricity prices doubled during the drought of 2018 [3]."
)


def test_the_preview_warns_if_paragraphs_dont_match_the_citations() -> None:
    torn = read_pasted("\n\n".join(paragraph for source in SOURCES for paragraph in source))
    assert len(torn.chunks) == 6
    assert any("[2] → 3, [3] → 5" in note for note in form_panel("Q?", torn, CITING)["notes"])


def test_the_preview_accepts_matching_citations_and_explicit_ids() -> None:
    headed = read_pasted(
        "\n\n".join(f"Source {n}:\n" + "\n\n".join(source) for n, source in enumerate(SOURCES, 1))
    )
    fitting = read_pasted("\n\n".join("\n".join(source) for source in SOURCES))
    given = read_pasted(
        "\n\n".join(f"[{n}] {source[0]}" for n, source in zip((2, 3, 1), SOURCES, strict=True))
    )
    for pasted in (headed, fitting, given):
        assert len(pasted.chunks) == 3
        assert form_panel("Q?", pasted, CITING)["notes"] == []
