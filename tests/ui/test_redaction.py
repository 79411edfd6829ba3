"""Redaction on the pages: only by name, reason and word; what is removed and what stays is said
first.
"""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from masis.services import Workbench
from tests.reviewing import decide
from tests.ui.conftest import AUDITED, open_page, texts

CASE = AUDITED[0]


def press(
    app: AppTest, button: str, *, name: str = "Grace", reason: str = "names a person", word: str
) -> AppTest:
    fields = {field.label: field for field in app.text_input}
    fields["Your name, for the record"].set_value(name)
    fields["Reason"].set_value(reason)
    fields["Type “redact” to confirm"].set_value(word)
    next(candidate for candidate in app.button if candidate.label == button).click()
    app.run()
    assert not app.exception
    return app


def test_the_form_lists_what_is_removed_and_what_is_kept(audited_workbench: Workbench) -> None:
    page = texts(open_page("review", case=CASE))
    assert "Removed permanently:** the question, the answer, the evidence" in page
    assert "Not removed:** ids, digests, verdicts, metrics" in page


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"word": "yes"}, "Type “redact” first"),
        ({"word": "redact", "name": ""}, "Type your name first"),
        ({"word": "redact", "reason": " "}, "Give a reason first"),
    ],
)
def test_redaction_needs_a_confirmation_a_name_and_a_reason(
    audited_workbench: Workbench, typed: dict[str, str], said: str
) -> None:
    app = press(open_page("review", case=CASE), "Redact this case", **typed)  # type: ignore[arg-type]
    assert said in texts(app)
    assert audited_workbench.cases.summary(CASE).state != "redacted"


def test_a_redacted_case_says_so(audited_workbench: Workbench) -> None:
    app = press(open_page("review", case=CASE), "Redact this case", word="Redact ")
    assert "The case is redacted, with" in texts(app)
    assert audited_workbench.cases.summary(CASE).state == "redacted"
    assert audited_workbench.store.decisions.verify().intact
    again = open_page("review", case=CASE)
    assert "This case is redacted." in texts(again)
    assert not [button for button in again.button if button.label == "Redact this case"]


def test_a_log_entry_can_be_redacted(audited_workbench: Workbench) -> None:
    entry = decide(audited_workbench, CASE, "reject", note="a name")
    app = press(open_page("decisions", entry=entry.id), f"Redact entry {entry.seq}", word="redact")
    assert f"Entry {entry.seq} is redacted." in texts(app)
    assert audited_workbench.reviews.get(entry.id).decision is None
    assert not [
        button
        for button in open_page("decisions", entry=entry.id).button
        if "Redact" in button.label
    ]
