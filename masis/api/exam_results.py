"""Where results of exams are kept, and which models have passed.

Results lie in a file of their own, not in a database of cases: whether a model may be trusted doesn't depend on the
cases it is used for, and audits in Python or in worker processes need to know it too. The file has one result a line
and is only appended to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from masis.errors import InputError
from masis.llm import endpoints, registry
from masis.schema.calls import Replayed
from masis.schema.exam import ExamResult
from masis.settings import OFFLINE, Settings
from masis.settings.environment import data_folder

JUDGING_ROLES = ("verifier", "critic", "evaluator")
"""The roles whose word can let an answer pass. A revision is audited again, and a draft is never accepted unread."""

SHIPPED = "shipped_exams.jsonl"
"""Results that come with the product: the offline rules, and the models whose replies the demo replays."""


class ExamResults:
    """The results of exams in one file, and those that come with the product."""

    def __init__(self, file: str | Path = "") -> None:
        """Name the file; without a name it is ``exams.jsonl`` in the user's data folder."""
        self.file = Path(file).expanduser() if file else data_folder() / "exams.jsonl"

    def add(self, result: ExamResult) -> None:
        """Append a result. Raises InputError where the file can't be written."""
        line = result.model_dump_json() + "\n"
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            # One write in append mode: two processes that finish together don't mix their lines.
            descriptor = os.open(self.file, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise InputError(
                f"can't be written ({error.strerror})",
                cure="Name another file with the setting exam_results.",
                file=str(self.file),
            ) from error

    def all(self) -> tuple[ExamResult, ...]:
        """Return every result, the oldest first. Raises InputError, naming the line that can't be read."""
        own = self.file.read_text(encoding="utf-8") if self.file.is_file() else ""
        shipped = resources.files("masis.api").joinpath(SHIPPED).read_text(encoding="utf-8")
        return (*_read(shipped, SHIPPED), *_read(own, str(self.file)))

    def latest(self, model: str) -> ExamResult | None:
        """Return the newest result of a model, whatever the address and prompts; None if it never took the exam."""
        return next((each for each in reversed(self.all()) if each.name == model), None)

    def has_passed(self, role: str, model: str, address: str | None, prompt: str) -> bool:
        """Return whether a model passed its newest exam in this role, at this address, with these prompts.

        Without an address (None) that at any address counts: recorded replies don't say where they were asked for.
        """
        matching = [each for each in self.all() if each.covers(role, model, address, prompt)]
        return bool(matching) and matching[-1].passed


def address_of(string: str, role: str, settings: Settings) -> str:
    """Return where a role's model is asked; empty for what runs on this machine and for recorded replies."""
    asked = registry.asked_model(string, role, settings)
    return "" if asked == OFFLINE else endpoints.endpoint_of(asked, settings)


def examined_name(string: str, role: str) -> str:
    """Return under which name a role's model takes the exam.

    Of two verifiers in a row it is the second, which decides what the offline checks leave open; of recorded replies
    it is the model that gave them.
    """
    staged = registry.stages(string, role)
    last = staged[1] if staged else string
    replayed = Replayed.of(last)
    return replayed.model if replayed else last


def models_without_exam(
    models: Mapping[str, str], prompts: Mapping[str, str], offline_rules: str, settings: Settings
) -> tuple[str, ...]:
    """Return the models of judging roles that have not passed the exam as they are used here.

    Args:
        models: The model string of each role, as a run records them.
        prompts: The version of the prompts of each role that a model fills.
        offline_rules: The version of the offline rules, which the other roles work by.
        settings: Where models are asked, and the file of results.

    Returns:
        Each model once, in the order of the roles; empty where all have passed.

    """
    results = ExamResults(settings.exam_results)
    missing = []
    for role in JUDGING_ROLES:
        string = models[role]
        name = examined_name(string, role)
        replayed = Replayed.of(string) is not None
        address = None if replayed else address_of(string, role, settings)
        if not results.has_passed(role, name, address, prompts.get(role) or offline_rules):
            missing.append(name)
    return tuple(dict.fromkeys(missing))


def _read(text: str, file: str) -> tuple[ExamResult, ...]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found.append(ExamResult.model_validate_json(line))
        except ValidationError as error:
            raise InputError(
                "is no result of an exam",
                cure="Remove the line, and let the model take the exam again.",
                file=file,
                line=number,
            ) from error
    return tuple(found)
