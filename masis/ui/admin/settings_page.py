"""The settings page: settings with their sources, the verifier, the database, and related pages."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from masis.api.roles import addresses, offered_models, resolve_model
from masis.errors import MasisError, MissingModel
from masis.llm.model_files import ModelFiles, Step, model_files
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.background import BackgroundTask, BackgroundTasks
from masis.settings import GROUPS, OFFLINE, LoadedSettings, Settings, load
from masis.settings.ranges import value_text
from masis.settings.reference import rows
from masis.ui.admin.exam_section import show_exam
from masis.ui.admin.health_reports import REPORTS
from masis.ui.live import draw_task, show_live
from masis.ui.queue.overview import draw_standing_counts
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import acting, actor
from masis.ui.shell.served_database import command_markdown
from masis.version import APP, RUBRIC
from masis.views.markdown import escape_markdown
from masis.views.numbers import file_size


def show_settings(workbench: Workbench) -> None:
    """Draw the settings page."""
    st.title("Settings")
    verifier, state = st.columns(2, gap="large")
    with verifier:
        show_verifier(workbench)
    with state:
        _draw_last_check()
        _draw_database(workbench)
    show_exam(workbench)
    _draw_all_settings(workbench)


def _draw_all_settings(workbench: Workbench) -> None:
    st.header("All settings")
    # Read again, to find out whether a file or variable has changed since the server started.
    loaded = load()
    st.markdown(
        "These apply to every audit that doesn't have its own settings. To change one, write it to"
        " `masis.toml` in the folder where you start the server (`max_iterations = 2`) or to the"
        " environment (`MASIS_MAX_ITERATIONS=2`), and restart the server. You can change settings"
        " for a single audit under **New audit** or with `masis audit --set max_iterations=2`."
    )
    st.text(f"Configuration file: {loaded.file.resolve() if loaded.file else 'none'}")
    for warning in loaded.warnings:
        st.text(f"Note: {warning}")
    # The verifier may have been chosen on this page.
    if (
        loaded.settings.model_copy(update={"verifier": workbench.settings.verifier})
        != workbench.settings
    ):
        st.warning(
            "The configuration file or the environment has changed since the server started."
            " The values shown here apply until you restart it.",
            icon=":material/restart_alt:",
        )
    if loaded.settings.verifier != workbench.settings.verifier:
        st.text("The verifier was chosen on this page and applies until the server stops.")
    shown = loaded._replace(settings=workbench.settings)
    st.table(settings_frame(shown), border="horizontal", alt="Settings")


def settings_frame(loaded: LoadedSettings) -> pd.DataFrame:
    """Return the settings as a grouped table of Markdown cells with changed values highlighted."""
    cells: list[list[str]] = []
    for group in GROUPS:
        cells.append([f"**{group.title}**", "", f"*{escape_markdown(group.meaning)}*", ""])
        for row in rows(loaded, group):
            value, by = escape_markdown(row.spelled), str(row.origin.kind)
            if row.changed:
                default = (
                    ""
                    if row.default is None
                    else f" (default {escape_markdown(value_text(row.default))})"
                )
                value = f"**:blue[{value}]**{default}"
            if by != "default":
                by = f":blue-badge[{by}] {escape_markdown(row.origin.place)}"
            cells.append([f"`{row.name}`", value, escape_markdown(row.meaning), by])
    return pd.DataFrame(cells, columns=["Setting", "Value", "Meaning", "Set by"])


def _draw_last_check() -> None:
    """Draw the result of the last health check and links to health and retention."""
    st.header("Health and retention")
    last = REPORTS.latest()
    if last is not None:
        sound = (
            ":green[:material/check_circle: All checks passed.]"
            if last.report.ok
            else ":red[A check failed.]"
        )
        st.markdown(f"{sound} (checked at {last.at[11:16]} UTC)")
    st.page_link(
        "pages/health.py",
        label="Health: check again, and test the models",
        icon=":material/health_and_safety:",
    )
    st.page_link(
        "pages/retention.py",
        label="Retention: what is stored for how long",
        icon=":material/auto_delete:",
    )


def _draw_database(workbench: Workbench) -> None:
    st.header("Database")
    st.caption("Cases, audits, decisions and drafts are stored in this one file:")
    st.text(str(workbench.database))
    facets = workbench.cases.facets_for(actor())
    # SQLite writes to the -wal file while the database is in use.
    wal = workbench.database.with_name(f"{workbench.database.name}-wal")
    size_on_disk = file_size(
        sum(file.stat().st_size for file in (workbench.database, wal) if file.exists())
    )
    hidden = workbench.team.hides_counts_from(actor())  # a file grows as others decide
    size = "" if hidden else f"{size_on_disk} on disk, "
    st.caption(f"{size}{count_noun(sum(facets.standings.values()), 'case')}")
    draw_standing_counts(facets.standings, minor=facets.minor)
    st.caption(f"MASIS Workbench {APP}, rubric {RUBRIC}")
    st.caption(f"To copy it while it is in use: {command_markdown('masis db backup FILE')}")


# --- The verifier: the one in use, facts about a model, its download, and its use.

LONGEST_NAME = 300
OTHER = "Another model"


class ModelDownload(BackgroundTask):
    """The download of a verifier model, named without ``local:``.

    A stopped download keeps its data.
    """

    endpoint: str | None = None
    """The address of a hub other than the default."""

    def __init__(self, files: ModelFiles, name: str) -> None:
        super().__init__()
        self.files, self.name, self.step = files, name, Step("", 0, 0)

    @property
    def share(self) -> float:
        """The downloaded share, 0 to 1."""
        return min(1.0, self.step.done / self.step.total) if self.step.total else 0.0

    @property
    def progress_text(self) -> str:
        """How much was downloaded, and of which file."""
        done, total = self.step.done / 1e6, self.step.total / 1e6
        return f"{done:,.0f} of {total:,.0f} MB: {self.step.file}" if total else "Asking the hub"

    def work(self) -> None:
        """Download the missing files."""

        def show(step: Step) -> None:
            self.step = step

        self.files.download(
            self.name, show, endpoint=self.endpoint, cancelled=lambda: self.stopping
        )


DOWNLOADS: BackgroundTasks[ModelDownload] = BackgroundTasks()
"""The downloads of this process by model name."""


class VerifierFacts(NamedTuple):
    """Facts about a verifier, line by line.

    ``absent`` names a model to download, ``error`` a problem.
    """

    facts: tuple[str, ...] = ()
    absent: str = ""
    error: str = ""


def describe_verifier(verifier: str, settings: Settings) -> VerifierFacts:
    """Describe a verifier and where it runs or sends texts, without loading its weights."""
    files = model_files()
    name = "" if files is None else files.local_name(verifier)
    try:
        facts = []
        if files is not None and name:
            # The lines are columns for a terminal; a page's font isn't monospaced.
            facts += [re.sub(r" {2,}", ": ", line, count=1) for line in files.describe(name).lines]
        resolve_model(verifier, "verifier", settings)
        verifier_only = settings.model_copy(
            update=dict.fromkeys(settings.models(), OFFLINE) | {"verifier": verifier}
        )
        sent = addresses(verifier_only)
    except MissingModel as error:
        return VerifierFacts(absent=name, error=str(error))
    except MasisError as error:
        return VerifierFacts(error=str(error))
    where = (
        f"Question, evidence and answer are sent to {', '.join(sent)}."
        if sent
        else "Nothing leaves this machine."
    )
    return VerifierFacts((*facts, where))


def verifier_string(model: str, *, offline_first: bool) -> str:
    """Return the model string of the choice: the model alone, or after the offline checks."""
    model = model.strip()
    return (
        f"{OFFLINE},{model}"
        if offline_first and model and model != OFFLINE and "," not in model
        else model
    )


def config_line(verifier: str) -> str:
    """Return the line of the configuration file that makes a choice permanent."""
    # A backslash, as in a path on Windows, starts an escape in a TOML basic string.
    return f'verifier = "{verifier}"'.replace("\\", "\\\\")


def show_verifier(workbench: Workbench) -> None:
    """Draw the choice of the verifier."""
    st.header("Verifier", anchor="verifier")
    current = workbench.settings.verifier
    if current == OFFLINE:
        st.caption(
            "The offline checks read English. They confirm only what is safe and leave the rest,"
            " and other languages, “not confirmed”. A better verifier is one setting away: a model"
            " on this machine, or a language model."
        )
    elif "," in current:
        st.caption("The offline checks judge first; the model decides what they leave open.")
    else:
        st.caption("This model judges every claim.")
    st.text(f"In use: {current}")
    options = dict.fromkeys((*offered_models(workbench.settings, "verifier"), current))
    plain = [name for name in options if "," not in name]
    chosen = st.selectbox("Verifier model", [*plain, OTHER], key="verifier-choice")
    if chosen == OTHER:
        chosen = st.text_input(
            "Name of the model",
            key="verifier-name",
            max_chars=LONGEST_NAME,
            placeholder=_name_examples(),
            help="docs/models.md lists some to start with, and their licenses.",
        ).strip()
    first = chosen != OFFLINE and st.checkbox(
        "Offline checks first",
        value=True,
        key="verifier-first",
        help="The model decides only what the offline checks leave open: fewer calls, less time.",
    )
    with st.container(key="verifier-look"):
        if chosen:
            _draw_verifier(workbench, chosen, verifier_string(chosen, offline_first=first))


def _name_examples() -> str:
    files = model_files()
    local = "" if files is None else f"{files.PREFIX}:ORG/NAME, {files.PREFIX}:/folder or "
    return f"{local}PROVIDER:MODEL"


def _draw_verifier(workbench: Workbench, chosen: str, verifier: str) -> None:
    facts = describe_verifier(chosen, workbench.settings)
    if facts.absent:
        _draw_download(workbench, facts.absent)
        return
    if facts.error:
        st.warning("This model can't be used.", icon=":material/error:")
        st.text(facts.error)
        return
    chosen_settings = workbench.settings.model_copy(update={"verifier": verifier})
    lines = [*facts.facts]
    if exam_line := workbench.exams.line_for(chosen_settings):
        lines.append(f"With the critic and evaluator in use it {exam_line}.")
    st.text("\n".join(lines))
    if verifier == workbench.settings.verifier:
        st.caption("It is in use for new audits.")
        if load().settings.verifier != verifier:
            st.caption("To keep it after a restart of the server, write this to masis.toml:")
            st.code(config_line(verifier), language="toml")
        return
    shown: dict[str, Any] = {"requires": "configure", "type": "primary"}
    action(
        "Use it for new audits",
        "verifier-use",
        "check",
        acting(workbench.use_settings, chosen_settings),
        **shown,
    )


def _draw_download(workbench: Workbench, name: str) -> None:
    """Draw the download of a missing model: its button, its progress, or why it failed."""

    def start() -> None:
        workbench.access.require(actor(), "configure")
        if (files := model_files()) is not None:
            DOWNLOADS.start(name, lambda: ModelDownload(files, name))

    download = DOWNLOADS.get(name)
    if download is not None and not download.over:
        find, says = (
            partial(DOWNLOADS.get, name),
            "You can leave this page. The download continues.",
        )
        show_live(
            partial(draw_task, find, "download", "verifier-stop", says=says, requires="configure")
        )
        return
    if download is not None and download.failed:
        st.warning("The download failed.", icon=":material/cloud_off:")
        st.text(download.failed)
    st.caption(
        "This model isn't on this machine yet. It is downloaded once to the cache of the Hugging"
        " Face hub, and its license is shown then. No code from its repository is run."
    )
    action("Download", "verifier-download", "download", start, requires="configure")
