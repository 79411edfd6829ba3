"""Replies that were recorded: written as they come, answered from a file, or kept so that no call
is paid twice.

What identifies a reply is what was asked (``Prompt.asked``), in which role, for which sample and at
which attempt, not the words of ours around it: a prompt that was reworded since still finds its
reply, and the run says so. A cache, whose replies nobody must mistake for today's, also goes by
model and version of the prompt.

A file is JSON Lines, one ``RecordedReply`` a line. It is written by others than this program as
well, so that nothing in it is trusted: its replies are read as a model's are, and a line that is
none is refused.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, Protocol, get_args

from pydantic import Field, ValidationError

from masis.errors import InputError, SettingsError
from masis.llm.providers.base import TryFailed
from masis.schema.base import Record
from masis.schema.calls import ReplySource
from masis.schema.explain import path_of
from masis.schema.model_ref import DEMO_REPLIES, ModelRef
from masis.schema.wording import count_noun
from masis.version import app_root

SHIPPED = app_root() / "data" / "replies" / "replies.jsonl"
"""The replies that ``replay:demo`` answers from."""
LARGEST_FILE = 1_000_000_000
"""Bytes of a file of recorded replies; all of it is held in memory."""
_STRANGE = re.compile(r"[^\w.:/@+ -]")
"""Characters of names in a file that are not repeated: it may hold any."""

Outcome = Literal["replied", "refused", "cut_off", "empty", "too_long"]
OUTCOMES: dict[str, Outcome] = {name: name for name in get_args(Outcome) if name != "replied"}
"""What came of a call beside a reply to read, and would come of it again."""

Name = Annotated[str, Field(min_length=1, max_length=5_000)]


class RequestKey(Record):
    """What a reply is to: role, version of the prompt, model, digest of what was asked, sample and
    attempt.

    ``sample`` counts from 1 how often a run asked the same, ``attempt`` the replies to one such
    question.
    """

    role: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
    prompt: Name
    model: Name
    asked: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    sample: Annotated[int, Field(ge=1)] = 1
    attempt: Annotated[int, Field(ge=1)] = 1
    temperature: float | None = None

    @property
    def key(self) -> str:
        """The digest of all of it: what a cache goes by."""
        return hashlib.sha256(
            self.model_dump_json(include=set(RequestKey.model_fields)).encode()
        ).hexdigest()

    @property
    def place(self) -> tuple[object, ...]:
        """What a file is searched by: neither the model nor the version of the prompt, which may be
        others today.
        """
        return self.role, self.prompt.partition("/")[0], self.asked, self.sample, self.attempt


class RecordedReply(RequestKey):
    """A reply as the model gave it, and when (ISO 8601, UTC)."""

    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,20}Z$")]
    outcome: Outcome = "replied"
    reply: str


def shown_name(name: str) -> str:
    """Return the name of a model or a prompt as a file has it, fit to be repeated."""
    return _STRANGE.sub("?", name)[:200]


class Replies(Protocol):
    """Where replies are looked for before a model is asked. Safe to use from several threads."""

    source: ReplySource

    def find(self, asked: RequestKey) -> RecordedReply | None:
        """Return the reply to this; None where the model is to be asked. Raises TryFailed where it
        must not be.
        """

    def keep(self, replies: Sequence[RecordedReply]) -> None:
        """Store the replies to a question that was answered."""


class ReplayFile:
    """Recorded replies of a file; where it has several to the same, today's version of the prompt
    counts, or the last.

    Args:
        path: The file, for messages.
        replies: What it holds, in its order.

    """

    source: ReplySource = "replay"

    def __init__(self, path: str, replies: Iterable[RecordedReply]) -> None:
        self.path = path
        self._replies: dict[tuple[object, ...], dict[str, RecordedReply]] = {}
        self._models: dict[str, dict[str, str]] = {}
        self.count = 0
        for reply in replies:
            self.count += 1
            known = self._replies.setdefault(reply.place, {})
            known.pop(reply.prompt, None)
            known[reply.prompt] = reply  # behind all others: the last counts
            of_role = self._models.setdefault(reply.role, {})
            of_role[reply.model] = max(reply.date[:10], of_role.get(reply.model, ""))

    def find(self, asked: RequestKey) -> RecordedReply:
        """Return the reply to this. Raises TryFailed where the file has none: nobody
        else is asked.
        """
        known = self._replies.get(asked.place)
        if known:
            return known.get(asked.prompt) or next(reversed(known.values()))
        held = f"{self.path} holds {count_noun(self.count, 'reply', 'replies')}"
        if asked.role not in self._models:
            held += (
                f", none of them of the {asked.role} (only:"
                f" {', '.join(self._models) or 'of nobody'})"
            )
        number = f"sample {asked.sample}, attempt {asked.attempt}, asked {asked.asked[:12]}"
        raise TryFailed(
            "unrecorded",
            f"there is no recorded reply to this in {self.path}: {asked.role} (prompt"
            f" {asked.prompt.partition('/')[0]}), {number}. {held}. Replay the case as it was"
            " recorded, or record it again (masis audit --record)",
        )

    def keep(self, replies: Sequence[RecordedReply]) -> None:
        """Store nothing: the file is somebody else's."""

    def source_name(self, role: str) -> ModelRef:
        """Return the reference that a run records, with the models that gave the role's replies and
        the last date.

        If the role has no replies, such as a drafter whose cases had answers, all models are named.
        """
        every = {
            model: date for of_role in self._models.values() for model, date in of_role.items()
        }
        found = self._models.get(role, every)
        return ModelRef(
            "replay",
            self.path,
            recorded_model=shown_name(" + ".join(found)),
            recorded_date=max(found.values(), default=""),
        )

    def description(self) -> str:
        """Say what the file holds: how many replies, of which models, in which roles."""
        held = count_noun(self.count, "recorded reply", "recorded replies")
        source = self.source_name("")
        return (
            f"{self.path} holds {held} of {source.recorded_model or 'nobody'},"
            f" {source.recorded_date or 'ever'}"
            f" ({', '.join(self._models)})"
        )


