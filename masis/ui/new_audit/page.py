"""A new audit: what to audit is pasted, uploaded or picked from the store; then the address leads
to watching it.
"""

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
from masis.errors import InputError, MasisError
from masis.schema.case import Case
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.records import CaseFilter, CasePage
from masis.settings import ROLES, Settings
from masis.ui.components import noop, register_component
from masis.ui.live import served_jobs
from masis.ui.new_audit.form import (
    CHOICES,
    LONGEST,
    ROLE,
    case_of,
    form_panel,
    settings_of,
    understood_case,
    what_it_takes,
    where_it_runs,
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


# The example that fills the form of a new audit: short, and wrong in the ways an audit is for.

QUESTION = (
    "What did the longer opening hours of the Ostergaard reading rooms change, and what did they"
    " cost?"
)

EVIDENCE = """\
[1] The city extended the opening hours of its four Ostergaard reading rooms from 40 to 63 hours a week in March 2021.
The two rooms by the harbour kept their old hours and served as a comparison.

[2] Visits to the four rooms rose from 212,000 in 2020 to 318,000 in 2022, an increase of 50%. The harbour rooms saw
hardly any change.

[3] Staff costs went up by 1.9 million kroner a year. Two thirds of this went to evening supplements; no new posts
were created.

[4] In the survey of autumn 2022, 71% of visitors under 25 said that they came mostly after 6 pm. Among visitors
over 60 it was 9%.
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
    """The form of one session; ``large`` is what was uploaded in place of typed evidence."""

    SUBJECT = "new-audit"
    question: str = ""
    evidence: str = ""
    answer: str = ""
    large: LargeFile | None = None

    def applied_to(self, base: Settings) -> Settings:
        """Return the settings with what was changed in the form."""
        return settings_of(base, self.settings)

    @property
    def pasted_evidence(self) -> PastedEvidence:
        """The chunks of evidence, typed or in the uploaded file."""
        return _read_pasted_text(self.large.text if self.large else self.evidence)


@st.cache_resource(show_spinner=False, max_entries=8)
def _read_pasted_text(text: str) -> PastedEvidence:
    return read_pasted(text)


def show_new_audit(workbench: Workbench) -> None:
    """The page: the form, or the audit that the address names."""
    if run_id := address.value("job"):
        show_run(workbench, run_id, address.value("case"))
        return
    served_jobs().warm_up()
    form = AuditForm.current()
    stored = address.value("case")
    title, fill = st.columns([7, 2], vertical_alignment="bottom")
    title.title("New audit")
    # With a case in the address the choice has another key, and a default under each: a value
    # assigned to the session state reaches the browser with one run only. Where that run was cut
    # short nothing was chosen, and the form left the page while a person typed.
    key = f"new-audit-way-{'stored' if stored else 'typed'}"

    def change_way() -> None:
        if st.session_state[key] == PASTE:
            address.set_param("case", "")

    with st.container():
        way = st.segmented_control(
            "What to audit",
            [PASTE, STORED],
            default=STORED if stored else PASTE,
            key=key,
            label_visibility="collapsed",
            required=True,
            on_change=change_way,
        )
    if way == STORED:
        _draw_case_picker(workbench, form, stored)
    else:
        fill.button(
            "Fill in an example",
            icon=":material/auto_awesome:",
            on_click=_fill,
            args=EXAMPLE,
            width="stretch",
        )
        _draw_typed_form(workbench, form)


# pasted or uploaded


_STYLE = """<style>
@st-column:has(> div .st-key-new-audit-rail) { position: sticky; top: 4rem; align-self: flex-start; }
</style>"""
"""The start button and what was understood stay in sight beside the long form."""


def _draw_typed_form(workbench: Workbench, form: AuditForm) -> None:
    left, right = st.columns([62, 38], gap="large")
    with left:
        # always there: the fields below stay put
        with st.container(horizontal=True, vertical_alignment="center"):
            if form.saved_at and (form.question or form.evidence or form.answer or form.large):
                st.caption(f"Your draft of {moment(form.saved_at)} UTC is back.")
                st.button("Discard it", type="tertiary", icon=":material/delete:", on_click=_fill)
        _draw_text_field(form, "question", "Question", rows=2, placeholder="What was asked")
        _draw_text_field(
            form,
            "evidence",
            "Evidence",
            rows=11,
            hint=(
                "What the retrieval found. Blank lines separate chunks, or [id] or Source 1: at the"
                " start of a line; CSV and JSON Lines are understood too."
            ),
            placeholder="[1] The first chunk.\n\n[2] The second one.",
        )
        _draw_text_field(
            form,
            "answer",
            "Answer",
            rows=8,
            hint=(
                "The draft to audit, with its citations. Without one, an answer is drafted from the"
                " evidence."
            ),
            placeholder="The answer as the model wrote it [1].",
            optional=True,
        )
        _draw_audit_settings(workbench, form)
    st.html(with_selectors(_STYLE))
    with right, st.container(key="new-audit-rail"):
        _start_button("Start the audit")
        typed = None
        with suppress(InputError):  # what is wrong with it is shown below
            typed = case_of(form.question, form.pasted_evidence, form.answer)
        _draw_what_leaves(form.effective, typed)
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


def _start_button(label: str, case_id: str = "") -> None:
    shown: dict[str, Any] = {"type": "primary", "width": "stretch", "shortcut": "Ctrl+Enter"}
    action(label, "start-audit", "play_arrow", _start_audit_of, case_id, **shown)


def _edit_chunks() -> None:
    """Join a chunk to the one before it, or change its id, as the preview asked; the text of the
    field follows.

    It is done in a callback, since a page that is being drawn can be cut short.
    """
    store_typed()
    form, asked = AuditForm.current(), st.session_state["understood"].get("edit")
    if form.large or not isinstance(asked, dict):
        return
    chunks, index = form.pasted_evidence.chunks, asked.get("index")
    if (
        not isinstance(index, int)
        or not 0 <= index < len(chunks)
        or asked.get("id") != chunks[index].id
    ):
        return  # the preview of a text that was changed meanwhile
    try:
        if asked.get("kind") == "merge" and index:
            chunks = merge_chunk(chunks, index)
        elif asked.get("kind") == "rename":
            chunks = rename_chunk(chunks, index, str(asked.get("name") or ""))
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
            what, kinds = (
                f"A file with the {label.lower()}",
                (UPLOADS if name == "evidence" else UPLOADS[:2]),
            )
            key = f"new-audit-upload-{name}-{form.uploads}"
            st.file_uploader(what, kinds, key=key, on_change=_store_upload, args=(name, key))


def _store_upload(name: str, key: str) -> None:
    """Store an uploaded file: its text goes into the field, or beside it where it is too long for a
    field.
    """
    store_typed()
    form, file = AuditForm.current(), st.session_state.get(key)
    if file is None:
        return
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
            f"The file {shown} holds {count_noun(len(text), 'character')}",
            hint=f"This field takes {LONGEST[name]:,}.",
        )


def _fill(question: str = "", evidence: str = "", answer: str = "") -> None:
    """Show these texts in place of what was typed or uploaded; the settings stay."""
    store_typed()
    form = AuditForm.current()
    form.uploads += 1
    form.save(replaced=True, large=None, question=question, evidence=evidence, answer=answer)


def _start_audit_of(case_id: str) -> None:
    """Start the audit of a stored case, or of what was typed, which is stored first; the address
    then leads to it.
    """
    store_typed()
    workbench, form = served_workbench(), AuditForm.current()
    form.refused = None
    try:
        settings = form.effective
        if unnamed := next((role for role in ROLES if form.settings.get(role) == ""), None):
            raise InputError(
                f"The {ROLE[unnamed].lower()} has no model",
                hint="Name it under Settings, or choose one from the list.",
            )
        if case_id:
            case = workbench.store.cases.get(case_id)
        else:
            case = case_of(form.question, form.pasted_evidence, form.answer)
            workbench.cases.add(actor(), [case])
        check_models(settings)
        run_id = served_jobs().audit(actor(), case.id, settings)
    except InputError as error:
        form.refused = error
    except MasisError as error:
        form.refused = InputError(
            str(error), hint="Nothing was started." if case_id else "What you typed is stored."
        )
    else:
        address.set_param("job", run_id)
        address.set_param("case", case.id)
        if not case_id:
            _fill()


# a stored case


def _draw_case_picker(workbench: Workbench, form: AuditForm, case_id: str) -> None:
    left, right = st.columns([62, 38], gap="large")
    with left:
        text = st.text_input(
            "Search",
            key="new-audit-search",
            placeholder="Words in question, answer or evidence; or the id",
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
            "**No case matches.** Remove a word from the search."
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
        address.set_param("case", picked)
        st.rerun()
    if (more := page.total - len(rows)) > 0:
        st.caption(f"{count_noun(more, 'more case', 'more cases')}: search to find them.")


def _draw_chosen_case(workbench: Workbench, form: AuditForm, case_id: str) -> None:
    case = address.find_by_id(workbench.store.cases.get, case_id)
    if case is None:
        st.markdown(
            "**That case is not here.** Pick one from the list."
            if case_id
            else "Pick a case from the list."
        )
        return
    done = not workbench.audits.is_needed(case, form.effective)
    _start_button("Audit it again" if done else "Start the audit", case_id)
    _draw_what_leaves(form.effective, case)
    if form.refused:
        st.error("The audit could not be started.", icon=":material/error:")
        st.text(str(form.refused))
    notes = ["It has been audited with exactly these settings."] if done else []
    _UNDERSTOOD(data=understood_case(case, notes), key="understood")


# settings


def _draw_audit_settings(workbench: Workbench, form: AuditForm) -> None:
    settings = form.effective
    with form.settings_panel():
        for start in range(0, len(CHOICES), 2):
            columns = st.columns(2, gap="medium")
            for column, (name, text, values) in zip(
                columns, CHOICES[start : start + 2], strict=False
            ):
                chosen = getattr(settings, name)
                if chosen not in values:  # set by hand in the file or the environment
                    values = {chosen: f"{chosen} (as set)", **values}
                options = list(values)
                with column:
                    index, words = options.index(chosen), values.__getitem__
                    form.draw_setting(name, st.selectbox, text, options, index, format_func=words)
        _models(workbench, form, settings)


def _models(workbench: Workbench, form: AuditForm, settings: Settings) -> None:
    with st.container(gap="xxsmall"):
        st.markdown("**Who judges**")
        st.caption(
            "Offline means rules and measurements on this machine, for English texts, no language"
            f" model. “{OTHER_MODEL}” is named as PROVIDER:MODEL, such as openai:gpt-4o,"
            " anthropic:claude-sonnet-5-5 or ollama:llama3.3. The verifier can also be a model on"
            " this machine, local:FOLDER or local:ORG/NAME, which Settings downloads. replay:FILE"
            " answers from recorded replies, without a model. Keys come from the environment or a"
            " secrets file, never from this page."
        )
    for start in range(0, len(ROLES), 2):
        for column, role in zip(
            st.columns(2, gap="medium"), ROLES[start : start + 2], strict=False
        ):
            with column:
                _choose_model(form, role)
    if line := served_workbench().exams.line_for(settings):
        st.caption(escape_markdown(f"Verifier, critic and evaluator together: {line}."))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Critic's model for all", key="one-model", type="tertiary", on_click=_one_model)
        wanted = st.button(
            "Test these models", icon=":material/bolt:", key="test-these", **button_state("audit")
        )
    if wanted:  # here and not in a callback: what was chosen a moment before counts
        workbench.access.require(actor(), "audit")
        with st.spinner("Asking each model for a word"):
            st.session_state["these-models-tested"] = (
                settings.models(),
                workbench.check_models(settings),
            )
    if (tested := st.session_state.get("these-models-tested")) is not None and tested[
        0
    ] == settings.models():
        for item in tested[1]:
            st.text(f"{'✓' if item.ok else '✗'} {item.message}")


def _choose_model(form: AuditForm, role: str) -> None:
    """Choose the model of a role from those known, or name another one in a field of its own.

    A select box that accepts new options is not used: it drops text that was typed and not
    confirmed with Enter, and ignores Enter while its list is closed.
    """
    model, other = _model_of(form, role), _is_other(form, role)
    options = [*_known_models(role), OTHER_MODEL]
    index = options.index(OTHER_MODEL if other else model)
    st.selectbox(
        ROLE[role],
        options,
        index,
        key=form.widget_key(f"model-{role}"),
        on_change=_take_model,
        args=(role,),
    )
    with st.container():
        if other:
            typing_area(
                f"Model of the {ROLE[role].lower()}",
                key=f"new-audit-model-{role}-name",
                text=model,
                version=form.version,
                most=LONGEST_MODEL,
                rows=1,
                placeholder="PROVIDER:MODEL",
                on_text=lambda text: _take_model_name(role, text),
            )


def _model_of(form: AuditForm, role: str) -> str:
    model: str = form.settings.get(role, getattr(served_workbench().settings, role))
    return model


def _known_models(role: str) -> tuple[str, ...]:
    """Return the models offered for a role, the one that the settings name among them."""
    settings = served_workbench().settings
    return tuple(dict.fromkeys((*offered_models(settings, role), getattr(settings, role))))


def _is_other(form: AuditForm, role: str) -> bool:
    """Whether the model of a role is named in a field; it stays one while the name typed there
    equals a known one.
    """
    return bool(form.settings.get(f"{role}_named")) or form.settings.get(role) not in (
        None,
        *_known_models(role),
    )


def _take_model(role: str) -> None:
    """Store the model chosen from the list; another one has an empty name until it is named."""
    form = AuditForm.current()
    chosen = st.session_state[form.widget_key(f"model-{role}")]
    if chosen == (OTHER_MODEL if _is_other(form, role) else _model_of(form, role)):
        return  # a page that comes back posts its defaults as if they were chosen
    others = {
        name: value for name, value in form.settings.items() if name not in (role, f"{role}_named")
    }
    named = {role: "", f"{role}_named": True} if chosen == OTHER_MODEL else {role: chosen}
    form.save(settings=others | named)


def _take_model_name(role: str, text: str) -> None:
    """Store the name of another model, unless one has been chosen from the list since."""
    form = AuditForm.current()
    if _is_other(form, role) and text.strip() != form.settings.get(role):
        form.save(settings={**form.settings, role: text.strip(), f"{role}_named": True})


def _one_model() -> None:
    """Use the critic's model for all roles; of a compiled critic, which fills no other role, the
    model that it asks.
    """
    store_typed()
    form = AuditForm.current()
    # chosen a moment before: its own callback may come later
    if form.widget_key("model-critic") in st.session_state:
        _take_model("critic")
    model = form.effective.critic
    with suppress(MasisError):  # what is wrong with the model is shown beside the settings
        model = asked_model(model, "critic", served_workbench().settings)
    settings = {name: value for name, value in form.settings.items() if not name.endswith("_named")}
    form.save(replaced=True, settings={**settings, **dict.fromkeys(ROLES, model)})


def _draw_what_leaves(settings: Settings, case: Case | None) -> None:
    """Show what leaves the machine, what an audit takes and leaves out, or why a model can't be
    asked.
    """
    try:
        st.caption(where_it_runs(settings))
        st.caption(what_it_takes(settings, case))
    except MasisError as error:
        st.warning("A model that was chosen can't be asked.", icon=":material/key_off:")
        st.text(str(error))
