"""A new audit: what to audit is pasted, uploaded or picked from the store; then the address leads to watching it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import streamlit as st

from masis.api.roles import asked_model, check_models, offered_models
from masis.errors import InputError, MasisError, UnknownRecord
from masis.schema.case import Case
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.records import CaseFilter, CasePage
from masis.settings import ROLES, Settings
from masis.ui.components import registered
from masis.ui.live import served_jobs
from masis.ui.new_audit.draft import (
    AuditForm,
    current_form,
    drop_file,
    edit_chunks,
    empty_form,
    evidence_of,
    fill_example,
    save,
    take_text,
    take_upload,
)
from masis.ui.new_audit.form import (
    CHOICES,
    LONGEST,
    ROLE,
    case_of,
    changed,
    settings_of,
    understood,
    understood_case,
    what_it_takes,
    where_it_runs,
)
from masis.ui.new_audit.live_run import show_run
from masis.ui.shell import address
from masis.ui.shell.inputs import take_typed, typing_area
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench
from masis.ui.shell.streamlit_internals import with_selectors
from masis.views.words import STATE, label

HITS = 8
PASTE, STORED = "Paste or upload", "Pick a stored case"
OTHER_MODEL = "Another model"
LONGEST_MODEL = 200
UPLOADS = ["txt", "md", "csv", "tsv", "json", "jsonl"]
_UNDERSTOOD = registered("understood")
_PICKER = registered("picker")


def show_new_audit(workbench: Workbench) -> None:
    """The page: the form, or the audit that the address names."""
    if run_id := address.value("job"):
        show_run(workbench, run_id, address.value("case"))
        return
    served_jobs().warm_up()
    form = current_form(workbench)
    stored = address.value("case")
    title, fill = st.columns([7, 2], vertical_alignment="bottom")
    title.title("New audit")
    with st.container():
        way = _way(bool(stored))
    if way == PASTE:
        fill.button("Fill in an example", icon=":material/auto_awesome:", on_click=fill_example, width="stretch")
        _typed(workbench, form)
    else:
        _picked(workbench, form, stored)


def _way(stored: bool) -> str:
    """Draw the choice between both ways; with a case in the address it begins with that one.

    It has another key then, and a default under each: a value assigned to the session state reaches the browser with
    one run only. Where that run was cut short nothing was chosen, and the form left the page while a person typed.
    """
    key = f"new-audit-way-{'stored' if stored else 'typed'}"
    chosen = st.segmented_control(
        "What to audit",
        [PASTE, STORED],
        default=STORED if stored else PASTE,
        key=key,
        label_visibility="collapsed",
        required=True,
        on_change=_change_way,
        args=(key,),
    )
    return STORED if chosen == STORED else PASTE


def _change_way(key: str) -> None:
    if st.session_state[key] == PASTE:
        address.put("case", "")


# pasted or uploaded


_STYLE = """<style>
@st-column:has(> div .st-key-new-audit-rail) { position: sticky; top: 4rem; align-self: flex-start; }
</style>"""
"""The start button and what was understood stay in sight beside the long form."""


def _typed(workbench: Workbench, form: AuditForm) -> None:
    left, right = st.columns([62, 38], gap="large")
    with left:
        _restored(form)
        _field(form, "question", "Question", rows=2, placeholder="What was asked")
        _field(
            form,
            "evidence",
            "Evidence",
            rows=11,
            hint="What the retrieval found. Blank lines separate chunks, or [id] or Source 1: at the start of a line; "
            "CSV and JSON Lines are understood too.",
            placeholder="[1] The first chunk.\n\n[2] The second one.",
        )
        _field(
            form,
            "answer",
            "Answer",
            rows=8,
            hint="The draft to audit, with its citations. Without one, an answer is drafted from the evidence.",
            placeholder="The answer as the model wrote it [1].",
            optional=True,
        )
        _settings(workbench, form)
    pasted = evidence_of(workbench, form)
    st.html(with_selectors(_STYLE))
    with right, st.container(key="new-audit-rail"):
        st.button(
            "Start the audit",
            type="primary",
            icon=":material/play_arrow:",
            width="stretch",
            shortcut="Ctrl+Enter",
            on_click=_start_typed,
            key="start-audit",
            **needs("audit"),
        )
        typed = None
        with suppress(InputError):  # what is wrong with it is shown below
            typed = case_of(form.question, pasted, form.answer)
        _where(settings_of(workbench.settings, form.settings), typed)
        _UNDERSTOOD(
            data=understood(form.question, pasted, form.answer, form.refused, editable=not form.large),
            key="understood",
            on_edit_change=_edit_chunks,
        )


def _edit_chunks() -> None:
    """Join or rename chunks as the preview asked: in a callback, since a page that is being drawn can be cut short."""
    take_typed()
    edit_chunks(st.session_state["understood"].get("edit"))


def _field(
    form: AuditForm, name: str, label: str, *, rows: int, placeholder: str, hint: str = "", optional: bool = False
) -> None:
    with st.container(gap="xsmall"):
        if name == "evidence" and form.large:
            st.markdown("**Evidence**")
            with st.container(horizontal=True, vertical_alignment="center"):
                st.text(f"From the file {form.large}")
                st.button("Remove the file", icon=":material/close:", type="tertiary", on_click=drop_file)
        else:
            _field_itself(form, name, label, rows, placeholder, hint, optional)


def _field_itself(
    form: AuditForm, name: str, label: str, rows: int, placeholder: str, hint: str, optional: bool
) -> None:
    typing_area(
        label,
        key=f"new-audit-{name}",
        text=getattr(form, name),
        version=form.version,
        most=LONGEST[name],
        rows=rows,
        hint=hint,
        placeholder=placeholder,
        optional=optional,
        on_text=lambda text: take_text(name, text),
    )
    with st.popover("From a file", icon=":material/upload_file:", type="tertiary"):
        key = f"new-audit-upload-{name}-{form.uploads}"
        st.file_uploader(
            f"A file with the {label.lower()}",
            type=UPLOADS if name == "evidence" else UPLOADS[:2],
            key=key,
            on_change=take_upload,
            args=(name, key),
        )


def _restored(form: AuditForm) -> None:
    """Say that a draft was restored, in a container that is always there: without it the fields would move up."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if form.restored:
            st.caption(f"Your draft of {form.restored} UTC is back.")
            st.button("Discard it", type="tertiary", icon=":material/delete:", on_click=empty_form)


