"""Which of a model's outputs mean that the evidence supports a claim, and which that it contradicts it.

Read from the model's configuration: ``id2label`` names the outputs. Models that are known by their kind and name none
(MiniCheck, HHEM) are recognised. Anything else is an error that names the field: a guess could turn every verdict
round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from masis.errors import SettingsError

Head = Literal["classes", "score", "first_token", "t5_words"]
"""How scores come out: a softmax over classes; one logit; classes at the first token (HHEM 2); two words that a T5
decodes (MiniCheck)."""
PairForm = Literal["pair", "joined", "minicheck_t5", "hhem"]
"""How evidence and claim go in: as the tokenizer's pair; joined by its end mark; the prompts of MiniCheck and HHEM."""

_WORDS = {
    "supports": "entailment entail entails entailed supported supports support consistent factual true correct "
    "attributable faithful grounded verified",
    "contradicts": "contradiction contradict contradicts contradicted contradictory refutes refuted refute conflict "
    "conflicting",
    "neither": "neutral nei notenoughinfo notenoughinformation unknown unrelated unverifiable",
    "lacks": "notentailment nonentailment notentailed unsupported notsupported inconsistent notconsistent "
    "hallucination hallucinated nonfactual notfactual false incorrect notattributable unfaithful notfaithful "
    "ungrounded notgrounded unverified",
}
MEANINGS = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
"""What the names of outputs mean, by the name in small letters alone."""

_GENERIC = re.compile(r"label_?\d+", re.IGNORECASE)
HHEM_TYPE = "HHEMv2"
MINICHECK_T5_WORDS = (3, 209)
"""Ids of the words "0" and "1" in the vocabulary of Flan-T5, which MiniCheck decodes."""


class Labels(NamedTuple):
    """What the outputs mean: places among the classes; ``contradicts`` is None where no output says so.

    ``inverted`` is true of a single score that is high where the claim is *not* supported.
    """

    head: Head
    form: PairForm
    supports: int = 0
    contradicts: int | None = None
    inverted: bool = False

    @property
    def words(self) -> str:
        """Say in words what the model tells apart."""
        if self.contradicts is not None:
            return "supported, contradicted or neither"
        return "one score of support" if self.head == "score" else "supported or not"


def labels_of(config: Mapping[str, Any], name: str, place: str) -> Labels:
    """Read what a model's outputs mean from its ``config.json``; MiniCheck's models are known by their ``name``.

    Raises SettingsError, which names the ``place`` and the field, and the cure, where it can't be recognised.
    """
    architectures = config.get("architectures")
    kind = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    called = f"{name} {config.get('_name_or_path', '')}".casefold()
    minicheck = "minicheck" in called
    if config.get("model_type") == HHEM_TYPE:
        return Labels("first_token", "hhem", supports=1)
    if kind.endswith("ForConditionalGeneration"):
        if minicheck and config.get("model_type") == "t5":
            return Labels("t5_words", "minicheck_t5", supports=1)
        raise SettingsError(
            f"{place}: architectures is {kind}: a model that writes text. Of these only MiniCheck-Flan-T5 is "
            "understood, known by 'minicheck' in its name; serve another as a language model (docs/models.md)."
        )
    if config.get("auto_map") and not kind.endswith("ForSequenceClassification"):
        raise SettingsError(
            f"{place}: auto_map: this model brings code of its own, which is not run. Choose one of a built-in "
            "architecture, or export it to ONNX (docs/models.md)."
        )
    if kind.endswith("ForTokenClassification"):
        return _hhem_exported(config, kind, place)
    if kind and not kind.endswith("ForSequenceClassification"):
        raise SettingsError(
            f"{place}: architectures is {kind[:80]}, which classifies nothing. Name a model for sequence "
            "classification (natural language inference or fact-checking)."
        )
    form: PairForm = "joined" if minicheck else "pair"
    words, meanings = _outputs(config, place)
    if len(words) == 1:
        return Labels("score", form, inverted=meanings[0] in ("lacks", "contradicts"))
    if minicheck and len(words) == 2 and _generic(words):
        return Labels("classes", form, supports=1)
    supporting, denying, unknown = (
        [at for at, meaning in meanings.items() if meaning == each] for each in ("supports", "contradicts", None)
    )
    if len(supporting) != 1 or len(denying) > 1 or unknown:
        spoken = ", ".join(f"{at}: {word[:40]}" for at, word in sorted(words.items())[:6])
        raise SettingsError(
            f"{place}: id2label does not tell which output means that the evidence supports the claim ({spoken}). Look "
            'it up on the model\'s page and write it in, such as "id2label": {"0": "entailment", "1": "neutral", "2": '
            '"contradiction"} or {"0": "unsupported", "1": "supported"}.'
        )
    # With two classes, "contradiction" is the other side of a yes-or-no question, not a finding of its own.
    return Labels("classes", form, supporting[0], denying[0] if denying and len(words) > 2 else None)


def _hhem_exported(config: Mapping[str, Any], kind: str, place: str) -> Labels:
    """Read HHEM 2.1 as transformers' own class, which is a token classifier by name only.

    It is a T5 encoder that scores the claim at the first token, and its second output means that the
    claim is consistent. Other token classifiers label every word of an answer, and those that find
    hallucinations mean the opposite by their second output (LettuceDetect: ModernBERT, 1 is made up),
    so none of them may be taken for it. Raises SettingsError for those.
    """
    words, meanings = _outputs(config, place)
    second_supports = len(words) == 2 and (_generic(words) or (meanings[0], meanings[1]) == ("lacks", "supports"))
    if kind == "T5ForTokenClassification" and config.get("model_type", "t5") == "t5" and second_supports:
        return Labels("first_token", "hhem", supports=1)
    raise SettingsError(
        f"{place}: architectures is {kind[:80]}, which labels single words of an answer, as LettuceDetect does. A "
        "verifier scores whether the evidence supports a claim as a whole, so its outputs would be misread. Name a "
        "model for sequence classification; of token classifiers only HHEM 2.1, a T5 with two outputs, is understood."
    )


def _outputs(config: Mapping[str, Any], place: str) -> tuple[dict[int, str], dict[int, str | None]]:
    """Return the names of a model's outputs and what each means. Raises SettingsError where they aren't numbered."""
    given = config.get("id2label")
    if isinstance(given, Mapping):
        try:
            words = {int(at): str(word) for at, word in given.items()}
        except ValueError:
            words = {}
        if not words or sorted(words) != list(range(len(words))):
            raise SettingsError(f'{place}: id2label must number the outputs from "0" on. Correct it.')
    else:
        number = config.get("num_labels", 2)
        words = {at: f"LABEL_{at}" for at in range(number if isinstance(number, int) and 0 < number < 100 else 2)}
    return words, {at: MEANINGS.get(re.sub(r"[\W_]+", "", word).casefold()) for at, word in words.items()}


def _generic(words: Mapping[int, str]) -> bool:
    """Return whether the outputs have numbers for names."""
    return all(_GENERIC.fullmatch(word.strip()) for word in words.values())
