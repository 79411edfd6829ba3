"""Compiled programs as JSON files, one per version. Files are never overwritten.

    <user's data folder>/programs/careful/v1.json

A program is named ``dspy:careful`` (its newest version) or ``dspy:careful@1``. This module doesn't
need DSPy: a file contains instructions, demonstrations and how they were made, and nothing in it is
executed.
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
from masis.extensions import StoredTexts
from masis.schema.base import Record
from masis.settings import Settings, data_folder

Role = Literal["critic", "reviser"]
PREFIX = "dspy"
# A program's name is also a folder's name, so it can't contain dots or slashes.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_VERSION = re.compile(r"v([1-9]\d{0,5})\.json")
LARGEST = 20_000_000
"""The largest program file that is read, in bytes."""


class HeldOutScore(Record):
    """The mean metric of held-out answers, with its 95% interval from resampling questions."""

    mean: float
    low: float | None
    high: float | None
    answers: int


class MadeFrom(Record):
    """The digest and the numbers of the answers that a program was compiled and measured on."""

    digest: str
    train: int
    held_out: int


class Predictor(Record):
    """The instructions and demonstrations of one predictor of a program."""

    instructions: str
    demos: tuple[dict[str, Any], ...] = ()


class Plan(Record):
    """The options of a compilation.

    Attributes:
        accept: The lowest score of a reply that becomes a demonstration.
        trials: How many programs MIPROv2 tries, or how often GEPA may evaluate all answers.
        teacher: The model whose replies are shown (bootstrap) or that writes instructions (mipro,
            gepa). The same model if empty.
        source: Where the answers are from: ``demo``, ``decisions`` or a file name.
        shuffled: Whether the labels were shuffled, as a control.

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
    """One version of a compiled program, with the plan it was made by.

    Attributes:
        before: The score of the uncompiled program on the held-out answers.
        after: The score of the compiled program on the same answers.
        gain: The mean difference, with its interval.
        improved: Whether the whole interval of the gain is above 0.
        state: The predictors by name.
        digest: The SHA-256 of ``state``.

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
        """The name in settings, such as ``dspy:careful@1``."""
        return f"{PREFIX}:{self.name}@{self.version}"

    @property
    def version_name(self) -> str:
        """The name in a run's prompt versions."""
        return f"{self.string}+{self.digest[:8]}"

    @property
    def characters(self) -> int:
        """The characters of instructions and demonstrations that every prompt contains."""
        return sum(len(part.model_dump_json()) for part in self.state.values())

    @property
    def demonstrations(self) -> int:
        """The number of demonstrations."""
        return sum(len(part.demos) for part in self.state.values())


def folder(path: str | Path | None = None) -> Path:
    """Return the folder of programs: ``path``, or ``programs`` in the user's data folder."""
    return Path(path).expanduser() if path else data_folder() / "programs"


