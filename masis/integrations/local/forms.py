"""The supported forms of verifier models: how a configuration identifies each one, and how to use
it.

A form says how evidence and claim are encoded and what the outputs mean. ``FORMS`` is the whole
list, so a new family of models is one entry there. A model that doesn't match any row is refused,
because a wrong guess could invert every verdict. Facts about a model are from its card and code,
which each row names as its ``source``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from masis.errors import SettingsError

Head = Literal["classes", "independent", "score", "first_token", "t5_words", "tokens"]
"""How scores come out: a softmax over classes; a sigmoid for each class; one logit; a softmax at
the first token (HHEM 2); two words that a T5 decodes (MiniCheck); a softmax at every token
(taggers)."""
Meaning = Literal["supports", "contradicts", "neither", "lacks"]

_WORDS: dict[Meaning, str] = {
    "supports": (
        "entailment entail entails entailed supported supports support consistent attributable"
        " faithful grounded verified nothallucinated"
    ),
    "contradicts": (
        "contradiction contradict contradicts contradicted contradictory refutes refuted refute"
        " conflict conflicting"
    ),
    "neither": "neutral nei notenoughinfo notenoughinformation unknown unrelated unverifiable",
    "lacks": (
        "notentailment nonentailment notentailed unsupported notsupported inconsistent"
        " notconsistent hallucination hallucinated notattributable unfaithful notfaithful"
        " ungrounded notgrounded unverified"
    ),
}
# "true", "factual" and "correct" are left out on purpose: classifiers of fake news call their
# outputs so and read no evidence, and other fact-checkers with these names want a prompt of their
# own (varunteja99/hallucination-detector-deberta: "Knowledge: ... Question: ... Answer: ...").
MEANINGS: dict[str, Meaning] = {
    word: meaning for meaning, words in _WORDS.items() for word in words.split()
}
"""The meaning of output names, keyed by the name in lower case without separators."""

_GENERIC = re.compile(r"label_?\d+", re.IGNORECASE)
HHEM_TYPE = "HHEMv2"
MINICHECK_T5_WORDS = (3, 209)
"""Ids of the words "0" and "1" in the vocabulary of Flan-T5, which MiniCheck decodes."""


class Mark(Enum):
    """A special token between two texts: padding, or the token that the tokenizer adds at the end
    of a text.
    """

    PAD = "<pad>"
    END = "the mark of the end"


class InputForm(NamedTuple):
    """How evidence and claim are given to a model.

    Attributes:
        name: Its name in tests and errors.
        template: The pieces of the input, with special tokens between them. Without a template the
            texts are the tokenizer's pair, or the tagger's passages before an answer.
        claim_first: Whether the claim is the first text of the pair.

    """

    name: str
    template: tuple[str | Mark, ...] = ()
    claim_first: bool = False


PAIR = InputForm("pair")
PASSAGES = InputForm("passages")
# HCMBench, HHEM.py, and modeling_hhem_v2.py: the prompt begins with the padding token.
HHEM_PROMPT = InputForm(
    "hhem",
    (
        Mark.PAD,
        (
            " Determine if the hypothesis is true given the premise?\n\nPremise:"
            " {evidence}\n\nHypothesis: {claim}"
        ),
    ),
)


class OutputLabels(NamedTuple):
    """The meaning of the outputs, as indexes of classes. ``contradicts`` is None if there's no such
    output.

    ``inverted`` is true for a single score that is high if the claim is *not* supported.
    ``unsupported`` is the class that a tagger gives to unsupported tokens, and None for a model
    that scores claims.
    """

    head: Head
    form: InputForm
    supports: int = 0
    contradicts: int | None = None
    inverted: bool = False
    unsupported: int | None = None

    @property
    def words(self) -> str:
        """Describe what the model distinguishes."""
        if self.head == "tokens":
            return "words that the evidence doesn't support; it marks them and confirms nothing"
        if self.contradicts is not None:
            return "supported, contradicted or neither"
        return "one score of support" if self.head == "score" else "supported or not"


class Marks(NamedTuple):
    """The parts of a configuration by which forms are recognized.

    ``called`` is the last part of the model's name, of its folder and of the base model, in lower
    case. ``outputs`` are the names of the outputs, ``meanings`` their meanings.
    """

    architecture: str
    model_type: str
    called: str
    outputs: tuple[str, ...]
    meanings: tuple[Meaning | None, ...]
    problem_type: str | None

    @property
    def generic(self) -> bool:
        """Whether the outputs have generic names such as LABEL_0."""
        return all(_GENERIC.fullmatch(name.strip()) for name in self.outputs)

    @property
    def description(self) -> str:
        """Describe the configuration for an error message."""
        outputs_shown = ", ".join(
            f"{number}: {name[:40]}" for number, name in enumerate(self.outputs[:6])
        )
        parts = [
            f"architectures {self.architecture[:80] or 'none'}",
            f"model_type {self.model_type[:40] or 'none'}",
        ]
        parts.append(f"id2label ({outputs_shown})")
        if self.problem_type:
            parts.append(f"problem_type {self.problem_type[:40]}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Form:
    """One row of the table: a kind of model whose input and outputs are known.

    Args:
        name: What people call it.
        known_by: The marks, in words, for errors and docs.
        source: Where its input and outputs are said.
        labels: How it is read. Where ``meanings`` is None, the places are found by the outputs'
            names.
        architectures: Ends of the class name that ``architectures`` in config.json may have.
        called: Parts of the model's name of which one must be there; empty where any name will do.
        model_types: Values of ``model_type`` of which one must be there; empty where any will do.
        meanings: What the outputs mean, in order, where the makers' code fixes it. ``id2label`` may
            then have numbers for names; names that say otherwise are refused.

    """

    name: str
    known_by: str
    source: str
    labels: OutputLabels
    architectures: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    model_types: tuple[str, ...] = ()
    meanings: tuple[Meaning, ...] | None = None

    def matches(self, marks: Marks) -> bool:
        """Return whether a configuration matches this form."""
        return (
            (not self.architectures or marks.architecture.endswith(self.architectures))
            and (not self.called or any(part in marks.called for part in self.called))
            and (not self.model_types or marks.model_type in self.model_types)
            and (self.meanings is None or len(self.meanings) == len(marks.outputs))
        )


_SEQUENCE, _TOKENS = "ForSequenceClassification", "ForTokenClassification"

FORMS: tuple[Form, ...] = (
    Form(
        "HHEM 2.1",
        "model_type HHEMv2",
        "vectara/hallucination_evaluation_model, modeling_hhem_v2.py; vectara/HCMBench, HHEM.py",
        OutputLabels("first_token", HHEM_PROMPT, supports=1),
        model_types=(HHEM_TYPE,),
    ),
    # The same weights saved as transformers' own class. A T5 that tags words looks exactly like it
    # and means the opposite by its second output, so the name has to say which it is.
    Form(
        "HHEM 2.1, exported",
        "T5ForTokenClassification, two outputs and 'hhem' or 'hallucination_evaluation_model' in"
        " its name",
        "vectara/HCMBench, HHEM.py",
        OutputLabels("first_token", HHEM_PROMPT, supports=1),
        architectures=("T5ForTokenClassification",),
        called=("hhem", "hallucination_evaluation_model"),
        model_types=("", "t5"),
        meanings=("lacks", "supports"),
    ),
    Form(
        "HHEM 1",
        "DebertaV2ForSequenceClassification, one output and 'hhem' or"
        " 'hallucination_evaluation_model' in its name",
        "card of vectara/hallucination_evaluation_model at its revision hhem-1.0-open",
        OutputLabels("score", PAIR),
        architectures=("DebertaV2ForSequenceClassification",),
        called=("hhem", "hallucination_evaluation_model"),
        meanings=("supports",),
    ),
    Form(
        "MiniCheck-Flan-T5",
        "T5ForConditionalGeneration and 'minicheck' in its name",
        "Liyan06/MiniCheck, minicheck/inference.py",
        OutputLabels(
            "t5_words",
            InputForm("minicheck_t5", ("predict: {evidence}", Mark.END, "{claim}")),
            supports=1,
        ),
        architectures=("T5ForConditionalGeneration",),
        called=("minicheck",),
    ),
    Form(
        "MiniCheck-RoBERTa, MiniCheck-DeBERTa",
        "RobertaForSequenceClassification or DebertaV2ForSequenceClassification, two outputs and"
        " 'minicheck' in its name",
        "Liyan06/MiniCheck, minicheck/inference.py",
        OutputLabels(
            "classes",
            # batch_tokenize: eos_token.join([document, claim])
            InputForm("joined", ("{evidence}", Mark.END, "{claim}")),
            supports=1,
        ),
        architectures=("RobertaForSequenceClassification", "DebertaV2ForSequenceClassification"),
        called=("minicheck",),
        meanings=("lacks", "supports"),
    ),
    Form(
        "FactCG-DeBERTa",
        "DebertaV2ForSequenceClassification, two outputs and 'factcg' in its name",
        "derenlei/FactCG, factcg/utils.py and factcg/inference.py",
        OutputLabels(
            "classes",
            InputForm(
                "factcg",
                (
                    # INSTRUCTION_TEMPLATE, with the blank at its end.
                    (
                        "{evidence}\n\nChoose your answer: based on the paragraph above can we"
                        ' conclude that "{claim}"?\n\nOPTIONS:\n- Yes\n- No\nI think the answer is '
                    ),
                ),
            ),
            supports=1,
        ),
        architectures=("DebertaV2ForSequenceClassification",),
        called=("factcg",),
        meanings=("lacks", "supports"),
    ),
    # Its card: textA is the hypothesis, textB the premise, and the output for neutral was removed.
    Form(
        "SelfCheckGPT's entailment model",
        "DebertaV2ForSequenceClassification, two outputs and 'deberta-v3-large-mnli' in its name",
        "card of potsawee/deberta-v3-large-mnli",
        OutputLabels("classes", InputForm("claim_first", claim_first=True), supports=0),
        architectures=("DebertaV2ForSequenceClassification",),
        called=("deberta-v3-large-mnli",),
        meanings=("supports", "contradicts"),
    ),
    Form(
        "LettuceDetect",
        "a token classifier with two outputs and 'lettuce' in its name",
        "KRLabsOrg/LettuceDetect, lettucedetect/detectors/transformer.py and"
        " datasets/hallucination_dataset.py",
        OutputLabels("tokens", PASSAGES, supports=0, unsupported=1),
        architectures=(_TOKENS,),
        called=("lettuce",),
        meanings=("supports", "lacks"),
    ),
    Form(
        "tagger of words",
        "a token classifier with two outputs that id2label calls supported and hallucinated (or"
        " unsupported)",
        "input as LettuceDetect; the places by id2label",
        OutputLabels("tokens", PASSAGES),
        architectures=(_TOKENS,),
    ),
    Form(
        "entailment or fact-checking",
        "a sequence classifier whose id2label names the output for support (entailment, supported,"
        " consistent)",
        "transformers, pipelines/text_classification.py: problem_type says softmax or sigmoid",
        OutputLabels("classes", PAIR),
        architectures=(_SEQUENCE,),
    ),
)
"""Every form, the more specific ones first. The first match wins."""


def labels_of(config: Mapping[str, Any], name: str, path: str) -> OutputLabels:
    """Read the meaning of a model's outputs from its ``config.json``. Some forms are also
    recognized by ``name``.

    Raises SettingsError if the model can't be recognized, with the ``path``, the field, its value
    and the accepted values.
    """
    marks = marks_of(config, name, path)
    if config.get("auto_map") and not marks.architecture.endswith((_SEQUENCE, _TOKENS)):
        raise _unsupported_model(
            path, marks, "auto_map: this model brings its own code, which is not run."
        )
    form = next((form for form in FORMS if form.matches(marks)), None)
    if form is None and marks.architecture:
        generates = marks.architecture.endswith(("ForConditionalGeneration", "ForCausalLM"))
        raise _unsupported_model(
            path,
            marks,
            f"architectures is {marks.architecture[:80]}, which "
            + (
                "writes text. Serve it as a language model."
                if generates
                else "classifies no claims."
            ),
        )
    labels = form.labels if form else OutputLabels("classes", PAIR)
    if form and (form.meanings or form.model_types or labels.head == "t5_words"):
        return _with_fixed_meaning(form, marks, path)
    if labels.head == "tokens":
        return _tagger(labels, marks, path)
    return _by_names(labels, marks, config, path)


def marks_of(config: Mapping[str, Any], name: str, path: str) -> Marks:
    """Extract the marks of a configuration. Raises SettingsError if its outputs aren't numbered."""
    architectures = config.get("architectures")
    architecture = (
        str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    )
    outputs = _outputs(config, path)
    meanings = tuple(MEANINGS.get(re.sub(r"[\W_]+", "", output).casefold()) for output in outputs)
    problem = config.get("problem_type")
    return Marks(
        architecture,
        str(config.get("model_type") or ""),
        _name_parts(name, path, str(config.get("_name_or_path") or "")),
        outputs,
        meanings,
        str(problem) if problem else None,
    )


