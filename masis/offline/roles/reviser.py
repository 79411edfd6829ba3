"""Revises an answer without a model: makes only certain changes, and explains each of them.

Three changes are certain:

- A reference that doesn't name evidence, or names the wrong chunk, is replaced by the chunk that
the sentence is a copy of. If the sentence is a copy of no chunk, or of several, ``[citation
needed]`` replaces a fabricated reference, and its issue stays open. - A figure that the evidence
contradicts is replaced by the evidence's figure, if that makes the sentence a copy of the evidence.
In other sentences the figure may be about something else, or calculated. - A sentence that
instructs its reader is removed.

All other words stay, whatever issues they have. No sentence is added.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from masis.audit.citations import CITATION_NEEDED
from masis.audit.citations.citing_style import CitingStyle, citing_style
from masis.audit.context import AuditContext
from masis.audit.markers import words_of_marker
from masis.audit.text.assertions import citations_by_sentence
from masis.audit.text.comparison import quotation_key
from masis.offline.checks.figures import says_in_the_same_words
from masis.offline.matching.key_points import JUDGED_BY, index_of, lead_of
from masis.offline.roles.drafter import NOTHING_FOUND
from masis.schema.audit import (
    AnswerChange,
    ChangeKind,
    Citation,
    ClaimCheck,
    Contradiction,
    Critique,
    Issue,
    Revision,
    Sentence,
)
from masis.schema.case import Evidence
from masis.schema.rules import RULES, rule_of
from masis.schema.wording import shorten

NOTHING_SAFE = "There is nothing the offline reviser can safely change."
FIGURES = ("number", "unit", "date")
"""Kinds of contradiction that the evidence's value fixes.

Names aren't among them: two people may have done the same.
"""

# "- ", "2. ", "a) " at the end of the text before a sentence: the bullet of its list item.
_BULLET_BEFORE = re.compile(r"[ \t]*(?:[-*•–+]|\d{1,3}[.)]|[a-z][.)])[ \t]+$")
# "in " or "on " before a date.
_IN_OR_ON = re.compile(r"\b(in|on)\s+$", re.IGNORECASE)
# The day of a date: "31", "1st".
_DAY = re.compile(r"\b\d{1,2}(?:st|nd|rd|th)?\b")


class AnswerEdit(NamedTuple):
    """A replacement of ``answer[start:end]`` by ``text``.

    ``why`` explains it to people. It resolves the issues of ``rules``.
    """

    start: int
    end: int
    text: str
    kind: ChangeKind
    why: str
    rules: tuple[str, ...] = ()


class OfflineReviser:
    """A reviser that follows rules and never adds a statement that isn't in the evidence."""

    def revise(
        self, context: AuditContext, critique: Critique, issues: Sequence[Issue]
    ) -> Revision:
        """Return the answer with the certain changes, or the same answer if there are none."""
        # Evidence that instructs its reader may have been planted, so no revision relies on it.
        flagged = {
            chunk
            for issue in issues
            if _is_about_instruction(issue)
            for chunk in issue.evidence_ids
        }
        trusted = tuple(chunk for chunk in context.evidence if chunk.id not in flagged)
        style = citing_style(context.answer, context.citation_audit, context.evidence)
        citations = citations_by_sentence(context.citation_audit)
        issues_in = _issues_by_sentence(issues, context.citation_audit.sentences)
        checks: dict[int | None, list[ClaimCheck]] = defaultdict(list)
        for check in context.claims:
            checks[check.claim.sentence].append(check)
        edits: list[AnswerEdit] = []
        changes: list[AnswerChange] = []
        preserved: list[str] = []
        for number, sentence in enumerate(context.citation_audit.sentences):
            reviser = _SentenceReviser(
                context.answer, sentence, citations[number], checks[number], trusted, style
            )
            sentence_edits = reviser.edits(issues_in[number])
            edits += sentence_edits
            if sentence_edits:
                changes.append(_sentence_change(sentence, sentence_edits, issues_in[number]))
            else:
                preserved.append(sentence.text)
        return Revision(
            revised_answer=(
                apply_edits(context.answer, edits) or NOTHING_FOUND if edits else context.answer
            ),
            changes_explanation=_explain_changes(changes),
            updated_confidence=None,
            issues_addressed=tuple(
                dict.fromkeys(issue for change in changes for issue in change.issue_ids)
            ),
            preserved_content=tuple(preserved),
            changes=tuple(changes),
            judged_by=JUDGED_BY,
        )


