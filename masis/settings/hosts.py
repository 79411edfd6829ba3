"""Which host names our servers answer to: loopback names and explicitly allowed ones.

This prevents DNS rebinding: a page on another site makes its name resolve to 127.0.0.1, and the
browser then treats this machine's answers under that name as that site's, so that the page may read
them. Such requests carry the foreign name in the Host header, so they're rejected.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from masis.errors import SettingsError

# A Host header: a bracketed IPv6 address, or a name or IPv4 address, and an optional port.
# Examples: ``[::1]:8501``, ``audits.example.org``.
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?")


class HostRefusal(NamedTuple):
    """Why a request is rejected, and the status of the response."""

    status: int
    reason: str


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Return whether an address or name without brackets and port is reachable only from this
    machine.
    """
    address = _ip_address(host)
    # A final dot makes a name absolute and doesn't change what it means.
    return address.is_loopback if address else host.lower().rstrip(".") == "localhost"


def is_every_address(host: str) -> bool:
    """Return whether a listening address means all of the machine's addresses: ``0.0.0.0`` or
    ``::``.
    """
    address = _ip_address(host)
    return address is not None and address.is_unspecified


class AllowedHosts:
    """The host names that requests may be sent to, on any port."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._names = frozenset(_check_host(name) for name in allowed)

    def refusal(self, hosts: Sequence[str], origins: Sequence[str]) -> HostRefusal | None:
        """Return why a request with these ``Host`` and ``Origin`` headers is rejected, or None.

        Exactly one allowed host is needed (otherwise 421). An origin must be the host and port that
        the request is sent to (otherwise 403): pages of other sites may not access this server, not
        even those under another allowed name.
        """
        if len(hosts) != 1 or not self._allows(hosts[0]):
            # 421 Misdirected Request (RFC 9110, 15.5.20).
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
    """Return the name in a ``Host`` header without brackets, port and final dot in lower case, or
    None if invalid.
    """
    match = _HOST.fullmatch(header)
    if match is None or (match.group(2) and int(match.group(2)) > 65535):
        return None
    return _canonical(match.group(1).strip("[]"))


def _is_origin_of(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
        default = {"http": 80, "https": 443}[parts.scheme]
        own_address = urlsplit(f"//{host}")
        same_port = (parts.port or default) == (own_address.port or default)
    # "null" from a sandboxed page, another scheme, or an invalid address
    except (ValueError, KeyError):
        return False
    # An origin consists of scheme, host and port only (RFC 6454, 6.2).
    bare = not (parts.path or parts.query or parts.fragment or parts.username or parts.password)
    return (
        bare
        and same_port
        and _host_name(parts.netloc) is not None
        and _host_name(parts.netloc) == _host_name(host)
    )


def _check_host(name: str) -> str:
    bare = _canonical(name.strip().strip("[]"))
    # 253 characters are the most that a DNS name can have (RFC 1035, 2.3.4: 255 octets).
    if not (re.fullmatch(r"[a-z0-9._-]{1,253}", bare) or _ip_address(bare)):
        raise SettingsError(
            f"--allow-host {name!r}: use only a host name or address, such as audits.example.org."
        )
    return bare


def _canonical(name: str) -> str:
    """Return a name for comparison: in lower case without its final dot; an IP address in its
    shortest form.
    """
    return str(_ip_address(name) or name.lower().rstrip("."))
