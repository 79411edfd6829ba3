"""Scores pairs of evidence and claim with a local model, through onnxruntime for ONNX files and
PyTorch otherwise.

Code from a model's repository is never executed, and pickled weights aren't read.
"""

from __future__ import annotations

import importlib
import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from masis.errors import SettingsError, StepError
from masis.integrations.local.forms import HHEM_TYPE, MINICHECK_T5_WORDS, OutputLabels, labels_of
from masis.integrations.local.inputs import (
    Array,
    EncodedBatch,
    Pair,
    PairEncoder,
    TokenRow,
    encoder_of,
)
from masis.integrations.local.model_files import (
    ModelFolder,
    digest_of,
    digest_of_file,
    find,
    model_record,
)
from masis.schema.extras import require
from masis.schema.run import LocalModel

BATCH = 16


class PairScore(NamedTuple):
    """The model's probabilities, 0 to 1, that the evidence supports and that it contradicts the
    claim.

    ``contradicts`` is None for a model that doesn't distinguish contradiction from lack of support.
    """

    supports: float
    contradicts: float | None = None


class TokenScore(NamedTuple):
    """A tagger's probability that the evidence doesn't support a token. ``start`` and ``end`` are
    offsets in the answer.
    """

    start: int
    end: int
    unsupported: float


Engine = Callable[[EncodedBatch], Array]
"""Computes the logits of a batch, one row per pair, in the shape of the model's head."""

MOST_SCORES = 20_000
"""Maximum number of cached scores of a model. Caching pays because a revision repeats most claims
of the previous answer.
"""


@dataclass(frozen=True)
class LocalScorer:
    """A loaded model. Thread-safe; it scores one batch at a time."""

    labels: OutputLabels
    encoder: PairEncoder
    engine: Engine
    model: LocalModel
    scores: OrderedDict[Pair, PairScore | None] = field(default_factory=OrderedDict, repr=False)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def score(self, pairs: Sequence[Pair]) -> list[PairScore | None]:
        """Return a score for each pair, in order. Scores are cached.

        The score is None for a pair that is too long for the model. Raises StepError if the model
        fails or returns NaN or infinity.
        """
        known_scores = {
            pair: self.scores[pair] for pair in dict.fromkeys(pairs) if pair in self.scores
        }
        with self._failures_named(), self.lock:
            rows = {
                pair: self.encoder.row(pair)
                for pair in dict.fromkeys(pairs)
                if pair not in known_scores
            }
            self._remember({pair: None for pair, row in rows.items() if row is None})
        known_scores |= dict.fromkeys((pair for pair, row in rows.items() if row is None), None)
        # Sort by length so that pairs of similar length share a batch, which keeps padding low.
        new = sorted(
            ((pair, row) for pair, row in rows.items() if row is not None),
            key=lambda item: len(item[1].ids),
        )
        for first in range(0, len(new), BATCH):
            batch = new[first : first + BATCH]
            with self._failures_named(), self.lock:
                logits = self._logits([row for _, row in batch])
                scores = dict(
                    zip(
                        (pair for pair, _ in batch),
                        _pair_scores(logits, self.labels, len(batch)),
                        strict=True,
                    )
                )
                self._remember(scores)
            known_scores |= scores
        return [known_scores[pair] for pair in pairs]

    def tag(self, context: str, answer: str) -> tuple[TokenScore, ...] | None:
        """Return a tagger's score of each token of an answer, or None if context and answer are too
        long.

        Raises StepError if the model fails or returns NaN or infinity.
        """
        with self._failures_named(), self.lock:
            encoded = self.encoder.encode_answer(context, answer)
            if encoded is None:
                return None
            row, tokens = encoded
            shares = _read_tokens(self._logits([row]), self.labels, len(row.ids))
        return tuple(TokenScore(start, end, float(shares[index])) for index, start, end in tokens)

    def count(self, text: str) -> int:
        """Count the tokens of a text. Raises StepError if the tokenizer fails."""
        with self._failures_named(), self.lock:
            return self.encoder.count(text)

    def _logits(self, rows: Sequence[TokenRow]) -> Array:
        return np.asarray(self.engine(self.encoder.batch(rows)), dtype=np.float64)

    def _remember(self, scores: Mapping[Pair, PairScore | None]) -> None:
        self.scores.update(scores)
        while len(self.scores) > MOST_SCORES:
            self.scores.popitem(last=False)

    @contextmanager
    def _failures_named(self) -> Iterator[None]:
        try:
            yield
        except StepError:
            raise
        except Exception as error:
            why = " ".join(str(error).split())[:200]
            raise StepError(
                f"{self.model.name} could not score a claim ({type(error).__name__}: {why})"
            ) from error


