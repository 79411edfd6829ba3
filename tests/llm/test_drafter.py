"""The drafter with a model."""

from __future__ import annotations

from typing import Any

import pytest

from masis.errors import BadReply, ProviderFailed, StepError
from masis.llm.roles.drafter import ModelDrafter
from masis.schema.audit import Draft
from tests.audit.factories import EVIDENCE
from tests.llm.scripted_asker import MARK, ScriptedAsker

ANSWER = "It is 120 metres long [chunk_1]."


def drafted(given: Any) -> Draft:
    return ModelDrafter(ScriptedAsker({"drafter": given})).draft("How long is it?", EVIDENCE)


def test_a_draft_is_an_answer_with_the_steps_that_led_to_it() -> None:
    found = drafted({"reasoning_steps": ["chunk_1 gives it.", " "], "answer": f" {ANSWER}\n"})
    assert (found.answer, found.reasoning_steps) == (ANSWER, ("chunk_1 gives it.",))
    assert found.judged_by.version.startswith("drafter/3+")


def test_fence_lines_are_no_part_of_a_draft() -> None:
    found = drafted({"reasoning_steps": [], "answer": f"{ANSWER}\n<<<END ANSWER {MARK}>>>"})
    assert found.answer == ANSWER


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ProviderFailed("down"), "CRITIC-ERR-003"),
        (BadReply("refused", kind="refused"), "CRITIC-ERR-001"),
        ({"reasoning_steps": [], "answer": " "}, "CRITIC-ERR-001"),
        ("Sure! It is long.", "CRITIC-ERR-001"),
    ],
)
def test_no_answer_is_a_failure_with_its_code(failure: Any, code: str) -> None:
    with pytest.raises(StepError) as raised:
        drafted(failure)
    assert raised.value.code == code
