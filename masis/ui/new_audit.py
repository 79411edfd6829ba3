"""A new audit: what to audit is pasted, uploaded or picked from the store; then the address leads to watching it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from masis.datasets.readers.pasted import Pasted, read_pasted, text_of
from masis.errors import InputError, MasisError, UnknownRecord
from masis.schema.case import Case
from masis.settings import ROLES, Settings
from masis.store.records import CaseFilter
from masis.ui import address, example
from masis.ui.components import registered
from masis.ui.desk import state_label
from masis.ui.drafts import drafter
from masis.ui.jobs import audit_jobs
from masis.ui.new_audit_form import (
    CHOICES,
    LONGEST,
    MODELS,
    ROLE,
    case_of,
    changed,
    settings_of,
    understood,
    understood_case,
)
from masis.ui.place import workbench
from masis.ui.typing_area import typing_area
from masis.ui.watch import show_run
from masis.ui.words import spoken
from masis.workbench import Workbench

SUBJECT = "new-audit"
HITS = 8
PASTE, STORED = "Paste or upload", "Pick a stored case"
UPLOADS = ["txt", "md", "csv", "tsv", "json", "jsonl"]
_STATE = "new-audit-form"
_UNDERSTOOD = registered("understood")
_PICKER = registered("picker")


@dataclass
class _Form:
    """What this session has typed. ``large`` names an uploaded file too long for a field; its text is only a draft."""

    owner: str
    question: str = ""
    evidence: str = ""
    answer: str = ""
    large: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    version: int = 0
    uploads: int = 0
    restored: str | None = None
    refused: InputError | None = None


def show_new_audit(bench: Workbench) -> None:
    """The page: the form, or the audit that the address names."""
    if run_id := address.value("job"):
        show_run(bench, run_id, address.value("case"))
        return
    audit_jobs().warm_up()
    form = _form(bench)
    stored = address.value("case")
    title, fill = st.columns([7, 2], vertical_alignment="bottom")
    title.title("New audit")
    with st.container():
        way = _way(bool(stored))
    if way == PASTE:
        fill.button("Fill in an example", icon=":material/auto_awesome:", on_click=_fill_example, width="stretch")
        _typed(bench, form)
    else:
        _picked(bench, form, stored)


def _way(stored: bool) -> str:
    if "new-audit-way" not in st.session_state or stored:
        st.session_state["new-audit-way"] = STORED if stored else PASTE
    st.segmented_control(
        "What to audit",
        [PASTE, STORED],
        key="new-audit-way",
        label_visibility="collapsed",
        required=True,
        on_change=_change_way,
    )
    return str(st.session_state["new-audit-way"])


def _change_way() -> None:
    if st.session_state["new-audit-way"] == PASTE:
        address.put("case", "")


# pasted or uploaded


def _typed(bench: Workbench, form: _Form) -> None:
    left, right = st.columns([62, 38], gap="large")
    with left:
        if form.restored:
            _restored(form)
        _field(form, "question", "Question", rows=2, placeholder="What was asked")
        _field(
            form,
            "evidence",
            "Evidence",
            rows=11,
            hint="What the retrieval found. Blank lines or [id] at the start of a line separate chunks; CSV and JSON "
            "Lines are understood too.",
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
        _settings(bench, form)
    pasted = _evidence(bench, form)
    with right:
        st.button(
            "Start the audit",
            type="primary",
            icon=":material/play_arrow:",
            width="stretch",
            shortcut="Ctrl+Enter",
            on_click=_start_typed,
            key="start-audit",
        )
        st.caption("It runs on this machine, without a language model; nothing is sent anywhere.")
        _UNDERSTOOD(data=understood(form.question, pasted, form.answer, form.refused), key="understood")


def _field(
    form: _Form, name: str, label: str, *, rows: int, placeholder: str, hint: str = "", optional: bool = False
) -> None:
    if name == "evidence" and form.large:
        st.markdown("**Evidence**")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"From the file {form.large}")
            st.button("Remove the file", icon=":material/close:", type="tertiary", on_click=_drop_large)
        return
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
        on_text=lambda text: _type(name, text),
    )
    with st.popover("From a file", icon=":material/upload_file:", type="tertiary"):
        key = f"new-audit-upload-{name}-{form.uploads}"
        st.file_uploader(
            f"A file with the {label.lower()}",
            type=UPLOADS if name == "evidence" else UPLOADS[:2],
            key=key,
            on_change=_upload,
            args=(name, key),
        )


def _restored(form: _Form) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Your draft of {form.restored} UTC is back.")
        st.button("Discard it", type="tertiary", icon=":material/delete:", on_click=_discard)


def _form(bench: Workbench) -> _Form:
    """The session's form; after a reload, and when a person's name becomes known, as it was kept."""
    owner = drafter()
    kept: _Form | None = st.session_state.get(_STATE)
    if kept is not None and kept.owner == owner:
        return kept
    draft = bench.store.drafts.get(owner, SUBJECT)
    values = draft.values
    texts = {name: value for name in LONGEST if isinstance(value := values.get(name), str)}
    large = values.get("large")
    settings = values.get("settings")
    form = _Form(
        owner=owner,
        large=str(large["name"]) if isinstance(large, dict) else "",
        settings=dict(settings) if isinstance(settings, dict) else {},
        version=(kept.version if kept else 0) + 1,
        restored=draft.saved_at[:16].replace("T", " ") if draft.saved_at and (any(texts.values()) or large) else None,
    )
    for name, text in texts.items():
        setattr(form, name, text)
    st.session_state[_STATE] = form
    return form


def _evidence(bench: Workbench, form: _Form) -> Pasted:
    if not form.large:
        return _read(form.evidence)
    large = bench.store.drafts.load(form.owner, SUBJECT).get("large")
    return _read(str(large["text"]) if isinstance(large, dict) else "")


@st.cache_resource(show_spinner=False, max_entries=8)
def _read(text: str) -> Pasted:
    return read_pasted(text)


def _keep(form: _Form, **values: Any) -> None:
    form.refused = None
    for name, value in values.items():
        if name != "large":
            setattr(form, name, value)
    workbench().store.drafts.save_all(form.owner, SUBJECT, values)


def _type(name: str, text: str) -> None:
    form = _form(workbench())
    if text != getattr(form, name):
        _keep(form, **{name: text})


def _upload(name: str, key: str) -> None:
    form = _form(workbench())
    file = st.session_state.get(key)
    if file is None:
        return
    form.uploads += 1
    shown = file.name[:120]
    try:
        text = text_of(file.getvalue(), shown)
    except InputError as error:
        form.refused = error
        return
    form.version += 1
    if len(text) <= LONGEST[name]:
        _keep(form, **{name: text})
    elif name == "evidence":
        form.large = shown
        _keep(form, large={"name": shown, "text": text})
    else:
        form.refused = InputError(
            f"The file {shown} holds {spoken(len(text), 'character')}", cure=f"This field takes {LONGEST[name]:,}."
        )


def _drop_large() -> None:
    form = _form(workbench())
    form.large, form.refused = "", None
    workbench().store.drafts.clear(form.owner, SUBJECT, "large")


def _fill_example() -> None:
    form = _form(workbench())
    _drop_large()
    _keep(form, question=example.QUESTION, evidence=example.EVIDENCE, answer=example.ANSWER)
    form.version += 1


def _discard() -> None:
    """Empty the form; its settings stay."""
    form = _form(workbench())
    workbench().store.drafts.clear(form.owner, SUBJECT, *LONGEST, "large")
    st.session_state[_STATE] = _Form(
        form.owner, settings=form.settings, version=form.version + 1, uploads=form.uploads + 1
    )


def _start_typed() -> None:
    bench = workbench()
    form = _form(bench)
    try:
        case = case_of(form.question, _evidence(bench, form), form.answer)
        bench.import_cases([case])
        _go(case, settings_of(bench.settings, form.settings))
    except InputError as error:
        form.refused = error
    except MasisError as error:
        form.refused = InputError(str(error), cure="What you typed is kept.")
    else:
        _discard()


# a stored case


def _picked(bench: Workbench, form: _Form, case_id: str) -> None:
    left, right = st.columns([62, 38], gap="large")
    with left:
        text = st.text_input(
            "Search",
            key="new-audit-search",
            placeholder="Words in question, answer or evidence; or the id",
            max_chars=address.LONGEST_QUERY,
        )
        page = bench.find_cases(CaseFilter(text=text, order="newest" if not text else "telling", size=HITS))
        if not page.total:
            st.markdown(
                "**No case matches.** Take a word out of the search."
                if text
                else "**The store holds no case yet.** Paste one, or import some on the command line."
            )
        rows = [{"id": row.id, "question": row.query, "state": state_label(row.state)} for row in page.rows]
        if rows:
            picked = _PICKER(data={"rows": rows, "chosen": case_id}, key="picker", on_pick_change=_nothing).pick
            if isinstance(picked, str) and picked != case_id:
                address.put("case", picked)
                st.rerun()
            if page.total > len(rows):
                st.caption(f"{spoken(page.total - len(rows), 'more case matches', 'more cases match')}: search for it.")
        _settings(bench, form)
    with right:
        _chosen(bench, form, case_id)


def _chosen(bench: Workbench, form: _Form, case_id: str) -> None:
    try:
        case = bench.store.cases.get(case_id) if case_id else None
    except UnknownRecord:
        case = None
    if case is None:
        st.markdown("**That case is not here.** Pick one from the list." if case_id else "Pick a case from the list.")
        return
    settings = settings_of(bench.settings, form.settings)
    notes = []
    done = not bench.needs_audit(case, settings)
    if done:
        notes.append("It has been audited with exactly these settings: another audit would find the same.")
    st.button(
        "Audit it again" if done else "Start the audit",
        type="primary",
        icon=":material/play_arrow:",
        width="stretch",
        shortcut="Ctrl+Enter",
        on_click=_start_stored,
        args=(case_id,),
        key="start-audit",
    )
    if form.refused:
        st.error("The audit could not be started.", icon=":material/error:")
        st.text(str(form.refused))
    _UNDERSTOOD(data=understood_case(case, notes), key="understood")


def _start_stored(case_id: str) -> None:
    bench = workbench()
    form = _form(bench)
    form.refused = None
    try:
        _go(bench.store.cases.get(case_id), settings_of(bench.settings, form.settings))
    except MasisError as error:
        form.refused = InputError(str(error), cure="Pick another case.")


def _go(case: Case, settings: Settings) -> None:
    run_id = audit_jobs().start(case.id, settings)
    address.put("job", run_id)
    address.put("case", case.id)


# settings


def _settings(bench: Workbench, form: _Form) -> None:
    differ = changed(bench.settings, form.settings)
    says = f"Settings · {differ} changed" if differ else "Settings · as the workbench has them"
    settings = settings_of(bench.settings, form.settings)
    with st.expander(says, icon=":material/tune:"):
        for start in range(0, len(CHOICES), 2):
            for column, choice in zip(st.columns(2, gap="medium"), CHOICES[start : start + 2], strict=False):
                with column:
                    _select(choice.name, choice.text, dict(choice.values), getattr(settings, choice.name))
                    st.caption(choice.meaning)
        st.markdown("**Who judges**")
        st.caption("Offline means rules and measurements, no language model. This version knows no other.")
        for column, role in zip(st.columns(len(ROLES), gap="small"), ROLES, strict=True):
            with column:
                known = {model: model for model in dict.fromkeys((*MODELS, getattr(bench.settings, role)))}
                _select(role, ROLE[role], known, getattr(settings, role))


def _select(name: str, label: str, values: dict[Any, str], chosen: Any) -> None:
    key = f"new-audit-setting-{name}"
    if chosen not in values:  # set by hand in the file or the environment
        values = {chosen: f"{chosen} (as set)", **values}
    st.session_state[key] = chosen
    st.selectbox(label, list(values), key=key, format_func=values.__getitem__, on_change=_set, args=(name, key))


def _set(name: str, key: str) -> None:
    form = _form(workbench())
    _keep(form, settings={**form.settings, name: st.session_state[key]})


def _nothing() -> None:
    """A trigger is delivered only where a callback is named for it."""