def _name_parts(name: str, path: str, made_from: str) -> str:
    """Return the parts of a name that may identify the model.

    Parent folders don't count: ``models/minicheck-tests/nli`` isn't MiniCheck.
    """
    text = re.sub(r"^local:|(?:[#@][\w.-]*+)++$", "", name.replace("\\", "/"))
    parts = [
        part for part in text.split("/") if part and part != "onnx" and not part.endswith(".onnx")
    ]
    folder = PurePath(path).parent.name
    return " ".join([*parts[-1:], folder, *made_from.replace("\\", "/").split("/")[-1:]]).casefold()


def _with_fixed_meaning(form: Form, marks: Marks, path: str) -> OutputLabels:
    """Return the labels of a model whose own code defines what its outputs mean.

    Raises SettingsError if the names of the outputs contradict that.
    """
    expected = form.meanings
    if expected is None:
        return form.labels
    if not marks.generic and marks.meanings != expected:
        raise _unsupported_model(
            path,
            marks,
            f"id2label contradicts the meaning of {form.name}'s outputs: {', '.join(expected)}.",
        )
    if marks.problem_type not in (None, "single_label_classification"):
        raise _unsupported_model(
            path, marks, f"problem_type: {form.name} was trained on a single label."
        )
    return form.labels


def _tagger(labels: OutputLabels, marks: Marks, path: str) -> OutputLabels:
    """Return the labels of a token classifier from the names of its outputs. Raises SettingsError
    if they're unclear.
    """
    if marks.architecture == "T5ForTokenClassification":
        raise _unsupported_model(
            path,
            marks,
            "architectures is T5ForTokenClassification, which labels single words or, in HHEM 2.1,"
            " whole claims, with opposite meanings. Name its folder hhem if it is HHEM.",
        )
    if sorted(meaning or "" for meaning in marks.meanings) != ["lacks", "supports"]:
        raise _unsupported_model(
            path,
            marks,
            f"architectures is {marks.architecture[:80]}, which labels single words, and id2label"
            " does not tell which output marks a word that the evidence lacks. If its card says"
            ' that it reads passages and then the answer, write it in, such as "id2label": {"0":'
            ' "supported", "1": "hallucinated"}.',
        )
    if marks.problem_type not in (None, "single_label_classification"):
        raise _unsupported_model(
            path,
            marks,
            f"problem_type is {marks.problem_type[:40]}; a tagger has one label for each word.",
        )
    return labels._replace(
        supports=marks.meanings.index("supports"), unsupported=marks.meanings.index("lacks")
    )


