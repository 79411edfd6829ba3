"""Scores pairs of evidence and claim with a model on this machine: ONNX through onnxruntime, else through PyTorch.

Texts from outside are texts: a ``</s>`` in an answer is tokenised as the characters it is, not as the mark of an end.
No code of a model's repository runs, and pickled weights are not read.
"""

from __future__ import annotations

import importlib
import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from masis.errors import SettingsError, StepError
from masis.integrations import require
from masis.integrations.local.label_mapping import HHEM_TYPE, MINICHECK_T5_WORDS, Labels, labels_of
from masis.integrations.local.model_files import ModelFolder, digest_of, digest_of_file, find, recorded
from masis.schema.run import LocalModel

BATCH = 16
LONGEST = 512
"""Tokens of evidence and claim together; windows are cut so that this rarely truncates, and then only the evidence."""

Array = np.ndarray[Any, np.dtype[Any]]
Pair = tuple[str, str]
"""Evidence, claim."""


class PairScore(NamedTuple):
    """How probable the model holds it that the evidence supports, and that it contradicts the claim, 0 to 1.

    ``contradicts`` is None for a model that doesn't tell a contradiction from a lack of support.
    """

    supports: float
    contradicts: float | None = None


class Encoded(NamedTuple):
    """A padded batch: token ids, 1 for each token that counts, and which of two texts each belongs to."""

    ids: Array
    mask: Array
    types: Array


Engine = Callable[[Encoded], Array]
"""Gives the logits of a batch, one row a pair, of the shape that the model's head has."""

MOST_SCORES = 20_000
"""Scores of a model that are remembered: a revision repeats most claims of the answer before it."""


@dataclass(frozen=True)
class LocalScorer:
    """A model that was loaded, ready to score. Safe to use from several threads, one batch at a time."""

    labels: Labels
    encode: Callable[[Sequence[Pair]], Encoded]
    engine: Engine
    model: LocalModel
    scores: OrderedDict[Pair, PairScore] = field(default_factory=OrderedDict, repr=False)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        """Return a score for each pair, in order; pairs scored before are not scored again.

        Raises StepError where the model fails or gives what is no number.
        """
        known = {pair: score for pair in dict.fromkeys(pairs) if (score := self.scores.get(pair)) is not None}
        # Pairs of one length share a batch, so that little of it is padding.
        new = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        new.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        for first in range(0, len(new), BATCH):
            batch = new[first : first + BATCH]
            try:
                with self.lock:
                    logits = np.asarray(self.engine(self.encode(batch)), dtype=np.float64)
                    found = dict(zip(batch, _read(logits, self.labels, len(batch)), strict=True))
                    self.scores.update(found)
                    while len(self.scores) > MOST_SCORES:
                        self.scores.popitem(last=False)
            except StepError:
                raise
            except Exception as error:
                why = " ".join(str(error).split())[:200]
                raise StepError(f"{self.model.name} could not score a claim ({type(error).__name__}: {why})") from error
            known |= found
        return [known[pair] for pair in pairs]


def _read(logits: Array, labels: Labels, number: int) -> Iterator[PairScore]:
    if labels.head == "first_token" and logits.ndim == 3:
        logits = logits[:, 0, :]
    if logits.ndim > 2:  # a token classifier whose config.json doesn't say so
        raise StepError("the model gives outputs for every token, where a verifier needs them for the claim as a whole")
    logits = logits.reshape(number, -1)
    needed = max(labels.supports, labels.contradicts or 0) + 1
    if logits.shape[1] < needed or (labels.head == "score" and logits.shape[1] != 1):
        raise StepError(f"the model gives {logits.shape[1]} outputs, its config.json (id2label) names others")
    if not np.isfinite(logits).all():
        raise StepError("the model gave what is no number")
    if labels.head == "score":
        shares = 1 / (1 + np.exp(-np.clip(logits[:, 0], -60, 60)))
        yield from (PairScore(float(1 - share if labels.inverted else share)) for share in shares)
        return
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares = raised / raised.sum(axis=1, keepdims=True)
    for row in shares:
        yield PairScore(
            float(row[labels.supports]), None if labels.contradicts is None else float(row[labels.contradicts])
        )


def load(text: str, threads: int = 1) -> LocalScorer:
    """Load the model that stands behind ``local:``; one loaded before, unchanged, is used again.

    Raises SettingsError for files that are missing or can't be understood, MissingExtra where a package is missing.
    """
    found = find(text)
    small = tuple(digest_of_file(path) for name in _READ_BESIDE if (path := found.file(name)) is not None)
    with _loading:  # two threads would load it twice
        return _loaded(found.name, (digest_of(found), *small), threads)


