"""The formats: which rows a decided case gives, and why some cases give none.

A format returns rows, or the reason for which a case is left out, which the manifest counts. Offsets count characters
(code points) of the text in the same row: ``row["answer"][start:end]`` are the words a label is about.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, get_args
from xml.sax.saxutils import quoteattr

from pydantic_core import to_json

from masis.datasets.exports.answers import Judged, Row
from masis.schema.case import Case
from masis.schema.reading import ANSWERING_ROLES, ASKING_ROLES
from masis.schema.review import Verdict, decided_about
from masis.schema.team import LabelTypes

Rows = Sequence[Row] | str
"""Rows, or why there are none."""

NO_STANDING = "no answer stands"
NOT_JUDGED = "no audited answer"
NO_LABEL = "no label"


class Format(NamedTuple):
    """One format.

    ``flat`` rows hold numbers and text alone, ``columns`` in order, so that they can be CSV and Parquet as well.
    ``table`` makes a flat row of one that is not, for Parquet; one of its ``columns`` holds the whole row as JSON.
    ``of`` says what ``rows`` is asked of: the judgement that the case's state follows from, or each reviewer's.
    ``balance`` names the fields that the manifest counts the values of.
    """

    name: str
    summary: str
    rows: Callable[[Judged, Sequence[Judged]], Rows]
    of: str = "case"
    flat: bool = False
    columns: tuple[str, ...] = ()
    balance: tuple[str, ...] = ()
    suffix: str = ".jsonl"
    table: Callable[[Row], Row] | None = None


# --- what stands in several formats


def _about_case(judged: Judged) -> Row:
    return {"case_id": judged.case["id"], "split": judged.split, "question": judged.case["query"]}


def _about_judgement(judged: Judged) -> Row:
    entry, run = judged.judgement.entry, judged.judgement.run
    return {
        **_about_case(judged),
        "reviewer": judged.reviewer,
        "decision": judged.decision.verdict if judged.decision else None,
        "in_force": judged.judgement.in_force,
        "entry_id": entry.id if entry else None,
        "decided_at": entry.at if entry else None,
        "run_id": run.id if run else None,
        "iteration": judged.judgement.number,
    }


_JUDGEMENT = (
    *("case_id", "split", "question", "reviewer", "decision", "in_force", "entry_id", "decided_at"),
    *("run_id", "iteration"),
)


# --- decided


def _decided(judged: Judged, others: Sequence[Judged]) -> Rows:
    entry, run = judged.judgement.entry, judged.judgement.run
    standing = entry.model_dump(mode="json") if entry else None
    return [
        {
            "case": judged.case,
            "state": judged.state,
            "split": judged.split,
            "answer": judged.standing,
            "answer_citations": judged.standing_citations,
            "original_answer": judged.original,
            "judged_answer": judged.answer,
            "decided_about": decided_about(entry.decision) if entry and entry.decision else "",
            "decision": standing,
            "labels": judged.labels,
            "claims": judged.claims,
            "citations": judged.citations,
            "issues": judged.issues,
            "run": None if run is None else {**run._asdict(), "iteration": judged.judgement.number},
            "decisions": [
                standing if each.judgement.entry is entry else each.judgement.entry.model_dump(mode="json")
                for each in others
                if each.judgement.entry is not None and each.decision is not None and each.decision.kind == "decision"
            ],
        }
    ]


DECIDED_COLUMNS = (
    *("case_id", "digest", "state", "split", "decision", "reviewer", "decided_at", "entry_id", "reason", "note"),
    *("run_id", "iteration", "answer", "original_answer", "record"),
)


def _decided_table(row: Row) -> Row:
    """Return a decided case as a row of a table; ``digest`` is the case's, as the lake of audited cases has it."""
    case, entry, run = row["case"], row["decision"] or {}, row["run"] or {}
    decision = entry.get("decision") or {}
    content = json.dumps(case, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return {
        "case_id": case["id"],
        "digest": hashlib.sha256(content.encode()).hexdigest(),
        "state": row["state"],
        "split": row["split"],
        "decision": decision.get("verdict"),
        "reviewer": decision.get("reviewer"),
        "decided_at": entry.get("at"),
        "entry_id": entry.get("id"),
        "reason": decision.get("reason"),
        "note": decision.get("note"),
        "run_id": run.get("id"),
        "iteration": run.get("iteration"),
        "answer": row["answer"],
        "original_answer": row["original_answer"],
        "record": to_json(row).decode(),
    }


# --- flat: claims, sentences, labels

_CLAIM = ("start", "end", "text", "statement", "verdict", "support", "confidence", "judged_by")


def _claims(judged: Judged, _others: Sequence[Judged]) -> Rows:
    if judged.answer is None or judged.judgement.iteration is None:
        return NOT_JUDGED
    about = _about_judgement(judged)
    return [
        {
            **about,
            **{name: claim[name] for name in _CLAIM},
            "sources": " ".join(claim["sources"]),
            "cited": " ".join(claim["cited"]),
            **_label(judged.label_at("claim", claim)),
            "answer": judged.answer,
        }
        for claim in judged.claims
    ]


def _sentences(judged: Judged, _others: Sequence[Judged]) -> Rows:
    if judged.answer is None or judged.judgement.iteration is None:
        return NOT_JUDGED
    about = _about_judgement(judged)
    return [
        {
            **about,
            **{name: sentence[name] for name in ("start", "end", "text", "status", "why")},
            "cited": " ".join(sentence["citation_ids"]),
            **_label(judged.label_at("sentence", sentence)),
            "answer": judged.answer,
        }
        for sentence in judged.sentences
    ]


def _label(label: Row | None) -> Row:
    return {"label": label["label"] if label else None, "note": label["note"] if label else None}


def _labels(judged: Judged, _others: Sequence[Judged]) -> Rows:
    if not judged.labels:
        return NO_LABEL
    about = _about_judgement(judged)
    return [
        {
            **about,
            **{name: label[name] for name in ("target", "start", "end", "text", "label", "severity", "note")},
            "machine": judged.machine_verdict(label),
            "answer": judged.answer,
        }
        for label in judged.labels
    ]


# --- spans, in the shape of RAGTruth

RAGTRUTH_TYPE = {
    "contradicted": "Evident Conflict",
    "contradicts": "Evident Conflict",
    "unsupported": "Evident Baseless Info",
    "fabricated": "Evident Baseless Info",
    "fabricated citation": "Evident Baseless Info",
    "partial": "Subtle Baseless Info",
}
"""RAGTruth's types of hallucination by the label that a person gave; other labels mark no hallucination."""

_REPORTED = ("start", "end", "text", "label", "severity", "note")


def _spans(judged: Judged, _others: Sequence[Judged]) -> Rows:
    decision = judged.decision
    if decision is None or judged.reviewer is None:
        return "no person decided"
    if judged.answer is None:
        return NOT_JUDGED
    if not any(label["target"] != "answer" for label in judged.labels) and (
        judged.labels or decision.verdict != "approve"
    ):
        # An answer that was rejected, or reported as a whole, without a label on any of its words has faults whose
        # place nobody named: such a row would teach that it has none.
        return NO_LABEL
    passages = "\n\n".join(f"passage {place}:{each['text']}" for place, each in enumerate(judged.evidence, 1))
    entry = judged.judgement.entry
    return [
        {
            "id": entry.id if entry else judged.case["id"],
            "source_id": judged.case["id"],
            "model": judged.judgement.run.models.get("drafter", "") if judged.judgement.run else "",
            "temperature": None,
            "labels": [
                {
                    **{name: label[name] for name in ("start", "end", "text")},
                    "meta": label["note"],
                    "label_type": RAGTRUTH_TYPE[label["label"]],
                    "implicit_true": False,
                    "due_to_null": False,
                }
                for label in judged.labels
                if label["label"] in RAGTRUTH_TYPE and label["start"] is not None
            ],
            "reported": [{name: label[name] for name in _REPORTED} for label in judged.labels if label["severity"]],
            "split": judged.split,
            "quality": "good",
            "response": judged.answer,
            "task_type": "QA",
            "source": "masis",
            "source_info": {"question": judged.case["query"], "passages": passages},
            "prompt": prompt(judged),
            "reviewer": judged.reviewer,
            "evidence_ids": [each["id"] for each in judged.evidence],
            "evidence": judged.evidence,  # the passages apart, so that the file can be imported again
        }
    ]


# --- to train: sft, pairs


def prompt(judged: Judged) -> str:
    """The question with its evidence, as a model is asked it."""
    sources = "\n\n".join(f"[{each['id']}] {each['text']}" for each in judged.evidence)
    return (
        "Answer the question from the sources. Cite the source of each statement by its id in brackets.\n\n"
        f"Sources:\n\n{sources}\n\nQuestion: {judged.case['query']}"
    )


def _asked(judged: Judged) -> list[dict[str, str]]:
    """The turns that lead to the answer: those of the conversation before the question, then the prompt."""
    turns = Case.model_validate(judged.case).earlier_turns if judged.case.get("messages") else ()
    before = [{"role": role, "content": turn.text} for turn in turns if (role := _chat_role(turn.role))]
    return [*before, {"role": "user", "content": prompt(judged)}]


def _chat_role(role: str) -> str | None:
    """The role as chat formats name it; None for one that they don't have, such as a tool's."""
    if role in ANSWERING_ROLES:
        return "assistant"
    if role in ASKING_ROLES:
        return "user"
    return role if role == "system" else None


def _person_let_stand(judged: Judged) -> bool:
    return judged.reviewer is not None and bool((judged.standing or "").strip())


def _sft(judged: Judged, _others: Sequence[Judged]) -> Rows:
    if not _person_let_stand(judged):
        return NO_STANDING
    return [
        {
            "messages": [*_asked(judged), {"role": "assistant", "content": judged.standing}],
        }
    ]


class _Pair(NamedTuple):
    chosen: str
    rejected: str


def _pair(judged: Judged) -> _Pair | str:
    """The answer that a person let stand, and the one that it replaced."""
    chosen = judged.standing
    if not _person_let_stand(judged) or chosen is None:
        return NO_STANDING
    corrected = judged.decision is not None and judged.decision.corrected_answer is not None
    rejected = judged.answer if corrected else judged.original
    if rejected is None or not rejected.strip():
        return "nothing was replaced"
    if " ".join(chosen.split()) == " ".join(rejected.split()):
        return "the texts are the same"
    return _Pair(chosen, rejected)


def _pairs(judged: Judged, _others: Sequence[Judged]) -> Rows:
    pair = _pair(judged)
    if isinstance(pair, str):
        return pair
    return [
        {
            "prompt": _asked(judged),
            "chosen": [{"role": "assistant", "content": pair.chosen}],
            "rejected": [{"role": "assistant", "content": pair.rejected}],
        }
    ]


def _pairs_openai(judged: Judged, _others: Sequence[Judged]) -> Rows:
    pair = _pair(judged)
    if isinstance(pair, str):
        return pair
    asked = {"messages": _asked(judged), "tools": [], "parallel_tool_calls": True}
    return [
        {
            "input": asked,
            "preferred_output": [{"role": "assistant", "content": pair.chosen}],
            "non_preferred_output": [{"role": "assistant", "content": pair.rejected}],
        }
    ]


# --- to measure: ragas, hf


def _sources(judged: Judged) -> list[str]:
    """The source of each chunk, empty where it has none: a loader that meets only nulls first refuses text later."""
    return [each.get("source", "") for each in judged.evidence]


def _ragas(judged: Judged, _others: Sequence[Judged]) -> Rows:
    if judged.answer is None:
        return NOT_JUDGED
    row: Row = {
        "user_input": judged.case["query"],
        "response": judged.answer,
        "retrieved_contexts": [each["text"] for each in judged.evidence],
        "retrieved_context_ids": [each["id"] for each in judged.evidence],
        "retrieved_context_sources": _sources(judged),
    }
    return [row if not _person_let_stand(judged) else row | {"reference": judged.standing}]


def _hf(judged: Judged, _others: Sequence[Judged]) -> Rows:
    if judged.answer is None:
        return NOT_JUDGED
    decision = judged.decision
    return [
        {
            "id": judged.case["id"],
            "question": judged.case["query"],
            "contexts": [each["text"] for each in judged.evidence],
            "context_ids": [each["id"] for each in judged.evidence],
            "context_sources": _sources(judged),
            "answer": judged.answer,
            "ground_truth": judged.standing if _person_let_stand(judged) else None,
            "decision": decision.verdict if decision else None,
            "labels": [
                {name: label[name] for name in ("target", "start", "end", "text", "label", "severity")}
                for label in judged.labels
            ],
        }
    ]


# --- label studio

_CORRECTIONS = (
    *("supported", "partial", "contradicted", "unsupported", "unverifiable"),
    *("valid", "fabricated", "misattributed", "redundant", "contradicts"),
)

_LABEL_STUDIO_CONFIG = """<View>
  <Header value="$question"/>
  <Labels name="label" toName="text">
{labels}
  </Labels>
  <Text name="text" value="$text"/>
  <Choices name="answer" toName="text" choice="multiple">
{choices}
  </Choices>
  <Choices name="verdict" toName="text">
{verdicts}
  </Choices>
  <TextArea name="reason" toName="text" placeholder="Reason, to override or reject"/>
  <TextArea name="corrected_answer" toName="text" placeholder="Corrected answer, to override"/>
  <Paragraphs name="evidence" value="$evidence" layout="dialogue" nameKey="id" textKey="text"/>
</View>
"""


def labelling_interface(labels: Iterable[str], choices: Iterable[str]) -> str:
    """Return the labelling interface for tasks with these labels on words and on whole answers; the manifest holds it.

    It asks for a verdict too, which `masis decide --file` brings back.

    The default types of reported issues are always among those offered.
    """
    types = LabelTypes().names
    words = dict.fromkeys((*_CORRECTIONS, *types, *sorted(labels)))
    about = dict.fromkeys((*types, *sorted(choices)))
    labels = (f"    <Label value={quoteattr(each)}/>" for each in words)
    choices = (f"    <Choice value={quoteattr(each)}/>" for each in about)
    verdicts = (f"    <Choice value={quoteattr(each)}/>" for each in get_args(Verdict))
    parts = {"labels": labels, "choices": choices, "verdicts": verdicts}
    return _LABEL_STUDIO_CONFIG.format(**{name: "\n".join(lines) for name, lines in parts.items()})


def _label_studio(judged: Judged, others: Sequence[Judged]) -> Rows:
    """A task: the machine's claims as predictions, the labels of each reviewer of the same answer as annotations."""
    if judged.answer is None:
        return NOT_JUDGED
    same = [each for each in others if each.answer == judged.answer and each.reviewer is not None]
    task: Row = {
        "data": {**_about_case(judged), "text": judged.answer, "evidence": judged.evidence},
        "predictions": [],
        "annotations": [
            {
                "result": _regions(each),
                "was_cancelled": False,
                "ground_truth": each.judgement.in_force,
            }
            for each in same
        ],
    }
    regions = [_region(each, each["verdict"], None) for each in judged.claims if _has_place(each)]
    if regions and judged.judgement.run is not None:
        verifier = judged.judgement.run.models.get("verifier", "offline")
        task["predictions"] = [{"model_version": verifier, "result": regions}]
    return [task]


def _has_place(row: Row) -> bool:
    return row["start"] is not None


def _regions(judged: Judged) -> list[Row]:
    """A reviewer's labels: those on words as regions, those on the whole answer as choices about it."""
    found = []
    for number, label in enumerate(judged.labels):
        # several issues may be reported on the same words: regions of one id would be taken for one
        own = f"-{number}" if label["severity"] else ""
        if _has_place(label):
            found.append(_region(label, label["label"], judged.reviewer, own))
        elif label["target"] == "answer":
            found.append(
                {
                    "id": f"answer{own}",
                    "from_name": "answer",
                    "to_name": "text",
                    "type": "choices",
                    "value": {"choices": [label["label"]]},
                    "meta": {"text": _noted(label, judged.reviewer)},
                }
            )
    return found


def _region(row: Row, label: str, reviewer: str | None, own: str = "") -> Row:
    place = {name: row[name] for name in ("start", "end", "text")}
    region: Row = {
        "id": f"{row.get('target', 'claim')}-{row['start']}-{row['end']}{own}",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": {**place, "labels": [label]},
    }
    return region if reviewer is None else region | {"meta": {"text": _noted(row, reviewer)}}


def _noted(label: Row, reviewer: str | None) -> list[str]:
    """What stands beside a region: who set the label, and of a reported issue how severe it is and the note."""
    noted = [f"reviewer: {reviewer}"]
    if label["severity"]:
        noted += [f"severity: {label['severity']}", *([f"note: {label['note']}"] if label["note"] else [])]
    return noted


# --- back to where the answer came from

_TRACE = ("langfuse_trace_id", "trace_id", "traceId")
_SPAN = ("langfuse_observation_id", "observation_id", "observationId", "span_id")
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://masis.invalid/scores")


def external_id(case: dict[str, Any], names: Sequence[str]) -> str | None:
    """The id under which another tool knows the case: in its metadata, in ``external`` there, or beside its fields."""
    metadata = case.get("metadata")
    places = [metadata, metadata.get("external") if isinstance(metadata, dict) else None, case.get("external"), case]
    for place in places:
        for name in names:
            found = place.get(name) if isinstance(place, dict) else None
            if isinstance(found, str) and found:
                return found
    return None


def _langfuse(judged: Judged, _others: Sequence[Judged]) -> Rows:
    """Bodies for ``POST /api/public/scores``. Their ids follow from what they say, so that sending twice adds none."""
    trace, span = external_id(judged.case, _TRACE), external_id(judged.case, _SPAN)
    if trace is None:
        return "no trace id"
    entry, run, decision = judged.judgement.entry, judged.judgement.run, judged.decision
    about = {"traceId": trace} if span is None else {"traceId": trace, "observationId": span}

    def score(name: str, value: str | float, comment: str, source: str) -> Row:
        key = f"{trace}/{span}/{name}/{source}"
        kind = "CATEGORICAL" if isinstance(value, str) else "NUMERIC"
        noted = {"comment": comment} if comment else {}
        return {
            "id": str(uuid.uuid5(_NAMESPACE, key)),
            **about,
            "name": name,
            "value": value,
            "dataType": kind,
            **noted,
        }

    rows = []
    if entry is not None and decision is not None and judged.reviewer is not None and decision.verdict is not None:
        rows.append(score("masis-decision", decision.verdict, decision.reason or decision.note, entry.id))
    if run is not None:
        scores = (("quality", run.quality), ("confidence", run.confidence), ("overall", run.overall))
        rows += [score(f"masis-{name}", value, "", run.id) for name, value in scores if value is not None]
    return rows or NOT_JUDGED


_FORMATS = (
    Format(
        "decided",
        "every case whole: answers, decision, labels, claims, issues",
        _decided,
        columns=DECIDED_COLUMNS,
        table=_decided_table,
        balance=("state",),
    ),
    Format(
        "claims",
        "a row for each claim of an answer: the machine's verdict and each reviewer's label",
        _claims,
        of="reviewer",
        flat=True,
        columns=(*_JUDGEMENT, *_CLAIM, "sources", "cited", "label", "note", "answer"),
        balance=("verdict", "label"),
    ),
    Format(
        "sentences",
        "a row for each sentence: cited, uncited or exempt, and each reviewer's label",
        _sentences,
        of="reviewer",
        flat=True,
        columns=(*_JUDGEMENT, "start", "end", "text", "status", "why", "cited", "label", "note", "answer"),
        balance=("status", "label"),
    ),
    Format(
        "labels",
        "a row for each label and reviewer, with the words it is about",
        _labels,
        of="reviewer",
        flat=True,
        columns=(*_JUDGEMENT, "target", "start", "end", "text", "label", "severity", "note", "machine", "answer"),
        balance=("label",),
    ),
    Format("spans", "hallucinated spans in the shape of RAGTruth, by reviewer", _spans, of="reviewer"),
    Format("sft", "the answers that stand, as chats to train on", _sft),
    Format("pairs", "preferred and rejected answers for TRL", _pairs),
    Format("pairs-openai", "preferred and rejected answers for OpenAI's fine-tuning", _pairs_openai),
    Format("ragas", "samples for Ragas, with the answer that stands as reference", _ragas),
    Format(
        "label-studio",
        "tasks for Label Studio: the machine's claims as predictions, labels as annotations",
        _label_studio,
        suffix=".json",
    ),
    Format("hf", "a folder for Hugging Face: a file for each split, and a card", _hf, balance=("decision",), suffix=""),
    Format("langfuse-scores", "scores to send to Langfuse, for cases with a trace id", _langfuse, balance=("name",)),
)

FORMATS = {each.name: each for each in _FORMATS}
"""Every format by its name."""
