"""Defines the words for states, verdicts, rules, decisions and scores, once for all views."""

from __future__ import annotations

from typing import NamedTuple, TypedDict, get_args

from masis.schema.answers import NoAnswerCode
from masis.schema.audit import ClaimCheck
from masis.schema.case import Case, Severity
from masis.schema.labels import Stance, SupportKind
from masis.schema.model_ref import ModelRef
from masis.schema.review import CaseState, EntryKind, EntrySource, Standing, Verdict
from masis.schema.rules import (
    FLAGS,
    REVIEW_CODES,
    RULES,
    CaseFlag,
    ReviewCode,
    ReviewTier,
    Tone,
    flag_names,
    rules_with_flag,
)
from masis.schema.run import TerminationReason
from masis.settings import OFFLINE

STATES: tuple[CaseState, ...] = get_args(CaseState)


class Word(NamedTuple):
    """A label's text, its tone, and a sentence that explains it."""

    text: str
    tone: Tone
    meaning: str = ""


class LabelData(TypedDict):
    """A word as JSON data for the components."""

    text: str
    tone: Tone
    meaning: str


def label(word: Word) -> LabelData:
    """Convert a word to JSON data for the components."""
    return {"text": word.text, "tone": word.tone, "meaning": word.meaning}


RECORDED = "recorded replies of a model"
"""Names the judge if replies were recorded, so that no model was called."""


def model_words(model: str) -> str:
    """Describe a model string for people; it may name recorded replies instead of a model."""
    ref = ModelRef.parse(model)
    if not ref.is_replay:
        return model
    of = f"of {ref.recorded_model}, {ref.recorded_date}" if ref.recorded_model else f"in {ref.name}"
    first_stage = f"{OFFLINE}, then " if ref.after_offline else ""
    return f"{first_stage}recorded replies {of}; no model was called"


NOT_AUDITED = "This case hasn't been audited yet."
"""The sentence about a case without an audit, on every page."""

DECIDE: dict[Verdict, Word] = {
    "approve": Word("Approve", "good", "The answer shown is fit for use"),
    "override": Word("Override", "busy", "Correct the answer yourself"),
    "reject": Word("Reject", "bad", "The answer must not be used"),
    "escalate": Word("Escalate", "warn", "It needs more evidence or another reviewer"),
}
"""The decisions a person can make."""

DECIDED: dict[Verdict, Word] = {
    "approve": Word("Approved", "good", "A person found the answer fit for use"),
    "override": Word("Overridden", "busy", "A person corrected the answer"),
    "reject": Word("Rejected", "bad", "A person found the answer unfit for use"),
    "escalate": Word("Escalated", "warn", "A person wants more evidence or another reviewer"),
}

STATE: dict[str, Word] = {
    "new": Word("Not audited", "calm", "Imported, and not audited yet"),
    "running": Word("Auditing", "busy", "An audit is running"),
    "interrupted": Word("Interrupted", "warn", "An audit stopped in the middle and can be resumed"),
    "needs_review": Word(
        "Needs review", "bad", "The audit raised something that a person should look at"
    ),
    "needs_adjudication": Word(
        "Needs adjudication",
        "warn",
        "Its reviewers disagree, so someone has to decide between them",
    ),
    "accepted": Word("Auto-accepted", "calm", "The acceptance rule found no reason for a review"),
    "approved": DECIDED["approve"],
    "overridden": DECIDED["override"],
    "rejected": DECIDED["reject"],
    "escalated": DECIDED["escalate"],
    "superseded": Word("Superseded", "calm", "A new version with more evidence replaced it"),
    "redacted": Word(
        "Redacted", "calm", "Its content was removed on request; its metrics are still stored"
    ),
    "planted": Word(
        "Measured copy", "calm", "A copy with a planted fault, or one that was labeled again"
    ),
}

STANDING: dict[Standing, Word] = {
    "to_review": Word("Needs review", "calm", "Audited, and not decided"),
    "wrong": Word(
        "Something is wrong", "bad", "The audit found something wrong or unsafe. Review it first"
    ),
    "not_confirmed": Word(
        "Not confirmed", "calm", "The audit found nothing wrong but couldn't confirm the answer"
    ),
    # Not green: green means that the evidence supports something, and there may be an issue.
    "nothing_found": Word(
        "Nothing found", "calm", "The audit found nothing wrong and nothing unconfirmed"
    ),
    "no_answer": Word(
        "No answer", "warn", "The system refused or its call failed, so there was nothing to audit"
    ),
    "failed": Word(
        "Audit failed", "warn", "Its audit ended with an error or was interrupted. Audit it again"
    ),
    "not_audited": Word("Not audited", "calm", "Imported, and not audited yet"),
    "waits": Word("Waiting", "busy", "For a second decision, an adjudication or more evidence"),
    "decided": Word("Decided", "calm", "A person has decided it, or it was replaced or redacted"),
    "planted": Word(
        "Measured copy", "calm", "A copy with a planted fault, or to label again, that is decided"
    ),
}
"""The statuses of a case in the order of the filter. A case has exactly one."""

