"""The page of a new audit: a case is pasted, uploaded or picked, then its audit is shown live."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import streamlit as st
from pydantic import BaseModel

from masis.api.roles import asked_model, check_models, offered_models
from masis.datasets.readers.pasted import (
    PastedEvidence,
    decode_upload,
    merge_chunk,
    read_pasted,
    rename_chunk,
    write_pasted,
)
from masis.errors import InputError, MasisError, SettingsError
from masis.schema.case import Case
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.model_names import assert_listed
from masis.services.records import CaseFilter, CasePage
from masis.settings import ROLES, Settings
from masis.ui.components import noop, register_component
from masis.ui.live import served_jobs
from masis.ui.new_audit.form import (
    CHOICES,
    LONGEST,
    ROLE,
    case_of,
    destination_text,
    form_panel,
    requirements_text,
    settings_of,
    understood_case,
)
from masis.ui.new_audit.live_run import show_run
from masis.ui.shell import address
from masis.ui.shell.inputs import store_typed, typing_area
from masis.ui.shell.permissions import action, button_state
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench
from masis.ui.shell.stored_form import SettingsForm, show_file
from masis.ui.shell.streamlit_internals import with_selectors
from masis.views.markdown import escape_markdown
from masis.views.numbers import moment
from masis.views.words import label, status_label

HITS = 8
PASTE, STORED = "Paste or upload", "Pick a stored case"
OTHER_MODEL = "Another model"
LONGEST_MODEL = 200
UPLOADS = ["txt", "md", "csv", "tsv", "json", "jsonl"]
_UNDERSTOOD = register_component("understood")
_PICKER = register_component("picker")


# An example to fill the form with. Its answer has a wrong number, an unknown citation and an
# unsupported claim, as a demonstration of the audit.

QUESTION = (
    "What did the longer opening hours of the Ostergaard reading rooms change, and what did they"
    " cost?"
)

EVIDENCE = """\
[1] The city extended the opening hours of its four Ostergaard reading rooms from 40 to 63 hours a
week in March 2021. The two rooms by the harbour kept their old hours and served as a comparison.

[2] Visits to the four rooms rose from 212,000 in 2020 to 318,000 in 2022, an increase of 50%. The
harbour rooms saw hardly any change.

[3] Staff costs went up by 1.9 million kroner a year. Two thirds of this went to evening
supplements; no new posts were created.