_loading = threading.Lock()
_READ_BESIDE = ("config.json", "tokenizer.json", "tokenizer_config.json", "README.md")


@lru_cache(maxsize=2)
def _loaded(name: str, digests: tuple[str, ...], threads: int) -> LocalScorer:
    """The digests are part of the key, so that what was replaced or corrected is loaded again."""
    found = find(name.partition(":")[2])
    labels = labels_of(found.config, found.name, str(found.folder / "config.json"))
    encode = _encoder(found, labels)
    engine = _onnx_engine(found, threads) if found.format == "onnx" else _torch_engine(found, labels, threads)
    return LocalScorer(labels, encode, engine, recorded(found))


def check(text: str) -> Labels:
    """Read what a model is, without loading its weights. Raises as ``load`` does."""
    found = find(text)
    if found.format != "onnx":
        _require_torch()  # found, not imported: it takes seconds and much memory
    return labels_of(found.config, found.name, str(found.folder / "config.json"))


# From texts to token ids.


def _encoder(found: ModelFolder, labels: Labels) -> Callable[[Sequence[Pair]], Encoded]:
    tokenizer = _tokenizer(found)
    tokenizer.encode_special_tokens = True  # marks in a text from outside are characters
    tokenizer.no_padding()
    pad = found.config.get("pad_token_id")
    padding = pad if isinstance(pad, int) and pad >= 0 else 0
    longest, positions = LONGEST, found.config.get("max_position_embeddings")
    if isinstance(positions, int) and positions > 8:
        # RoBERTa's positions begin behind its padding id
        begin = 2 if found.config.get("model_type") in ("roberta", "xlm-roberta", "camembert") else 0
        longest = min(longest, positions - begin)

    def encode(pairs: Sequence[Pair]) -> Encoded:
        if labels.form == "pair":
            tokenizer.enable_truncation(longest, strategy="only_first")
            rows = [(each.ids, each.type_ids) for each in tokenizer.encode_batch(list(pairs))]
        else:
            tokenizer.no_truncation()
            rows = [(ids, [0] * len(ids)) for ids in (_joined(tokenizer, pair, labels, longest) for pair in pairs)]
        ids = np.full((len(rows), max(len(tokens) for tokens, _ in rows)), padding, dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for at, (tokens, kinds) in enumerate(rows):
            ids[at, : len(tokens)], mask[at, : len(tokens)], types[at, : len(tokens)] = tokens, 1, kinds
        return Encoded(ids, mask, types)

    return encode


def _joined(tokenizer: Any, pair: Pair, labels: Labels, longest: int) -> list[int]:
    """Evidence and claim as one text, in the form the model was trained on."""
    evidence, claim = pair
    if labels.form == "hhem":
        lead = "Determine if the hypothesis is true given the premise?\n\nPremise: "
        tail = tokenizer.encode(f"\n\nHypothesis: {claim}").ids
        start = [tokenizer.token_to_id("<pad>") or 0, *tokenizer.encode(lead, add_special_tokens=False).ids]
    else:
        lead = "predict: " if labels.form == "minicheck_t5" else ""
        ends = tokenizer.encode("").ids  # the marks of beginning and end, as this tokenizer sets them
        beginning, end = (ends[:-1], ends[-1:]) if ends else ([], [])
        tail = [*end, *tokenizer.encode(claim, add_special_tokens=False).ids, *end]
        start = [*beginning, *tokenizer.encode(lead, add_special_tokens=False).ids] if lead else beginning
    body = tokenizer.encode(evidence, add_special_tokens=False).ids
    return [*start, *body[: max(0, longest - len(start) - len(tail))], *tail][: longest * 2]


def _tokenizer(found: ModelFolder) -> Any:
    if path := found.file("tokenizer.json"):
        try:
            return Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises Exception itself
            why = str(error)[:200]
            raise SettingsError(f"{path}: can't be read ({why}). Fetch the model's files again.") from error
    cure = "AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER)."
    if found.format == "onnx":
        raise SettingsError(
            f"{found.name}: there is no tokenizer.json in {found.folder}. Make one with transformers: {cure}"
        )
    try:
        made = _transformers().AutoTokenizer.from_pretrained(
            str(found.folder), use_fast=True, local_files_only=True, trust_remote_code=False
        )
        return made.backend_tokenizer
    except (OSError, ValueError, AttributeError, ImportError) as error:
        why = " ".join(str(error).split())[:200]
        raise SettingsError(
            f"{found.name}: {found.folder} holds no tokenizer that can be read ({why}). Save one beside it: {cure}"
        ) from error


# From token ids to logits.


def _onnx_engine(found: ModelFolder, threads: int) -> Engine:
    """Return onnxruntime on the CPU. Only inputs that the graph has are given."""
    import onnxruntime as runtime  # takes a tenth of a second, which looking at a model need not wait for

    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(str(found.weights), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's own exceptions share no better base
        why = " ".join(str(error).split())[:200]
        raise SettingsError(f"{found.weights}: onnxruntime can't load it ({why}). Fetch or export it again.") from error
    inputs = {each.name for each in session.get_inputs()}
    if unknown := inputs - {"input_ids", "attention_mask", "token_type_ids"}:
        raise SettingsError(
            f"{found.weights}: wants inputs that are not given here ({', '.join(sorted(unknown))}). Export the model "
            "for sequence classification."
        )
    names = [each.name for each in session.get_outputs()]
    output = "logits" if "logits" in names else names[0]

    def logits(batch: Encoded) -> Array:
        given = {"input_ids": batch.ids, "attention_mask": batch.mask, "token_type_ids": batch.types}
        found: Array = session.run([output], {name: given[name] for name in inputs})[0]
        return found

    return logits


def _torch_engine(found: ModelFolder, labels: Labels, threads: int) -> Engine:
    """Return PyTorch on the CPU, without gradients. Only what the model's ``forward`` takes is given."""
    transformers, torch = _transformers(), importlib.import_module("torch")
    kind = {"first_token": "AutoModelForTokenClassification", "t5_words": "AutoModelForSeq2SeqLM"}.get(
        labels.head, "AutoModelForSequenceClassification"
    )
    try:
        if found.config.get("model_type") == HHEM_TYPE:
            model = _hhem(found, transformers)
        else:
            model = getattr(transformers, kind).from_pretrained(
                str(found.folder), local_files_only=True, trust_remote_code=False, use_safetensors=True
            )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, StopIteration) as error:
        why = " ".join(str(error).split())[:200]
        raise SettingsError(
            f"{found.name}: transformers can't load it ({type(error).__name__}: {why}). Save it with "
            "save_pretrained(), or export it to ONNX (docs/models.md)."
        ) from error
    model.eval()
    takes_types = "token_type_ids" in inspect.signature(model.forward).parameters and (
        getattr(model.config, "type_vocab_size", 0) > 1
    )

    def logits(batch: Encoded) -> Array:
        torch.set_num_threads(threads)
        given = {"input_ids": torch.from_numpy(batch.ids), "attention_mask": torch.from_numpy(batch.mask)}
        if takes_types:
            given["token_type_ids"] = torch.from_numpy(batch.types)
        with torch.inference_mode():
            if labels.head == "t5_words":
                given["decoder_input_ids"] = torch.zeros((len(batch.ids), 1), dtype=torch.long)
                logits = model(**given).logits[:, 0, list(MINICHECK_T5_WORDS)]
            else:
                logits = model(**given).logits
        found: Array = logits.float().numpy()
        return found

    return logits


def _hhem(found: ModelFolder, transformers: Any) -> Any:
    """HHEM 2, as transformers' own class: its repository wraps one in code of its own, which is not run.

    A Flan-T5 encoder with a classifier at the first token; its weights carry the wrapper's prefix, and their shapes
    give the encoder's configuration, which HHEM's own doesn't hold.
    """
    load_file: Any = importlib.import_module("safetensors.torch").load_file

    if found.weights.name != "model.safetensors":
        raise SettingsError(f"{found.name}: HHEM is read from model.safetensors. Fetch that file.")
    weights = {name.removeprefix("t5."): tensor for name, tensor in load_file(str(found.weights)).items()}
    tied = ("transformer.shared.weight", "transformer.encoder.embed_tokens.weight")  # one tensor under two names
    shared = next(weights[name] for name in tied if name in weights)
    first = "transformer.encoder.block.0.layer"
    heads = weights[f"{first}.0.SelfAttention.relative_attention_bias.weight"]
    layers = 1 + max(int(name.split(".")[3]) for name in weights if name.startswith("transformer.encoder.block."))
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
        raise SettingsError(f"{found.name}: its weights have another form than HHEM 2.1's. Fetch that version.")
    return model


_require_torch = partial(
    require,
    "Models in safetensors files need packages that are not installed (a model exported to ONNX needs neither)",
    *("local", "torch", "transformers"),
)


def _transformers() -> Any:
    _require_torch()  # transformers imports without PyTorch and fails later, in other words
    transformers: Any = importlib.import_module("transformers")
    transformers.utils.logging.disable_progress_bar()  # a bar of its own amid our lines
    return transformers