def replay_file(path: str, role: str) -> ReplayFile:
    """Return the replies of a file, or of the demo, read once as long as it stays the same. Raises
    SettingsError.
    """
    file = SHIPPED if path == DEMO_REPLIES else Path(path).expanduser()
    try:
        if not file.is_file():  # nor a device, which never ends
            raise InputError(
                "there is no such file", hint="Name one that masis audit --record wrote.", file=path
            )
        found = file.stat()
        if found.st_size > LARGEST_FILE:
            raise InputError(
                f"has more than {LARGEST_FILE:,} bytes", hint="Replay it in parts.", file=path
            )
        return _open_replay(path, file, found.st_mtime_ns, found.st_size)
    except InputError as error:
        raise SettingsError(f"{role}: {error}") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        why = getattr(error, "strerror", None) or "can't be read"
        raise SettingsError(
            f"{role}: {path}: {why}. Name a file that masis audit --record wrote."
        ) from None


@functools.lru_cache(maxsize=4)
def _open_replay(path: str, file: Path, _changed: int, _size: int) -> ReplayFile:
    with file.open("rb") as lines:
        return ReplayFile(path, _recorded_replies(path, lines))


def _recorded_replies(path: str, lines: Iterable[bytes]) -> Iterator[RecordedReply]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield RecordedReply.model_validate_json(line)
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False)[0]
            problem = f"{wrong['msg'][:1].lower()}{wrong['msg'][1:]}"
            raise InputError(
                "is no JSON" if wrong["type"] == "json_invalid" else problem,
                hint="Remove the line, or record the audit again (masis audit --record).",
                file=path,
                line=number,
                field=path_of(wrong["loc"])[:80] or None,
            ) from None


_appending = threading.Lock()


def check_record(path: str) -> None:
    """Raise SettingsError where replies can't be recorded in this file; it is made where there is
    none.
    """
    try:
        _append(path, b"")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is no name of a file"
        raise SettingsError(
            f"record: {path}: {why}. Name a file in a folder that exists."
        ) from None


def record(path: str, replies: Sequence[RecordedReply]) -> None:
    """Append replies to a file, whole lines at once: several processes may write to it. Raises
    OSError.
    """
    _append(path, "".join(f"{reply.model_dump_json()}\n" for reply in replies).encode())


def _append(path: str, lines: bytes) -> None:
    # unbuffered: whole lines at once
    with _appending, Path(path).expanduser().open("ab", buffering=0) as file:
        if file.write(lines) != len(lines):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