def _read_tokens(logits: Array, labels: OutputLabels, length: int) -> Array:
    """Return the probability for each token that the evidence doesn't support it."""
    if labels.unsupported is None:
        raise StepError("the model scores whole claims and can't mark single words")
    if logits.ndim != 3 or logits.shape[1:] != (length, 2):
        shape = " x ".join(str(size) for size in logits.shape)
        raise StepError(
            f"the model's outputs have the shape {shape}, but two for each token were expected"
        )
    if not np.isfinite(logits).all():
        raise StepError("the model's output is NaN or infinite")
    shares: Array = _softmax(logits[0])[:, labels.unsupported]
    return shares


def _softmax(logits: Array) -> Array:
    # Subtracting the maximum changes no share and keeps exp() from overflowing.
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Array = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def _sigmoid(logits: Array) -> Array:
    # A sigmoid beyond 60 is 0 or 1 to 26 digits, and exp() would overflow beyond 709.
    shares: Array = 1 / (1 + np.exp(-np.clip(logits, -60, 60)))
    return shares


def _pair_scores(logits: Array, labels: OutputLabels, number: int) -> Iterator[PairScore]:
    if labels.head == "tokens":
        raise StepError("the model marks single words and can't confirm a whole claim")
    if labels.head == "first_token" and logits.ndim == 3:
        logits = logits[:, 0, :]
    if logits.ndim > 2:  # a token classifier whose config.json doesn't say so
        raise StepError(
            "the model has outputs for every token, but a verifier needs them for the whole claim"
        )
    logits = logits.reshape(number, -1)
    needed = max(labels.supports, labels.contradicts or 0) + 1
    if logits.shape[1] < needed or (labels.head == "score" and logits.shape[1] != 1):
        raise StepError(
            f"the model has {logits.shape[1]} outputs, but its config.json (id2label) names others"
        )
    if not np.isfinite(logits).all():
        raise StepError("the model's output is NaN or infinite")
    if labels.head == "score":
        shares = _sigmoid(logits[:, 0])
        yield from (PairScore(float(1 - share if labels.inverted else share)) for share in shares)
        return
    # With problem_type multi_label_classification, the outputs were trained independently, so each
    # has its own sigmoid.
    for row in _sigmoid(logits) if labels.head == "independent" else _softmax(logits):
        yield PairScore(
            float(row[labels.supports]),
            None if labels.contradicts is None else float(row[labels.contradicts]),
        )


def load(text: str, threads: int = 1) -> LocalScorer:
    """Load a model by its name after ``local:``. A model that hasn't changed is loaded only once.

    Raises SettingsError for files that are missing or unsupported, and MissingExtra if a package is
    missing.
    """
    model = find(text)
    small = tuple(
        digest_of_file(path) for name in _SMALL_FILES if (path := model.file(name)) is not None
    )
    with _loading:  # otherwise two threads could load the same model
        return _load_scorer(model.name, (digest_of(model), *small), threads)


_loading = threading.Lock()
_SMALL_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "README.md")


@lru_cache(maxsize=2)
def _load_scorer(name: str, digests: tuple[str, ...], threads: int) -> LocalScorer:
    """Load a model. The digests are part of the cache key, so changed files are loaded again."""
    model = find(name.partition(":")[2])
    labels = labels_of(model.config, model.name, str(model.folder / "config.json"))
    encoder = encoder_of(model, labels, _fast_tokenizer)
    engine = (
        _onnx_engine(model, threads)
        if model.format == "onnx"
        else _torch_engine(model, labels, threads)
    )
    return LocalScorer(labels, encoder, engine, model_record(model))


def check(text: str) -> OutputLabels:
    """Read what a model's outputs mean, without loading its weights. Raises like ``load``."""
    model = find(text)
    if model.format != "onnx":
        _require_torch()  # only looks for it; importing torch takes seconds and much memory
    return labels_of(model.config, model.name, str(model.folder / "config.json"))


# From token ids to logits.


