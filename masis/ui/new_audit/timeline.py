"""What an audit does as it does it: the events of a run as a timeline, iteration by iteration, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from masis.schema.run import Event
from masis.schema.wording import counted
from masis.services.records import RunState
from masis.ui.components import registered
from masis.views.spending import spent_so_far
from masis.views.words import SCORE, STOPPED, VERDICT, Word

_TIMELINE = registered("timeline")

STEP: dict[str, Word] = {
    "drafting": Word("Drafting", "calm", "Writes an answer from the evidence, for a case that came without one"),
    "citations": Word("Citations", "calm", "Looks every reference up, and finds the sentences without one"),
    "claims": Word("Claims", "calm", "Holds each claim against the evidence"),
    "critique": Word("Critique", "calm", "Weighs what was found and says how far the answer can be trusted"),
    "evaluation": Word("Evaluation", "calm", "Scores faithfulness, relevance, completeness and reasoning"),
    "revision": Word("Revision", "calm", "Mends the answer; the next iteration audits what came of it"),
}

RETRIES_SHOWN = 4
"""The latest retried calls and repaired replies that an iteration shows; the run has all of them."""

Shown = dict[str, Any]
"""The timeline as its component draws it, or a part of it.

It has groups (an iteration, or the drafting before it), each with steps, scores and what they gained, retried calls and
repaired replies, warnings; ``live``, the last thing that happened, for those who listen; and how it ended.
"""


def show_timeline(data: Shown, *, key: str) -> None:
    """Draw a timeline; drawn again under the same key it is updated in place."""
    _TIMELINE(data=data, key=key)


def waiting(words: str) -> Shown:
    """Return the timeline of an audit that has not begun."""
    return {"groups": [], "elapsed_ms": 0, "spent": "", "waiting": words, "live": words, "end": None}


def timeline(events: Sequence[Event], state: RunState, now: str, why: str = "") -> Shown:
    """Return the timeline of a run. ``now`` is the time (ISO 8601) that a run under way is measured to."""
    groups: dict[int | None, Shown] = {}
    begun: dict[tuple[int | None, str | None], tuple[str, Shown]] = {}
    taken_up = False
    for event in events:
        step = event.iteration, event.step
        if event.kind == "run_started":
            taken_up = bool(begun)
            _cut_short(groups)
        elif event.kind == "step_started":
            word = STEP[event.step or ""]
            begun[step] = (
                event.at,
                {"name": word.text, "meaning": word.meaning, "state": "now", "words": "", "ms": None},
            )
            _group(groups, event, taken_up)["steps"].append(begun[step][1])
            taken_up = False
        elif event.kind == "step_finished" and step in begun:
            start, drawn = begun[step]
            drawn |= {"state": _finished(event), "words": _words(event), "ms": _between(start, event.at)}
        elif event.kind in ("call_retried", "call_repaired") and event.iteration in groups:
            retries = groups[event.iteration]["retries"]
            retries[:] = [*retries, event.message][-RETRIES_SHOWN:]
        elif event.kind == "warning" and groups:
            at = event.iteration if event.iteration in groups else next(reversed(groups))
            groups[at]["warnings"].append(event.message)
        elif event.kind == "iteration_finished":
            _conclude(groups, event)
    if state != "running":
        _cut_short(groups)
    last = events[-1].at if events and state != "running" else now
    end = _end(events, state, why)
    if end and (best := _outcome(events).get("best")) is not None and best + 1 in groups and len(groups) > 1:
        groups[best + 1]["chosen"] = True
    return {
        "groups": list(groups.values()),
        "elapsed_ms": _elapsed(events, last),
        "spent": spent_so_far(events),
        "waiting": "",
        "live": end["text"] if end else _live(groups),
        "end": end,
    }


def _group(groups: dict[int | None, Shown], event: Event, again: bool) -> Shown:
    number = event.iteration
    if number not in groups or (again and event.step in ("citations", "drafting")):
        origin = "the original answer" if number == 1 and None not in groups else "the answer drafted by MASIS"
        note = "an answer is written from the evidence" if number is None else origin if number == 1 else "revised"
        groups[number] = {
            "title": "Draft" if number is None else f"Iteration {number}",
            "note": f"{note}, taken up again" if again else note,
            "chosen": False,
            "issues": "",
            **{each: [] for each in ("steps", "retries", "warnings", "scores")},
        }
    return groups[number]


def _finished(event: Event) -> str:
    """Whether a step that came to its end also came to a result."""
    if event.step == "critique":
        return "done" if event.data.get("confidence") is not None else "unscored"
    if event.step == "evaluation":
        return "done" if event.data.get("overall_score") is not None else "unscored"
    return "unscored" if event.step == "claims" and event.data.get("verdicts", {}).get("unscored") else "done"


def _cut_short(groups: dict[int | None, Shown]) -> None:
    for group in groups.values():
        for step in group["steps"]:
            if step["state"] == "now":
                step["state"] = "failed" if group["warnings"] else "cut"


def _conclude(groups: dict[int | None, Shown], event: Event) -> None:
    group = groups.get(event.iteration)
    if group is None:
        return
    before = groups.get((event.iteration or 0) - 1)
    evaluated = any(step["name"] == STEP["evaluation"].text for step in group["steps"])
    gained = {figure["name"]: figure["value"] for figure in before["scores"]} if before else {}
    for name in ("quality_score", "confidence", "overall_score"):
        word, value = SCORE[name], event.data.get(name)
        if name == "overall_score" and value is None and not evaluated:
            continue
        earlier = gained.get(word.text)
        delta = None if value is None or earlier is None else round(value - earlier, 4)
        group["scores"].append({"name": word.text, "meaning": word.meaning, "value": value, "delta": delta})
    issues, major = event.data.get("issues", 0), event.data.get("major_issues", 0)
    group["issues"] = (
        "No issues found"
        if not issues
        else counted(issues, "issue") + (f", {major} of them serious" if major else ", none of them serious")
    )


def _words(event: Event) -> str:
    """Say what came of a step."""
    data: Mapping[str, Any] = event.data
    match event.step:
        case "drafting":
            return f"an answer of {counted(data.get('characters', 0), 'character')}"
        case "citations":
            references, invalid, uncited = (
                data.get(k, 0) for k in ("references", "invalid_citations", "uncited_claims")
            )
            factor = data.get("penalty_factor", 1.0)
            words = [
                counted(references, "citation") if references else "No citations",
                f"{invalid} fabricated" if invalid else "",
                f"{counted(uncited, 'sentence')} uncited" if uncited else "no sentence left uncited",
                f"confidence × {factor:g}" if factor < 1.0 else "",
            ]
        case "claims":
            verdicts: Mapping[str, int] = data.get("verdicts", {})
            counts = [f"{verdicts[name]} {word.text}" for name, word in VERDICT.items() if verdicts.get(name)]
            claims = counted(data.get("claims", 0), "claim") + (f": {', '.join(counts)}" if counts else "")
            missing = data.get("missing", 0)
            return f"{claims}; {counted(missing, 'point')} of the evidence missing" if missing else claims
        case "critique":
            conflicts, confidence = data.get("conflicts"), data.get("confidence")
            words = [
                counted(data.get("issues", 0), "issue"),
                "hallucination" if data.get("hallucination") else "",
                f"{counted(conflicts, 'conflict')} between sources" if conflicts else "",
                "unscored" if confidence is None else f"confidence {confidence:.2f}",
            ]
        case "evaluation":
            names = ("overall_score", "faithfulness", "relevance", "completeness", "reasoning_quality")
            words = [f"{SCORE[name].text.lower()} {data[name]:.2f}" for name in names if data.get(name) is not None]
            words = words or ["unscored"]
        case "revision":
            changes, issues = data.get("changes", 0), data.get("issues_addressed", 0)
            return (
                f"{counted(changes, 'change')} for {counted(issues, 'issue')}" if changes else "nothing could be fixed"
            )
        case _:
            return ""
    return ", ".join(filter(None, words))


def _outcome(events: Sequence[Event]) -> Mapping[str, Any]:
    return events[-1].data if events and events[-1].kind == "run_finished" else {}


def _end(events: Sequence[Event], state: RunState, why: str) -> Shown | None:
    if state == "interrupted":
        return {"text": "Interrupted", "tone": "warn", "details": [why] if why else []}
    if state == "running":
        return None
    outcome = _outcome(events)
    reason = outcome.get("termination_reason", "error")
    chosen = outcome["best"] + 1 if outcome.get("best") else None
    details = [f"It ended because {STOPPED[reason]}."]
    if chosen is not None:
        first, best = _quality(events, 1), _quality(events, chosen)
        moved = f": quality {first:.2f} → {best:.2f}" if first is not None and best is not None else ""
        details.append(f"Iteration {chosen} is suggested{moved}.")
    details.append("A person should look at it." if outcome.get("needs_review") else "Nothing in it asks for a person.")
    if reason == "cancelled":
        return {"text": "Stopped", "tone": "warn", "details": details}
    if reason == "error":
        details[1:1] = [event.message for event in events if event.kind == "warning"][-1:]
        return {"text": "Ended by an error", "tone": "bad", "details": details}
    return {"text": "Finished", "tone": "good", "details": details}


def _quality(events: Sequence[Event], iteration: int) -> float | None:
    ends = (e.data for e in events if e.kind == "iteration_finished" and e.iteration == iteration)
    return next((data.get("quality_score") for data in ends), None)


def _live(groups: Mapping[int | None, Shown]) -> str:
    if not groups:
        return "Beginning"
    group = list(groups.values())[-1]  # which begins with a step
    step = group["steps"][-1]
    return f"{group['title']}, {step['name'].lower()}" + (f": {step['words']}" if step["words"] else "")


def _elapsed(events: Sequence[Event], last: str) -> float:
    """Milliseconds at work: from each start (a run taken up has several) to the last event before the next."""
    spent, start, previous = 0.0, "", ""
    for event in events:
        if event.kind == "run_started":
            spent += _between(start, previous) if start else 0.0
            start = event.at
        previous = event.at
    return spent + (_between(start, last) if start else 0.0)


def _between(start: str, end: str) -> float:
    spent = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return max(0.0, spent.total_seconds() * 1000)
