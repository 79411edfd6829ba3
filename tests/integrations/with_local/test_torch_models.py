"""Models in safetensors files, tiny and randomly initialised: scored as their makers' code does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing

from masis.errors import SettingsError
from masis.integrations.local import scoring

EVIDENCE = "the bridge is 120 metres long"
CLAIMS = ("the bridge is long", "a tower opened in 1931")
PAIRS = [(EVIDENCE, claim) for claim in CLAIMS]
WORDS = (
    "the bridge is 120 metres long a tower opened in 1931 premise: hypothesis: predict: determine if true given".split()
)
MARKS = ("<pad>", "</s>", "<unk>", "<s>")
NLI = {0: "entailment", 1: "neutral", 2: "contradiction"}


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(7)
    scoring._loaded.cache_clear()


def save_tokenizer(
    folder: Path, begin: str = "<s>", *, pair: str = "<s> $A </s> </s> $B </s>", size: int = 0
) -> Tokenizer:
    known = [*MARKS, *WORDS]
    known += [f"word{n}" for n in range(len(known), size)]
    made = Tokenizer(WordLevel({word: at for at, word in enumerate(known)}, unk_token="<unk>"))
    made.normalizer, made.pre_tokenizer = Lowercase(), WhitespaceSplit()
    made.post_processor = TemplateProcessing(
        single=f"{begin} $A </s>".strip(), pair=pair, special_tokens=[(mark, MARKS.index(mark)) for mark in MARKS]
    )
    made.add_special_tokens(list(MARKS))
    made.save(str(folder / "tokenizer.json"))
    return made


def sizes(**more: Any) -> dict[str, Any]:
    return {
        "vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
        "max_position_embeddings": 64, "pad_token_id": 0, **more,
    }  # fmt: skip


@torch.inference_mode()
def reference(model: Any, rows: list[list[int]], classes: Any = slice(None), **more: Any) -> np.ndarray[Any, Any]:
    """The probabilities of the classes of each row, as the makers' code gives them."""
    logits = [model.eval()(input_ids=torch.tensor([row]), **more).logits.flatten(0, -2)[0, classes] for row in rows]
    return np.asarray(torch.softmax(torch.stack(logits), dim=-1))


@pytest.mark.parametrize("kind", ["Roberta", "DebertaV2", "Bert"])
def test_an_entailment_model_gives_what_transformers_gives(tmp_path: Path, kind: str) -> None:
    config = getattr(transformers, f"{kind}Config")(**sizes(id2label=NLI))
    model = getattr(transformers, f"{kind}ForSequenceClassification")(config)
    model.save_pretrained(tmp_path)
    tokenizer = save_tokenizer(tmp_path)
    found = scoring.load(str(tmp_path))
    rows = [tokenizer.encode(evidence, claim).ids for evidence, claim in PAIRS]
    expected = reference(model, rows)
    scores = found.score(PAIRS)
    assert found.model.format == "safetensors"
    assert [score.supports for score in scores] == pytest.approx(expected[:, 0].tolist(), abs=1e-5)
    assert [score.contradicts for score in scores] == pytest.approx(expected[:, 2].tolist(), abs=1e-5)


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    transformers.RobertaConfig(**sizes(id2label=NLI)).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(SettingsError, match="Pickled weights"):
        scoring.load(str(tmp_path))


@pytest.mark.parametrize("kind", ["Roberta", "DebertaV2"])
def test_minicheck_is_asked_in_the_form_it_was_trained_on(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / f"MiniCheck-{kind}"
    config = getattr(transformers, f"{kind}Config")(**sizes(num_labels=2))
    model = getattr(transformers, f"{kind}ForSequenceClassification")(config)
    model.save_pretrained(folder)
    tokenizer = save_tokenizer(folder)
    rows = [tokenizer.encode(f"{evidence} </s> {claim}").ids for evidence, claim in PAIRS]  # joined by its end mark
    expected = reference(model, rows)[:, 1]
    scores = scoring.load(str(folder)).score(PAIRS)
    assert [score.supports for score in scores] == pytest.approx(expected.tolist(), abs=1e-5)
    assert {score.contradicts for score in scores} == {None}


T5 = {
    "vocab_size": 300, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
    "feed_forward_proj": "gated-gelu",
}  # fmt: skip


def test_minicheck_flan_t5_decodes_one_word(tmp_path: Path) -> None:
    folder = tmp_path / "MiniCheck-Flan-T5"
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(**T5, decoder_start_token_id=0))
    model.save_pretrained(folder)
    tokenizer = save_tokenizer(folder, "", pair="$A </s> $B </s>")
    rows = [tokenizer.encode(f"predict: {evidence} </s> {claim}").ids for evidence, claim in PAIRS]
    begun = torch.zeros((1, 1), dtype=torch.long)
    expected = reference(model, rows, [3, 209], decoder_input_ids=begun)[:, 1]
    scores = scoring.load(str(folder)).score(PAIRS)
    assert [score.supports for score in scores] == pytest.approx(expected.tolist(), abs=1e-5)


def test_hhem_is_read_without_its_repository_s_code(tmp_path: Path) -> None:
    # As published: config.json names a class of the repository's own, weights carry its prefix "t5.".
    model = transformers.T5ForTokenClassification(transformers.T5Config(**T5, num_labels=2))
    weights = {f"t5.{name}": tensor.clone().contiguous() for name, tensor in model.state_dict().items()}
    weights.pop("t5.transformer.encoder.embed_tokens.weight")
    save_file(weights, tmp_path / "model.safetensors")
    name = "HHEMv2ForSequenceClassification"
    theirs = {"AutoModelForSequenceClassification": f"modeling_hhem_v2.{name}"}
    config = {"architectures": [name], "auto_map": theirs, "model_type": "HHEMv2"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "modeling_hhem_v2.py").write_text("raise SystemExit('this must not run')")
    tokenizer = save_tokenizer(tmp_path, "", pair="$A </s> $B </s>")
    prompt = "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {}\n\nHypothesis: {}"
    expected = reference(model, [tokenizer.encode(prompt.format(*pair)).ids for pair in PAIRS])[:, 1]
    scores = scoring.load(str(tmp_path)).score(PAIRS)
    assert [score.supports for score in scores] == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_long_text_is_cut_at_the_evidence(tmp_path: Path) -> None:
    model = transformers.RobertaForSequenceClassification(transformers.RobertaConfig(**sizes(id2label=NLI)))
    model.save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    found = scoring.load(str(tmp_path))
    batch = found.encode([("bridge " * 500, "a tower opened")])
    assert batch.ids.shape[1] <= 62
    assert batch.ids[0, -4:-1].tolist() == [MARKS.__len__() + WORDS.index(word) for word in ("a", "tower", "opened")]
    assert found.score([("bridge " * 500, "a tower opened")])
