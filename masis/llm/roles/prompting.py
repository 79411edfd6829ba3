"""Prompts: versioned files, and fences around every text from outside.

A prompt has four parts, what changes least first, so that providers serve it from their caches:
``frame`` (the same for all roles), ``instructions`` (the same for all cases of a role), ``shared``
(question and evidence) and ``task`` (the answer and what else is to be judged, then a reminder).

In a prompt file in ``prompts/`` a line ``{{sections}}`` says where the fenced texts stand, and a
line ``{{include NAME}}`` stands for rules that several prompts have (``prompts/parts/``). Our words
never hold a text from outside, so that they are the same, byte for byte, whatever such texts say.
All files together have one version (``prompts_version``): the instructions of the roles rest on
each other, and a model is examined with all of them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from masis.audit.control.run_control import RunControl
from masis.schema.case import Evidence

R = TypeVar("R", bound=BaseModel)

FOLDER = Path(__file__).parent / "prompts"
FRAME = "frame"
ORIGIN = ("title", "type", "path", "section", "page", "author", "date", "published", "updated")
"""Keys of a chunk, beside id and source, that are sent with it where it has them."""
ORIGIN_MOST = 300
"""Characters of each that are sent."""
VERSION = 5
"""Raised with every change of a prompt that may change what a model replies."""
_SECTIONS = "\n{{sections}}\n"
_INCLUDE = re.compile(r"^\{\{include (\w+)\}\}$", re.MULTILINE)
_JOINER = "\u2060"
_CONTROL_WORD = re.compile(
    r"""[<\[](?=
        \|[^|<>\n]{1,60}\|> | ｜[^｜<>\n]{1,60}｜>
      | /?(?:s|bos|eos|pad|unk|sop|eop|unused\d{1,5}|start_of_turn|end_of_turn|think|tools|tool_call|tool_response)>
      | <SYS>> | </SYS>>
      | /?(?:INST|THINK|gMASK|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]
    )""",
    re.VERBOSE,
)
"""Words by which chat templates of local models tell whose turn it is: ``<|im_start|>``,
``[INST]``, ``</s>``.
"""
_DISARMED = re.compile(rf"([<\[]){_JOINER}")
_LINE_BREAKS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class RolePrompt(NamedTuple):
    """What a model is sent; ``version`` names the prompt file and the version of all prompts.

    ``asked`` is the digest of what the prompt is about, whatever words of ours and fences stand
    around it: the texts from outside. Empty where nobody took them apart.
    """

    frame: str
    shared: str
    task: str
    version: str
    asked: str = ""
    instructions: str = ""

    @property
    def system(self) -> str:
        """What is the same, byte for byte, in every call of a role: what a cache of prompts can
        serve in a batch.
        """
        return f"{self.frame}\n\n{self.instructions}" if self.instructions else self.frame

    @property
    def cached(self) -> str:
        """The beginning that calls to come have as well: of the role's, or of the run's where roles
        share a form.
        """
        return self.system if self.instructions else f"{self.frame}\0{self.shared}"


class Asker(Protocol):
    """Whoever puts a prompt to a model and reads the reply: all that a role knows of models."""

    @property
    def name(self) -> str:
        """The model string of the settings, ``openai:gpt-4o``."""

    @property
    def control(self) -> RunControl:
        """The run's limits; its ``fence`` is the mark of all fences."""

    def ask(
        self,
        prompt: RolePrompt,
        shape: type[R],
        *,
        max_tokens: int,
        temperature: float | None = None,
    ) -> R:
        """The reply as a record. Raises ProviderFailed (API, deadline, stop) or BadReply (no such
        record came).
        """


class PromptFile(NamedTuple):
    """One file of instructions: what stands before the texts to judge, and what behind them."""

    name: str
    version: str
    before: str
    after: str


class Section(NamedTuple):
    """A text from outside, to stand in a fence of this name."""

    name: str
    text: str


@cache
def prompts_version() -> str:
    """Return the version of all prompts, ``5+3f2a9c1b``: the number, and what all files together
    digest to.

    The grader of abstracts judges nothing of an answer; its file counts all the same, so that there
    is one version.
    """
    files = sorted(FOLDER.rglob("*.md"))
    texts = [
        f"{file.relative_to(FOLDER).as_posix()}\0{file.read_text(encoding='utf-8')}"
        for file in files
    ]
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:8]
    return f"{VERSION}+{digest}"


