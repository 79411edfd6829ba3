"""Choose the verifier: what decides now, what a model is and where its file lies, its download, and its use."""

from __future__ import annotations

import re
from typing import NamedTuple

import streamlit as st

from masis.api.roles import addresses, offered_models, resolve_model
from masis.errors import MasisError, MissingModel
from masis.integrations.local import PREFIX, local_names, model_files, scoring
from masis.services import Workbench
from masis.services.background import BackgroundTask, BackgroundTasks
from masis.settings import OFFLINE, Settings, load
from masis.ui.live import show_live
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor

LONGEST_NAME = 300
OTHER = "Another model"


class ModelDownload(BackgroundTask):
    """The download of a verifier model, named by what stands behind ``local:``; what has arrived stays on a stop."""

    endpoint: str | None = None
    """The address of another hub than the usual one."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.step = name, model_files.Step("", 0, 0)

    def work(self) -> None:
        """Download what is not here yet."""
        model_files.download(self.name, self._show, endpoint=self.endpoint, cancelled=lambda: self.stopping)

    def _show(self, step: model_files.Step) -> None:
        self.step = step


DOWNLOADS: BackgroundTasks[ModelDownload] = BackgroundTasks()
"""The downloads of this process, by name."""


class Look(NamedTuple):
    """What is known of a verifier: facts, line by line; ``absent`` a model to download; ``error`` what is wrong."""

    facts: tuple[str, ...] = ()
    absent: str = ""
    error: str = ""


def look_at(verifier: str, settings: Settings) -> Look:
    """Look at a verifier without using it: what it is, where it lies or where it sends texts. Loads no weights."""
    try:
        facts = [line for name in local_names(verifier) for line in _local_facts(name)]
        resolve_model(verifier, "verifier", settings)
        alone = settings.model_copy(update=dict.fromkeys(settings.models(), OFFLINE) | {"verifier": verifier})
        sent = addresses(alone)
    except MissingModel as error:
        return Look(absent=local_names(verifier)[-1], error=str(error))
    except MasisError as error:
        return Look(error=str(error))
    where = f"Question, evidence and answer are sent to {', '.join(sent)}." if sent else "Nothing leaves this machine."
    return Look((*facts, where))


def _local_facts(name: str) -> list[str]:
    labels = scoring.check(name)
    lines = model_files.described(model_files.recorded(model_files.find(name)), labels.words)
    return [re.sub(r" {2,}", ": ", line, count=1) for line in lines]  # columns need a font of one width


def verifier_of(model: str, *, offline_first: bool) -> str:
    """Return the model string of the choice: the model alone, or behind the offline checks."""
    model = model.strip()
    return f"{OFFLINE},{model}" if offline_first and model and model != OFFLINE and "," not in model else model


def permanent(verifier: str) -> str:
    """Return the line of the configuration file that makes a choice last."""
    return f'verifier = "{verifier}"'.replace("\\", "\\\\")


def show_verifier(workbench: Workbench) -> None:
    """Draw the choice of the verifier."""
    st.header("Verifier", anchor="verifier")
    current = workbench.settings.verifier
    st.caption(_in_words(current))
    st.text(f"In use: {current}")
    options = dict.fromkeys((*offered_models(workbench.settings, "verifier"), current))
    plain = [name for name in options if "," not in name]
    chosen = st.selectbox("Verifier model", [*plain, OTHER], key="verifier-choice")
    if chosen == OTHER:
        chosen = st.text_input(
            "Name of the model",
            key="verifier-name",
            max_chars=LONGEST_NAME,
            placeholder=f"{PREFIX}:ORG/NAME, {PREFIX}:/folder or PROVIDER:MODEL",
            help="docs/verifiers.md names some to begin with, with their licences.",
        ).strip()
    first = chosen != OFFLINE and st.checkbox(
        "Offline checks first",
        value=True,
        key="verifier-first",
        help="The model decides only what the offline checks leave open: fewer calls, less time.",
    )
    with st.container(key="verifier-look"):
        if chosen:
            _look(workbench, chosen, verifier_of(chosen, offline_first=first))


def _in_words(verifier: str) -> str:
    if verifier == OFFLINE:
        return (
            "The offline checks read English. They confirm only what is safe and leave the rest, and other languages, "
            "“not confirmed”. A better verifier is one setting away: a model on this machine, or a language model."
        )
    if "," in verifier:
        return "The offline checks judge first; the model decides what they leave open."
    return "This model judges every claim."


def _look(workbench: Workbench, chosen: str, verifier: str) -> None:
    look = look_at(chosen, workbench.settings)
    if look.absent:
        _download(workbench, look.absent)
        return
    if look.error:
        st.warning("This model can't be used.", icon=":material/error:")
        st.text(look.error)
        return
    st.text("\n".join(look.facts))
    if verifier == workbench.settings.verifier:
        st.caption("It is in use for new audits.")
        if load().settings.verifier != verifier:
            st.caption("To keep it when the server is started again, write into masis.toml:")
            st.code(permanent(verifier), language="toml")
        return
    st.button(
        "Use it for new audits",
        key="verifier-use",
        type="primary",
        icon=":material/check:",
        on_click=_use,
        args=(workbench, verifier),
        **needs("configure"),
    )


def _use(workbench: Workbench, verifier: str) -> None:
    workbench.use_settings(actor(), workbench.settings.model_copy(update={"verifier": verifier}))


def _start(workbench: Workbench, name: str) -> None:
    workbench.access.require(actor(), "configure")
    DOWNLOADS.start(name, lambda: ModelDownload(name))


def _stop(workbench: Workbench, name: str) -> None:
    workbench.access.require(actor(), "configure")
    if (download := DOWNLOADS.get(name)) is not None:
        download.stop()


def _download(workbench: Workbench, name: str) -> None:
    """Draw what to do about a model that is not here: download it, how far that has come, why it failed."""
    download = DOWNLOADS.get(name)
    if download is not None and not download.over:
        show_live(_draw_progress, workbench, name)
        return
    if download is not None and download.failed:
        st.warning("The download did not succeed.", icon=":material/cloud_off:")
        st.text(download.failed)
    st.caption(
        "This model is not on this machine yet. It is downloaded once into the cache of the Hugging Face hub; its "
        "licence is shown then. No code of its repository is run."
    )
    st.button(
        "Download",
        key="verifier-download",
        icon=":material/download:",
        on_click=_start,
        args=(workbench, name),
        **needs("configure"),
    )


def _draw_progress(workbench: Workbench, name: str) -> bool:
    """Draw how far a download has come; returns whether it is under way."""
    download = DOWNLOADS.get(name)
    if download is None or download.over:
        return False
    step = download.step
    share = step.done / step.total if step.total else 0.0
    text = f"{step.done / 1e6:,.0f} of {step.total / 1e6:,.0f} MB: {step.file}" if step.total else "Asking the hub"
    st.progress(min(1.0, share), text=text)
    st.button("Stop the download", key="verifier-stop", on_click=_stop, args=(workbench, name), **needs("configure"))
    return True
