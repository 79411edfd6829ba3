"""What a row may say of a case: the answers by their part (original, judged, standing), evidence,
labels with offsets.

Offsets count characters (code points) of the answer that was judged: ``answer[start:end]`` are the
words a label is about.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError

from masis.audit.citations import carry_over_citations
from masis.schema.audit import Citation, Sentence
from masis.schema.case import Case, GivenCitation
from masis.schema.reading import ANSWERING_ROLES, ASKING_ROLES
from masis.schema.review import Decision, decided_about
from masis.store.reviews.outcomes import CaseOutcome, Judgement

Row = dict[str, Any]

_GIVEN_CITATIONS = TypeAdapter(tuple[GivenCitation, ...])

PERSON_KINDS = ("decision", "adjudication")
"""Kinds of entries by which a person decides."""

RAGTRUTH_TYPE = {
    "contradicted": "Evident Conflict",
    "contradicts": "Evident Conflict",
    "unsupported": "Evident Baseless Info",
    "fabricated": "Evident Baseless Info",
    "fabricated citation": "Evident Baseless Info",
    "partial": "Subtle Baseless Info",
}
"""RAGTruth's types of hallucination by the label that a person gave; other labels mark no
hallucination.
"""

_SENTENCE_FIELDS = {"text", "status", "why", "citation_ids"}
_CITATION_FIELDS = {"text", "reference", "evidence_id", "status", "resolved_by"}
_ISSUE_FIELDS = {
    *(
        "id",
        "source",
        "type",
        "severity",
        "description",
        "reason",
        "suggestion",
        "evidence_ids",
        "rule",
    ),
    *("start", "end"),
}
"""Fields of the audit that rows have, as they are stored."""

_CHAT_ROLES = {
    **dict.fromkeys(ANSWERING_ROLES, "assistant"),
    **dict.fromkeys(ASKING_ROLES, "user"),
    "system": "system",
}
"""Roles as chat formats name them, which have no others, such as a tool's."""

_TRACE_KEYS = ("langfuse_trace_id", "trace_id", "traceId")
_SPAN_KEYS = ("langfuse_observation_id", "observation_id", "observationId", "span_id")
_SCORE_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://masis.invalid/scores")


def locate_words(text: str | None, words: str, start: Any, end: Any) -> Row:
    """Return where words stand in a text: at the offsets given if they do, else at their only
    occurrence, else None.

    A sentence or a claim may occur twice, so its own offsets come first; a decision that came from
    a program may carry offsets that don't fit, and they are never handed on.
    """
    if text is not None and words:
        if (
            isinstance(start, int)
            and isinstance(end, int)
            and 0 <= start < end
            and text[start:end] == words
        ):
            return {"start": start, "end": end}
        first = text.find(words)
        if first >= 0 and text.find(words, first + 1) < 0:
            return {"start": first, "end": first + len(words)}
    return {"start": None, "end": None}


