"""Which host names a server of ours answers to: loopback names, and those that somebody allowed.

A page on another site whose name is made to resolve to 127.0.0.1 (DNS rebinding) is to the browser
a page of that site: it may read whatever this machine answers under that name. Its requests carry
the foreign name as their host, and no answer but a refusal keeps it out.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from masis.errors import SettingsError

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?")


class HostRefusal(NamedTuple):
    """Why a request is refused, and the status it is answered with."""

    status: int
    reason: str


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address or a name, without brackets and port."""
    address = _ip_address(host)
    return address.is_loopback if address else host.lower().rstrip(".") == "localhost"


def is_every_address(host: str) -> bool:
    """Return whether an address to listen on stands for all of the machine's: ``0.0.0.0`` or
    ``::``.
    """
    address = _ip_address(host)
    return address is not None and address.is_unspecified


class AllowedHosts:
    """The names that requests may be addressed to, whatever the port."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._names = frozenset(_check_host(name) for name in allowed)

    def refusal(self, hosts: Sequence[str], origins: Sequence[str]) -> HostRefusal | None:
        """Return why a request with these ``Host`` and ``Origin`` headers is refused; None where it
        is not.

        One host is needed, and it must be allowed (else 421). An origin, where one is given, must
        be the very host and port that the request is addressed to (else 403): no other site's page
        has business here, an allowed name's neither.
        """
        if len(hosts) != 1 or not self._allows(hosts[0]):
            return HostRefusal(421, "This server does not answer to that host name.")
        if len(origins) > 1 or not all(_is_origin_of(origin, hosts[0]) for origin in origins):
            return HostRefusal(
                403,
                "Pages of other sites have no access. Behind a proxy, the Host header must name the"
                " port that browsers use: in nginx, proxy_set_header Host $http_host.",
            )
        return None

    def _allows(self, header: str) -> bool:
        name = _host_name(header)
        return name is not None and (is_loopback(name) or name in self._names)


def _host_name(header: str) -> str | None:
    """Return the name in a ``Host`` header, in lower case, without brackets, port and final dot;
    None if malformed.
    """
    found = _HOST.fullmatch(header)
    if found is None or (found.group(2) and int(found.group(2)) > 65535):
        return None
    return _canonical(found.group(1).strip("[]"))


def _is_origin_of(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
        default = {"http": 80, "https": 443}[parts.scheme]
        own = urlsplit(f"//{host}")
        same_port = (parts.port or default) == (own.port or default)
    # "null" of a sandboxed page, another scheme, or no address at all
    except (ValueError, KeyError):
        return False
    bare = not (parts.path or parts.query or parts.fragment or parts.username or parts.password)
    return (
        bare
        and same_port
        and _host_name(parts.netloc) is not None
        and _host_name(parts.netloc) == _host_name(host)
    )


def _check_host(name: str) -> str:
    bare = _canonical(name.strip().strip("[]"))
    if not (re.fullmatch(r"[a-z0-9._-]{1,253}", bare) or _ip_address(bare)):
        raise SettingsError(
            f"--allow-host {name!r}: give a host name or address alone, such as audits.example.org."
        )
    return bare


def _canonical(name: str) -> str:
    """Return a name as it is compared: in lower case and without its final dot; an address in its
    shortest form.
    """
    return str(_ip_address(name) or name.lower().rstrip("."))
