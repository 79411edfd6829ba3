"""Where results of exams are stored, and which models have passed.

Results are in a file of their own and not in a database of cases: whether a model may be trusted
doesn't depend on the cases it is used for, and audits in Python or in worker processes need to know
it too. The file has one result per line and is only appended to.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from masis.errors import InputError, MasisError
from masis.llm import endpoints, registry
from masis.schema.exam import EXAM_VERSION, JUDGING_ROLES, Examinee, ExamResult, ExamStanding
from masis.schema.model_ref import ModelRef
from masis.schema.run import Run
from masis.settings import Settings
from masis.settings.environment import data_folder
from masis.views.exam import exam_line

SHIPPED = "shipped_exams.jsonl"
"""Results that come with the product. ``tools/ship_exams.py`` writes those of the offline rules."""

UNKNOWN_ADDRESS = "unknown"
"""The address of a model whose address the settings no longer contain. No exam was taken there."""


class ExamResults:
    """The results of exams in one file, and those that come with the product."""

    def __init__(self, file: str | Path = "") -> None:
        """Use a results file. The default is ``exams.jsonl`` in the user's data folder."""
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
                hint="Name another file with the setting exam_results.",
                file=str(self.file),
            ) from error

    def all(self) -> tuple[ExamResult, ...]:
        """Return all results, the oldest first.

        Raises:
            InputError: The file can't be read; the error names the line.

        """
        try:
            status = self.file.stat()
        except OSError:
            return _shipped_results()
        return (
            *_shipped_results(),
            *_stored_results(self.file, status.st_mtime_ns, status.st_size),
        )

    def standing(self, examinee: Examinee) -> ExamStanding:
        """Return the newest result that counts for an examinee, else the newest of the same models.

        The latest exam counts, regardless of earlier ones. Raises the errors of ``all``.
        """
        newest_first = self.all()[::-1]
        for result in newest_first:
            if result.is_about(examinee):
                return ExamStanding(result)
        for result in newest_first:
            if result.models == examinee.models:
                other_exam = result.exam_version != EXAM_VERSION
                other_prompts = result.prompts != examinee.prompts
                return ExamStanding(
                    earlier=result,
                    differs="exam" if other_exam else "prompts" if other_prompts else "address",
                )
        return ExamStanding()


def examined_name(string: str) -> str:
    """Return the name under which a role's model takes the exam.

    For two chained verifiers (``offline,MODEL``) it is the second, which decides what the offline
    checks leave open. For recorded replies it is the model that gave them.
    """
    ref = ModelRef.parse(string)
    return ref.recorded_model if ref.is_replay else str(ref.alone)


def build_examinee(
    models: Mapping[str, str],
    prompts: Mapping[str, str],
    offline_rules: str | None,
    settings: Settings,
    *,
    judge: str = "",
) -> Examinee:
    """Return the judging models of an audit, as results of exams name them.

    Args:
        models: The model string of each role, as a run records them.
        prompts: The version of the prompts of each role that a model fills.
        offline_rules: The version of the offline rules, which the other roles use.
        settings: The settings with the addresses of the models.
        judge: The digest of the team's guidance for the judge; empty for the default judge. The
            guidance is part of the prompts, so each judge version needs its own exam.

    """
    of_judge = f" judge/{judge}" if judge else ""
    return Examinee(
        models={role: examined_name(models.get(role, "")) for role in JUDGING_ROLES},
        addresses={
            role: _model_address(models.get(role, ""), role, settings) for role in JUDGING_ROLES
        },
        prompts={
            role: f"{prompts.get(role) or offline_rules or ''}{of_judge}" for role in JUDGING_ROLES
        },
    )


def build_examinee_of_run(run: Run, settings: Settings) -> Examinee:
    """Return the judging models of a run, with the addresses that these settings give."""
    versions = run.versions
    return build_examinee(
        run.models, versions.prompts, versions.offline_rules, settings, judge=versions.judge
    )


def find_unexamined_name(examinee: Examinee, settings: Settings) -> str:
    """Return the name of an examinee that has not passed the exam; empty if it has passed."""
    return "" if ExamResults(settings.exam_results).standing(examinee).passed else examinee.name


def describe_exam_standing(load_standing: Callable[[], ExamStanding]) -> str:
    """Return a line about an exam standing. It is empty if the model can't be asked."""
    try:
        return exam_line(load_standing())
    except InputError as error:  # a damaged file must not break a page
        return f"may have taken the exam; its results can't be read: {error}"
    except MasisError:  # reported where the model is chosen
        return ""


def _model_address(string: str, role: str, settings: Settings) -> str | None:
    """Return the address of a role's model: "" for a local model, None for recorded replies."""
    try:
        ref = ModelRef.parse(string)
        if ref.is_replay:
            return None
        asked = registry.asked_model(ref, role, settings)
        return endpoints.endpoint(asked.provider, settings).address if asked else ""
    except MasisError:  # an earlier run's model whose provider, key or file is gone
        return UNKNOWN_ADDRESS


@lru_cache(maxsize=1)
def _shipped_results() -> tuple[ExamResult, ...]:
    return _parse_results(
        resources.files("masis.api").joinpath(SHIPPED).read_text(encoding="utf-8"), SHIPPED
    )


@lru_cache(maxsize=4)
def _stored_results(file: Path, _changed_ns: int, _bytes: int) -> tuple[ExamResult, ...]:
    """Read a file of results; its time and size are arguments so that a changed file
    is read again.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            "can't be read as results of exams",
            hint=(
                "Name another file with the setting exam_results, and let the model take the exam"
                " again."
            ),
            file=str(file),
        ) from error
    return _parse_results(text, str(file))


def _parse_results(text: str, file: str) -> tuple[ExamResult, ...]:
    results = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            results.append(ExamResult.model_validate_json(line))
        except ValidationError as error:
            if _is_of_another_version(line):
                continue  # written by an earlier or later release, whose exam doesn't count here
            raise InputError(
                "is not a result of an exam",
                hint="Remove the line, and let the model take the exam again.",
                file=file,
                line=number,
            ) from error
    return tuple(results)


def _is_of_another_version(line: str) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    version = record.get("exam_version") if isinstance(record, dict) else None
    return isinstance(version, str) and version != EXAM_VERSION
