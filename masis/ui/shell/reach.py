"""Who can reach this server: its address, its host names, and the notice on every page."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from masis.errors import SettingsError
from masis.settings.hosts import AllowedHosts, is_every_address, is_loopback
from masis.settings.sign_in import SignIn

EXPOSED = (
    "This server is open to the network without sign-in (--insecure). Anyone who reaches it can"
    " read and decide under any name."
)


class Reach(NamedTuple):
    """Where the server listens, and who can use it.

    ``insecure`` means that people on other machines can use it without sign-in.
    """

    address: str = "127.0.0.1"
    allow_hosts: tuple[str, ...] = ()
    insecure: bool = False
    sign_in: SignIn | None = None

    @property
    def is_exposed(self) -> bool:
        """Whether anyone besides this machine's users can reach the server without signing in."""
        return self.is_open and self.sign_in is None

    @property
    def is_open(self) -> bool:
        """Whether anyone besides this machine's users can reach the server."""
        return not is_loopback(self.address) or bool(self.allow_hosts)

    def hosts(self) -> AllowedHosts:
        """Return the server's host names: loopback names, allowed names and its own address."""
        own = () if is_loopback(self.address) or is_every_address(self.address) else (self.address,)
        return AllowedHosts((*self.allow_hosts, *own))

    def check(self) -> None:
        """Raise SettingsError if others could reach the server without explicit permission."""
        self.hosts()
        if self.is_exposed and not self.insecure:
            by = (
                f"--allow-host {self.allow_hosts[0]}"
                if is_loopback(self.address)
                else f"--address {self.address}"
            )
            raise SettingsError(
                f"{by}: without sign-in, others could read every case and decide under any name."
                " Pass a sign-in file (--sign-in FILE, docs/security.md), or use --insecure if"
                " that's intended. Every page then shows a warning."
            )
        if self.insecure and self.sign_in is not None:
            raise SettingsError("--insecure and --sign-in can't be combined.")
        if is_every_address(self.address) and not self.allow_hosts:
            raise SettingsError(
                f"--address {self.address}: requests are refused unless you name the host names"
                " that others will use, for example --allow-host audits.example.org"
            )


ONLY_HERE = Reach()
"""Reachable from this machine only."""

# A list, because a module that imports the name would keep the value it had then.
_served: list[Reach] = [ONLY_HERE]


def serve_under(reach: Reach) -> None:
    """Set how this process is reached. Call it before the first page runs."""
    _served[:] = [reach]


def served_reach() -> Reach:
    """Return how this process is reached."""
    return _served[0]


def reach_notice() -> None:
    """Show a notice on every page if the server is open to the network without sign-in."""
    if _served[0].is_exposed:
        with st.container(key="exposed-notice"):
            st.error(EXPOSED, icon=":material/lock_open:")
