"""Records the replies of models, and replays them from a file or a cache.

A recorded reply is found by the digest of the prompt's texts (``RolePrompt.asked``), the role, the
sample and the attempt. The instructions around the texts don't count, so a prompt that was reworded
since then still finds its reply, and the run warns about it. A cache also compares the model and
the version of the prompt, because its replies count as current ones.

A file is JSON Lines with one ``RecordedReply`` per line. Other programs may write it too, so it
isn't trusted: its replies are parsed like a model's, and invalid lines are refused.
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
"""The largest file of recorded replies in bytes; the whole file is held in memory."""
_UNSAFE_CHARACTERS = re.compile(r"[^\w.:/@+ -]")
"""The characters that are replaced when a name from a file is shown."""

Outcome = Literal["replied", "refused", "cut_off", "empty", "too_long"]
OUTCOMES: dict[str, Outcome] = {name: name for name in get_args(Outcome) if name != "replied"}
"""The outcomes of unsuccessful calls that are recorded, because the same call would end the same
way again.
"""

Name = Annotated[str, Field(min_length=1, max_length=5_000)]


class RequestKey(Record):
    """The key of a recorded reply.

    Attributes:
        prompt: The name and version of the prompt, ``critic/5+3f2a9c1b``.
        asked: The digest of the texts in the prompt, without its instructions.
        sample: The number of this request among equal requests of the run, counted from 1.
        attempt: The number of the reply to this request, counted from 1.

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
        """The digest of all fields, by which a cache finds replies."""
        return hashlib.sha256(
            self.model_dump_json(include=set(RequestKey.model_fields)).encode()
        ).hexdigest()

    @property
    def file_key(self) -> tuple[object, ...]:
        """The fields by which a file is searched, without the model and the version of the prompt,
        which may have changed.
        """
        return self.role, self.prompt.partition("/")[0], self.asked, self.sample, self.attempt


class RecordedReply(RequestKey):
    """An unchanged reply of a model, with its date (ISO 8601, UTC)."""

    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,20}Z$")]
    outcome: Outcome = "replied"
    reply: str


def shown_name(name: str) -> str:
    """Return the name of a model or prompt from a file, safe and short enough to be shown."""
    return _UNSAFE_CHARACTERS.sub("?", name)[:200]


class Replies(Protocol):
    """Recorded replies that are searched before a model is called; thread-safe."""

    source: ReplySource

    def find(self, request: RequestKey) -> RecordedReply | None:
        """Return the recorded reply, or None if the model should be called.

        Raises:
            TryFailed: There is no reply, and the model must not be called.

        """

    def keep(self, replies: Sequence[RecordedReply]) -> None:
        """Store the replies to a request that succeeded."""


