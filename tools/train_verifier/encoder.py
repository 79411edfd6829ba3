"""The sentence encoder: an int8 ONNX file that yields token vectors, and its tokenizer (both made by `export.py`)."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from tools.train_verifier.text import words

Array = np.ndarray[Any, np.dtype[Any]]
MAX_TOKENS = 256
"""Word pieces of one text that the encoder reads; the rest is cut off."""
DIMENSIONS = 384


class Encoded(NamedTuple):
    """A text as encoded: the sum of its token vectors, and a unit vector for each of its words (rows, by `words`)."""

    total: Array
    by_word: Array


class Encoder:
    """Encodes texts one by one, without padding and on one thread, and caches the results.

    Each text is encoded by itself because the scales of dynamic int8 quantisation depend on everything in a batch:
    batched, the vector of a text would depend on its neighbours.
    """

    def __init__(self, model: Path, tokenizer: Path, cache_size: int = 20000) -> None:
        """Open the model and its tokenizer.

        Args:
            model: The ONNX file, with inputs `input_ids` and `attention_mask` and one output of token vectors.
            tokenizer: The `tokenizer.json` that belongs to it.
            cache_size: How many texts stay cached.

        """
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._cache: OrderedDict[str, Encoded] = OrderedDict()
        self._cache_size = cache_size
        self.digest = hashlib.sha256(model.read_bytes()).hexdigest()

    @classmethod
    def load(cls, folder: Path, cache_size: int = 20000) -> Encoder:
        """Open `model.onnx` and `tokenizer.json` in a folder."""
        return cls(folder / "model.onnx", folder / "tokenizer.json", cache_size)

    def embed(self, texts: Sequence[str]) -> Array:
        """Return one unit vector for each text: the normalised mean of its token vectors."""
        return unit_rows(np.stack([self.encode(text).total for text in texts])) if texts else np.zeros((0, DIMENSIONS))

    def encode(self, text: str) -> Encoded:
        """Return the text encoded, from the cache where possible."""
        cached = self._cache.get(text)
        if cached is not None:
            self._cache.move_to_end(text)
            return cached
        encoding = self._tokenizer.encode(text)
        ids = np.array([encoding.ids], dtype=np.int64)
        tokens = self._session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0]
        text_words = words(text)
        sums = np.zeros((len(text_words), tokens.shape[1]), dtype=np.float32)
        # Words and word pieces are both in the order of the text: one pass brings each piece to its word.
        position = 0
        for token, (start, end) in enumerate(encoding.offsets):
            if end <= start:  # a special token
                continue
            while position < len(text_words) and text_words[position].end <= start:
                position += 1
            if position < len(text_words) and text_words[position].start < end:
                sums[position] += tokens[token]
        encoded = Encoded(tokens.sum(axis=0), unit_rows(sums).astype(np.float16))
        self._cache[text] = encoded
        if len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)
        return encoded


def unit_rows(rows: Array) -> Array:
    """Return the rows scaled to length 1; rows of zeros stay zeros."""
    result: Array = rows / (np.linalg.norm(rows, axis=-1, keepdims=True) + 1e-9)
    return result
