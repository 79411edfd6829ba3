"""The webhook: a call to one address whenever a case that came over HTTP needs review or was
decided.

What is to be reported is in the database, written with the change itself
(``masis.store.audits.inbox``): a process that is killed loses none of it, and one that is killed
between the call and its note calls again, under the same id. A call says which case it is about and
where that stands, no text of it, and is signed:

    MASIS-Signature: t=SECONDS,v1=HMAC-SHA256 of "SECONDS." and the body, in hexadecimal digits

The address is resolved once for each call and the connection made to what came of that: a name that
resolves elsewhere a moment later changes nothing. Redirects are not followed, and proxies of the
environment not used.
"""

from __future__ import annotations

import contextlib
import hmac
import http.client
import ipaddress
import json
import logging
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from urllib.parse import SplitResult, urlsplit

from masis import version
from masis.errors import SettingsError
from masis.services.arrivals.ingestion import CaseStatus
from masis.services.background import RepeatedTask
from masis.services.workbench import Workbench
from masis.settings import Settings, secret
from masis.store import Store
from masis.store.audits.inbox import WebhookNotice

log = logging.getLogger("masis.webhook")

SECRET = "MASIS_WEBHOOK_SECRET"  # noqa: S105 (the name of the variable)
HEADER = "MASIS-Signature"
LEAST_SECRET = 32
"""Characters of the secret."""
TRIES = 30
"""Calls that are made for one notice: with the waits between them, about a day."""
LONGEST_WAIT = timedelta(hours=1)

_AT_ONCE = 50
_EVERY = timedelta(seconds=1)
_TIMEOUT_S = 10.0
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # IPv4 behind a translator (RFC 6052)


def signature(key: bytes, at: int, body: bytes) -> str:
    """Return what the header holds for a body that is sent at this second."""
    return f"t={at},v1={hmac.new(key, b'%d.' % at + body, 'sha256').hexdigest()}"


def is_public(address: str) -> bool:
    """Return whether an address is one of the public internet, whatever form it is written in."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo or (None, None))[1]
        if found in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    return found.is_global and not found.is_multicast


class Undelivered(Exception):
    """The receiver could not be reached, or did not take it."""


class Webhook:
    """The sender of one database. ``wait`` is what it waits before the second call for a notice,
    then twice that.
    """

    def __init__(
        self, store: Store, settings: Settings, key: str, wait: timedelta = timedelta(seconds=5)
    ) -> None:
        """Raise SettingsError where the address or the key can't be used."""
        self._store, self._private, self._wait = store, settings.webhook_private, wait
        self._address = _check_webhook_address(
            settings.webhook_address, private=settings.webhook_private
        )
        if len(key) < LEAST_SECRET:
            raise SettingsError(
                f"{SECRET} has {len(key)} characters; a webhook needs at least {LEAST_SECRET}."
            )
        self._key = key.encode()
        self._store.inbox.report(on=True)

    def deliver(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """Deliver what is due; what can't be delivered is tried again later, ``TRIES`` times in
        all.
        """
        for notice in self._store.inbox.due(_AT_ONCE):
            if stopping():
                return
            try:
                self._call(notice)
            except Undelivered as error:
                self._record_failure(notice, error)
            else:
                log.debug("notice %s was delivered", notice.id)
                self._store.inbox.remove_notice(notice)

    def _record_failure(self, notice: WebhookNotice, error: Undelivered) -> None:
        if notice.tries + 1 >= TRIES:
            log.error(
                "The webhook did not take notice %s (%s): given up after %d calls.",
                notice.id,
                error,
                TRIES,
            )
            self._store.inbox.remove_notice(notice)
            return
        log.warning(
            "The webhook did not take notice %s (%s): it is called again later.", notice.id, error
        )
        wait = min(self._wait * 2 ** min(notice.tries, 20), LONGEST_WAIT)
        self._store.inbox.postpone(notice, wait)

    def _call(self, notice: WebhookNotice) -> None:
        case = CaseStatus.of(self._store.cases.summary(notice.case_id)).model_dump(
            exclude={"headline"}
        )
        about = {
            "id": notice.id,
            "event": notice.event,
            "at": notice.at,
            "sources": notice.sources,
            "case": case,
        }
        body, path = json.dumps(about).encode(), self._address.path or "/"
        headers = {
            "content-type": "application/json",
            "user-agent": f"masis/{version.APP}",
            HEADER: signature(self._key, int(time.time()), body),
        }
        try:
            connection = self._connection()
            try:
                query = f"?{self._address.query}" if self._address.query else ""
                connection.request("POST", path + query, body, headers)
                status = connection.getresponse().status
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise Undelivered(type(error).__name__) from error
        if not 200 <= status < 300:
            raise Undelivered(f"status {status}")

    def _connection(self) -> http.client.HTTPConnection:
        """Return a connection to the very address that was looked at. Raises Undelivered and
        OSError.
        """
        host, secure = self._address.hostname or "", self._address.scheme == "https"
        port = self._address.port or (443 if secure else 80)
        found = [
            str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        ]
        if not self._private and not all(is_public(each) for each in found):
            raise Undelivered("the address is a private one: webhook_private allows that")
        context = ssl.create_default_context() if secure else None
        plain = _connect_first(found, port)
        try:
            if context is None:
                connection = http.client.HTTPConnection(host, port)
                connection.sock = plain
            else:
                connection = http.client.HTTPSConnection(host, port, context=context)
                connection.sock = context.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise
        return connection


def _connect_first(addresses: Sequence[str], port: int) -> socket.socket:
    """Return a connection to the first address that takes one. Raises OSError, that of the last."""
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return socket.create_connection((address, port), _TIMEOUT_S)
    return socket.create_connection((addresses[-1], port), _TIMEOUT_S)


def _check_webhook_address(address: str, *, private: bool) -> SplitResult:
    try:
        parts = urlsplit(address)
        # else only the call would say that a label is empty or too long
        (parts.hostname or "").encode("idna")
        usable = (
            bool(parts.hostname) and parts.port != 0 and address.isascii() and address.isprintable()
        )
    except ValueError:
        usable = False
    if (
        not usable
        or " " in address
        or parts.username
        or parts.fragment
        or parts.scheme not in ("https", "http")
    ):
        raise SettingsError(
            "webhook_address: give an address such as https://hooks.example.org/masis."
        )
    if parts.scheme == "http" and not private:
        raise SettingsError(
            "webhook_address: it must be https; webhook_private = true allows http as well."
        )
    return parts


def start(workbench: Workbench) -> RepeatedTask | None:
    """Begin to deliver, as long as the program runs; None where no address is set. Raises
    SettingsError.
    """
    store, settings = workbench.store, workbench.settings
    if not settings.webhook_address:
        store.inbox.report(on=False)
        return None
    key = secret(SECRET)
    if key is None:
        raise SettingsError(
            f"webhook_address is set: put a secret for its signature into the variable {SECRET}."
        )
    return RepeatedTask(
        Webhook(store, settings, key.get_secret_value()).deliver, _EVERY, "webhook"
    ).start()
