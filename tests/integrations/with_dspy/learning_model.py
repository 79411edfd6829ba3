"""A scripted model whose quality as a critic depends on the demonstrations it is shown.

It knows how answers go wrong in this small world: a number in the answer that the cited chunk does
not have. Without an example that shows such a fault found, one that shows a sound answer left
alone, and none that misleads, it is a poor critic: of half the bridges it objects to the first
sentence, whatever that says. Its replies follow from the request alone.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.served_replies import Behaviour, Request, reply_with, sensible

NUMBER = re.compile(r"\d+")
SENTENCE = re.compile(r"[^.]*?\.")


def case(number: int, flawed: bool) -> dict[str, Any]:
    """One labelled case: three sentences on one bridge, one of them with another number where it is
    flawed.
    """
    length, built, trains = 100 + number, 1800 + number, 10 + number
    wrong = (number // 2) % 3 if flawed else None
    said = [
        f"Bridge {number} was built in {built + 90 * (wrong == 0)} [chunk_1].",
        f"It is {length + 500 * (wrong == 1)} metres long [chunk_2].",
        f"It carries {trains + 70 * (wrong == 2)} trains [chunk_3].",
    ]
    findings = [
        {
            "type": "contradiction",
            "severity": "high",
            "text": said[wrong or 0],
            "description": "The chunk differs.",
        }
    ]
    return {
        "id": f"bridge-{number}",
        "query": f"What is known of bridge {number}?",
        "answer": " ".join(said),
        "evidence": [
            {"id": "chunk_1", "text": f"Bridge {number} was built in {built}."},
            {"id": "chunk_2", "text": f"The length of bridge {number} is {length} metres."},
            {"id": "chunk_3", "text": f"Bridge {number} carries {trains} trains a day."},
        ],
        "labels": {
            "clean": not flawed,
            "claims": [],
            "citations": [],
            "findings": findings if flawed else [],
        },
    }


def cases(count: int = 24) -> list[dict[str, Any]]:
    """Labelled cases, every second one flawed."""
    return [case(number, number % 2 == 0) for number in range(count)]


def critic(request: Request) -> Behaviour | None:
    """A careful reply where the examples shown are instructive, else a careless one; words where
    words are asked.
    """
    if request.schema_name and request.schema_name != "critique_reply":
        return None  # another role, or the test of the connection: a sensible reply
    if not request.fences("ANSWER"):
        return reply_with(instruction(request))
    found = wrong_sentences(request.fences("ANSWER")[0], request.fences("EVIDENCE"))
    sentences = SENTENCE.findall(request.fences("ANSWER")[0])
    luck = int(NUMBER.findall(request.fences("QUESTION")[0])[0]) % 4 < 2
    if not (instructive(request) or is_instructed(request) or luck):
        found = [sentences[0].strip()]  # careless
    return reply_with(reply(request, found))


def instruction(request: Request) -> str:
    """What the model writes where it is to propose an instruction: it has learnt what
    goes wrong.
    """
    words = "Compare each number of the answer with the chunk it cites; object to nothing else."
    if asked := re.search(
        r"Respond with a JSON object in the following order of fields: `(\w+)`", request.text
    ):
        return json.dumps({asked[1]: words})
    fields = re.findall(r"`\[\[ ## (\w+) ## \]\]`", request.text)
    if not fields:
        return f"```\n{words}\n```"
    return (
        "\n\n".join(f"[[ ## {name} ## ]]\n{words}" for name in dict.fromkeys(fields))
        + "\n\n[[ ## completed ## ]]"
    )


def is_instructed(request: Request) -> bool:
    return "Compare each number" in request.text


def instructive(request: Request) -> bool:
    """Whether the examples show a fault that is one, found, and a sound answer left alone."""
    replies = [json.loads(text) for text in request.fences("EXAMPLE_REPLY")]
    answers = request.fences("EXAMPLE_ANSWER")
    chunks = request.fences("EXAMPLE_EVIDENCE")
    shown = set()
    for number, (answer, given) in enumerate(zip(answers, replies, strict=True)):
        wrong = wrong_sentences(answer, chunks[number * 3 : number * 3 + 3])
        raised = [issue["location"] for issue in given["issues"]]
        shown.add(
            "found"
            if wrong and raised == wrong
            else "silent"
            if not wrong and not raised
            else "misled"
        )
    return shown == {"found", "silent"}


def wrong_sentences(answer: str, chunks: list[str]) -> list[str]:
    texts = {
        json.loads(chunk.partition("\n")[0])["id"]: chunk.partition("\n")[2] for chunk in chunks
    }
    found = []
    for sentence in (found.strip() for found in SENTENCE.findall(answer)):
        cited = re.findall(r"\[(chunk_\d)\]", sentence)
        said = set(NUMBER.findall(sentence.split("[")[0]))
        if cited and said - set(NUMBER.findall(texts.get(cited[0], ""))):
            found.append(sentence)
    return found


def reply(request: Request, wrong: list[str]) -> dict[str, Any]:
    issue = {
        "type": "contradiction",
        "severity": "high",
        "description": "The chunk has another number.",
        "reasoning": "It says another one.",
        "suggestion": "Give the chunk's number.",
        "evidence_ids": ["chunk_2"],
    }
    score = 0.5 if wrong else 0.9
    return sensible(request, "none", "critique_reply") | {
        "issues": [issue | {"location": sentence} for sentence in wrong],
        "hallucination_detected": bool(wrong),
        "needs_retry": bool(wrong),
        "confidence": score,
        "overall_quality_score": score,
    }