@dataclass(frozen=True)
class _SentenceReviser:
    """Finds the certain changes of one sentence.

    ``evidence`` has the chunks that the sentence may cite, which are those without instructions.
    """

    answer: str
    sentence: Sentence
    citations: Sequence[Citation]
    checks: Sequence[ClaimCheck]
    evidence: tuple[Evidence, ...]
    style: CitingStyle

    def edits(self, issues: Sequence[Issue]) -> list[AnswerEdit]:
        if any(map(_is_about_instruction, issues)):
            rules = tuple(issue.rule for issue in issues)
            why = "It instructs its reader instead of answering."
            return [AnswerEdit(self.sentence.start, self.sentence.end, "", "dropped", why, rules)]
        figures = [edit for check in self.checks for edit in self._figure_edits(check)]
        if figures and not self._is_in_evidence(self._statement(figures)):
            figures = []  # other words differ as well, so the figure may be about something else
        return [*figures, *self._reference_edits(figures)]

    def _is_in_evidence(self, statement: str) -> bool:
        """Return whether the evidence has the statement word for word and doesn't contradict it."""
        if index_of(self.evidence).assess(statement).verdict == "contradicted":
            return False
        return any(says_in_the_same_words(chunk.text, statement) for chunk in self.evidence)

    def _figure_edits(self, check: ClaimCheck) -> Iterator[AnswerEdit]:
        """Yield a correction of each contradicted figure for which the evidence has one value."""
        if check.verdict != "contradicted" or check.claim.start is None:
            return
        candidates: dict[tuple[int, int], list[Contradiction]] = defaultdict(list)
        for conflict in check.contradictions:
            has_figures = all(
                any(map(str.isdigit, text))
                for text in (conflict.claim_text, conflict.evidence_text)
            )
            # Models state contradictions without a kind ("stated").
            if conflict.evidence_text and (
                conflict.kind in FIGURES or (conflict.kind == "stated" and has_figures)
            ):
                candidates[conflict.claim_start, conflict.claim_end].append(conflict)
        for (start, end), values in candidates.items():
            edit_start, edit_end = check.claim.start + start, check.claim.start + end
            distinct = {quotation_key(value.evidence_text) for value in values}
            if len(distinct) == 1 and self.answer[edit_start:edit_end] == values[0].claim_text:
                edit_start, text = self._with_preposition(edit_start, values[0])
                yield AnswerEdit(
                    edit_start,
                    edit_end,
                    text,
                    "corrected",
                    values[0].reason,
                    ("contradicted_claim",),
                )

    def _with_preposition(self, start: int, value: Contradiction) -> tuple[int, str]:
        """Return the start of a value, and the value with the right preposition for a date.

        Examples: "in 1887", "on 31 March". Replacing only the figure would give "on 1887".
        """
        lead = (
            _IN_OR_ON.search(self.answer, self.sentence.start, start)
            if value.kind == "date"
            else None
        )
        if lead is None:
            return start, value.evidence_text
        word = "on" if _DAY.search(value.evidence_text) else "in"
        return (
            lead.start(1),
            f"{word.capitalize() if lead[1][0].isupper() else word} {value.evidence_text}",
        )

    def _statement(self, figures: Sequence[AnswerEdit]) -> str:
        """Return the sentence with its figures corrected, without its bullet and its markers."""
        text = self.sentence.text
        spans = {(citation.marker_start, citation.marker_end): "" for citation in self.citations}
        spans |= {(edit.start, edit.end): edit.text for edit in figures}
        for (start, end), new in sorted(spans.items(), reverse=True):
            text = text[: start - self.sentence.start] + new + text[end - self.sentence.start :]
        text = text.replace(CITATION_NEEDED, "")
        return re.sub(r"\s+(?=[.,;:!?])", "", " ".join(text.removeprefix(lead_of(text)).split()))

    def _copied_from(self, statement: str) -> str | None:
        """Return the id of the only chunk that the statement is a copy of, or None."""
        index = index_of(self.evidence)
        candidates = dict.fromkeys(
            passage.evidence_id for passage in index.assess(statement).supporting
        )
        # Each chunk is assessed by itself, because several together may support what none does.
        sources = [
            id_ for id_ in candidates if index.assess(statement, only=(id_,)).verdict == "supported"
        ]
        return sources[0] if len(sources) == 1 else None

    def _reference_edits(self, figures: Sequence[AnswerEdit]) -> Iterator[AnswerEdit]:
        """Yield a replacement for each reference to the wrong chunk or to none.

        It is the chunk that the sentence is a copy of, or ``[citation needed]``.
        """
        misattributed = {
            reference.evidence_id
            for check in self.checks
            for reference in check.references
            if reference.finding == "misattributed"
        }
        markers: dict[tuple[int, int], list[Citation]] = defaultdict(list)
        for citation in self.citations:
            markers[citation.marker_start, citation.marker_end].append(citation)
        has_fabricated = any(citation.status == "invalid" for citation in self.citations)
        is_uncited = self.sentence.status == "uncited"
        if not (
            has_fabricated
            or is_uncited
            or misattributed & {citation.evidence_id for citation in self.citations}
        ):
            return
        source = self._copied_from(self._statement(figures)) if self.checks else None
        if source is None and not has_fabricated:
            return
        new_marker = self.style.write([source]) if source else CITATION_NEEDED
        if is_uncited and source:
            why = f"{source} says this; the sentence cited nothing"
            yield self._reference_edit(*self._new_marker_span(), new_marker, "cited", why)
        for (start, end), citations in markers.items():
            faulty = [
                citation.reference
                for citation in citations
                if citation.status == "invalid"
                or (source and citation.evidence_id in misattributed)
            ]
            if not faulty:
                continue
            correct_ids = [
                citation.evidence_id
                for citation in citations
                if citation.evidence_id
                and citation.reference not in faulty
                and citation.evidence_id != source
            ]
            words = words_of_marker(self.answer, start, end)
            markers_to_write = (
                [self.style.write([*correct_ids, source])]
                if source and new_marker
                else [self.style.write(correct_ids), new_marker]
            )
            text = " ".join(filter(None, [words, *markers_to_write]))
            span = (start, end) if end > start else self._new_marker_span()
            names = ", ".join(dict.fromkeys(faulty))
            if source:
                why = f"{source} says this, not {names}"
                yield self._reference_edit(*span, text, "reattributed", why)
            else:
                why = f"{names} names no evidence, and no single chunk says this"
                yield self._reference_edit(*span, text, "uncited_marker_removed", why)
            # The new marker replaces the first faulty one; the other faulty ones are removed.
            new_marker = ""

    def _new_marker_span(self) -> tuple[int, int]:
        """Return the position for the marker of a sentence that has none.

        That is its ``[citation needed]``, or else the end of the sentence before its stop.
        """
        tag_start = self.sentence.text.casefold().find(CITATION_NEEDED)
        if tag_start >= 0:
            return self.sentence.start + tag_start, self.sentence.start + tag_start + len(
                CITATION_NEEDED
            )
        stop_position = self.sentence.start + len(self.sentence.text.rstrip(".!?;: "))
        return stop_position, stop_position

    def _reference_edit(
        self, start: int, end: int, text: str, kind: ChangeKind, why: str
    ) -> AnswerEdit:
        """Return the edit with one space before its new marker.

        If there is no new marker, the spaces before the old one are removed with it.
        """
        if not text:
            start = len(self.answer[:start].rstrip(" "))
        elif not self.answer[start - 1 : start].isspace():
            text = f" {text}"
        # "[citation needed]" resolves nothing, so the issue stays open.
        resolved = () if kind == "uncited_marker_removed" else tuple(_rules_fixed_by_citing())
        return AnswerEdit(start, end, text, kind, why, resolved)