def _start_typed() -> None:
    workbench = served_workbench()
    take_typed()
    form = current_form(workbench)
    try:
        settings = _complete_settings(workbench, form)
        case = case_of(form.question, evidence_of(workbench, form), form.answer)
        workbench.cases.add(actor(), [case])
        _go(case, settings)
    except InputError as error:
        form.refused = error
    except MasisError as error:
        form.refused = InputError(str(error), cure="What you typed is stored.")
    else:
        empty_form()


# a stored case


def _picked(workbench: Workbench, form: AuditForm, case_id: str) -> None:
    left, right = st.columns([62, 38], gap="large")
    with left:
        text = st.text_input(
            "Search",
            key="new-audit-search",
            placeholder="Words in question, answer or evidence; or the id",
            max_chars=address.LONGEST_QUERY,
        )
        page = workbench.cases.find_for(
            actor(), CaseFilter(text=text, order="newest" if not text else "risk", size=HITS)
        )
        with st.container():
            _found(page, text, case_id)
        _settings(workbench, form)
    with right:
        _chosen(workbench, form, case_id)


def _found(page: CasePage, text: str, case_id: str) -> None:
    """The cases that the search found, to pick one from."""
    if not page.rows:
        st.markdown(
            "**No case matches.** Remove a word from the search."
            if text
            else "**The database has no cases yet.** Paste one, or import some."
        )
        return
    rows = [{"id": row.id, "question": row.query, "state": label(STATE[row.state])} for row in page.rows]
    picked = _PICKER(data={"rows": rows, "chosen": case_id}, key="picker", on_pick_change=_nothing).pick
    if isinstance(picked, str) and picked != case_id:
        address.put("case", picked)
        st.rerun()
    if (more := page.total - len(rows)) > 0:
        st.caption(f"{counted(more, 'more case', 'more cases')}: search to find them.")


