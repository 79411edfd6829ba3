"""What critic and reviser share as DSPy modules: a model, how it is asked, who the record says it was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dspy

from masis.integrations.dspy.engine import language_model
from masis.llm import registry
from masis.llm.model import Retries
from masis.llm.prompting import load
from masis.schema.audit import JudgedBy
from masis.settings import Settings
from masis.steps.conduct import Conduct

Chunks = Iterable[Any]
CONTEXT = "context"
"""In place of a model: whatever ``dspy.context`` or ``dspy.configure`` names when the agent is asked."""


class Agent(dspy.Module):
    """An agent and its model."""

    role = ""
    prompt = ""
    temperature = 0.0

    def __init__(self, llm_provider: str, model_name: str, lm: Any, settings: Settings | None) -> None:
        super().__init__()
        self.model_string = f"{llm_provider}:{model_name}"
        self.settings = settings or Settings()
        self.llm = lm
        self.version = f"{load(self.prompt).version} by DSPy"

    @property
    def model(self) -> str:
        """The model that is asked, as records name it."""
        lm = self._own_lm()
        if lm == CONTEXT:
            lm = dspy.settings.lm
        return str(getattr(lm, "model", None) or self.model_string)

    def for_run(self, conduct: Conduct) -> Any:
        """The model for one run: the one given, else ``llm_provider:model_name``, reached as settings say.

        Raises SettingsError for one that can't be asked.
        """
        if (lm := self._own_lm()) is not None:
            return None if lm == CONTEXT else lm
        model = registry.asker(self.model_string, self.role, conduct, self.settings)
        return language_model(model, self.version, temperature=self.temperature)

    def _own_lm(self) -> Any:
        return next((each.lm for each in self.predictors() if each.lm is not None), self.llm)

    def _about(self) -> str:
        return f"{self.role} {self.version}"

    def _conduct(self) -> Conduct:
        return Conduct(call_s=self.settings.call_deadline_s)

    def _retries(self) -> Retries:
        return Retries(self.settings.max_retries, self.settings.retry_base_s, self.settings.retry_cap_s)

    @property
    def judged_by(self) -> JudgedBy:
        """Model and version, for the record."""
        return JudgedBy(model=self.model, version=self.version)


def read_of(found: Any, shape: Any) -> Any:
    """The prediction as the record it was read from: validated when it was parsed."""
    return shape.model_construct(**{name: getattr(found, name) for name in shape.model_fields})