WAITS_FOR: dict[CaseState, Word] = {
    "needs_review": Word(
        "Waiting for another reviewer", "busy", "You have decided it; others haven't yet"
    ),
    "needs_adjudication": Word("Waiting for an adjudication", "busy", "Its reviewers disagree"),
    "escalated": Word(
        "Waiting: escalated", "warn", "It waits for more evidence or another reviewer"
    ),
}
"""Labels for a waiting case that name what it waits for, by state."""

WAITS_FOR_YOU = Word(
    "Waiting for you to adjudicate", "warn", "Its reviewers disagree, and you aren't one of them"
)
"""Replaces ``WAITS_FOR["needs_adjudication"]`` for people who may adjudicate the case."""

SEVERITY: dict[Severity, Word] = {
    "critical": Word(
        "critical", "grave", "Its worst issue can do harm, or makes the answer worthless"
    ),
    "high": Word("high", "bad", "Its worst issue makes the answer wrong"),
    "medium": Word("medium", "warn", "Its worst issue makes the answer poorer, not wrong"),
    "low": Word("low", "calm", "Its worst issue is a small one"),
}
"""The severities of an answer's worst issue, most severe first."""


LESSER = Word(
    "Less serious issues only",
    "calm",
    "Its issues have severity medium or low, and nothing is unconfirmed",
)
"""Replaces ``STANDING["nothing_found"]`` if the answer has a less serious issue."""


def status_label(
    standing: Standing, state: CaseState, severity: Severity | None
) -> tuple[Word, str]:
    """Return the label of a case's status, and the text of its decision or automatic acceptance.

    The text is "" while the case is open. ``severity`` is that of the case's worst issue.
    """
    if standing == "waits" and state in WAITS_FOR:
        return WAITS_FOR[state], ""
    # An open case has no decision to name.
    open_ = standing in ("wrong", "no_answer", "not_confirmed", "to_review") or state in (
        "needs_review",
        "new",
        "planted",
    )
    word = LESSER if standing == "nothing_found" and severity else STANDING[standing]
    return word, "" if open_ else STATE[state].text


RUN_STATE: dict[str, Word] = {
    "running": Word("Under way", "busy"),
    "finished": Word("Finished", "good"),
    "interrupted": Word(
        "Interrupted", "warn", "It stopped in the middle; what was finished is stored"
    ),
    "removed": Word("Removed", "calm", "Retention has removed its content"),
}
"""States of an audit or a screening. ``removed`` applies to one that has ended."""

ENTRY: dict[EntryKind, Word] = {
    "decision": Word("Decision", "calm", "A verdict on a case"),
    "undo": Word("Undone", "calm", "Cancels an earlier entry"),
    "policy_accept": STATE["accepted"],
    "adjudication": Word(
        "Adjudication", "calm", "The final verdict on a case whose reviewers disagree"
    ),
    "assign": Word("Assigned", "calm", "Gives a case to a reviewer"),
    "unassign": Word("Unassigned", "calm", "Takes a case from a reviewer"),
    "tag": Word("Tagged", "calm", "Gives a case a tag"),
    "untag": Word("Tag removed", "calm", "Takes a tag from a case"),
    "skip": Word("Skipped", "calm", "Leaves a case undecided"),
    "comment": Word("Comment", "calm", "A note about a case"),
    "code": Word("Coded", "calm", "Applies a failure mode to a case or to words about it"),
    "uncode": Word("Code removed", "calm", "Takes a failure mode from a case"),
    "guarantee": Word(
        "Guarantee", "calm", "A guaranteed threshold of auto-acceptance was applied or ended"
    ),
    "new_version": Word("New version", "calm", "A case with more evidence replaces this one"),
    "redaction": Word("Redaction", "warn", "Removes the text of an earlier entry"),
}
"""Kinds of entries of the decision log."""

REDACTED = Word(
    "Redacted",
    "warn",
    "The text of this entry was removed; a later entry records by whom and why",
)
SOURCE: dict[EntrySource, Word] = {
    "HUMAN": Word("person", "calm"),
    "LLM_JUDGE": Word("model", "calm"),
    "CODE": Word("rule", "calm"),
}