def _onnx_engine(model_folder: ModelFolder, threads: int) -> Engine:
    """Return an onnxruntime engine on the CPU. It passes only inputs that the graph has."""
    # Imported late because it takes a tenth of a second, which ``check`` doesn't need.
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    # Errors only (0 is verbose, 4 fatal).
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(
            str(model_folder.weights), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the library's own exceptions share no better base
        why = " ".join(str(error).split())[:200]
        raise SettingsError(
            f"{model_folder.weights}: onnxruntime can't load it ({why}). Fetch or export it again."
        ) from error
    inputs = {graph_input.name for graph_input in session.get_inputs()}
    if unknown := inputs - {"input_ids", "attention_mask", "token_type_ids"}:
        raise SettingsError(
            f"{model_folder.weights}: needs inputs that aren't supported"
            f" ({', '.join(sorted(unknown))}). Export the model for sequence classification."
        )
    names = [graph_output.name for graph_output in session.get_outputs()]
    output = "logits" if "logits" in names else names[0]

    def logits(batch: EncodedBatch) -> Array:
        arrays = {
            "input_ids": batch.ids,
            "attention_mask": batch.mask,
            "token_type_ids": batch.types,
        }
        result: Array = session.run([output], {name: arrays[name] for name in inputs})[0]
        return result

    return logits


def _torch_engine(model_folder: ModelFolder, labels: OutputLabels, threads: int) -> Engine:
    """Return a PyTorch engine on the CPU, without gradients. It passes only inputs that ``forward``
    accepts.
    """
    transformers, torch = _transformers(), importlib.import_module("torch")
    kind = {
        "first_token": "AutoModelForTokenClassification",
        "tokens": "AutoModelForTokenClassification",
        "t5_words": "AutoModelForSeq2SeqLM",
    }.get(labels.head, "AutoModelForSequenceClassification")
    try:
        if model_folder.config.get("model_type") == HHEM_TYPE:
            model = _hhem(model_folder, transformers)
        else:
            model = getattr(transformers, kind).from_pretrained(
                str(model_folder.folder),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
            )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, StopIteration) as error:
        why = " ".join(str(error).split())[:200]
        raise SettingsError(
            f"{model_folder.name}: transformers can't load it ({type(error).__name__}: {why})."
            " Save it with save_pretrained(), or export it to ONNX (docs/models.md)."
        ) from error
    # Turns off dropout, which would make scores random.
    model.eval()
    accepts_types = "token_type_ids" in inspect.signature(model.forward).parameters and (
        # A model with one token type has the parameter too, but fails on the type 1.
        getattr(model.config, "type_vocab_size", 0) > 1
    )

    def logits(batch: EncodedBatch) -> Array:
        # The number is global to the process, and another model may have set it.
        torch.set_num_threads(threads)
        tensors = {
            "input_ids": torch.from_numpy(batch.ids),
            "attention_mask": torch.from_numpy(batch.mask),
        }
        if accepts_types:
            tensors["token_type_ids"] = torch.from_numpy(batch.types)
        with torch.inference_mode():
            if labels.head == "t5_words":
                # T5 starts decoding with the padding token, whose id is 0. One step gives the
                # scores of the first word.
                tensors["decoder_input_ids"] = torch.zeros((len(batch.ids), 1), dtype=torch.long)
                logits = model(**tensors).logits[:, 0, list(MINICHECK_T5_WORDS)]
            else:
                logits = model(**tensors).logits
        result: Array = logits.float().numpy()
        return result

    return logits


def _hhem(model_folder: ModelFolder, transformers: Any) -> Any:
    """Load HHEM 2 into transformers' own class, since its repository's wrapper is custom code,
    which isn't executed.

    The model is a Flan-T5 encoder with a classifier at the first token. The weights have the
    wrapper's prefix, and the encoder's configuration is derived from their shapes, since HHEM's own
    doesn't contain it.
    """
    load_file: Any = importlib.import_module("safetensors.torch").load_file

    if model_folder.weights.name != "model.safetensors":
        raise SettingsError(
            f"{model_folder.name}: HHEM is read from model.safetensors. Fetch that file."
        )
    weights = {
        name.removeprefix("t5."): tensor
        for name, tensor in load_file(str(model_folder.weights)).items()
    }
    # The embedding is one tensor under two names, and files may contain only one of them.
    tied = ("transformer.shared.weight", "transformer.encoder.embed_tokens.weight")
    shared = next(weights[name] for name in tied if name in weights)
    first = "transformer.encoder.block.0.layer"
    heads = weights[f"{first}.0.SelfAttention.relative_attention_bias.weight"]
    layers = 1 + max(
        int(name.split(".")[3]) for name in weights if name.startswith("transformer.encoder.block.")
    )
    config = transformers.T5Config(
        vocab_size=shared.shape[0],
        d_model=shared.shape[1],
        d_kv=weights[f"{first}.0.SelfAttention.q.weight"].shape[0] // heads.shape[1],
        d_ff=weights[f"{first}.1.DenseReluDense.wi_0.weight"].shape[0],
        num_layers=layers,
        num_heads=heads.shape[1],
        relative_attention_num_buckets=heads.shape[0],
        feed_forward_proj="gated-gelu",
        num_labels=weights["classifier.weight"].shape[0],
    )
    model = transformers.T5ForTokenClassification(config)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if unexpected or set(missing) - {*tied} or {*tied} <= set(missing):
        raise SettingsError(
            f"{model_folder.name}: its weights have another form than HHEM 2.1's."
            " Fetch that version."
        )
    return model


_require_torch = partial(
    require,
    "Models in safetensors files need packages that are not installed (a model exported to ONNX"
    " needs neither)",
    *("local", "torch", "transformers"),
)


def _fast_tokenizer(folder: Path) -> Any:
    """Load a tokenizer that isn't saved as tokenizer.json and return its fast form."""
    auto = _transformers().AutoTokenizer
    return auto.from_pretrained(
        str(folder), use_fast=True, local_files_only=True, trust_remote_code=False
    ).backend_tokenizer


def _transformers() -> Any:
    _require_torch()  # without PyTorch, transformers imports but fails later with an unclear error
    transformers: Any = importlib.import_module("transformers")
    transformers.utils.logging.disable_progress_bar()  # it would interrupt our own output
    return transformers