def _by_names(
    labels: OutputLabels, marks: Marks, config: Mapping[str, Any], path: str
) -> OutputLabels:
    """Return the labels of a sequence classifier from the names of its outputs."""
    problem = marks.problem_type
    if problem not in (None, "single_label_classification", "multi_label_classification"):
        raise _unsupported_model(
            path, marks, f"problem_type is {problem[:40]}, which gives no probability of support."
        )
    if len(marks.outputs) == 1:
        return _single_score(labels, marks, config, path)
    supporting, denying, unknown = (
        [index for index, meaning in enumerate(marks.meanings) if meaning == expected_meaning]
        for expected_meaning in ("supports", "contradicts", None)
    )
    if len(supporting) != 1 or len(denying) > 1 or unknown:
        raise _unsupported_model(
            path,
            marks,
            "id2label does not tell which output means that the evidence supports the claim. If its"
            ' card says that it reads evidence and then the claim, write it in, such as "id2label":'
            ' {"0": "entailment", "1": "neutral", "2": "contradiction"} or {"0": "unsupported",'
            ' "1": "supported"}.',
        )
    head: Head = "independent" if problem == "multi_label_classification" else "classes"
    # With two classes, "contradiction" is the other side of a yes-or-no question, not a finding of
    # its own.
    contradicts = denying[0] if denying and len(marks.outputs) > 2 else None
    return labels._replace(head=head, supports=supporting[0], contradicts=contradicts)


