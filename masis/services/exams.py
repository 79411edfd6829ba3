"""Run the exam of models in the background, and report its results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from masis.api.exam_results import ExamResults, build_examinee_of_run, describe_exam_standing
from masis.api.roles import exam_standing, probe_model
from masis.bench.exam import estimate_exam, exam_settings, no_guidance, take_exam
from masis.errors import InputError
from masis.llm.estimates import CostEstimate
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.exam import JUDGING_ROLES, ExamResult, ExamStanding, joined_name
from masis.schema.judge import JudgeBrief
from masis.schema.run import Run
from masis.services.access import Access, Service, requires
from masis.services.background import BackgroundTask, BackgroundTasks
from masis.services.judge.briefs import JudgeBriefs
from masis.settings import OFFLINE, Settings
from masis.store import Store


class RunningExam(BackgroundTask):
    """An exam on a thread of the server; its result is stored only if it isn't stopped."""

    result: ExamResult | None = None

    def __init__(
        self, settings: Settings, judge: Callable[[Case], JudgeBrief | None] = no_guidance
    ) -> None:
        """``settings`` are those of an exam, made by ``exam_settings``. ``judge`` returns what the
        team tells the judge about a case.
        """
        super().__init__()
        self.settings, self.judge, self.done, self.total = settings, judge, 0, 0

    @property
    def name(self) -> str:
        """The name of the model or models that take the exam."""
        return joined_name({role: getattr(self.settings, role) for role in JUDGING_ROLES})

    @property
    def share(self) -> float:
        """The share of the answers that are judged, 0 to 1."""
        return self.done / self.total if self.total else 0.0

    @property
    def progress_text(self) -> str:
        """How many of the answers are judged, in words."""
        return (
            f"{self.name}: {self.done} of {self.total} answers judged"
            if self.done
            else f"{self.name}: started"
        )

    def work(self) -> None:
        """Test the connection to each model, so that a wrong key shows at once; take the exam."""
        for model in dict.fromkeys(getattr(self.settings, role) for role in JUDGING_ROLES):
            if model != OFFLINE and not (probed := probe_model(model, self.settings)).ok:
                raise InputError(
                    probed.message.rstrip("."), hint="Fix that, then start the exam again."
                )

        def show_progress(done: int, total: int) -> None:
            self.done, self.total = done, total

        self.result = take_exam(
            self.settings,
            on_progress=show_progress,
            stopped=lambda: self.stopping,
            judge=self.judge,
        )
        if self.result is not None:
            ExamResults(self.settings.exam_results).add(self.result)


_EXAMS: BackgroundTasks[RunningExam] = BackgroundTasks()
_EXAM = "exam"
"""The single name of all exams, so that only one runs at a time.

Two would share the provider's rate limit, and the page shows one.
"""


class ExamService(Service):
    """Runs exams and reports the results of models."""

    def __init__(self, store: Store, settings: Settings, access: Access) -> None:
        """``settings`` name the models in use and the file of results."""
        super().__init__(store, access)
        self._settings, self._briefs = settings, JudgeBriefs(store)

    def cost(self, model: str = "") -> CostEstimate:
        """Return the highest cost of a model's exam, or of the models in use if none is named.

        Raises:
            MasisError: The model can't be called.

        """
        settings = self._exam_settings(self._settings, model)
        return estimate_exam(settings, self._briefs.without_examples(settings))

    @requires("configure", "let models take the exam")
    def start(self, actor: Actor, model: str = "") -> None:
        """Start the exam of a model, or of the models in use, unless an exam is running.

        Raises:
            NotAllowed: The actor's role doesn't allow it.
            MasisError: The model can't be called.

        """
        settings = self._exam_settings(self._settings, model)
        judge = partial(self._briefs.brief, settings=settings)
        _EXAMS.start(_EXAM, lambda: RunningExam(settings, judge))

    @staticmethod
    def latest() -> RunningExam | None:
        """Return this process's running or last exam, or None if there was none."""
        return _EXAMS.get(_EXAM)

    def status(self, model: str = "") -> ExamStanding:
        """Return the exam status of a model, or of the models in use.

        Raises:
            MasisError: The model can't be called.

        """
        return self._standing(self._settings, model)

    def line(self, model: str = "") -> str:
        """Return a line about the exam of a model, or of the models in use if none is named.

        It is "" if the model can't be called.
        """
        return self.line_for(self._settings, model)

    def line_for(self, settings: Settings, model: str = "") -> str:
        """Return the line of ``line`` under other settings, such as those of a new audit."""
        return describe_exam_standing(lambda: self._standing(settings, model))

    def line_for_run(self, run: Run) -> str:
        """Return the line about the exam of the models that judged in a run."""
        return describe_exam_standing(lambda: self._status_of(run))

    def line_for_auditor(self, auditor: str) -> str:
        """Return a line about the exam of an auditor, which is named by its digest.

        It is "" if retention has removed all runs of the auditor.
        """
        run_id = self._store.trust.newest_run_of(auditor)
        # read within the call, because retention may have removed the run
        return (
            describe_exam_standing(lambda: self._status_of(self._store.runs.get(run_id)))
            if run_id
            else ""
        )

    def _exam_settings(self, settings: Settings, model: str) -> Settings:
        """Return the settings of an exam, which a judge version takes with its own rules."""
        return self._briefs.pin(exam_settings(settings, model))

    def _standing(self, settings: Settings, model: str) -> ExamStanding:
        pinned = self._exam_settings(settings, model)
        return exam_standing(pinned, self._briefs.without_examples(pinned))

    def _status_of(self, run: Run) -> ExamStanding:
        return ExamResults(self._settings.exam_results).standing(
            build_examinee_of_run(run, self._settings)
        )
