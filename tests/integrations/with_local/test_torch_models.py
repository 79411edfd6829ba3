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
from tokenizers.models import Unigram, WordLevel
from tokenizers.normalizers import NFKC, Lowercase, Sequence
from tokenizers.pre_tokenizers import Metaspace, WhitespaceSplit
from tokenizers.processors import TemplateProcessing

from masis.errors import SettingsError
from masis.integrations.local import scoring
from masis.integrations.local.tagger import LocalTagger, context_of
from masis.settings import Settings

EVIDENCE = "the bridge is 120 metres long"
CLAIMS = ("the bridge is long", "a tower opened in 1931")
PAIRS = [(EVIDENCE, claim) for claim in CLAIMS]
WORDS = (
    "the bridge is 120 metres long a tower opened in 1931 premise: hypothesis: predict: determine"
    " if true given".split()
)
MARKS = ("<pad>", "</s>", "<unk>", "<s>")
NLI = {0: "entailment", 1: "neutral", 2: "contradiction"}


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(7)
    scoring._load_scorer.cache_clear()


def save_tokenizer(
    folder: Path, begin: str = "<s>", *, pair: str = "<s> $A </s> </s> $B </s>", size: int = 0
) -> Tokenizer:
    known = [*MARKS, *WORDS]
    known += [f"word{n}" for n in range(len(known), size)]
    made = Tokenizer(WordLevel({word: at for at, word in enumerate(known)}, unk_token="<unk>"))
    made.normalizer, made.pre_tokenizer = Lowercase(), WhitespaceSplit()
    made.post_processor = TemplateProcessing(
        single=f"{begin} $A </s>".strip(),
        pair=pair,
        special_tokens=[(mark, MARKS.index(mark)) for mark in MARKS],
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
def reference(
    model: Any, rows: list[list[int]], classes: Any = slice(None), **more: Any
) -> np.ndarray[Any, Any]:
    """The probabilities of the classes of each row, as the makers' code gives them."""
    logits = [
        model.eval()(input_ids=torch.tensor([row]), **more).logits.flatten(0, -2)[0, classes]
        for row in rows
    ]
    return np.asarray(torch.softmax(torch.stack(logits), dim=-1))


@pytest.mark.parametrize("kind", ["Roberta", "DebertaV2", "Bert"])
def test_entailment_scores_equal_those_of_transformers(tmp_path: Path, kind: str) -> None:
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
    assert [score.contradicts for score in scores] == pytest.approx(
        expected[:, 2].tolist(), abs=1e-5
    )


def test_pickled_weights_are_rejected(tmp_path: Path) -> None:
    transformers.RobertaConfig(**sizes(id2label=NLI)).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(SettingsError, match="Pickled weights"):
        scoring.load(str(tmp_path))


@pytest.mark.parametrize("kind", ["Roberta", "DebertaV2"])
def test_minicheck_input_matches_its_training(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / f"MiniCheck-{kind}"
    config = getattr(transformers, f"{kind}Config")(**sizes(num_labels=2))
    model = getattr(transformers, f"{kind}ForSequenceClassification")(config)
    model.save_pretrained(folder)
    tokenizer = save_tokenizer(folder)
    # joined by its end mark
    rows = [tokenizer.encode(f"{evidence} </s> {claim}").ids for evidence, claim in PAIRS]
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
    model = transformers.T5ForConditionalGeneration(
        transformers.T5Config(**T5, decoder_start_token_id=0)
    )
    model.save_pretrained(folder)
    tokenizer = save_tokenizer(folder, "", pair="$A </s> $B </s>")
    rows = [tokenizer.encode(f"predict: {evidence} </s> {claim}").ids for evidence, claim in PAIRS]
    begun = torch.zeros((1, 1), dtype=torch.long)
    expected = reference(model, rows, [3, 209], decoder_input_ids=begun)[:, 1]
    scores = scoring.load(str(folder)).score(PAIRS)
    assert [score.supports for score in scores] == pytest.approx(expected.tolist(), abs=1e-5)


def test_hhem_runs_without_remote_code(tmp_path: Path) -> None:
    # As published: config.json names a class of the repository's own, weights carry its prefix
    # "t5.".
    model = transformers.T5ForTokenClassification(transformers.T5Config(**T5, num_labels=2))
    weights = {
        f"t5.{name}": tensor.clone().contiguous() for name, tensor in model.state_dict().items()
    }
    weights.pop("t5.transformer.encoder.embed_tokens.weight")
    save_file(weights, tmp_path / "model.safetensors")
    name = "HHEMv2ForSequenceClassification"
    theirs = {"AutoModelForSequenceClassification": f"modeling_hhem_v2.{name}"}
    config = {"architectures": [name], "auto_map": theirs, "model_type": "HHEMv2"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "modeling_hhem_v2.py").write_text("raise SystemExit('this must not run')")
    tokenizer = save_tokenizer(tmp_path, "", pair="$A </s> $B </s>")
    prompt = (
        "<pad> Determine if the hypothesis is true given the premise?\n\nPremise:"
        " {}\n\nHypothesis: {}"
    )
    expected = reference(model, [tokenizer.encode(prompt.format(*pair)).ids for pair in PAIRS])[
        :, 1
    ]
    scores = scoring.load(str(tmp_path)).score(PAIRS)
    assert [score.supports for score in scores] == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_long_text_isnt_truncated(tmp_path: Path) -> None:
    model = transformers.RobertaForSequenceClassification(
        transformers.RobertaConfig(**sizes(id2label=NLI))
    )
    model.save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    found = scoring.load(str(tmp_path))
    assert found.score([("bridge " * 500, "a tower opened"), PAIRS[0]])[0] is None
    # RoBERTa's positions begin behind its padding
    longest = 62 - len("<s> </s> </s> </s> a tower opened".split())
    read, unread = found.score(
        [("bridge " * longest, "a tower opened"), ("bridge " * (longest + 1), "a tower opened")]
    )
    assert read is not None
    assert unread is None


def sentence_pieces(folder: Path) -> Tokenizer:
    """A tokenizer like T5's: the blank before a word is part of its token, and a blank alone is
    one.
    """
    pieces = [*MARKS, "\u2581", *(f"\u2581{word}" for word in WORDS), *sorted({*"".join(WORDS)})]
    made = Tokenizer(
        Unigram(
            [(piece, -float(at > 4) - 9.0 * (len(piece) == 1)) for at, piece in enumerate(pieces)],
            2,
        )
    )
    made.normalizer = Sequence([NFKC(), Lowercase()])
    made.pre_tokenizer = Metaspace(prepend_scheme="always", split=False)
    made.post_processor = TemplateProcessing(
        single="$A </s>",
        pair="$A </s> $B </s>",
        special_tokens=[(mark, MARKS.index(mark)) for mark in MARKS],
    )
    made.add_special_tokens(list(MARKS))
    made.save(str(folder / "tokenizer.json"))
    return made


@pytest.mark.parametrize("form", ["minicheck", "hhem"])
def test_prompts_are_tokenized_as_a_whole(tmp_path: Path, form: str) -> None:
    # Piece by piece, the blank before the evidence would be a token of its own.
    folder = tmp_path / form
    if form == "minicheck":
        transformers.T5ForConditionalGeneration(transformers.T5Config(**T5)).save_pretrained(folder)
        prompt = "predict: {}</s>{}"
    else:
        transformers.T5ForTokenClassification(
            transformers.T5Config(**T5, num_labels=2)
        ).save_pretrained(folder)
        prompt = (
            "<pad> Determine if the hypothesis is true given the premise?\n\nPremise:"
            " {}\n\nHypothesis: {}"
        )
    theirs = sentence_pieces(folder)
    encoder = scoring.load(str(folder)).encoder
    for pair in PAIRS:
        row = encoder.row(pair)
        assert row is not None
        assert row.ids == theirs.encode(prompt.format(*pair)).ids
    # A mark in a text from outside is characters: it ends no text.
    # the second becomes the first where a tokenizer normalises
    for mark in ("</s>", "\uff1c/s\uff1e"):
        hostile = encoder.row((f"the bridge{mark}is", f"<pad>long{mark}"))
        assert hostile is not None
        assert [row for row in hostile.ids if row < 2] == (
            [1, 1] if form == "minicheck" else [0, 1]
        )


def test_factcg_uses_its_template(tmp_path: Path) -> None:
    folder = tmp_path / "FactCG-DeBERTa-v3-Large"
    config = transformers.DebertaV2Config(
        **sizes(num_labels=2, problem_type="single_label_classification")
    )
    model = transformers.DebertaV2ForSequenceClassification(config)
    model.save_pretrained(folder)
    tokenizer = save_tokenizer(folder)
    template = (
        '{}\n\nChoose your answer: based on the paragraph above can we conclude that "{}"?\n\n'
        "OPTIONS:\n- Yes\n- No\nI think the answer is "
    )
    expected = reference(model, [tokenizer.encode(template.format(*pair)).ids for pair in PAIRS])[
        :, 1
    ]
    found = scoring.load(str(folder))
    scores = found.score(PAIRS)
    assert found.labels.form.name == "factcg"
    assert [score.supports for score in scores if score] == pytest.approx(
        expected.tolist(), abs=1e-5
    )
    assert {score.contradicts for score in scores if score} == {None}


def test_claim_first_models_get_the_claim_first(tmp_path: Path) -> None:
    folder = tmp_path / "deberta-v3-large-mnli"
    model = transformers.DebertaV2ForSequenceClassification(
        transformers.DebertaV2Config(**sizes(num_labels=2))
    )
    model.save_pretrained(folder)
    tokenizer = save_tokenizer(folder)
    expected = reference(
        model, [tokenizer.encode(claim, evidence).ids for evidence, claim in PAIRS]
    )[:, 0]
    scores = scoring.load(str(folder)).score(PAIRS)
    assert [score.supports for score in scores if score] == pytest.approx(
        expected.tolist(), abs=1e-5
    )


TAGGED = {
    "ModernBert": {
        "global_attn_every_n_layers": 2,
        "local_attention": 8,
        "bos_token_id": 3,
        "cls_token_id": 3,
    },
    "Bert": {},
    "DebertaV2": {},
}


@torch.inference_mode()
def tagged_by_lettucedetect(
    model: Any, tokenizer: Tokenizer, context: str, answer: str
) -> list[tuple[int, int, float]]:
    """Start, end and probability of output 1 of each token of an answer, as LettuceDetect's own
    code finds them.

    The answer's tokens are counted from the end: all but the last mark.
    """
    encoded = tokenizer.encode(context, answer)
    first = len(encoded.ids) - len(tokenizer.encode(answer, add_special_tokens=False).ids) - 1
    logits = model.eval()(
        input_ids=torch.tensor([encoded.ids]), attention_mask=torch.ones(1, len(encoded.ids))
    ).logits
    shares = torch.softmax(logits, dim=-1)[0, :, 1].tolist()
    places = zip(encoded.offsets[first:-1], shares[first:-1], strict=True)
    return [(start, end, share) for (start, end), share in places]


@pytest.mark.parametrize("kind", TAGGED)
def test_tagger_output_equals_lettucedetect(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / f"lettucedect-base-{kind}-en-v1"
    config = getattr(transformers, f"{kind}Config")(
        **sizes(num_labels=2, max_position_embeddings=256, **TAGGED[kind])
    )
    model = getattr(transformers, f"{kind}ForTokenClassification")(config)
    model.save_pretrained(folder)
    tokenizer = save_tokenizer(folder, pair="<s> $A </s> $B </s>")
    saved = json.loads((folder / "config.json").read_text())
    assert "id2label" not in saved or set(saved["id2label"].values()) == {"LABEL_0", "LABEL_1"}
    role = LocalTagger(scoring.load(str(folder)), Settings())
    answer = "the bridge  opened in 1931 a tower"
    context = context_of([EVIDENCE, "a tower"], "is it long ?", "en")
    expected = tagged_by_lettucedetect(model, tokenizer, context, answer)
    found = role.tags([EVIDENCE, "a tower"], "is it long ?", answer)
    assert found is not None
    assert [answer[start:end] for start, end, _ in found] == answer.split()
    assert [(start, end) for start, end, _ in found] == [(start, end) for start, end, _ in expected]
    assert [share for *_, share in found] == pytest.approx(
        [share for *_, share in expected], abs=1e-5
    )
