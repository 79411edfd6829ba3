"""Composes prompts from versioned files, with fences around every untrusted text.

A prompt has four parts, ordered from the least to the most variable so that providers can serve the
beginning from their caches: ``frame`` (the same for all roles), ``instructions`` (the same for all
cases of a role), ``shared`` (question and evidence) and ``task`` (the answer and anything else to
judge, then a reminder).

In a prompt file in ``prompts/``, the line ``{{sections}}`` is replaced by the fenced texts, and
``{{include NAME}}`` inserts rules that several prompts share (``prompts/parts/``). Untrusted
texts are never inserted into the instructions, which are therefore always the same, byte for
byte. All files share one version (``prompts_version``), because the instructions of the roles build
on each other and a model takes the exam with all of them.
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
"""Keys of a chunk that are sent with it, in addition to id and source."""
MAX_ORIGIN = 300
"""Maximum number of characters of each of these values that are sent."""
VERSION = 5
"""Increase this with every change of a prompt that may change a model's replies."""
MARK_LINE = "The mark of all fences below: "
_SECTIONS = "\n{{sections}}\n"
_INCLUDE = re.compile(r"^\{\{include (\w+)\}\}$", re.MULTILINE)
_JOINER = "\u2060"
_CONTROL_WORD = re.compile(
    r"""[<\[\]](?=
      # <|im_start|>, <｜User｜>, and with one bar: <|turn>, <turn|>
        [|｜][^|｜<>\n]{1,60}[|｜]> | \|[a-z_]{1,40}> | [a-z_]{1,40}\|>
      # <｜DSML｜invoke>: no other text has this bar after an angle bracket
      | /?｜
      # </s>, and what models call their tokens for turns, tools, padding and pictures
      | /?(?i:s|[bs]o[sp]|eo[spdt]|eo[ham]|pad|unk|cls|sep|mask|gmask|think|tools|role
          |system|user|assistant|escape|image|img|video|audio)>
      | /?(?:unused|ctrl)\d{1,5}>
      # <start_of_turn>, <extra_id_0>, <minimax:tool_call>, <EOS_TOKEN>: HTML has no underscore
      | /?[A-Za-z\d:]{1,40}_[\w:]{1,60}> | /?seed:[a-z]{1,40}>
      # [|user|], [e~[, ]~b], ]~!b[
      | \|[a-z_]{1,40}\|\] | e~\[ | ~!?b[\[\]]
      | <SYS>> | </SYS>>
      | /?(?:INST|THINK|s?MASK|gMASK|CLS|SEP|PAD|UNK|BOS|EOS|SYSTEM_PROMPT|AVAILABLE_TOOLS
          |TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|MODEL_SETTINGS|ARGS|CALL_ID|PREFIX|MIDDLE|SUFFIX
          |IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO)\]
    )""",
    re.VERBOSE,
)
"""The beginning of control words in the chat templates of local models, which separate the turns of
a conversation: ``<|im_start|>``, ``[INST]``, ``</s>``.
"""
_DISARMED = re.compile(rf"([<\[\]]){_JOINER}")
# JSON allows these inside a string, but str.splitlines and many readers treat them as line ends.
_LINE_BREAKS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class RolePrompt(NamedTuple):
    """The parts of a prompt.

    Attributes:
        version: The name of the prompt file and the version of all prompts.
        asked: The digest of the untrusted texts, without instructions and fences. Empty if the
            prompt was made elsewhere, as by DSPy.

    """

    frame: str
    shared: str
    task: str
    version: str
    asked: str = ""
    instructions: str = ""

    @property
    def system(self) -> str:
        """The part that is the same in every call of a role, so that a cache can serve it in a
        batch.
        """
        return f"{self.frame}\n\n{self.instructions}" if self.instructions else self.frame

    @property
    def cached(self) -> str:
        """The beginning that later calls share: those of the role, or all calls of the run if they
        share a schema.
        """
        return self.system if self.instructions else f"{self.frame}\0{self.shared}"


class Asker(Protocol):
    """Sends a prompt to a model and parses the reply; roles know nothing else about models."""

    @property
    def name(self) -> str:
        """The model string of the settings, ``openai:gpt-4o``."""

    @property
    def control(self) -> RunControl:
        """The run's limits; its ``fence`` is the mark of all fences of the run."""

    def ask(
        self,
        prompt: RolePrompt,
        shape: type[R],
        *,
        max_tokens: int,
        temperature: float | None = None,
    ) -> R:
        """Return the reply as a record.

        Raises:
            ProviderFailed: The provider failed, time ran out or the run was stopped.
            BadReply: The reply isn't such a record.

        """