def _single_score(
    labels: OutputLabels, marks: Marks, config: Mapping[str, Any], path: str
) -> OutputLabels:
    """Return the labels of a model with one output. Raises SettingsError if its meaning is unclear.

    Rerankers and similarity models also have one unnamed output, and a passage can be relevant to a
    claim without supporting it. A low contradiction score isn't support either, since it's also low
    for unrelated texts.
    """
    (meaning,) = marks.meanings
    if meaning not in ("supports", "lacks"):
        raise _unsupported_model(
            path,
            marks,
            "id2label does not tell whether the one output is a score of support: rerankers and"
            ' models of similarity look the same. If its card says so, write it in: "id2label":'
            ' {"0": "supported"}.',
        )
    trained_with = config.get("sentence_transformers")
    activations = [
        trained_with.get("activation_fn") if isinstance(trained_with, Mapping) else None,
        config.get("sbert_ce_default_activation_function"),
    ]
    activation = next((str(value) for value in activations if value), "Sigmoid")
    if not activation.endswith("Sigmoid"):
        raise _unsupported_model(
            path,
            marks,
            f"sentence_transformers: activation_fn is {activation[:80]}, not a sigmoid.",
        )
    return labels._replace(head="score", inverted=meaning == "lacks")


def _outputs(config: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """Return the names of a model's outputs. Raises SettingsError if they aren't numbered."""
    id2label = config.get("id2label")
    if not isinstance(id2label, Mapping):
        number = config.get("num_labels", 2)
        return tuple(
            f"LABEL_{index}"
            for index in range(number if isinstance(number, int) and 0 < number < 100 else 2)
        )
    try:
        names = {int(index): str(name) for index, name in id2label.items()}
    except ValueError:
        names = {}
    if not names or sorted(names) != list(range(len(names))):
        raise SettingsError(f'{path}: id2label must number the outputs from "0" on. Correct it.')
    back = config.get("label2id")
    if isinstance(back, Mapping) and any(
        back.get(name, index) != index for index, name in names.items()
    ):
        raise SettingsError(
            f"{path}: id2label and label2id number the outputs differently. Correct one of them."
        )
    return tuple(names[index] for index in range(len(names)))


def _unsupported_model(path: str, marks: Marks, why: str) -> SettingsError:
    """Return an error with the configuration found and the accepted forms of the same kind of class
    (or all).
    """
    similar_forms = [
        form
        for form in FORMS
        if marks.architecture
        and any(
            _architecture_kind(accepted_architecture) == _architecture_kind(marks.architecture)
            for accepted_architecture in form.architectures
        )
    ]
    accepted = "; ".join(f"{form.name} ({form.known_by})" for form in similar_forms) or ", ".join(
        form.name for form in FORMS
    )
    return SettingsError(
        f"{path}: {why} Found: {marks.description}. Accepted: {accepted} (docs/models.md)."
    )


def _architecture_kind(architecture: str) -> str:
    """Return the task of a class from its name, such as ``ForTokenClassification``."""
    return architecture[architecture.find("For") :]
