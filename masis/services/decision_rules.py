"""The rules of a decision: the reasons that a reviewer can give."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from masis.schema.review import Decision, Verdict

# The reasons a reviewer can give with one key, so that decisions can be counted by reason.
#
# The list follows what the audit can find (fabricated, misattributed, contradicted, ...) and adds what only a person
# sees. ``other`` asks for words of the reviewer's own.

OTHER = "other"

REASON_CODE = "reason_code"
"""In an entry's ``extra``: the code of its reason, by which reasons are told apart. The words of the
reason are for people, and may be worded anew."""


class Reason(NamedTuple):
    """One reason; ``rules`` are the findings of an audit that speak for it."""

    code: str
    text: str
    verdicts: tuple[Verdict, ...]
    rules: tuple[str, ...] = ()


_FAULT: tuple[Verdict, ...] = ("override", "reject")

REASONS: tuple[Reason, ...] = (
    Reason("fabricated_citation", "Cites evidence that does not exist", _FAULT, ("fabricated_reference",)),
    Reason("wrong_citation", "Cites the wrong evidence", _FAULT, ("misattributed_reference", "redundant_reference")),
    Reason("contradicted", "The evidence contradicts it", _FAULT, ("contradicted_claim",)),
    Reason("unsupported", "Says more than the evidence", _FAULT, ("unsupported_claim", "partly_supported_claim")),
    Reason("uncited", "Claims without a citation", _FAULT, ("uncited_sentence",)),
    Reason("incomplete", "A point that matters is missing", _FAULT, ("missing_information", "dropped_content")),
    Reason("misses_the_question", "Does not answer the question", _FAULT),
    Reason("unclear", "Unclear or badly argued", _FAULT),
    Reason("findings_wrong", "The issues raised are wrong", ("approve",)),
    Reason("findings_harmless", "The issues raised are harmless", ("approve",)),
    Reason("checked", "Checked against the evidence", ("approve",)),
    Reason("needs_evidence", "Needs more evidence", ("escalate",)),
    Reason("needs_specialist", "Needs someone who knows the field", ("escalate",)),
    Reason("at_risk", "Legal or safety risk", ("escalate",), ("critic_safety",)),
    Reason("sources_conflict", "The sources conflict", ("escalate",)),
    Reason("question_unclear", "The question is unclear", ("escalate",)),
    Reason(OTHER, "Other", ("approve", *_FAULT, "escalate")),
)

_BY_CODE = {reason.code: reason for reason in REASONS}


def reasons_for(verdict: Verdict) -> tuple[Reason, ...]:
    """The reasons that can be given with a verdict; ``other`` is the last."""
    return tuple(reason for reason in REASONS if verdict in reason.verdicts)


def suggested(verdict: Verdict, rules: Collection[str]) -> tuple[str, ...]:
    """The codes of the reasons that findings of these rules speak for."""
    return tuple(reason.code for reason in reasons_for(verdict) if any(rule in rules for rule in reason.rules))


def reason_text(code: str, own_words: str = "") -> str:
    """What goes into the log: the words of the reason, for ``other`` the reviewer's own; empty for an unknown code."""
    if code == OTHER:
        return own_words.strip()
    known = _BY_CODE.get(code)
    return known.text if known else ""


def code_of(verdict: Verdict, words: str) -> str:
    """Return the code of the reason that is given by its code or its words.

    Returns:
        A code of ``reasons_for(verdict)``; ``other`` for the reviewer's own words, "" for none.

    """
    words = words.strip()
    known = (reason for reason in reasons_for(verdict) if words in (reason.code, reason.text))
    found = next((reason.code for reason in known if reason.code != OTHER), OTHER)
    return found if words else ""


def with_reason_code(decision: Decision) -> Decision:
    """Return a decision that says the code of its reason.

    Words are turned into a code here, where a decision is recorded, and nowhere else: a lead types
    the reason of a final verdict, and a program may give words only.
    """
    if decision.verdict is None or REASON_CODE in decision.extra:
        return decision
    code = code_of(decision.verdict, decision.reason)
    if not code:
        return decision
    return decision.model_copy(update={"extra": decision.extra | {REASON_CODE: code}})
