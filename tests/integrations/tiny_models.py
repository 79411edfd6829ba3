"""Tiny models for tests: handwritten ONNX graphs whose scores depend on single words, and their
tokenizers.

A graph sums a row of numbers for each token, with a different row for a token in the claim. So a
test defines which word gives which score, without training, a network or an ONNX library.
``docs/models.md`` describes such files. The numbers of the format's fields are those of
``onnx.proto``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
FLOAT, INT64 = 1, 7

NLI = {"0": "entailment", "1": "neutral", "2": "contradiction"}
"""The labels of the three scores; ``NLI_WORDS`` has the scores of single words of a claim."""
NLI_WORDS = {
    "proven": (9.0, 0, 0),
    "refuted": (0, 0, 9.0),
    "nothing": (0, 9.0, 0),
    "maybe": (1.0, 1.0, 0),
}


def save_model(
    folder: Path,
    words: Mapping[str, Sequence[float]] = NLI_WORDS,
    labels: Mapping[str, str] | None = None,
    *,
    vocabulary: str = "the bridge is 120 metres long it was opened in 1931 a an and of tower",
    in_evidence: Mapping[str, Sequence[float]] | None = None,
    file: str = "model.onnx",
    card: str = "",
) -> Path:
    """Save a model to a folder: ``words`` change the scores if they are in a claim,
    ``in_evidence`` if they are in the evidence.
    """
    labels = NLI if labels is None else labels
    folder.mkdir(parents=True, exist_ok=True)
    all_words = [*SPECIAL, *dict.fromkeys([*vocabulary.split(), *words, *(in_evidence or {})])]
    outputs = len(next(iter(words.values())))
    table = np.zeros((2 * len(all_words), outputs), dtype=np.float32)
    for word, row in (in_evidence or {}).items():
        table[all_words.index(word)] = row
    for word, row in words.items():
        table[len(all_words) + all_words.index(word)] = row
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(graph(table))
    tokenizer(all_words).save(str(folder / "tokenizer.json"))
    config = {
        "architectures": ["BertForSequenceClassification"],
        "model_type": "bert",
        "pad_token_id": 0,
    }
    config |= {"id2label": dict(labels)} if labels else {}
    (folder / "config.json").write_text(json.dumps(config))
    if card:
        (folder / "README.md").write_text(card)
    return folder


TAGGER = {"0": "supported", "1": "hallucinated"}


def save_tagger(
    folder: Path,
    words: Mapping[str, Sequence[float]],
    labels: Mapping[str, str] | None = None,
    *,
    seen: Mapping[str, Sequence[float]] | None = None,
    custom_tokenizer: Tokenizer | None = None,
    **config: Any,
) -> Path:
    """Save a tagger: ``words`` have these two scores, and all others (4, 0), which means supported.

    Words in ``seen`` add their scores to every token if they are anywhere in the input.
    ``custom_tokenizer`` replaces the default tokenizer of whole words.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = "bridge is 120 metres long opened in 1931 the paris capital million".split()
    if custom_tokenizer is None:
        custom_tokenizer = tokenizer(
            [*SPECIAL, *dict.fromkeys([*vocabulary, *words, *(seen or {})])]
        )
    custom_tokenizer.save(str(folder / "tokenizer.json"))
    token_scores = np.tile(
        np.array([4.0, 0.0], dtype=np.float32), (custom_tokenizer.get_vocab_size(), 1)
    )
    input_scores = np.zeros_like(token_scores)
    for table, rows in ((token_scores, words), (input_scores, seen or {})):
        for word, row in rows.items():
            table[custom_tokenizer.token_to_id(word)] = row
    (folder / "model.onnx").write_bytes(tagger_graph(token_scores, input_scores))
    base_config = {
        "architectures": ["ModernBertForTokenClassification"],
        "model_type": "modernbert",
        "pad_token_id": 0,
    }
    base_config |= {"id2label": dict(TAGGER if labels is None else labels)}
    (folder / "config.json").write_text(json.dumps(base_config | config))
    return folder


