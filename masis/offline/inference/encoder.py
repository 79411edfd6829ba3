"""The sentence encoder: MiniLM-L6 as an int8 ONNX file, which sees likeness of meaning where words
differ.

Its files, licence and limits are described in `minilm/MODEL_CARD.md`; `tools/export_encoder.py`
makes them.
"""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
FILES = Path(__file__).parent / "minilm"
MAX_PIECES = 256
"""Word pieces of one text that the encoder reads; passages are far shorter (`LONGEST_PASSAGE`)."""
MAX_CACHED_TEXTS = 2000
"""Texts that stay encoded; 1.5 KB each."""


class SentenceEncoder:
    """Encodes texts one by one, on one thread, and caches the results; may be shared by threads.

    Each text is encoded by itself because the scales of dynamic int8 quantisation depend on
    everything in a batch: batched, the vector of a text would depend on its neighbours.
    """

    def __init__(self, folder: Path = FILES, max_cached_texts: int = MAX_CACHED_TEXTS) -> None:
        """Open `model.onnx` and `tokenizer.json` in the folder; raises OSError where one can't be
        read.
        """
        # Half a second and 40 MB: only who encodes pays for them.
        import onnxruntime
        from tokenizers import Tokenizer

        model = (folder / "model.onnx").read_bytes()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 3
        self.digest = hashlib.sha256(model).hexdigest()
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_str(
            (folder / "tokenizer.json").read_text(encoding="utf-8")
        )
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_PIECES)
        self._cached = lru_cache(max_cached_texts)(self._encode)

    def encode(self, text: str) -> Array:
        """Return the sum of the text's token vectors (384), from the cache where possible."""
        return self._cached(text)

    def _encode(self, text: str) -> Array:
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        vectors = self._session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[
            0
        ][0]
        total: Array = vectors.sum(axis=0)
        return total


@cache
def load_encoder() -> SentenceEncoder:
    """Return the encoder that ships with the package; opened once a process."""
    return SentenceEncoder()