RULE: dict[str, Word] = {
    code: Word(rule.label, rule.tone, rule.meaning) for code, rule in RULES.items()
}

VERDICT: dict[str, Word] = {
    "supported": Word("supported", "good", "The evidence supports it"),
    "partial": RULE["partly_supported_claim"],
    "contradicted": RULE["contradicted_claim"],
    "unsupported": RULE["unsupported_claim"],
    "unverifiable": RULE["unverifiable_claim"],
    "unscored": RULE["unscored_claim"],
}

_EITHER_WAY = Word(
    "either way", "calm", "It can be read in two ways, and the verdict depends on which"
)
_SOURCES_DISAGREE = Word("sources disagree", "warn", "One chunk supports it, another denies it")


def verdict_word(check: ClaimCheck) -> Word:
    """Return the label of a claim's verdict.

    Claims that can be read either way, or on which sources disagree, have labels of their own.
    """
    if check.abstained == "either_way":
        return _EITHER_WAY
    return _SOURCES_DISAGREE if check.sources_disagree else VERDICT[check.verdict]


REFERENCE: dict[str, Word] = {
    "fabricated": RULE["fabricated_reference"],
    "misattributed": RULE["misattributed_reference"],
    "redundant": RULE["redundant_reference"],
    "unsupported": Word(
        "does not support this", "bad", "The evidence it names does not support this"
    ),
    "contradicts": Word("contradicts this", "bad", "The evidence it names contradicts this"),
    "valid": Word(
        "names evidence",
        "calm",
        "Names evidence of this case, which may or may not support the sentence",
    ),
}

SENTENCE: dict[str, Word] = {
    "uncited": RULE["uncited_sentence"],
    "exempt": Word(
        "exempt", "calm", "Needs no citation: a hedge, a heading, a question, a transition"
    ),
}

PART_LABELS: dict[str, dict[str, Word]] = {
    "claim": VERDICT,
    "reference": REFERENCE,
    "sentence": SENTENCE,
}
"""The words of verdicts on the parts of an answer, and of the labels that people give them."""

CHUNK_LABEL: dict[str, Word] = {
    "relevant": Word("relevant", "good", "The chunk helps to answer the question"),
    "irrelevant": Word("irrelevant", "calm", "The chunk doesn't help to answer the question"),
    "conflicting": Word("contradicts another", "warn", "The chunk contradicts another one"),
}
"""The labels on chunks of the evidence."""

NOT_JUDGED = Word("not judged", "calm", "The audit has no verdict on these words")
PASSAGE_MISSING = Word(
    "A needed passage is missing", "warn", "The evidence lacks a passage that the answer needs"
)
"""The label on a case whose evidence is incomplete."""

STANCE: dict[Stance, Word] = {
    "supports": Word("supports", "good", "The passage supports the labelled words"),
    "contradicts": Word("contradicts", "bad", "The passage contradicts the labelled words"),
}
"""How a passage that a label names bears on the labelled words."""

REPORT_STANCE: dict[str, dict[Stance, str]] = {
    "words": {"supports": "supports the words", "contradicts": "contradicts the words"},
    "answer": {"supports": "supports the answer", "contradicts": "contradicts the answer"},
    "omission": {"supports": "says what is missing"},
}
"""The same for a reported issue, by what its passages are about.

They bear on the answer's words, not on the issue. An answer that leaves something out has no words
for it, so that a passage can only say what is missing.
"""

SUPPORT_KIND: dict[SupportKind, Word] = {
    "quotation": Word("quotation", "calm", "The answer has the words of the passage"),
    "paraphrase": Word("paraphrase", "calm", "The answer says it in other words"),
    "inference": Word("inference", "calm", "The answer follows from the passage by reasoning"),
}
"""How labelled words follow from the passages that support them."""

MISSING_FIGURE = Word(
    "not in the evidence", "calm", "A figure that isn't in the evidence; it may be calculated"
)
"""The mark on a figure of the answer that isn't in the evidence."""

MARKED_WORDS = Word(
    "marked by a tagger", "calm", "A tagger found no support for these words; check them"
)
"""The mark on words that the tagger considers unsupported."""


def _flag_word(name: str) -> Word:
    """Return the label of a flag; without words of its own it has those of its rule."""
    flag = FLAGS.get(name, CaseFlag())
    rule = RULES[rules_with_flag(name)[0]] if rules_with_flag(name) else None
    return Word(
        flag.label or (rule.label if rule else ""),
        flag.tone or (rule.tone if rule else "calm"),
        flag.meaning or (rule.meaning if rule and not flag.about_run else ""),
    )