@cache
def load(name: str) -> PromptFile:
    """Return a prompt by the name of its file; its version is ``critic/5+3f2a9c1b``."""
    text = _INCLUDE.sub(
        lambda include: _read_prompt(f"parts/{include[1]}").strip(), _read_prompt(name)
    )
    before, _, after = text.partition(_SECTIONS)
    return PromptFile(name, f"{name}/{prompts_version()}", before.strip(), after.strip())


def _read_prompt(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def compose(
    name: str, mark: str, shared: Sequence[Section], judged: Sequence[Section]
) -> RolePrompt:
    """The prompt of this file around these texts, all of them fenced.

    ``mark`` closes the fences; it is replaced by another where a text holds it.
    """
    file = load(name)
    # {}: what earlier recordings have there
    asked = json.dumps([name, shared, judged, {}], sort_keys=True)
    mark = unforgeable(mark, [section.text for section in (*shared, *judged)])
    opening = f"The mark of all fences below: {mark}"
    return RolePrompt(
        frame=load(FRAME).before,
        shared="\n\n".join([opening, *(fence(section, mark) for section in shared)]),
        task="\n\n".join([*(fence(section, mark) for section in judged), file.after]),
        version=file.version,
        asked=hashlib.sha256(asked.encode()).hexdigest(),
        instructions=file.before,
    )


def unforgeable(mark: str, texts: Sequence[str]) -> str:
    """The mark, or one made from it that stands in none of the texts, whatever the case of its
    letters.

    A run's mark is not to be guessed, but a model that was sent it can write it into an answer.
    """
    tries, folded = 0, [text.casefold() for text in texts]
    chosen = mark
    while any(chosen.casefold() in text for text in folded):
        tries += 1
        chosen = hashlib.sha256(f"{mark}\0{tries}".encode()).hexdigest()[:16]
    return chosen


def fence(section: Section, mark: str) -> str:
    """A text between a line that opens a fence and one that closes it."""
    return f"<<<{section.name} {mark}>>>\n{disarm(section.text)}\n<<<END {section.name} {mark}>>>"


def disarm(text: str) -> str:
    """The text with an invisible joiner in each control word of a chat template.

    A server that fills its template first and tokenises then would take such a word for the end of
    our message and the beginning of somebody else's. Quotes are found with the joiner as without
    (``masis/audit/text/quotes.py``).
    """
    return _CONTROL_WORD.sub(lambda found: found.group() + _JOINER, text)


def rearm(text: str) -> str:
    """A text that a model copied from a fence, as it was before."""
    return _DISARMED.sub(r"\1", text)


def question(query: str) -> Section:
    """What was asked."""
    return Section("QUESTION", query)


def chunks(evidence: Iterable[Evidence]) -> tuple[Section, ...]:
    """Each chunk in a fence of its own: a line with its id and origin, then its text."""
    return tuple(
        Section("EVIDENCE", f"{_json_row(_chunk_origin(chunk))}\n{chunk.text}")
        for chunk in evidence
    )


def _chunk_origin(chunk: Evidence) -> dict[str, Any]:
    """What a reader must know of a chunk to understand it: who speaks, of what, when; nothing of
    how it was found.
    """
    known = chunk.model_extra or {}
    origin = {
        name: known[name]
        for name in ORIGIN
        if isinstance(known.get(name), str | int) and known[name] != ""
    }
    cut = {name: str(value)[:ORIGIN_MOST] for name, value in origin.items()}
    return {"id": chunk.id, "source": chunk.source, **cut}


def question_and_evidence(query: str, evidence: Iterable[Evidence]) -> tuple[Section, ...]:
    """What all calls of one audit share."""
    return (question(query), *chunks(evidence))


def answer(text: str) -> Section:
    """What is to be judged."""
    return Section("ANSWER", text)


def rows(name: str, values: Iterable[dict[str, Any]]) -> Section:
    """Values as JSON, one a line: no text in them can begin a line of its own."""
    return Section(name, "\n".join(_json_row(value) for value in values))


def _json_row(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False).translate(_LINE_BREAKS)


_ECHOED_FENCE = re.compile(
    r"^[ \t]*<<<(?:END )?[A-Z_]{1,40} [0-9a-f]{16,64}>>>[ \t]*(?:\n|\Z)", re.MULTILINE
)


def without_fences(text: str) -> str:
    """A text that a model wrote, less the fence lines and joiners it may have copied along."""
    return rearm(_ECHOED_FENCE.sub("", text)).strip()
