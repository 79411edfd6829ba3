"""Recognizing local models and the meaning of their outputs by configuration and name; unknown
models are rejected.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from masis.errors import SettingsError
from masis.integrations.local import forms
from masis.integrations.local.forms import FORMS, Form, InputForm, OutputLabels, labels_of
from tests.integrations.tiny_models import NLI

TWO = {"0": "LABEL_0", "1": "LABEL_1"}
ONE = {"0": "LABEL_0"}
DEBERTA = {"architectures": ["DebertaV2ForSequenceClassification"], "model_type": "deberta-v2"}
ROBERTA = {"architectures": ["RobertaForSequenceClassification"], "model_type": "roberta"}
T5_TOKENS = {"architectures": ["T5ForTokenClassification"], "model_type": "t5"}
MODERN_TOKENS = {"architectures": ["ModernBertForTokenClassification"], "model_type": "modernbert"}


def read_labels(
    config: dict[str, Any], name: str = "local:org/x", path: str = "config.json"
) -> Any:
    return labels_of(config, name, path)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"id2label": NLI}, (0, 2, False)),
        ({"id2label": {"0": "CONTRADICTION", "1": "NEUTRAL", "2": "ENTAILMENT"}}, (2, 0, False)),
        ({"id2label": {"0": "entailment", "1": "not_entailment"}}, (0, None, False)),
        ({"id2label": {"0": "hallucinated", "1": "consistent"}}, (1, None, False)),
        ({"id2label": {"0": "contradiction", "1": "entailment"}}, (1, None, False)),
        ({"id2label": {"0": "SUPPORTS", "1": "REFUTES", "2": "NOT ENOUGH INFO"}}, (0, 1, False)),
        ({"id2label": {"0": "consistent"}}, (0, None, False)),
        ({"id2label": {"0": "hallucination"}}, (0, None, True)),
    ],
)
def test_output_meanings_are_read_from_label_names(
    config: dict[str, Any], expected: object
) -> None:
    labels = read_labels({**ROBERTA, **config})
    assert (labels.supports, labels.contradicts, labels.inverted) == expected
    assert labels.form.name == "pair"


@pytest.mark.parametrize(
    ("name", "config", "head", "form", "supports"),
    [
        (
            "local:vectara/hallucination_evaluation_model",
            {"model_type": "HHEMv2"},
            "first_token",
            "hhem",
            1,
        ),
        ("local:models/hhem-2.1", {**T5_TOKENS, "id2label": TWO}, "first_token", "hhem", 1),
        ("local:models/hhem-2.1", {**T5_TOKENS, "num_labels": 2}, "first_token", "hhem", 1),
        (
            "local:models/HHEM",
            {**T5_TOKENS, "id2label": {"0": "hallucinated", "1": "consistent"}},
            "first_token",
            "hhem",
            1,
        ),
        (
            "local:vectara/hallucination_evaluation_model@1.0",
            {**DEBERTA, "id2label": ONE},
            "score",
            "pair",
            0,
        ),
        (
            "local:lytang/MiniCheck-RoBERTa-Large",
            {**ROBERTA, "id2label": TWO},
            "classes",
            "joined",
            1,
        ),
        ("local:lytang/MiniCheck-DeBERTa-v3-Large", DEBERTA, "classes", "joined", 1),
        (
            "local:lytang/MiniCheck-Flan-T5-Large",
            {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5"},
            "t5_words",
            "minicheck_t5",
            1,
        ),
        (
            "local:yaxili96/FactCG-DeBERTa-v3-Large",
            {**DEBERTA, "id2label": TWO},
            "classes",
            "factcg",
            1,
        ),
        ("local:./factcg/onnx/model.onnx", DEBERTA, "classes", "factcg", 1),
        ("local:potsawee/deberta-v3-large-mnli#0123456789ab", DEBERTA, "classes", "claim_first", 0),
        ("local:org/x", {**ROBERTA, "_name_or_path": "a/MiniCheck-b"}, "classes", "joined", 1),
        (
            "local:org/x",
            {**ROBERTA, "id2label": NLI, "_name_or_path": "a/MiniCheck-b"},
            "classes",
            "pair",
            0,
        ),
        ("local:org/deberta-v3-large-mnli", {**DEBERTA, "id2label": NLI}, "classes", "pair", 0),
    ],
)
def test_models_without_label_names_are_recognized_by_class_and_name(
    name: str, config: dict[str, Any], head: str, form: str, supports: int
) -> None:
    labels = read_labels(config, name)
    assert (labels.head, labels.form.name, labels.supports, labels.contradicts) == (
        head,
        form,
        supports,
        2 if config.get("id2label") == NLI else None,
    )
    assert labels.unsupported is None


@pytest.mark.parametrize(
    ("name", "config", "unsupported"),
    [
        ("local:KRLabsOrg/lettucedect-base-modernbert-en-v1", MODERN_TOKENS, 1),
        (
            "local:KRLabsOrg/lettucedect-base-modernbert-en-v1",
            {**MODERN_TOKENS, "id2label": TWO},
            1,
        ),
        ("local:KRLabsOrg/tinylettuce-ettin-17m-en", {**MODERN_TOKENS, "num_labels": 2}, 1),
        (
            "local:KRLabsOrg/lettucedect-210m-eurobert-de-v1",
            {
                "architectures": ["EuroBertForTokenClassification"],
                "auto_map": {"AutoModel": "m.EuroBert"},
            },
            1,
        ),
        ("local:org/x", {**MODERN_TOKENS, "id2label": {"0": "supported", "1": "hallucinated"}}, 1),
        ("local:org/x", {**MODERN_TOKENS, "id2label": {"0": "HALLUCINATED", "1": "SUPPORTED"}}, 0),
        (
            "local:org/x",
            {"architectures": ["BertForTokenClassification"], "id2label": {"0": "0", "1": "1"}},
            None,
        ),
    ],
)
def test_a_tagger_uses_the_unsupported_output(
    name: str, config: dict[str, Any], unsupported: int | None
) -> None:
    if unsupported is None:
        with pytest.raises(SettingsError, match="which output marks a word"):
            read_labels(config, name)
        return
    labels = read_labels(config, name)
    assert (labels.head, labels.form.name, labels.unsupported) == (
        "tokens",
        "passages",
        unsupported,
    )
    assert "confirms nothing" in labels.words


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({**ROBERTA, "id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}}, "id2label"),
        ({**ROBERTA, "id2label": TWO}, "id2label"),
        ({**ROBERTA, "num_labels": 2}, "id2label"),
        ({**ROBERTA, "id2label": {"0": "positive", "1": "negative"}}, "id2label"),
        ({**ROBERTA, "id2label": {"0": "entailment", "1": "supported"}}, "id2label"),
        ({**ROBERTA, "id2label": {"1": "entailment", "2": "neutral"}}, "id2label"),
        # A fake-news classifier doesn't read evidence.
        ({**ROBERTA, "id2label": {"0": "false", "1": "true"}}, "id2label"),
        ({**ROBERTA, "id2label": {"0": "factual", "1": "hallucinated"}}, "id2label"),
        # Rerankers and models of similarity have one output without a name.
        ({"architectures": ["XLMRobertaForSequenceClassification"], "id2label": ONE}, "id2label"),
        ({**ROBERTA, "id2label": {"0": "contradiction"}}, "id2label"),
        (
            {
                **ROBERTA,
                "id2label": {"0": "entailment", "1": "neutral"},
                "label2id": {"entailment": 1},
            },
            "id2label",
        ),
        ({**ROBERTA, "id2label": NLI, "problem_type": "regression"}, "problem_type"),
        (
            {
                **ROBERTA,
                "id2label": {"0": "supported"},
                "sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"},
            },
            "sentence_transformers",
        ),
        ({"architectures": ["BertForMaskedLM"]}, "architectures"),
        ({"architectures": ["T5ForConditionalGeneration"], "model_type": "t5"}, "architectures"),
        (
            {"architectures": ["Qwen3ForCausalLM"], "_name_or_path": "lettucedect-v2-qwen-2b"},
            "architectures",
        ),
        (
            {"architectures": ["TheirModel"], "auto_map": {"AutoModel": "theirs.TheirModel"}},
            "auto_map",
        ),
        (MODERN_TOKENS, "architectures"),
        ({"architectures": ["XLMRobertaForTokenClassification"]}, "architectures"),
        ({**MODERN_TOKENS, "id2label": {"0": "O", "1": "B-PER"}}, "architectures"),
        (
            {**MODERN_TOKENS, "id2label": {"0": "normal", "1": "contradiction", "2": "missing"}},
            "architectures",
        ),
        (
            {
                **MODERN_TOKENS,
                "id2label": {"0": "supported", "1": "hallucinated"},
                "problem_type": "multi_label_classification",
            },
            "problem_type",
        ),
        # A T5 that tags words looks like HHEM 2.1 saved as a transformers class, and means the
        # opposite.
        ({**T5_TOKENS, "id2label": TWO}, "architectures"),
        ({**T5_TOKENS, "id2label": {"0": "supported", "1": "hallucinated"}}, "architectures"),
    ],
)
def test_ambiguous_outputs_are_an_error_that_names_the_field(
    config: dict[str, Any], field: str
) -> None:
    with pytest.raises(SettingsError, match=rf"config\.json: {field}"):
        read_labels(config)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("local:org/MiniCheck-x", {**ROBERTA, "id2label": {"0": "supported", "1": "unsupported"}}),
        ("local:org/FactCG-x", {**DEBERTA, "id2label": {"0": "supported", "1": "unsupported"}}),
        ("local:org/FactCG-x", {**DEBERTA, "problem_type": "multi_label_classification"}),
        (
            "local:org/lettucedect-x",
            {**MODERN_TOKENS, "id2label": {"0": "hallucinated", "1": "supported"}},
        ),
        ("local:org/hhem", {**T5_TOKENS, "id2label": {"0": "supported", "1": "hallucinated"}}),
    ],
)
def test_label_names_that_contradict_the_authors_code_are_rejected(
    name: str, config: dict[str, Any]
) -> None:
    with pytest.raises(SettingsError, match=r"id2label contradicts the meaning|problem_type"):
        read_labels(config, name)


def test_parent_folder_names_dont_identify_a_model() -> None:
    for name in (
        "local:/data/minicheck-tests/nli",
        "local:C:\\factcg\\nli",
        "local:./hhem/nli/onnx/model.onnx",
    ):
        with pytest.raises(SettingsError, match="id2label does not tell"):
            read_labels({**DEBERTA, "id2label": TWO}, name)
    # A relative path doesn't name the model, so its folder is used.
    assert read_labels(DEBERTA, "local:.", "/data/FactCG/config.json").form.name == "factcg"


def test_multi_label_models_use_sigmoid_outputs() -> None:
    labels = read_labels({**ROBERTA, "id2label": NLI, "problem_type": "multi_label_classification"})
    assert (labels.head, labels.supports, labels.contradicts) == ("independent", 0, 2)


def test_a_rejected_model_names_what_was_found_and_expected() -> None:
    with pytest.raises(SettingsError) as refused:
        read_labels(
            {**MODERN_TOKENS, "id2label": TWO, "problem_type": "single_label_classification"}
        )
    message = str(refused.value)
    for expected in (
        "ModernBertForTokenClassification",
        "modernbert",
        "0: LABEL_0, 1: LABEL_1",
        "single_label",
    ):
        assert expected in message
    assert "LettuceDetect (a token classifier" in message
    assert "FactCG" not in message


def test_the_factcg_template_matches_the_authors_exactly() -> None:
    # factcg/utils.py, INSTRUCTION_TEMPLATE
    (template,) = read_labels(DEBERTA, "local:factcg").form.template
    assert isinstance(template, str)
    assert (
        template.format(evidence="E", claim="C")
        == 'E\n\nChoose your answer: based on the paragraph above can we conclude that "C"?\n\n'
        "OPTIONS:\n- Yes\n- No\nI think the answer is "
    )


def test_every_input_format_is_documented_with_its_source() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    for form in FORMS:
        assert form.source
        assert form.name.split(",")[0] in docs, form.name


def test_a_new_family_of_models_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = InputForm("house", ("Evidence: {evidence} Claim: {claim}",))
    house = Form(
        "House models",
        "'house' in its name",
        "card of house/model",
        OutputLabels("classes", prompt, supports=1),
        architectures=("BertForSequenceClassification",),
        called=("house",),
        meanings=("lacks", "supports"),
    )
    monkeypatch.setattr(forms, "FORMS", (house, *FORMS))
    bert = {"architectures": ["BertForSequenceClassification"], "id2label": TWO}
    assert read_labels(bert, "local:org/house-1").form is prompt
    with pytest.raises(SettingsError, match=r"Accepted: House models \('house' in its name\)"):
        read_labels(bert, "local:org/flat-1")
