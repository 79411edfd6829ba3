"""Encodes texts as token ids, in the form that a verifier model was trained on.

Input is never truncated silently. A pair that is too long for the model has no ids, because unread
text can neither confirm nor deny a claim. Special tokens in texts from outside are treated as plain
text: a ``</s>`` in an answer doesn't end the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
from tokenizers import Tokenizer

from masis.errors import SettingsError
from masis.integrations.local.forms import Mark, OutputLabels
from masis.integrations.local.model_files import ModelFolder

LONGEST = 512
"""Maximum number of tokens of evidence and claim together. A verifier's windows are sized so that
most pairs fit.
"""
LONGEST_TAGGED = 4096
"""Maximum number of tokens of passages and answer together. LettuceDetect's models were trained on
this length.
"""

Array = np.ndarray[Any, np.dtype[Any]]
Pair = tuple[str, str]
"""An evidence text and a claim."""


class TokenRow(NamedTuple):
    """The token ids of one input, and the text (0 or 1) that each belongs to."""

    ids: Sequence[int]
    types: Sequence[int]


class EncodedBatch(NamedTuple):
    """A padded batch: token ids, the attention mask, and the text (0 or 1) that each token belongs
    to.
    """

    ids: Array
    mask: Array
    types: Array


UNKNOWN = frozenset({"<unk>", "[UNK]"})
"""Special tokens that any text may be encoded as."""


@dataclass(frozen=True)
class PairEncoder:
    """Encodes pairs with a model's tokenizer and input form. Not thread-safe, because it sets the
    tokenizer's options.

    ``longest`` is the most tokens that the model reads at once, ``padding`` the id that fills up a
    batch, and ``marks`` the tokenizer's special tokens by id.
    """

    tokenizer: Any
    labels: OutputLabels
    longest: int
    padding: int
    marks: Mapping[int, str]

    def row(self, pair: Pair) -> TokenRow | None:
        """Encode evidence and claim. Returns None if they are too long for the model."""
        # A tokenizer's normalization can turn look-alike characters into a special token after the
        # first replacement. NFKC shows them before it.
        for texts in (pair, (normalize("NFKC", pair[0]), normalize("NFKC", pair[1]))):
            row = self._row(*(self.replace_special_tokens(text) for text in texts))
            if self._marks_in(row.ids) == self._usual_marks:
                return row if len(row.ids) <= self.longest else None
        return None

    def _row(self, evidence: str, claim: str) -> TokenRow:
        if template := self.labels.form.template:
            # Tokenize the whole input at once, as the models' own code does. Piece by piece, T5
            # would make the space before the evidence a token of its own.
            full_text = "".join(
                (
                    self.mark(piece)
                    if isinstance(piece, Mark)
                    else piece.format(evidence=evidence, claim=claim)
                )
                for piece in template
            )
            ids = self.tokenizer.encode(full_text).ids
            return TokenRow(ids, [0] * len(ids))
        first, second = (claim, evidence) if self.labels.form.claim_first else (evidence, claim)
        encoded = self.tokenizer.encode(first, second)
        return TokenRow(encoded.ids, encoded.type_ids)

    def encode_answer(
        self, context: str, answer: str
    ) -> tuple[TokenRow, list[tuple[int, int, int]]] | None:
        """Encode passages and an answer. Returns None if the input is too long.

        The answer's tokens are returned as (index in the input, start, end). Start and end are the
        tokenizer's offsets in the answer, without spaces at either end of a token (byte-level
        tokens include the space before a word). Both texts have the same type, because
        LettuceDetect passes only ids and a mask to its models.
        """
        answer = self.replace_special_tokens(answer)
        encoded = self.tokenizer.encode(self.replace_special_tokens(context), answer)
        if len(encoded.ids) > self.longest or self._marks_in(encoded.ids) != self._usual_marks:
            return None
        tokens = []
        for index, (text, (start, end)) in enumerate(
            zip(encoded.sequence_ids, encoded.offsets, strict=True)
        ):
            # sequence_ids is None for special tokens, 0 for the context and 1 for the answer.
            if text != 1:
                continue
            token = answer[start:end]
            start += len(token) - len(token.lstrip())
            end -= len(token) - len(token.rstrip())
            if start < end:
                tokens.append((index, start, end))
        return TokenRow(encoded.ids, [0] * len(encoded.ids)), tokens

    def count(self, text: str) -> int:
        """Count the tokens of a text, without special tokens."""
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def batch(self, rows: Sequence[TokenRow]) -> EncodedBatch:
        """Pad rows to the same length."""
        ids = np.full((len(rows), max(len(row.ids) for row in rows)), self.padding, dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row_number, row in enumerate(rows):
            ids[row_number, : len(row.ids)], mask[row_number, : len(row.ids)] = row.ids, 1
            types[row_number, : len(row.ids)] = row.types
        return EncodedBatch(ids, mask, types)

    def replace_special_tokens(self, text: str) -> str:
        """Replace special tokens in a text from outside, keeping its length.

        The library's own option (``encode_special_tokens``) isn't enough, because the vocabulary of
        a Unigram tokenizer (T5, DeBERTa-v3, XLM-RoBERTa) also contains ``</s>`` as a word.
        """
        for mark in self.marks.values():
            if mark in text:
                text = text.replace(mark, f"\u2039{mark[1:]}")
        return text

    def mark(self, mark: Mark) -> str:
        """Return the text of a special token. Raises SettingsError if the tokenizer doesn't have
        it.
        """
        if mark is Mark.PAD:
            number = self.tokenizer.token_to_id(mark.value)
        else:
            ends = self.tokenizer.encode("").ids
            number = ends[-1] if ends else None
        if number not in self.marks:
            raise SettingsError(
                f"tokenizer.json: {mark.value} is missing, which this form of model needs. Fetch"
                " the model's files again."
            )
        return self.marks[number]

    @cached_property
    def _usual_marks(self) -> int:
        """The number of special tokens in any input. If there are more, normalization turned text
        into one.
        """
        return self._marks_in(self._row("a", "a").ids)

    def _marks_in(self, ids: Sequence[int]) -> int:
        return sum(number in self.marks for number in ids)


def encoder_of(folder: ModelFolder, labels: OutputLabels, load_slow: Any) -> PairEncoder:
    """Return the encoder of a model. Raises SettingsError if its tokenizer can't be read.

    ``load_slow`` loads a tokenizer from its folder if it isn't saved as tokenizer.json.
    """
    tokenizer = _tokenizer(folder, load_slow)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    pad = folder.config.get("pad_token_id")
    longest = LONGEST_TAGGED if labels.head == "tokens" else LONGEST
    positions = folder.config.get("max_position_embeddings")
    if isinstance(positions, int) and positions > 8:
        # RoBERTa numbers positions from its padding id plus one, so the first two positions are
        # unusable.
        roberta_like = folder.config.get("model_type") in ("roberta", "xlm-roberta", "camembert")
        longest = min(longest, positions - 2 if roberta_like else positions)
    marks = {
        number: token.content
        for number, token in tokenizer.get_added_tokens_decoder().items()
        if token.special and token.content and token.content not in UNKNOWN
    }
    encoder = PairEncoder(
        tokenizer, labels, longest, pad if isinstance(pad, int) and pad >= 0 else 0, marks
    )
    for piece in labels.form.template:
        if isinstance(piece, Mark):
            encoder.mark(piece)
    return encoder


def _tokenizer(model: ModelFolder, load_slow: Any) -> Any:
    if path := model.file("tokenizer.json"):
        try:
            return Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises Exception itself
            why = str(error)[:200]
            raise SettingsError(
                f"{path}: can't be read ({why}). Fetch the model's files again."
            ) from error
    hint = "AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER)."
    if model.format == "onnx":
        raise SettingsError(
            f"{model.name}: there is no tokenizer.json in {model.folder}. Make one with"
            f" transformers: {hint}"
        )
    try:
        return load_slow(model.folder)
    except (OSError, ValueError, AttributeError, ImportError) as error:
        why = " ".join(str(error).split())[:200]
        raise SettingsError(
            f"{model.name}: no tokenizer in {model.folder} can be read ({why}). Save one there:"
            f" {hint}"
        ) from error