class PromptFile(NamedTuple):
    """A prompt file, split into the instructions before and after the texts to judge."""

    name: str
    version: str
    before: str
    after: str


class Section(NamedTuple):
    """An untrusted text, to be put into a fence with this name."""

    name: str
    text: str


@cache
def prompts_version() -> str:
    """Return the version of all prompts, ``5+3f2a9c1b``, with the digest of all files.

    The file of the abstract grader is included, although it judges no answers, so that there is
    only one version.
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
    """Return a prompt by the name of its file, with a version such as ``critic/5+3f2a9c1b``."""
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
    """Return the prompt of this file around these texts, each in a fence.

    ``mark`` closes the fences; if a text contains it, another mark is used.
    """
    file = load(name)
    # The {} stays, because the digests of earlier recordings include it.
    content = json.dumps([name, shared, judged, {}], sort_keys=True)
    mark = unforgeable(mark, [section.text for section in (*shared, *judged)])
    opening = f"{MARK_LINE}{mark}"
    return RolePrompt(
        frame=load(FRAME).before,
        shared="\n\n".join([opening, *(fence(section, mark) for section in shared)]),
        task="\n\n".join([*(fence(section, mark) for section in judged), file.after]),
        version=file.version,
        asked=hashlib.sha256(content.encode()).hexdigest(),
        instructions=file.before,
    )


def unforgeable(mark: str, texts: Sequence[str]) -> str:
    """Return the mark, or one derived from it that occurs in none of the texts, ignoring case.

    A run's mark can't be guessed, but a model that saw it can write it into an answer.
    """
    attempt, folded = 0, [text.casefold() for text in texts]
    candidate = mark
    while any(candidate.casefold() in text for text in folded):
        attempt += 1
        candidate = hashlib.sha256(f"{mark}\0{attempt}".encode()).hexdigest()[:16]
    return candidate


def fence(section: Section, mark: str) -> str:
    """Return a text between the lines that open and close its fence."""
    return f"<<<{section.name} {mark}>>>\n{disarm(section.text)}\n<<<END {section.name} {mark}>>>"


def disarm(text: str) -> str:
    """Return the text with an invisible joiner in each control word of a chat template.

    A server that fills its template before it tokenizes would otherwise treat such a word as the
    end of our message and the start of another. Quotes are found with or without the joiner
    (``masis/audit/text/quotes.py``).
    """
    return _CONTROL_WORD.sub(rf"\g<0>{_JOINER}", text)


def rearm(text: str) -> str:
    """Return a text that a model copied from a fence without the joiners of ``disarm``."""
    return _DISARMED.sub(r"\1", text)


def question(query: str) -> Section:
    """Return the question in a section."""
    return Section("QUESTION", query)


def chunks(evidence: Iterable[Evidence]) -> tuple[Section, ...]:
    """Return a section for each chunk, with a line for its id and origin before its text."""
    return tuple(
        Section("EVIDENCE", f"{_json_row(_chunk_origin(chunk))}\n{chunk.text}")
        for chunk in evidence
    )


def _chunk_origin(chunk: Evidence) -> dict[str, Any]:
    """Return the facts that help to understand a chunk, such as its title, author and date, but
    nothing about its retrieval.
    """
    extra = chunk.model_extra or {}
    origin = {
        name: extra[name]
        for name in ORIGIN
        if isinstance(extra.get(name), str | int) and extra[name] != ""
    }
    shortened = {name: str(value)[:MAX_ORIGIN] for name, value in origin.items()}
    return {"id": chunk.id, "source": chunk.source, **shortened}


def question_and_evidence(query: str, evidence: Iterable[Evidence]) -> tuple[Section, ...]:
    """Return the sections that all calls of one audit share."""
    return (question(query), *chunks(evidence))


def answer(text: str) -> Section:
    """Return the answer to judge in a section."""
    return Section("ANSWER", text)


def rows(name: str, values: Iterable[dict[str, Any]]) -> Section:
    """Return values as JSON, one per line; a line break in a value is escaped."""
    return Section(name, "\n".join(_json_row(value) for value in values))


def _json_row(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False).translate(_LINE_BREAKS)


# "<<<END ANSWER 3f2a9c1b3f2a9c1b>>>" on a line of its own
_ECHOED_FENCE = re.compile(
    r"^[ \t]*<<<(?:END )?[A-Z_]{1,40} [0-9a-f]{16,64}>>>[ \t]*(?:\n|\Z)", re.MULTILINE
)


def without_fences(text: str) -> str:
    """Return a model's text without the fence lines and joiners that it may have copied."""
    return rearm(_ECHOED_FENCE.sub("", text)).strip()
