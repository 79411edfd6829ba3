"""Checks the names of labels: those that correct the audit, and the team's types of issues.

``use_known_names`` is the only check. ``ReviewService`` calls it for each decision and each
adjudication, so it applies to pages, programs, commands, the API and files alike.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from masis.errors import InputError
from masis.schema.labels import LABEL_CHOICES, TargetLabel
from masis.schema.team import LabelTypes

PartOfAnswer = Literal["claim", "reference", "sentence"]

_WHICH_FAULT = (
    "Use contradicted if the evidence says something else, or unsupported if it doesn't say this."
)
_NOT_FOUND = (
    "Use unsupported if the evidence doesn't say this, or unverifiable if it can't be checked."
)
_IS_TRUE = "Use supported if the evidence says this, or unsupported if it doesn't."


class OtherLabel(NamedTuple):
    """Words that other tools and data sets use for a label.

    Attributes:
        words: The words, in lower case with spaces.
        target: The kind of target that they label.
        label: Our label, if the meaning is certain.
        hint: What to use, if they can mean several labels.

    """

    words: tuple[str, ...]
    target: PartOfAnswer = "claim"
    label: str = ""
    hint: str = ""


OTHER_LABELS = (
    # FEVER, SciFact, WiCE, RAGTruth, NLI data sets and common annotation guidelines
    OtherLabel(
        ("entailed", "entailment", "entails", "supports", "fully supported"), label="supported"
    ),
    OtherLabel(("partially supported", "partly supported"), label="partial"),
    OtherLabel(
        (
            *("contradiction", "contradicts", "contradictory"),
            *("refuted", "refutes", "evident conflict"),
        ),
        label="contradicted",
    ),
    OtherLabel(
        ("not supported", "baseless", "evident baseless info"),
        label="unsupported",
    ),
    OtherLabel(("fabricated citation", "fabricated reference"), "reference", "fabricated"),
    OtherLabel(("misattribution", "wrong source"), "reference", "misattributed"),
    OtherLabel(("missing citation", "no citation"), "sentence", "uncited"),
    OtherLabel(("hallucination", "hallucinated", "not entailed"), hint=_WHICH_FAULT),
    OtherLabel(("wrong", "incorrect", "false", "error", "faulty", "fault"), hint=_WHICH_FAULT),
    OtherLabel(("neutral", "nei", "not enough info", "not enough information"), hint=_NOT_FOUND),
    OtherLabel(("correct", "right", "true", "ok", "good"), hint=_IS_TRUE),
)
"""Other tools' words for labels.

A label is translated only if its meaning is certain. Otherwise the error says what to choose.
"""


def use_known_names(
    labels: Sequence[TargetLabel], types: LabelTypes, *, kept: int = 0
) -> tuple[TargetLabel, ...]:
    """Return labels with their own names, in place of other tools' words and other spellings.

    Args:
        labels: The labels of a decision.
        types: The team's types of reported issues.
        kept: How many labels, from the first, repeat an earlier decision. Those that correct the
            audit aren't checked again, because they may be older than the list of names. Errors
            count from the first label after them.

    Raises:
        InputError: A label isn't one of its target's, or an issue isn't one of the team's types.

    """
    named = []
    for number, label in enumerate(labels):
        field = "labels" if number < kept else f"labels[{number - kept}]"
        is_checked = label.reports or number >= kept
        named.append(_use_known_name(label, types, field) if is_checked else label)
    return tuple(named)


def target_of(label: object) -> PartOfAnswer:
    """Return the kind of target that a label on words is about, a claim by default.

    ``fabricated`` is about a reference, and ``uncited`` about a sentence.
    """
    targets: tuple[PartOfAnswer, ...] = ("claim", "reference", "sentence")
    return next((target for target in targets if _own_name(str(label), target)), "claim")


def _use_known_name(label: TargetLabel, types: LabelTypes, field: str) -> TargetLabel:
    if label.reports:
        name = _same_name(label.label, types.names)
        if not name:
            raise _unknown_type(label.label, types, f"{field}.label")
    elif label.target not in LABEL_CHOICES:
        raise InputError(
            f"is missing: a label on a {label.target} reports an issue",
            hint="Add a severity, or use the target claim to correct the audit.",
            field=f"{field}.severity",
        )
    else:
        name = _own_name(label.label, label.target)
        if not name:
            raise _unknown_label(label, types, f"{field}.label")
    return label if name == label.label else label.model_copy(update={"label": name})


def _own_name(written: str, target: str) -> str:
    """Return our label for a word, or "" if there is none with a certain meaning."""
    if name := _same_name(written, LABEL_CHOICES[target]):
        return name
    plain = _plain(written)
    return next(
        (other.label for other in OTHER_LABELS if other.target == target and plain in other.words),
        "",
    )


def _same_name(written: str, names: Iterable[str]) -> str:
    """Return the name that differs only in case, hyphens and underscores, or ""."""
    plain = _plain(written)
    return next((name for name in names if written == name or plain == _plain(name)), "")


def _plain(name: str) -> str:
    return " ".join(name[:200].casefold().replace("_", " ").replace("-", " ").split())


def _unknown_type(written: str, types: LabelTypes, field: str) -> InputError:
    return InputError(
        f"{written[:60]!r} isn't a label type of version {types.version}",
        hint=(
            f"{_suggestion(written, types.names)}Types: {', '.join(types.names)}. Reload the page,"
            " because they may have changed."
        ),
        field=field,
    )


def _unknown_label(label: TargetLabel, types: LabelTypes, field: str) -> InputError:
    names = LABEL_CHOICES[label.target]
    plain = _plain(label.label)
    meant = next((other.hint for other in OTHER_LABELS if other.hint and plain in other.words), "")
    if meant and label.target == "claim":
        hint = meant
    elif _same_name(label.label, types.names):
        hint = (
            "It's one of the team's types of issues. Add a severity to report an issue, or use one"
            f" of {', '.join(names)}."
        )
    elif elsewhere := [
        target for target in LABEL_CHOICES if _same_name(label.label, LABEL_CHOICES[target])
    ]:
        hint = f"It's a label of a {elsewhere[0]}. Use one of {', '.join(names)}."
    else:
        hint = f"{_suggestion(label.label, names)}Use one of {', '.join(names)}."
    return InputError(
        f"is {label.label[:60]!r}, which isn't a label of a {label.target}", hint=hint, field=field
    )


def _suggestion(written: str, names: Sequence[str]) -> str:
    by_plain_name = {_plain(name): name for name in names}
    near = difflib.get_close_matches(_plain(written), by_plain_name, n=1)
    return f"Did you mean {by_plain_name[near[0]]!r}? " if near else ""