def tokenizer(words: Sequence[str]) -> Tokenizer:
    """Return a tokenizer with these words, which adds special tokens around one text or two."""
    result = Tokenizer(
        WordLevel({word: index for index, word in enumerate(words)}, unk_token="[UNK]")
    )
    result.normalizer, result.pre_tokenizer = Lowercase(), Whitespace()
    result.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", words.index("[CLS]")), ("[SEP]", words.index("[SEP]"))],
    )
    result.add_special_tokens(list(SPECIAL))
    return result


# The protobuf format: fields with a number and a type, varints, and bytes with a length.


def graph(table: np.ndarray[Any, Any]) -> bytes:
    """Return a graph that sums the table's rows of all tokens.

    Tokens of the claim use the second half of the table.
    """
    half = np.array(len(table) // 2, dtype=np.int64)
    nodes = [
        _node("Mul", ["token_type_ids", "half"], "shift"),
        _node("Add", ["input_ids", "shift"], "rows"),
        _node("Gather", ["table", "rows"], "found"),
        _node("Cast", ["attention_mask"], "weights", to=FLOAT),
        _node("Unsqueeze", ["weights", "last"], "column"),
        _node("Mul", ["found", "column"], "counted"),
        _node("ReduceSum", ["counted", "first"], "logits", keepdims=0),
    ]
    tensors = {
        "table": table,
        "half": half,
        "last": np.array([2], dtype=np.int64),
        "first": np.array([1], dtype=np.int64),
    }
    inputs = [
        _value(name, INT64, ("batch", "tokens"))
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    content = b"".join(
        [
            *(_field(1, node) for node in nodes),
            _field(2, b"tiny"),
            *(_field(5, _tensor(name, array)) for name, array in tensors.items()),
            *(_field(11, value) for value in inputs),
            _field(12, _value("logits", FLOAT, ("batch", "classes"))),
        ]
    )
    return _number(1, 8) + _field(7, content) + _field(8, _number(2, 13))


def tagger_graph(own: np.ndarray[Any, Any], seen: np.ndarray[Any, Any]) -> bytes:
    """Return a graph with two scores for each token: its own, plus the ``seen`` scores of all
    tokens in the input.
    """
    nodes = [
        _node("Gather", ["own", "input_ids"], "each"),
        _node("Gather", ["seen", "input_ids"], "there"),
        _node("ReduceSum", ["there", "first"], "together", keepdims=1),
        _node("Add", ["each", "together"], "logits"),
    ]
    tensors = {"own": own, "seen": seen, "first": np.array([1], dtype=np.int64)}
    content = b"".join(
        [
            *(_field(1, node) for node in nodes),
            _field(2, b"tiny"),
            *(_field(5, _tensor(name, array)) for name, array in tensors.items()),
            _field(11, _value("input_ids", INT64, ("batch", "tokens"))),
            _field(12, _value("logits", FLOAT, ("batch", "tokens", "classes"))),
        ]
    )
    return _number(1, 8) + _field(7, content) + _field(8, _number(2, 13))


def _varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _node(kind: str, inputs: Sequence[str], output: str, **attributes: int) -> bytes:
    parts = [_field(1, name.encode()) for name in inputs] + [
        _field(2, output.encode()),
        _field(4, kind.encode()),
    ]
    for name, value in attributes.items():
        parts.append(_field(5, _field(1, name.encode()) + _number(3, value) + _number(20, 2)))
    return b"".join(parts)


def _tensor(name: str, array: np.ndarray[Any, Any]) -> bytes:
    kind = FLOAT if array.dtype == np.float32 else INT64
    dims = b"".join(_number(1, size) for size in array.shape)
    return dims + _number(2, kind) + _field(8, name.encode()) + _field(9, array.tobytes())


def _value(name: str, kind: int, shape: Sequence[str]) -> bytes:
    dims = b"".join(_field(1, _field(2, size.encode())) for size in shape)
    return _field(1, name.encode()) + _field(2, _field(1, _number(1, kind) + _field(2, dims)))