class ReplayFile:
    """The recorded replies of a file.

    Of several replies with the same key, the one to the current version of the prompt counts, or
    else the last one.

    Args:
        path: The file, for messages.
        replies: The replies in the order of the file.

    """

    source: ReplySource = "replay"

    def __init__(self, path: str, replies: Iterable[RecordedReply]) -> None:
        self.path = path
        self._replies: dict[tuple[object, ...], dict[str, RecordedReply]] = {}
        self._models: dict[str, dict[str, str]] = {}
        self.count = 0
        for reply in replies:
            self.count += 1
            versions = self._replies.setdefault(reply.file_key, {})
            versions.pop(reply.prompt, None)
            versions[reply.prompt] = reply  # removed above, so that it becomes the last one
            last_dates = self._models.setdefault(reply.role, {})
            last_dates[reply.model] = max(reply.date[:10], last_dates.get(reply.model, ""))

    def find(self, request: RequestKey) -> RecordedReply:
        """Return the recorded reply.

        Raises:
            TryFailed: The file has none; the model isn't called instead.

        """
        versions = self._replies.get(request.file_key)
        if versions:
            return versions.get(request.prompt) or next(reversed(versions.values()))
        message = f"{self.path} holds {count_noun(self.count, 'reply', 'replies')}"
        if request.role not in self._models:
            message += (
                f", none of them of the {request.role} (only:"
                f" {', '.join(self._models) or 'of nobody'})"
            )
        number = f"sample {request.sample}, attempt {request.attempt}, asked {request.asked[:12]}"
        raise TryFailed(
            "unrecorded",
            f"there is no recorded reply to this in {self.path}: {request.role} (prompt"
            f" {request.prompt.partition('/')[0]}), {number}. {message}. Replay the case as it was"
            " recorded, or record it again (masis audit --record)",
        )

    def keep(self, replies: Sequence[RecordedReply]) -> None:
        """Store nothing, because a replay only reads its file."""

    def source_name(self, role: str) -> ModelRef:
        """Return the reference that a run records, with the models that gave the role's replies and
        the last date.

        If the role has no replies, such as a drafter whose cases had answers, all models are named.
        """
        all_models = {
            model: date
            for last_dates in self._models.values()
            for model, date in last_dates.items()
        }
        role_models = self._models.get(role, all_models)
        return ModelRef(
            "replay",
            self.path,
            recorded_model=shown_name(" + ".join(role_models)),
            recorded_date=max(role_models.values(), default=""),
        )

    def description(self) -> str:
        """Describe the file: the number of its replies, their models and roles."""
        count = count_noun(self.count, "recorded reply", "recorded replies")
        source = self.source_name("")
        return (
            f"{self.path} holds {count} of {source.recorded_model or 'nobody'},"
            f" {source.recorded_date or 'ever'}"
            f" ({', '.join(self._models)})"
        )


def replay_file(path: str, role: str) -> ReplayFile:
    """Return the replies of a file or of the demo. A file is read again only if it changes.

    Raises:
        SettingsError: The file can't be read, or isn't a file of recorded replies.

    """
    file = SHIPPED if path == DEMO_REPLIES else Path(path).expanduser()
    try:
        if not file.is_file():  # a device such as /dev/zero never ends
            raise InputError(
                "there is no such file", hint="Name one that masis audit --record wrote.", file=path
            )
        status = file.stat()
        if status.st_size > LARGEST_FILE:
            raise InputError(
                f"has more than {LARGEST_FILE:,} bytes", hint="Replay it in parts.", file=path
            )
        return _open_replay(path, file, status.st_mtime_ns, status.st_size)
    except InputError as error:
        raise SettingsError(f"{role}: {error}") from None
    except (OSError, ValueError) as error:  # ValueError: the name has a null byte
        reason = getattr(error, "strerror", None) or "can't be read"
        raise SettingsError(
            f"{role}: {path}: {reason}. Name a file that masis audit --record wrote."
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
            first_error = error.errors(include_url=False, include_input=False)[0]
            problem = f"{first_error['msg'][:1].lower()}{first_error['msg'][1:]}"
            raise InputError(
                "is no JSON" if first_error["type"] == "json_invalid" else problem,
                hint="Remove the line, or record the audit again (masis audit --record).",
                file=path,
                line=number,
                field=path_of(first_error["loc"])[:80] or None,
            ) from None


_appending = threading.Lock()


def check_record(path: str) -> None:
    """Create the file for recorded replies if it doesn't exist.

    Raises:
        SettingsError: Replies can't be recorded in it.

    """
    try:
        _append(path, b"")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "isn't a file name"
        raise SettingsError(
            f"record: {path}: {reason}. Name a file in a folder that exists."
        ) from None


def record(path: str, replies: Sequence[RecordedReply]) -> None:
    """Append replies to a file in one write, because several processes may append to it.

    Raises:
        OSError: The file can't be written.

    """
    _append(path, "".join(f"{reply.model_dump_json()}\n" for reply in replies).encode())


def _append(path: str, lines: bytes) -> None:
    # Unbuffered, so that all lines are one write(): with O_APPEND, writes of other processes can't
    # get between them (https://pubs.opengroup.org/onlinepubs/9799919799/functions/write.html).
    with _appending, Path(path).expanduser().open("ab", buffering=0) as file:
        if file.write(lines) != len(lines):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