def _is_about_instruction(issue: Issue) -> bool:
    """Return whether the issue says that a text instructs a reader, a model or a tool."""
    return rule_of(issue.rule).kind == "instruction"


def _rules_fixed_by_citing() -> Iterator[str]:
    return (code for code, rule in RULES.items() if rule.is_fixed_by_citing)


def _issues_by_sentence(
    issues: Sequence[Issue], sentences: Sequence[Sentence]
) -> Mapping[int, list[Issue]]:
    """Return the issues that overlap each sentence, by its number.

    The sentences are in order and don't overlap.
    """
    ends = [sentence.end for sentence in sentences]
    by_sentence: dict[int, list[Issue]] = defaultdict(list)
    for issue in issues:
        if issue.start is None or issue.end is None:
            continue
        for number in range(bisect_right(ends, issue.start), len(sentences)):
            if sentences[number].start >= issue.end:
                break
            by_sentence[number].append(issue)
    return by_sentence


def _sentence_change(
    sentence: Sentence, edits: Sequence[AnswerEdit], issues: Sequence[Issue]
) -> AnswerChange:
    """Return the change of one sentence, with the issues that it resolves."""
    edits_in_sentence = [
        edit._replace(start=edit.start - sentence.start, end=edit.end - sentence.start)
        for edit in edits
    ]
    rules = {rule for edit in edits for rule in edit.rules}
    return AnswerChange(
        kind=edits[0].kind,
        before=sentence.text,
        after="" if edits[0].kind == "dropped" else apply_edits(sentence.text, edits_in_sentence),
        why="; ".join(dict.fromkeys(edit.why.rstrip(".") for edit in edits)) + ".",
        issue_ids=tuple(issue.id for issue in issues if issue.rule in rules),
    )


