"""The sentence encoder (MiniLM-L6), which measures similarity of meaning if the words differ.

It's an int8 ONNX file. `minilm/MODEL_CARD.md` describes its files, license and limits, and
`tools/export_encoder.py` generates the files.
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
"""How many word pieces of a text are encoded. Passages are far shorter (`LONGEST_PASSAGE`)."""
MAX_CACHED_TEXTS = 2000
"""How many vectors are cached, at 1.5 KB each."""


class SentenceEncoder:
    """Encodes texts one at a time and caches the results. Threads may share an encoder.

    Texts aren't batched because dynamic int8 quantization computes its scales from the whole batch,
    so the vector of a text would depend on the other texts.
    """

    def __init__(self, folder: Path = FILES, max_cached_texts: int = MAX_CACHED_TEXTS) -> None:
        """Load `model.onnx` and `tokenizer.json` from a folder.

        Raises:
            OSError: A file can't be read.

        """
        # These imports cost half a second and 40 MB, so they aren't at the top of the module.
        import onnxruntime
        from tokenizers import Tokenizer

        model = (folder / "model.onnx").read_bytes()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 3  # errors only
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
        """Return the sum of the text's token vectors (384 dimensions), cached."""
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
    """Return the encoder in the package. It's loaded once per process."""
    return SentenceEncoder()