def digest(state: Mapping[str, Predictor]) -> str:
    """Return the SHA-256 of a program's state. The order of its keys doesn't matter."""
    plain = {name: part.model_dump(mode="json") for name, part in state.items()}
    content = json.dumps(
        plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return hashlib.sha256(content.encode()).hexdigest()


def checked_name(name: str) -> str:
    """Return the name if it's fit for a file and a model string. Raises SettingsError if not."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{name!r} can't name a program. Use up to 64 lowercase letters, digits, - and _, and"
            " start with a letter or digit."
        )
    return name


def versions(programs_folder: Path, name: str) -> list[int]:
    """Return the saved versions of a program, oldest first."""
    matches = (
        _VERSION.fullmatch(file.name)
        for file in (programs_folder / checked_name(name)).glob("v*.json")
    )
    return sorted(int(match[1]) for match in matches if match)


def program_names(programs_folder: Path) -> list[str]:
    """Return the names of the saved programs."""
    return sorted(
        {
            file.parent.name
            for file in programs_folder.glob("*/v*.json")
            if _NAME.fullmatch(file.parent.name)
        }
    )


def save_program(programs_folder: Path, program: Program) -> tuple[Program, Path]:
    """Save a program as the next version of its name, and return that version and its file.

    Two programs that are saved at once get two versions. Existing files are never overwritten.
    """
    program_folder = programs_folder / checked_name(program.name)
    program_folder.mkdir(parents=True, exist_ok=True)
    while True:
        number = max(versions(programs_folder, program.name), default=0) + 1
        numbered, file = (
            program.model_copy(update={"version": number}),
            program_folder / f"v{number}.json",
        )
        temporary = program_folder / f".v{number}.{uuid.uuid4().hex}.tmp"
        temporary.write_text(numbered.model_dump_json(indent=1), encoding="utf-8")
        try:
            # Unlike a rename, a link fails if the file exists. Readers never see half of a file.
            os.link(temporary, file)
        except FileExistsError:
            continue
        finally:
            temporary.unlink()
        return numbered, file


def find_program(programs_folder: Path, program_name: str) -> Program:
    """Read the program that ``careful`` or ``careful@2`` names.

    Raises SettingsError, with the most similar name, if there's no such program, and InputError if
    its file is invalid or was altered.
    """
    name, at_sign, number = program_name.partition("@")
    saved = versions(programs_folder, name)
    if not saved:
        similar = difflib.get_close_matches(name, program_names(programs_folder), n=1)
        hint = (
            f"Did you mean {PREFIX}:{similar[0]}?"
            if similar
            else "Compile one with masis optimize, or list yours with masis optimize --list."
        )
        raise SettingsError(
            f"{PREFIX}:{program_name}: there is no program {name!r} in {programs_folder}. {hint}"
        )
    if at_sign and number not in map(str, saved):
        known_versions = ", ".join(map(str, saved))
        raise SettingsError(
            f"{PREFIX}:{program_name}: {name!r} has no version {number!r}. Choose one of:"
            f" {known_versions}."
        )
    return read_program(programs_folder / name / f"v{number if at_sign else saved[-1]}.json")


def read_program(file: Path) -> Program:
    """Read a program's file. Raises InputError if it's invalid or was altered."""
    try:
        if file.stat().st_size > LARGEST:
            raise InputError("is too large for a program", hint="Compile it again.", file=str(file))
        program = Program.model_validate_json(file.read_bytes())
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors()[0]["loc"])
        problem = f"isn't a program of this version ({field}: {error.errors()[0]['msg']})"
        raise InputError(problem, hint="Compile it again.", file=str(file)) from error
    if digest(program.state) != program.digest:
        problem = "was altered after it was compiled, because its digest doesn't match"
        hint = "Compile it again, so that runs record the instructions they used."
        raise InputError(problem, hint=hint, file=str(file))
    return program


def list_programs(programs_folder: Path) -> list[Program | InputError]:
    """Read every version of every program. A file that can't be read is an error in the list."""
    programs: list[Program | InputError] = []
    for name in program_names(programs_folder):
        for number in versions(programs_folder, name):
            try:
                programs.append(read_program(programs_folder / name / f"v{number}.json"))
            except InputError as error:
                programs.append(error)
    return programs


def with_texts_from_before(programs_folder: Path, moment: str) -> list[Program]:
    """Return the programs made before a moment that may contain texts of people's cases.

    Programs compiled on the demo cases don't.
    """
    return [
        program
        for program in list_programs(programs_folder)
        if isinstance(program, Program) and program.made_at < moment and program.source != "demo"
    ]


def list_old_programs(settings: Settings, cutoff: str) -> StoredTexts:
    """Return the programs from before a time that may contain texts of cases."""
    place = folder(settings.programs_folder)
    names = tuple(program.string for program in with_texts_from_before(place, cutoff))
    return StoredTexts("compiled critic or reviser", "compiled critics or revisers", place, names)