def _chosen(workbench: Workbench, form: AuditForm, case_id: str) -> None:
    try:
        case = workbench.store.cases.get(case_id) if case_id else None
    except UnknownRecord:
        case = None
    if case is None:
        st.markdown("**That case is not here.** Pick one from the list." if case_id else "Pick a case from the list.")
        return
    settings = settings_of(workbench.settings, form.settings)
    notes = []
    done = not workbench.audits.needed(case, settings)
    if done:
        notes.append("It has been audited with exactly these settings.")
    st.button(
        "Audit it again" if done else "Start the audit",
        type="primary",
        icon=":material/play_arrow:",
        width="stretch",
        shortcut="Ctrl+Enter",
        on_click=_start_stored,
        args=(case_id,),
        key="start-audit",
        **needs("audit"),
    )
    _where(settings, case)
    if form.refused:
        st.error("The audit could not be started.", icon=":material/error:")
        st.text(str(form.refused))
    _UNDERSTOOD(data=understood_case(case, notes), key="understood")


def _start_stored(case_id: str) -> None:
    take_typed()
    workbench = served_workbench()
    form = current_form(workbench)
    form.refused = None
    try:
        _go(workbench.store.cases.get(case_id), _complete_settings(workbench, form))
    except MasisError as error:
        form.refused = InputError(str(error), cure="Nothing was started.")


def _go(case: Case, settings: Settings) -> None:
    check_models(settings)
    run_id = served_jobs().audit(actor(), case.id, settings)
    address.put("job", run_id)
    address.put("case", case.id)


# settings


def _complete_settings(workbench: Workbench, form: AuditForm) -> Settings:
    """Return the settings of the form. Raises InputError where another model was to be named and is not."""
    for role in ROLES:
        if form.settings.get(role) == "":
            raise InputError(
                f"The {ROLE[role].lower()} has no model", cure="Name it under Settings, or choose one from the list."
            )
    return settings_of(workbench.settings, form.settings)


def _settings(workbench: Workbench, form: AuditForm) -> None:
    differ = changed(workbench.settings, form.settings)
    settings = settings_of(workbench.settings, form.settings)
    st.caption(f"{counted(differ, 'setting')} changed" if differ else "The workbench's own settings apply.")
    with st.expander("Settings", icon=":material/tune:"):  # another label would be another expander, closed again
        for start in range(0, len(CHOICES), 2):
            for column, choice in zip(st.columns(2, gap="medium"), CHOICES[start : start + 2], strict=False):
                with column, st.container(gap="xxsmall"):
                    _select(form, choice.name, choice.text, dict(choice.values), getattr(settings, choice.name))
                    st.caption(choice.meaning)
        _models(workbench, form, settings)


def _models(workbench: Workbench, form: AuditForm, settings: Settings) -> None:
    """Choose who judges: one model for all roles at once, or another for each."""
    with st.container(gap="xxsmall"):
        st.markdown("**Who judges**")
        st.caption(
            "Offline means rules and measurements on this machine, for English texts, no language model. "
            f"“{OTHER_MODEL}” is named as PROVIDER:MODEL, such as openai:gpt-4o, anthropic:claude-sonnet-5-5 or "
            "ollama:llama3.3. The verifier can also be a model on this machine, local:FOLDER or local:ORG/NAME, which "
            "Settings downloads. replay:FILE answers from recorded replies, without a model. Keys come from the "
            "environment or a secrets file, never from this page."
        )
    for start in range(0, len(ROLES), 2):
        for column, role in zip(st.columns(2, gap="medium"), ROLES[start : start + 2], strict=False):
            with column:
                _choose_model(workbench, form, role)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Critic's model for all", key="one-model", type="tertiary", on_click=_one_model)
        wanted = st.button("Test these models", icon=":material/bolt:", key="test-these", **needs("audit"))
    if wanted:  # here and not in a callback: what was chosen a moment before counts
        workbench.access.require(actor(), "audit")
        with st.spinner("Asking each model for a word"):
            st.session_state["these-models-tested"] = (settings.models(), workbench.check_models(settings))
    if (tested := st.session_state.get("these-models-tested")) is not None and tested[0] == settings.models():
        for item in tested[1]:
            st.text(f"{'✓' if item.ok else '✗'} {item.message}")


