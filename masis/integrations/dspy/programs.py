"""Compiled programs as files: JSON, one a version, never overwritten, with all that made them
beside the program.

    <user's data folder>/programs/careful/v1.json

A program is named ``dspy:careful`` (its newest version) or ``dspy:careful@1``. Needs no library:
what is in a file is instructions and demonstrations, and nothing of it is executed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from masis.errors import InputError, SettingsError
from masis.schema.base import Record
from masis.settings import data_folder

Role = Literal["critic", "reviser"]
PREFIX = "dspy"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_VERSION = re.compile(r"v([1-9]\d{0,5})\.json")
LARGEST = 20_000_000
"""Bytes of a file that is read: more is no program of ours."""


class HeldOutScore(Record):
    """The metric on held-out answers, with its 95% interval over questions."""

    mean: float
    low: float | None
    high: float | None
    answers: int


class MadeFrom(Record):
    """The answers that a program was compiled and measured on: what they digest to, and how many
    there were.
    """

    digest: str
    train: int
    held_out: int


class Predictor(Record):
    """One predictor of a program: its instructions, and the demonstrations that go
    before the case.
    """

    instructions: str
    demos: tuple[dict[str, Any], ...] = ()


class Plan(Record):
    """What is to be compiled, and how.

    ``accept``: what a reply must be worth to become a demonstration. ``trials``: how many programs
    MIPROv2 tries, and how many times GEPA may look at all answers. ``teacher``: the model whose
    replies are shown (bootstrap) or that writes instructions (mipro, gepa); the same model where it
    is empty. ``source``: where the answers come from.
    """

    name: str
    role: Role
    optimizer: Literal["bootstrap", "mipro", "gepa"]
    model: str
    teacher: str = ""
    most_demonstrations: int = 4
    accept: float = 0.75
    trials: int = 6
    seed: int = 0
    max_cost: float | None = None
    source: str = ""
    shuffled: bool = False


class Program(Plan):
    """One version of a compiled program, and the plan that it was made by.

    ``state`` holds instructions and demonstrations by predictor; ``digest`` is SHA-256 over it.
    ``gain`` is what compiling added on the same held-out answers, with its interval; ``improved``
    says whether the whole interval lies above 0.
    """

    format: Literal[1] = 1
    version: int = Field(ge=1)
    data: MadeFrom
    metric: str
    before: HeldOutScore
    after: HeldOutScore
    gain: HeldOutScore
    improved: bool
    base_prompt: str
    made_at: str
    masis: str
    dspy: str
    calls: int
    tokens: int
    cost_usd: float | None
    digest: str
    state: dict[str, Predictor]

    @property
    def string(self) -> str:
        """How it is named in settings: ``dspy:careful@1``."""
        return f"{PREFIX}:{self.name}@{self.version}"

    @property
    def version_name(self) -> str:
        """How a run names it among the versions of its prompts."""
        return f"{self.string}+{self.digest[:8]}"

    @property
    def characters(self) -> int:
        """How long the instructions and demonstrations are that go with every question."""
        return sum(len(part.model_dump_json()) for part in self.state.values())

    @property
    def demonstrations(self) -> int:
        """How many there are."""
        return sum(len(part.demos) for part in self.state.values())


def folder(named: str | Path | None = None) -> Path:
    """Where programs lie: the folder named, else ``programs`` in the user's data folder."""
    return Path(named).expanduser() if named else data_folder() / "programs"


def digest(state: Mapping[str, Predictor]) -> str:
    """SHA-256 over a program's state; the order of the keys doesn't matter."""
    plain = {name: part.model_dump(mode="json") for name, part in state.items()}
    content = json.dumps(
        plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return hashlib.sha256(content.encode()).hexdigest()


def checked_name(name: str) -> str:
    """The name, fit for a file and for a model string. Raises SettingsError."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{name!r} is no name for a program: small letters, digits, - and _, at most 64, a"
            " letter or digit first."
        )
    return name


def versions(at: Path, name: str) -> list[int]:
    """The versions there are of a program, in order."""
    found = (_VERSION.fullmatch(file.name) for file in (at / checked_name(name)).glob("v*.json"))
    return sorted(int(match[1]) for match in found if match)


def program_names(at: Path) -> list[str]:
    """The programs there are, by name."""
    return sorted(
        {file.parent.name for file in at.glob("*/v*.json") if _NAME.fullmatch(file.parent.name)}
    )


def save_program(at: Path, made: Program) -> tuple[Program, Path]:
    """The program as the next version of its name, on disk.

    Two that are saved at once get two versions: a file that is there is never written.
    """
    home = at / checked_name(made.name)
    home.mkdir(parents=True, exist_ok=True)
    while True:
        number = max(versions(at, made.name), default=0) + 1
        numbered, file = made.model_copy(update={"version": number}), home / f"v{number}.json"
        beside = home / f".v{number}.{uuid.uuid4().hex}.tmp"
        beside.write_text(numbered.model_dump_json(indent=1), encoding="utf-8")
        try:
            os.link(beside, file)  # fails where the file is there, and never shows half of one
        except FileExistsError:
            continue
        finally:
            beside.unlink()
        return numbered, file


def find_program(at: Path, written: str) -> Program:
    """The program that ``careful`` or ``careful@2`` names.

    Raises SettingsError, naming the nearest there is, and InputError for a file that was altered or
    is none.
    """
    name, at_sign, number = written.partition("@")
    there = versions(at, name)
    if not there:
        near = difflib.get_close_matches(name, program_names(at), n=1)
        hint = (
            f"Did you mean {PREFIX}:{near[0]}?"
            if near
            else "masis optimize makes one; --list shows all there are."
        )
        raise SettingsError(f"{PREFIX}:{written}: there is no program {name!r} in {at}. {hint}")
    if at_sign and number not in map(str, there):
        known = ", ".join(map(str, there))
        raise SettingsError(
            f"{PREFIX}:{written}: {name!r} has no version {number!r}. There are: {known}."
        )
    return read_program(at / name / f"v{number if at_sign else there[-1]}.json")


def read_program(file: Path) -> Program:
    """The program in a file. Raises InputError for one that was altered or is none."""
    try:
        if file.stat().st_size > LARGEST:
            raise InputError("is too large for a program", hint="Compile it again.", file=str(file))
        found = Program.model_validate_json(file.read_bytes())
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        problem = f"is no program of this version ({where}: {error.errors()[0]['msg']})"
        raise InputError(problem, hint="Compile it again.", file=str(file)) from error
    if digest(found.state) != found.digest:
        problem = "was altered after it was compiled: it does not digest to what it says"
        hint = "Compile it again, so that what a run records is what it asked."
        raise InputError(problem, hint=hint, file=str(file))
    return found


def list_programs(at: Path) -> list[Program | InputError]:
    """Every version of every program, and an error for each file that can't be read."""
    found: list[Program | InputError] = []
    for file in (
        at / name / f"v{number}.json" for name in program_names(at) for number in versions(at, name)
    ):
        try:
            found.append(read_program(file))
        except InputError as error:
            found.append(error)
    return found


def with_texts_from_before(at: Path, moment: str) -> list[Program]:
    """The programs made before a moment that may hold texts of people's cases: all but those of the
    demo's.
    """
    there = (each for each in list_programs(at) if isinstance(each, Program))
    return [each for each in there if each.made_at < moment and each.source != "demo"]
