"""The exam of models: taking it beside the pages, and what is said of it wherever a
model is named.
"""

from __future__ import annotations

from masis.api.exam_results import ExamResults, examinee_of_run, line_about
from masis.api.roles import exam_standing, probe_model
from masis.bench.exam import estimate_exam, exam_settings, take_exam
from masis.errors import InputError
from masis.llm.estimates import CostEstimate
from masis.schema.actor import Actor
from masis.schema.exam import JUDGING_ROLES, ExamResult, ExamStanding, joined_name
from masis.schema.run import Run
from masis.services.access import Access, Service
from masis.services.background import BackgroundTask, BackgroundTasks
from masis.settings import OFFLINE, Settings
from masis.store import Store


class ExamUnderWay(BackgroundTask):
    """An exam on a thread of the server. Its result is stored when it ends; stopped, it leaves
    nothing.
    """

    result: ExamResult | None = None

    def __init__(self, settings: Settings) -> None:
        """``settings`` are those of an exam, as ``exam_settings`` makes them."""
        super().__init__()
        self.settings, self.done, self.total = settings, 0, 0

    @property
    def name(self) -> str:
        """Who takes the exam."""
        return joined_name({role: getattr(self.settings, role) for role in JUDGING_ROLES})

    @property
    def share(self) -> float:
        """How many of the answers are judged, 0 to 1."""
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
        """Test the connection to each model, so that a wrong key shows first, then take
        the exam.
        """
        for model in dict.fromkeys(getattr(self.settings, role) for role in JUDGING_ROLES):
            if model != OFFLINE and not (probed := probe_model(model, self.settings)).ok:
                raise InputError(
                    probed.message.rstrip("."), hint="Put that right, then start the exam again."
                )

        def show_progress(done: int, total: int) -> None:
            self.done, self.total = done, total

        self.result = take_exam(
            self.settings, on_progress=show_progress, stopped=lambda: self.stopping
        )
        if self.result is not None:
            ExamResults(self.settings.exam_results).add(self.result)


_UNDER_WAY: BackgroundTasks[ExamUnderWay] = BackgroundTasks()
_ONE = "exam"
"""One exam at a time in a server: two would share the provider's limit, and the page shows one."""


class ExamService(Service):
    """Takes exams, and says how models stand with them."""

    def __init__(self, store: Store, settings: Settings, access: Access) -> None:
        """``settings`` name the models in use and the file of results."""
        super().__init__(store, access)
        self._settings = settings

    def cost(self, model: str = "") -> CostEstimate:
        """Return what the exam of a model takes at most; of the models in use where none is named.

        Raises MasisError for a model that can't be asked.
        """
        return estimate_exam(exam_settings(self._settings, model))

    def start(self, actor: Actor, model: str = "") -> None:
        """Start the exam of a model, or of the models in use, unless an exam is under way.

        Raises NotAllowed, and MasisError for a model that can't be asked.
        """
        self._access.require(actor, "configure")
        settings = exam_settings(self._settings, model)
        _UNDER_WAY.start(_ONE, lambda: ExamUnderWay(settings))

    @staticmethod
    def latest() -> ExamUnderWay | None:
        """Return the exam under way in this process, else the last one; None where
        there was none.
        """
        return _UNDER_WAY.get(_ONE)

    def standing(self, model: str = "") -> ExamStanding:
        """Return what is known of a model, or of the models in use. Raises as ``cost``."""
        return exam_standing(exam_settings(self._settings, model))

    def line(self, model: str = "") -> str:
        """Return the line about a model's exam, or that of the models in use; empty for one that
        can't be asked.
        """
        return self.line_for(self._settings, model)

    def line_for(self, settings: Settings, model: str = "") -> str:
        """Return the same for the models that other settings name, as those of an audit that is
        being prepared.
        """
        return line_about(lambda: exam_standing(exam_settings(settings, model)))

    def line_for_run(self, run: Run) -> str:
        """Return the line about the exam of whoever judged in a run."""
        results = ExamResults(self._settings.exam_results)
        return line_about(lambda: results.standing(examinee_of_run(run, self._settings)))

    def line_for_auditor(self, auditor: str) -> str:
        """Return the line about an auditor, named by its digest; empty where none of its runs is
        stored any more.
        """
        run_id = self._store.trust.newest_run_of(auditor)
        return line_about(lambda: self._standing_in(run_id)) if run_id else ""

    def _standing_in(self, run_id: str) -> ExamStanding:
        run = self._store.runs.get(run_id)
        return ExamResults(self._settings.exam_results).standing(
            examinee_of_run(run, self._settings)
        )