def _choose_model(workbench: Workbench, form: AuditForm, role: str) -> None:
    """Choose the model of a role from those known, or name another one in a field of its own.

    A select box that accepts new options is not used: it drops text that was typed and not confirmed with Enter, and
    ignores Enter while its list is closed.
    """
    key = form.widget_key(f"model-{role}")
    model = form.settings.get(role, getattr(workbench.settings, role))
    other = _is_other(workbench, form, role)
    options = [*_known_models(workbench, role), OTHER_MODEL]
    index = options.index(OTHER_MODEL if other else model)
    st.selectbox(ROLE[role], options, index, key=key, on_change=_take_model, args=(role,))
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


def _known_models(workbench: Workbench, role: str) -> tuple[str, ...]:
    """Return the models offered for a role, the one that the settings name among them."""
    return tuple(dict.fromkeys((*offered_models(workbench.settings, role), getattr(workbench.settings, role))))


def _is_other(workbench: Workbench, form: AuditForm, role: str) -> bool:
    """Whether the model of a role is named in a field; it stays one while the name typed there equals a known one."""
    if form.settings.get(f"{role}_named"):
        return True
    return form.settings.get(role) not in (None, *_known_models(workbench, role))


def _take_model(role: str) -> None:
    """Store the model chosen from the list; another one has an empty name until it is named."""
    workbench = served_workbench()
    form = current_form(workbench)
    chosen = st.session_state[form.widget_key(f"model-{role}")]
    settings = {name: value for name, value in form.settings.items() if name not in (role, f"{role}_named")}
    if chosen == form.settings.get(role, getattr(workbench.settings, role)) and not _is_other(workbench, form, role):
        return  # a page that comes back posts its defaults as if they were chosen
    if chosen != OTHER_MODEL:
        settings |= {role: chosen}
    elif _is_other(workbench, form, role):
        return
    else:
        settings |= {role: "", f"{role}_named": True}
    if settings != form.settings:
        save(form, settings=settings)


def _take_model_name(role: str, text: str) -> None:
    """Store the name of another model, unless one has been chosen from the list since."""
    workbench = served_workbench()
    form = current_form(workbench)
    if _is_other(workbench, form, role) and text.strip() != form.settings.get(role):
        save(form, settings={**form.settings, role: text.strip(), f"{role}_named": True})


def _one_model() -> None:
    """Use the critic's model for all roles; of a compiled critic, which fills no other role, the model that it asks."""
    take_typed()
    workbench = served_workbench()
    form = current_form(workbench)
    if form.widget_key("model-critic") in st.session_state:  # chosen a moment before: its own callback may come later
        _take_model("critic")
    model = settings_of(workbench.settings, form.settings).critic
    with suppress(MasisError):  # what is wrong with the model is shown beside the settings
        model = asked_model(model, "critic", workbench.settings)
    settings = {name: value for name, value in form.settings.items() if not name.endswith("_named")}
    save(form, replaced=True, settings={**settings, **dict.fromkeys(ROLES, model)})


def _where(settings: Settings, case: Case | None) -> None:
    """Show what leaves the machine, what an audit takes and leaves out, or why a model can't be asked."""
    try:
        st.caption(where_it_runs(settings))
        st.caption(what_it_takes(settings, case))
    except MasisError as error:
        st.warning("A model that was chosen can't be asked.", icon=":material/key_off:")
        st.text(str(error))


def _select(form: AuditForm, name: str, label: str, values: dict[Any, str], chosen: Any) -> None:
    key = form.widget_key(f"setting-{name}")
    if chosen not in values:  # set by hand in the file or the environment
        values = {chosen: f"{chosen} (as set)", **values}
    st.selectbox(
        label,
        list(values),
        list(values).index(chosen),
        key=key,
        format_func=values.__getitem__,
        on_change=_set,
        args=(name, key),
    )


def _set(name: str, key: str) -> None:
    """Store a setting, unless it is what applies: a page that comes back posts its defaults as if they were chosen."""
    workbench = served_workbench()
    form = current_form(workbench)
    chosen = st.session_state[key]
    if chosen != getattr(settings_of(workbench.settings, form.settings), name):
        save(form, settings={**form.settings, name: chosen})


def _nothing() -> None:
    """A trigger is delivered only where a callback is named for it."""
