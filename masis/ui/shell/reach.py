"""Who can reach this server: where it listens, which host names it answers to, and what every page
says about it.
"""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from masis.errors import SettingsError
from masis.settings.hosts import AllowedHosts, is_every_address, is_loopback
from masis.settings.sign_in import SignIn

EXPOSED = (
    "Anyone who reaches this server can read and decide under any name: it is open to the network"
    " without sign-in (--insecure)."
)


class Reach(NamedTuple):
    """Where the server listens and for whom; ``insecure`` says that others are let in without
    sign-in.
    """

    address: str = "127.0.0.1"
    allow_hosts: tuple[str, ...] = ()
    insecure: bool = False
    sign_in: SignIn | None = None

    @property
    def is_exposed(self) -> bool:
        """Whether others than this machine's users reach the server without signing in."""
        return self.is_open and self.sign_in is None

    @property
    def is_open(self) -> bool:
        """Whether others than this machine's users reach the server."""
        return not is_loopback(self.address) or bool(self.allow_hosts)

    def hosts(self) -> AllowedHosts:
        """Return the names the server answers to: loopback names, those allowed, and an address it
        listens on.
        """
        own = () if is_loopback(self.address) or is_every_address(self.address) else (self.address,)
        return AllowedHosts((*self.allow_hosts, *own))

    def check(self) -> None:
        """Raise SettingsError where others could reach the server and nobody decided
        that they may.
        """
        self.hosts()
        if self.is_exposed and not self.insecure:
            by = (
                f"--allow-host {self.allow_hosts[0]}"
                if is_loopback(self.address)
                else f"--address {self.address}"
            )
            raise SettingsError(
                f"{by}: others could read every case and decide under any name, since there is no"
                " sign-in. Name a sign-in file (--sign-in FILE, docs/security.md), or say"
                " --insecure if that is meant; every page then says so."
            )
        if self.insecure and self.sign_in is not None:
            raise SettingsError("--insecure and --sign-in exclude each other.")
        if is_every_address(self.address) and not self.allow_hosts:
            raise SettingsError(
                f"--address {self.address}: name the host names that others will use, or they are"
                " refused: --allow-host audits.example.org"
            )


ONLY_HERE = Reach()
"""This machine only."""

_served: list[Reach] = [ONLY_HERE]


def serve_under(reach: Reach) -> None:
    """Set how this process is reached; call it before the first page runs."""
    _served[:] = [reach]


def served_reach() -> Reach:
    """Return how this process is reached."""
    return _served[0]


def reach_notice() -> None:
    """Say on every page that the server is open to the network without sign-in, where it is."""
    if _served[0].is_exposed:
        with st.container(key="exposed-notice"):
            st.error(EXPOSED, icon=":material/lock_open:")