def _explain_changes(changes: Sequence[AnswerChange]) -> str:
    verbs = {
        "reattributed": "cited another chunk for",
        "corrected": "corrected",
        "dropped": "removed",
        "cited": "added a citation to",
        "uncited_marker_removed": "asked for a citation in place of a fabricated reference in",
    }
    lines = [
        f"{number}. {verbs[change.kind].capitalize()}"
        f" “{shorten(' '.join(change.before.split()), 120)}” ({change.why.rstrip('.')})."
        for number, change in enumerate(changes, 1)
    ]
    return "\n".join(lines) or NOTHING_SAFE


def apply_edits(text: str, edits: Iterable[AnswerEdit]) -> str:
    """Return the text with all edits made.

    The spaces and bullets around removed sentences are removed as well.
    """
    # From the end, so that an edit doesn't move the positions of the others.
    for edit in sorted(edits, key=lambda edit_: (edit_.start, edit_.end), reverse=True):
        start, end = (
            _span_with_surroundings(text, edit.start, edit.end)
            if edit.kind == "dropped"
            else (edit.start, edit.end)
        )
        text = text[:start] + edit.text + text[end:]
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _span_with_surroundings(answer: str, start: int, end: int) -> tuple[int, int]:
    """Return the span to remove with a sentence.

    It includes the whole line if the sentence is alone on it, even after a bullet. Otherwise it
    includes the spaces on one side, so that one space is left between its neighbors.
    """
    line_start = answer.rfind("\n", 0, start) + 1
    is_line_end = end >= len(answer) or answer[end] == "\n"
    text_before = answer[line_start:start]
    if is_line_end and (not text_before.strip() or _BULLET_BEFORE.fullmatch(text_before)):
        return line_start, min(end + 1, len(answer))
    while end < len(answer) and answer[end] in " \t":
        end += 1
    if end >= len(answer) or answer[end] == "\n":
        while start > line_start and answer[start - 1] in " \t":
            start -= 1
    return start, end