@dataclass(frozen=True, eq=False)
class JudgedAnswer:
    """One judgement on one answer of a case: the record whose fields ``formats.toml`` names."""

    outcome: CaseOutcome
    judgement: Judgement
    split: str
    others: Sequence[JudgedAnswer] = field(default=(), repr=False)
    """Every judgement on the case, this one among them."""

    def get(self, name: str) -> Any:
        """Return a field by its name, which is how JMESPath asks an object. Raises KeyError where
        there is none.
        """
        if name in self._at_hand:
            return self._at_hand[name]
        if name not in _FIELDS:
            raise KeyError(name)
        return getattr(self, name)

    @cached_property
    def _at_hand(self) -> Row:
        entry, run, decision = self.judgement.entry, self.judgement.run, self.decided
        return {
            "case": self.case,
            "case_id": self.case["id"],
            "question": self.case["query"],
            "state": self.outcome.state,
            "split": self.split,
            "in_force": self.judgement.in_force,
            "decision": decision.verdict if decision else None,
            "decided_by": decision.reviewer if decision else None,
            "decided_about": decided_about(decision) if decision else "",
            "entry_id": entry.id if entry else None,
            "decided_at": entry.at if entry else None,
            "run_id": run.id if run else None,
            "run": {**run._asdict(), "iteration": self.judgement.number} if run else None,
            "iteration": self.judgement.number,
            "drafter": run.models.get("drafter", "") if run else "",
            "trace": external_id(self.case, _TRACE_KEYS),
            "known": self.answer is not None,
            "audited": self.answer is not None and self.judgement.iteration is not None,
        }

    # the case

    @property
    def case(self) -> dict[str, Any]:
        """The case as imported."""
        return self.outcome.case

    @property
    def digest(self) -> str:
        """The digest of its text, as the lake of audited cases has it."""
        content = json.dumps(self.case, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def evidence(self) -> list[Row]:
        """The chunks: id, text, and the source where there is one."""
        return [
            {"id": chunk["id"], "text": chunk.get("text", "")}
            | ({"source": chunk["source"]} if chunk.get("source") is not None else {})
            for chunk in self.case["evidence"]
        ]

    @property
    def passages(self) -> str:
        """The chunks in one text, as RAGTruth has them."""
        return "\n\n".join(
            f"passage {place}:{each['text']}" for place, each in enumerate(self.evidence, 1)
        )

    @property
    def prompt(self) -> str:
        """The question with its evidence, as a model is asked it."""
        sources = "\n\n".join(f"[{each['id']}] {each['text']}" for each in self.evidence)
        return (
            "Answer the question from the sources. Cite the source of each statement by its id in"
            f" brackets.\n\nSources:\n\n{sources}\n\nQuestion: {self.case['query']}"
        )

    @property
    def asked(self) -> list[Row]:
        """The turns that lead to the answer: those of the conversation before the question, then
        the prompt.
        """
        turns = Case.from_stored(self.case).earlier_turns if self.case.get("messages") else ()
        before = [
            {"role": _CHAT_ROLES[turn.role], "content": turn.text}
            for turn in turns
            if turn.role in _CHAT_ROLES
        ]
        return [*before, {"role": "user", "content": self.prompt}]

    # who decided what

    @property
    def decided(self) -> Decision | None:
        """The person's decision, or the acceptance policy's; None where only the machine judged."""
        entry = self.judgement.entry
        return entry.decision if entry else None

    @property
    def reviewer(self) -> str | None:
        """The person who decided; None where nobody did."""
        return self.decided.reviewer if self.decided and self.decided.kind in PERSON_KINDS else None

    @cached_property
    def entry(self) -> Row | None:
        """The entry of the decision log."""
        return self.judgement.entry.model_dump(mode="json") if self.judgement.entry else None

    @property
    def decisions(self) -> list[Row | None]:
        """The entries of all reviewers of the case."""
        made = [
            each
            for each in self.others
            if each.decided is not None and each.decided.kind == "decision"
        ]
        return [
            self.entry if each.judgement.entry is self.judgement.entry else each.entry
            for each in made
        ]

    # what the machine found

    @cached_property
    def claims(self) -> list[Row]:
        """The machine's claims on the judged answer, with offsets into it."""
        machine = self.judgement.iteration
        return [
            {
                "text": check.claim.text,
                "statement": check.claim.statement or check.claim.text,
                **locate_words(self.answer, check.claim.text, check.claim.start, check.claim.end),
                **check.model_dump(
                    mode="json", include={"verdict", "support", "confidence", "sources"}
                ),
                "cited": list(check.claim.cited),
                "judged_by": check.judged_by,
            }
            for check in (machine.claims if machine else ())
        ]

    @cached_property
    def sentences(self) -> list[Row]:
        """The sentences of the judged answer, as the citation engine cut them."""
        machine = self.judgement.iteration
        return self._with_offsets(
            machine.citation_audit.sentences if machine else (), _SENTENCE_FIELDS
        )

    @cached_property
    def citations(self) -> list[Row]:
        """The references of the judged answer, each with its place."""
        machine = self.judgement.iteration
        return self._with_offsets(
            machine.citation_audit.citations if machine else (), _CITATION_FIELDS
        )

    def _with_offsets(self, found: Iterable[Sentence | Citation], fields: set[str]) -> list[Row]:
        """Return parts of the audit as they are stored, with their offsets into the answer at the
        end.
        """
        return [
            each.model_dump(mode="json", include=fields)
            | locate_words(self.answer, each.text, each.start, each.end)
            for each in found
        ]

    @cached_property
    def issues(self) -> list[Row]:
        """What the audit found wrong with the judged answer; offsets are None for what has no place
        in it.
        """
        machine, answer = self.judgement.iteration, self.answer
        return [
            each.model_dump(mode="json", include=_ISSUE_FIELDS)
            | {
                "text": (
                    None if answer is None or each.start is None else answer[each.start : each.end]
                )
            }
            for each in (machine.issues if machine else ())
        ]

    # the answers

    @cached_property
    def answer(self) -> str | None:
        """The answer that was judged; None where the run that wrote it was removed."""
        found = self.judgement.iteration
        if found is not None:
            return found.answer
        return self.original if self.judgement.entry is None or self.judgement.number == 1 else None

    @property
    def original(self) -> str | None:
        """The answer that came with the case."""
        answer = self.case.get("answer")
        return answer if isinstance(answer, str) else None

    @property
    def standing(self) -> str | None:
        """The answer that the decision lets stand: the corrected one, else the one judged; None
        where none stands.
        """
        decision = self.decided
        if decision is None or decision.kind not in (*PERSON_KINDS, "policy_accept"):
            return None
        if decision.verdict in ("reject", "escalate"):
            return None
        return self.answer if decision.corrected_answer is None else decision.corrected_answer

    @property
    def standing_citations(self) -> list[Row]:
        """The citations given beside the original answer that the standing one keeps, with their
        places in it.

        It keeps those whose sentences are unchanged.
        """
        given, standing = self.case.get("citations"), self.standing
        if not given or standing is None or self.original is None:
            return []
        try:
            citations = _GIVEN_CITATIONS.validate_python(given)
        # the key held something else before it meant citations, and holds it still
        except ValidationError:
            return []
        kept = carry_over_citations(citations, self.original, standing)
        return [each.model_dump(mode="json", exclude_unset=True) for each in kept]

    @property
    def person_let_stand(self) -> bool:
        """Whether a person, not the policy, let an answer stand that has any words."""
        return self.reviewer is not None and bool((self.standing or "").strip())

    @property
    def rejected(self) -> str | None:
        """The answer that the standing one replaced; None where there is none."""
        corrected = self.decided is not None and self.decided.corrected_answer is not None
        found = self.answer if corrected else self.original
        return found if found and found.strip() else None

    @property
    def differs(self) -> bool:
        """Whether the standing answer and the replaced one differ in more than blanks."""
        return (self.standing or "").split() != (self.rejected or "").split()

    # labels

    @cached_property
    def labels(self) -> list[Row]:
        """The person's labels on the judged answer; offsets are None where the words don't stand in
        it once.

        Those with a severity report an issue that the audit missed; one on the whole answer
        (``target`` "answer") has no place and no words.
        """
        return [
            {name: getattr(each, name) for name in ("target", "label", "severity", "note", "text")}
            | locate_words(self.answer, each.text, each.start, each.end)
            for each in (self.decided.labels if self.decided else ())
        ]

    @property
    def marked(self) -> bool:
        """Whether it is known where the faults of the answer are.

        An answer that was rejected, or reported as a whole, without a label on any of its words has
        faults whose place nobody named: a row of spans would teach that it has none.
        """
        on_words = any(label["target"] != "answer" for label in self.labels)
        return on_words or (
            not self.labels and self.decided is not None and self.decided.verdict == "approve"
        )

    @property
    def ragtruth_labels(self) -> list[Row]:
        """The labels that mark a hallucination, in the shape of RAGTruth."""
        return [
            {
                **{name: label[name] for name in ("start", "end", "text")},
                "meta": label["note"],
                "label_type": RAGTRUTH_TYPE[label["label"]],
                "implicit_true": False,
                "due_to_null": False,
            }
            for label in self.labels
            if label["label"] in RAGTRUTH_TYPE and label["start"] is not None
        ]

    @property
    def labelled_claims(self) -> list[Row]:
        """The claims, each with the person's label on exactly its words."""
        return [each | self._label_at("claim", each) for each in self.claims]

    @property
    def labelled_sentences(self) -> list[Row]:
        """The sentences, each with the person's label on exactly its words."""
        return [
            each | {"cited": each["citation_ids"]} | self._label_at("sentence", each)
            for each in self.sentences
        ]

    @property
    def compared_labels(self) -> list[Row]:
        """The labels, each with what the machine said of the same words."""
        return [each | {"machine": self._machine_verdict(each)} for each in self.labels]

    def _label_at(self, target: str, row: Row) -> Row:
        """Return label and note on the words of a row, the last ones where there are several; None
        where none are.
        """
        place = (target, row["start"], row["end"])
        found = [
            each for each in self.labels if (each["target"], each["start"], each["end"]) == place
        ]
        label = found[-1] if found and row["start"] is not None else None
        return {name: label[name] if label else None for name in ("label", "note")}

    def _machine_verdict(self, label: Row) -> str | None:
        """Return what the machine said of the words that a label is about; None where it judged no
        such words.
        """
        judged = {"claim": (self.claims, "verdict"), "sentence": (self.sentences, "status")}
        rows, name = (judged | {"reference": (self.citations, "status")}).get(
            label["target"], ([], "")
        )
        found = (
            row[name]
            for row in rows
            if (row["start"], row["end"]) == (label["start"], label["end"])
        )
        return None if label["start"] is None else next(found, None)

    # where the answer came from

    @property
    def langfuse_scores(self) -> list[Row]:
        """Bodies for ``POST /api/public/scores``; ids follow from what they say, so that sending
        twice adds none.
        """
        trace, span = (external_id(self.case, names) for names in (_TRACE_KEYS, _SPAN_KEYS))
        about = {"traceId": trace} if span is None else {"traceId": trace, "observationId": span}
        entry, run, decision = self.judgement.entry, self.judgement.run, self.decided
        scores: list[tuple[str, str | float | None, str, str]] = []
        if entry is not None and decision is not None and self.reviewer is not None:
            scores.append(
                ("decision", decision.verdict, decision.reason or decision.note, entry.id)
            )
        if run is not None:
            scores += [
                (name, getattr(run, name), "", run.id)
                for name in ("quality", "confidence", "overall")
            ]
        return [
            {
                "id": str(uuid.uuid5(_SCORE_NAMESPACE, f"{trace}/{span}/masis-{name}/{source}")),
                **about,
                "name": f"masis-{name}",
                "value": value,
                "dataType": "CATEGORICAL" if isinstance(value, str) else "NUMERIC",
                **({"comment": comment} if comment else {}),
            }
            for name, value, comment, source in scores
            if value is not None
        ]

    @property
    def label_studio_task(self) -> Row:
        """A task: the machine's claims as predictions, each reviewer's labels on the same answer as
        annotations.
        """
        same = [
            each for each in self.others if each.answer == self.answer and each.reviewer is not None
        ]
        regions = [
            _label_studio_region(each, each["verdict"])
            for each in self.claims
            if each["start"] is not None
        ]
        verifier = (
            self.judgement.run.models.get("verifier", "offline")
            if self.judgement.run is not None
            else None
        )
        return {
            "data": {
                **{name: self.get(name) for name in ("case_id", "split", "question")},
                "text": self.answer,
                "evidence": self.evidence,
            },
            "predictions": (
                [{"model_version": verifier, "result": regions}] if regions and verifier else []
            ),
            "annotations": [
                {
                    "result": list(
                        filter(None, map(each._annotation, range(len(each.labels)), each.labels))
                    ),
                    "was_cancelled": False,
                    "ground_truth": each.judgement.in_force,
                }
                for each in same
            ],
        }

    def _annotation(self, number: int, label: Row) -> Row | None:
        """Return a label on words as a region, one on the whole answer as a choice about it."""
        # several issues may be reported on the same words: regions of one id would be taken for one
        own = f"-{number}" if label["severity"] else ""
        noted = [f"reviewer: {self.reviewer}"]
        if label["severity"]:
            noted += [
                f"severity: {label['severity']}",
                *([f"note: {label['note']}"] if label["note"] else []),
            ]
        meta = {"meta": {"text": noted}}
        if label["start"] is not None:
            return _label_studio_region(label, label["label"], own) | meta
        if label["target"] != "answer":
            return None
        made = {"id": f"answer{own}", "from_name": "answer", "to_name": "text", "type": "choices"}
        return {**made, "value": {"choices": [label["label"]]}, **meta}


_FIELDS = frozenset(name for name in dir(JudgedAnswer) if not name.startswith("_")) | {"split"}


def external_id(case: dict[str, Any], names: Sequence[str]) -> str | None:
    """The id under which another tool knows the case: in its metadata, in ``external`` there, or
    beside its fields.
    """
    metadata = case.get("metadata")
    places = [
        metadata,
        metadata.get("external") if isinstance(metadata, dict) else None,
        case.get("external"),
        case,
    ]
    found = (place.get(name) for place in places if isinstance(place, dict) for name in names)
    return next((each for each in found if isinstance(each, str) and each), None)


def _label_studio_region(row: Row, label: str, own: str = "") -> Row:
    place = {name: row[name] for name in ("start", "end", "text")}
    return {
        "id": f"{row.get('target', 'claim')}-{row['start']}-{row['end']}{own}",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": {**place, "labels": [label]},
    }