FLAG: dict[str, Word] = {name: _flag_word(name) for name in flag_names()}
"""Flags by weight; lists show the first few."""

UNANSWERED: dict[NoAnswerCode, Word] = {
    "refused": Word(
        "No answer: refused", "warn", "The system, or a filter before it, declined the question"
    ),
    "failed": Word(
        "No answer: failed", "warn", "The call of the system failed, or ended before the answer"
    ),
}
"""Labels for a case without an answer whose system gave a reason."""

REASONING = Word(
    "Model's reasoning, not audited", "calm", "The model's thoughts before it answered"
)
REASONING_SHOWN = 20_000
"""Characters of a model's reasoning that a page or command shows."""


def unanswered_words(case: Case) -> str:
    """Return why a case has no answer, with the system's message; "" if no reason is known."""
    why = case.unanswered
    if why is None:
        return ""
    message = " ".join(why.message.split())
    return f"{UNANSWERED[why.code].text}. {message}" if message else f"{UNANSWERED[why.code].text}."


def no_answer_words(case: Case) -> str:
    """Return the message shown in place of a missing answer, and whether an audit drafts one."""
    if case.unanswered is None:
        return "This case has no answer. An audit drafts one from the evidence first."
    why = (
        "its system refused"
        if case.unanswered.code == "refused"
        else "the call of its system failed"
    )
    return (
        f"This case has no answer because {why}. An audit drafts one only if the setting"
        " draft_unanswered is on."
    )


RUN_FLAGS = (*(name for name, flag in FLAGS.items() if flag.about_run), "model_not_examined")
ISSUES = tuple(flag for flag in FLAG if flag not in RUN_FLAGS)
"""Flags about the answer rather than about how its audit ran, most serious first."""

TIER: dict[ReviewTier, Word] = {
    "must_look": STANDING["wrong"],
    "not_certified": STANDING["not_confirmed"],
}

REASON: dict[ReviewCode, Word] = {
    code: Word(row.label, row.tone, f"{STANDING[row.status].text}: {row.meaning}")
    for code, row in REVIEW_CODES.items()
}
"""Labels of the reasons why a run needs review, most urgent first."""

COURSE: dict[str, Word] = {
    "new": Word("new", "warn", "Not raised in the iteration before"),
    "persisting": Word("persisting", "calm", "Raised in the iteration before as well"),
    "fixed": Word("fixed", "good", "Raised in the iteration before, and no longer"),
    "regressed": Word("regressed", "bad", "It was fixed and then raised again"),
}
"""Labels for the course of an issue from one iteration to the next."""

STOPPED: dict[TerminationReason, str] = {
    "no_issues": "no serious issue was left",
    "convergence": "no further revision improved the answer enough",
    "max_iterations": "it reached the largest number of iterations",
    "error": "a step failed",
    "cancelled": "a person stopped it",
    "no_answer": "the system gave no answer",
}


def ending_text(reason: TerminationReason, last_change: float | None) -> str:
    """Return why an audit ended, as it follows after "because".

    ``last_change`` is the change in quality by the last revision, None if there was none.
    """
    if reason != "convergence" or last_change is None:
        return STOPPED[reason]
    if last_change < 0:
        return "the last revision made the answer worse"
    if last_change == 0:
        return "the last revision didn't improve the answer"
    return "the last revision improved the answer by less than the threshold"


SCORE: dict[str, Word] = {
    "faithfulness": Word(
        "Faithfulness", "calm", "How far the answer says only what the evidence supports"
    ),
    "relevance": Word("Relevance", "calm", "How far it answers the question"),
    "completeness": Word("Completeness", "calm", "How much of the relevant evidence it uses"),
    "reasoning_quality": Word("Reasoning", "calm", "How well its steps hold together"),
    "overall_score": Word("Overall", "calm", "Weighted mean of the four"),
    "quality_score": Word(
        "Quality", "calm", "The critic's score times the citation penalty; picks the best answer"
    ),
    "confidence": Word(
        "Confidence", "calm", "The critic's confidence in the answer, lowered by citation errors"
    ),
}


def rule_word(rule: str) -> Word:
    """Return the label of a rule.

    Rules of the critic that aren't in ``RULE`` are named by their type, and the rules of checks
    that packages add by the check.
    """
    if rule.startswith("check_"):
        return Word(rule.removeprefix("check_"), "warn", "Raised by a check that a package adds")
    return RULE.get(rule) or Word(
        rule.removeprefix("critic_").replace("_", " "), "warn", "Raised by the critic"
    )


MACHINE_HIDDEN = (
    "The queue's policy hides audit results from you while there are cases left to decide."
)
"""Shown where results are left out for reviewers who decide blind."""
