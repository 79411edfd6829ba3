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
from masis.schema.exam import ExamResult
from masis.settings.environment import data_folder

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
        return next((each for each in reversed(self.all()) if each.model == model), None)

    def of(self, model: str, address: str, prompts: Mapping[str, str]) -> ExamResult | None:
        """Return the newest result that holds for this use of a model.

        Args:
            model: The model string.
            address: Where it is asked; empty for what runs on this machine.
            prompts: The version of the prompts of each role that it fills.

        """
        for result in reversed(self.all()):
            same_prompts = all(result.prompts.get(role) == version for role, version in prompts.items())
            if result.model == model and result.address == address and same_prompts:
                return result
        return None


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