[4] In the survey of autumn 2022, 71% of visitors under 25 said that they came mostly after 6 pm.
Among visitors over 60 it was 9%.
"""

ANSWER = (
    "In March 2021 the four Ostergaard reading rooms went from 40 to 63 hours a week [1]. Visits to"
    " the four rooms rose from 212,000 in 2020 to 381,000 in 2022, an increase of 50% [2]. Younger"
    " visitors gained most: 71% of those under 25 came mostly after 6 pm [4]. Staff costs went up"
    " by 1.9 million kroner a year [3]. A later review found that the number of loans doubled [7]."
    " The city created twelve new posts for the evenings."
)
EXAMPLE = QUESTION, EVIDENCE, ANSWER


class LargeFile(BaseModel):
    """An uploaded file of evidence that is too long for a field."""

    name: str
    text: str


class AuditForm(SettingsForm):
    """The form of a session; ``large`` is an upload that replaces typed evidence."""

    SUBJECT = "new-audit"
    question: str = ""
    evidence: str = ""
    answer: str = ""
    large: LargeFile | None = None

    def applied_to(self, base: Settings) -> Settings:
        """Return the settings with the changes made in the form."""
        return settings_of(base, self.settings)

    @property
    def pasted_evidence(self) -> PastedEvidence:
        """The chunks of evidence that were typed or uploaded."""
        return _read_pasted_text(self.large.text if self.large else self.evidence)


# cache_resource, because cache_data would copy all chunks on every run
@st.cache_resource(show_spinner=False, max_entries=8)
def _read_pasted_text(text: str) -> PastedEvidence:
    return read_pasted(text)


def show_new_audit(workbench: Workbench) -> None:
    """Draw the form of a new audit, or the audit named in the address."""
    if run_id := address.value("job"):
        show_run(workbench, run_id, address.value("case"))
        return
    # A worker takes about a second to start, and the person needs longer to fill in the form.
    served_jobs().warm_up()
    form = AuditForm.current()
    stored = address.value("case")
    title, fill = st.columns([7, 2], vertical_alignment="bottom")
    title.title("New audit")
    # The choice has another key, with its own default, if a case is in the address. Assigning a
    # value to the session state instead would reach the browser with a single run. When a newer run
    # ended that one, nothing was chosen, and the form disappeared while a person typed.
    key = f"new-audit-way-{'stored' if stored else 'typed'}"

    def on_source_change() -> None:
        if st.session_state[key] == PASTE:
            address.set_param("case", "")

    with st.container():
        source = st.segmented_control(
            "Source of the case",
            [PASTE, STORED],
            default=STORED if stored else PASTE,
            key=key,
            label_visibility="collapsed",
            required=True,
            on_change=on_source_change,
        )
    if source == STORED:
        _draw_case_picker(workbench, form, stored)
    else:
        fill.button(
            "Fill in an example",
            icon=":material/auto_awesome:",
            on_click=_fill_form,
            args=EXAMPLE,
            width="stretch",
        )
        _draw_typed_form(workbench, form)


# --- a pasted or uploaded case ----------------------------------------------------------


_STYLE = """<style>
@st-column:has(> div .st-key-new-audit-rail) {
  position: sticky; top: 4rem; align-self: flex-start;
}
</style>"""
"""Keeps the start button and the preview in view next to the long form."""


def _draw_typed_form(workbench: Workbench, form: AuditForm) -> None:
    left, right = st.columns([62, 38], gap="large")
    with left:
        # a container even without content, so that the fields below don't move
        with st.container(horizontal=True, vertical_alignment="center"):
            if form.saved_at and (form.question or form.evidence or form.answer or form.large):
                st.caption(f"This is your draft from {moment(form.saved_at)} UTC.")
                st.button(
                    "Discard draft", type="tertiary", icon=":material/delete:", on_click=_fill_form
                )
        _draw_text_field(
            form, "question", "Question", rows=2, placeholder="The question that was asked"
        )
        _draw_text_field(
            form,
            "evidence",
            "Evidence",
            rows=11,
            hint=(
                "Paste the retrieved chunks. Separate them with blank lines, or start each with"
                " [id] or Source 1:. You can also paste CSV or JSON Lines."
            ),
            placeholder="[1] The first chunk.\n\n[2] The second one.",
        )
        _draw_text_field(
            form,
            "answer",
            "Answer",
            rows=8,
            hint=(
                "Paste the answer to audit, with its citations. Without one, MASIS drafts an"
                " answer from the evidence."
            ),
            placeholder="The answer as the model wrote it [1].",
            optional=True,
        )
        _draw_audit_settings(workbench, form)
    st.html(with_selectors(_STYLE))
    with right, st.container(key="new-audit-rail"):
        _draw_start_button("Start the audit")
        typed = None
        with suppress(InputError):  # the preview below shows the errors
            typed = case_of(form.question, form.pasted_evidence, form.answer)
        _draw_requirements(form.effective, typed)
        _UNDERSTOOD(
            data=form_panel(
                form.question,
                form.pasted_evidence,
                form.answer,
                form.refused,
                editable=not form.large,
            ),
            key="understood",
            on_edit_change=_edit_chunks,
        )


def _draw_start_button(label: str, case_id: str = "") -> None:
    options: dict[str, Any] = {"type": "primary", "width": "stretch", "shortcut": "Ctrl+Enter"}
    action(label, "start-audit", "play_arrow", _start_audit_of, case_id, **options)


def _edit_chunks() -> None:
    """Join or rename a chunk as requested in the preview, and update the text of the field.

    This is a callback, because a newer run can end the drawing of a page halfway.
    """
    store_typed()
    form, edit = AuditForm.current(), st.session_state["understood"].get("edit")
    if form.large or not isinstance(edit, dict):
        return
    chunks, index = form.pasted_evidence.chunks, edit.get("index")
    if (
        not isinstance(index, int)
        or not 0 <= index < len(chunks)
        or edit.get("id") != chunks[index].id
    ):
        return  # the text has changed since the preview was drawn
    try:
        if edit.get("kind") == "merge" and index:
            chunks = merge_chunk(chunks, index)
        elif edit.get("kind") == "rename":
            chunks = rename_chunk(chunks, index, str(edit.get("name") or ""))
    except InputError as error:
        form.refused = error
        return
    form.save(replaced=True, evidence=write_pasted(chunks))


def _draw_text_field(form: AuditForm, name: str, label: str, **shown: Any) -> None:
    with st.container(gap="xsmall"):
        if name == "evidence" and form.large:
            show_file("Evidence", f"From the file {form.large.name}", lambda: form.save(large=None))
            return
        form.text_field(name, label, most=LONGEST[name], **shown)
        with st.popover("From a file", icon=":material/upload_file:", type="tertiary"):
            # A question and an answer are plain text, so only text files make sense for them.
            types = UPLOADS if name == "evidence" else UPLOADS[:2]
            key = f"new-audit-upload-{name}-{form.uploads}"
            st.file_uploader(
                f"A file with the {label.lower()}",
                types,
                key=key,
                on_change=_store_upload,
                args=(name, key),
            )


def _store_upload(name: str, key: str) -> None:
    """Put the text of an uploaded file into its field. Evidence too long for it is kept apart."""
    store_typed()
    form, file = AuditForm.current(), st.session_state.get(key)
    if file is None:
        return
    # Streamlit can't empty a file uploader, but a new key draws a new one.
    form.uploads += 1
    shown = file.name[:120]
    try:
        text = decode_upload(file.getvalue(), shown)
    except InputError as error:
        form.refused = error
        return
    values: dict[str, Any] = {name: text}
    if len(text) <= LONGEST[name]:
        form.save(replaced=True, **values)
    elif name == "evidence":
        form.save(large=LargeFile(name=shown, text=text))
    else:
        form.refused = InputError(
            f"The file {shown} has {count_noun(len(text), 'character')}",
            hint=f"This field can hold at most {LONGEST[name]:,}.",
        )


def _fill_form(question: str = "", evidence: str = "", answer: str = "") -> None:
    """Replace the typed and uploaded texts by these, and keep the settings."""
    store_typed()
    form = AuditForm.current()
    form.uploads += 1
    form.save(replaced=True, large=None, question=question, evidence=evidence, answer=answer)


def _start_audit_of(case_id: str) -> None:
    """Start the audit of a stored or a typed case, and put it into the address.

    A typed case (``case_id`` is "") is stored first.
    """
    store_typed()
    workbench, form = served_workbench(), AuditForm.current()
    form.refused = None
    try:
        settings = form.effective
        if unnamed := next((role for role in ROLES if form.settings.get(role) == ""), None):
            raise InputError(
                f"The {ROLE[unnamed].lower()} has no model",
                hint="Set one under Settings, or choose one from the list.",
            )
        if case_id:
            case = workbench.store.cases.get(case_id)
        else:
            case = case_of(form.question, form.pasted_evidence, form.answer)
            workbench.cases.add(actor(), [case])
        # After the case is stored, so that a model that can't be used loses no text.
        assert_listed(workbench.access, actor(), settings, workbench.settings)
        check_models(settings)
        run_id = served_jobs().audit(actor(), case.id, settings)
    except InputError as error:
        form.refused = error
    except MasisError as error:
        form.refused = InputError(
            str(error), hint="No audit was started." if case_id else "Your text is saved."
        )
    else:
        address.set_param("job", run_id)
        address.set_param("case", case.id)
        if not case_id:
            _fill_form()


# --- a stored case ----------------------------------------------------------------------


def _draw_case_picker(workbench: Workbench, form: AuditForm, case_id: str) -> None:
    left, right = st.columns([62, 38], gap="large")
    with left:
        text = st.text_input(
            "Search",
            key="new-audit-search",
            placeholder="Words in question, answer, evidence or id",
            max_chars=address.LONGEST_QUERY,
        )
        case_filter = CaseFilter(text=text, order="risk" if text else "newest", size=HITS)
        with st.container():
            _draw_found_cases(workbench.cases.find_for(actor(), case_filter), text, case_id)
        _draw_audit_settings(workbench, form)
    with right:
        _draw_chosen_case(workbench, form, case_id)


def _draw_found_cases(page: CasePage, text: str, case_id: str) -> None:
    if not page.rows:
        st.markdown(
            "**No cases match.** Remove a word from the search."
            if text
            else "**The database has no cases yet.** Paste one, or import some."
        )
        return
    rows = [
        {
            "id": row.id,
            "question": row.query,
            "state": label(status_label(row.standing, row.state, row.severity)[0]),
        }
        for row in page.rows
    ]
    picked = _PICKER(data={"rows": rows, "chosen": case_id}, key="picker", on_pick_change=noop).pick
    if isinstance(picked, str) and picked != case_id:
        # The parts above were drawn with the old address, so the page runs again.
        address.set_param("case", picked)
        st.rerun()
    if (more := page.total - len(rows)) > 0:
        st.caption(f"There are {count_noun(more, 'more case', 'more cases')}. Search to find them.")


def _draw_chosen_case(workbench: Workbench, form: AuditForm, case_id: str) -> None:
    case = address.find_by_id(workbench.store.cases.get, case_id)
    if case is None:
        st.markdown(
            "**This database doesn't have that case.** Pick one from the list."
            if case_id
            else "Pick a case from the list."
        )
        return
    # Only the same content with the same settings counts as audited.
    is_audited = not workbench.audits.is_needed(case, form.effective)
    _draw_start_button("Audit it again" if is_audited else "Start the audit", case_id)
    _draw_requirements(form.effective, case)
    if form.refused:
        st.error("The audit couldn't be started.", icon=":material/error:")
        st.text(str(form.refused))
    notes = ["This case has been audited with the same settings."] if is_audited else []
    _UNDERSTOOD(data=understood_case(case, notes), key="understood")


# --- settings ---------------------------------------------------------------------------


def _draw_audit_settings(workbench: Workbench, form: AuditForm) -> None:
    settings = form.effective
    with form.settings_panel():
        for start in range(0, len(CHOICES), 2):
            columns = st.columns(2, gap="medium")
            for column, (name, text, values) in zip(
                columns, CHOICES[start : start + 2], strict=False
            ):
                chosen = getattr(settings, name)
                if chosen not in values:  # set in the settings file or the environment
                    values = {chosen: f"{chosen} (as set)", **values}
                options = list(values)
                with column:
                    index, words = options.index(chosen), values.__getitem__
                    form.draw_setting(name, st.selectbox, text, options, index, format_func=words)
        _draw_models(workbench, form, settings)


def _draw_models(workbench: Workbench, form: AuditForm, settings: Settings) -> None:
    with st.container(gap="xxsmall"):
        st.markdown("**Models**")
        st.caption(
            "Offline means rules and measurements on this machine, for English texts, without a"
            f" language model. Name “{OTHER_MODEL}” as PROVIDER:MODEL, such as openai:gpt-4o,"
            " anthropic:claude-sonnet-5-5 or ollama:llama3.3. The verifier can also be a model on"
            " this machine, local:FOLDER or local:ORG/NAME, which you can download under Settings."
            " replay:FILE uses recorded replies instead of a model. Set keys in the environment or"
            " in a secrets file. This page doesn't accept them."
        )
    for start in range(0, len(ROLES), 2):
        for column, role in zip(
            st.columns(2, gap="medium"), ROLES[start : start + 2], strict=False
        ):
            with column:
                _choose_model(form, role)
    try:
        assert_listed(workbench.access, actor(), settings, workbench.settings)
    except SettingsError as error:
        st.text(f"✗ {error}")
        return
    if line := workbench.exams.line_for(settings):
        st.caption(escape_markdown(f"Verifier, critic and evaluator together: {line}."))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Use the critic's model for all",
            key="one-model",
            type="tertiary",
            on_click=_use_critics_model,
        )
        pressed = st.button(
            "Test these models", icon=":material/bolt:", key="test-these", **button_state("audit")
        )
    if pressed:  # not in a callback, which could run before that of a model chosen just now
        workbench.access.require(actor(), "audit")
        with st.spinner("Sending each model a one-word request"):
            st.session_state["these-models-tested"] = (
                settings.models(),
                workbench.check_models(settings),
            )
    tested_models, results = st.session_state.get("these-models-tested", (None, ()))
    # Another model may have been chosen since the test.
    if tested_models == settings.models():
        for result in results:
            st.text(f"{'✓' if result.ok else '✗'} {result.message}")


def _choose_model(form: AuditForm, role: str) -> None:
    """Draw the choice of a role's model, with a separate field for the name of another model.

    A select box that accepts new options would drop text that isn't confirmed with Enter, and
    would ignore Enter while its list is closed.
    """
    model, is_other = _model_of(form, role), _is_other(form, role)
    options = [*_known_models(role), OTHER_MODEL]
    index = options.index(OTHER_MODEL if is_other else model)
    st.selectbox(
        ROLE[role],
        options,
        index,
        key=form.widget_key(f"model-{role}"),
        on_change=_store_model,
        args=(role,),
    )
    with st.container():
        if is_other:
            typing_area(
                f"Model of the {ROLE[role].lower()}",
                key=f"new-audit-model-{role}-name",
                text=model,
                version=form.version,
                most=LONGEST_MODEL,
                rows=1,
                placeholder="PROVIDER:MODEL",
                on_text=lambda text: _store_model_name(role, text),
            )


def _model_of(form: AuditForm, role: str) -> str:
    model: str = form.settings.get(role, getattr(served_workbench().settings, role))
    return model


def _known_models(role: str) -> tuple[str, ...]:
    """Return the models offered for a role, including the one in the settings."""
    settings = served_workbench().settings
    return tuple(dict.fromkeys((*offered_models(settings, role), getattr(settings, role))))


def _is_other(form: AuditForm, role: str) -> bool:
    """Return whether the model of a role is typed rather than chosen from the list.

    It stays a typed one even if its name equals a known one while it's being typed.
    """
    return bool(form.settings.get(f"{role}_named")) or form.settings.get(role) not in (
        None,
        *_known_models(role),
    )


def _store_model(role: str) -> None:
    """Store the model chosen from the list. "Another model" has an empty name at first."""
    form = AuditForm.current()
    chosen = st.session_state[form.widget_key(f"model-{role}")]
    if chosen == (OTHER_MODEL if _is_other(form, role) else _model_of(form, role)):
        return  # a page that reconnects posts its defaults as if they had just been chosen
    # The marker of a typed name is dropped too, because the model is chosen from the list again.
    others = {
        name: value for name, value in form.settings.items() if name not in (role, f"{role}_named")
    }
    named = {role: "", f"{role}_named": True} if chosen == OTHER_MODEL else {role: chosen}
    form.save(settings=others | named)


def _store_model_name(role: str, text: str) -> None:
    """Store the typed name of a model, unless one was chosen from the list since."""
    form = AuditForm.current()
    if _is_other(form, role) and text.strip() != form.settings.get(role):
        form.save(settings={**form.settings, role: text.strip(), f"{role}_named": True})


def _use_critics_model() -> None:
    """Use the critic's model for all roles.

    A compiled critic can't fill other roles, so they use the model that it calls.
    """
    store_typed()
    form = AuditForm.current()
    # the callback of a critic chosen just now may run after this one
    if form.widget_key("model-critic") in st.session_state:
        _store_model("critic")
    model, workbench = form.effective.critic, served_workbench()
    with suppress(MasisError):  # the page shows the model's error next to the settings
        assert_listed(workbench.access, actor(), form.effective, workbench.settings)
        model = asked_model(model, "critic", workbench.settings)
    settings = {name: value for name, value in form.settings.items() if not name.endswith("_named")}
    form.save(replaced=True, settings={**settings, **dict.fromkeys(ROLES, model)})


def _draw_requirements(settings: Settings, case: Case | None) -> None:
    """Draw which data an audit sends and what it needs, or why a model can't be used."""
    workbench = served_workbench()
    try:
        assert_listed(workbench.access, actor(), settings, workbench.settings)
        st.caption(destination_text(settings))
        st.caption(requirements_text(settings, case))
    except MasisError as error:
        st.warning("A chosen model can't be used.", icon=":material/key_off:")
        st.text(str(error))
