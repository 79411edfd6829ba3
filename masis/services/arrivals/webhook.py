"""The webhook: a call to an address when a case received over HTTP needs review or is decided.

Pending notices are stored in the database in the transaction of the change itself
(``masis.store.audits.inbox``), so that a killed process doesn't lose them. If a process is killed
between a call and recording it, the call is repeated with the same id. A call has the id of the
case and its status but none of its texts, and is signed:

    MASIS-Signature: t=SECONDS,v1=HMAC-SHA256 of "SECONDS." and the body, in hexadecimal digits

The address is resolved once per call, and the connection goes to the resolved address, so a name
that resolves differently a moment later (DNS rebinding) has no effect. Redirects aren't followed,
and the environment's proxies aren't used.
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
from masis.store.audits.inbox import LONGEST_WAIT, WebhookNotice

log = logging.getLogger("masis.webhook")

SECRET = "MASIS_WEBHOOK_SECRET"  # noqa: S105 (the name of the variable)
HEADER = "MASIS-Signature"
LEAST_SECRET = 32
"""The minimum length of the secret in characters."""
TRIES = 30
"""The number of calls for one notice; with the waits between them they take about a day."""

_AT_ONCE = 50
_EVERY = timedelta(seconds=1)
_TIMEOUT_S = 10.0
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # The well-known NAT64 prefix (RFC 6052)


def signature(key: bytes, at: int, body: bytes) -> str:
    """Return the signature header for a body that is sent at this second."""
    return f"t={at},v1={hmac.new(key, b'%d.' % at + body, 'sha256').hexdigest()}"


def is_public(address: str) -> bool:
    """Return whether an address is on the public internet, in whichever form it is written."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        # IPv4-mapped, 6to4, Teredo and NAT64 addresses reach the IPv4 address that they contain.
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo or (None, None))[1]
        if ip in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        ip = inner or ip
    return ip.is_global and not ip.is_multicast


class Undelivered(Exception):
    """The receiver couldn't be reached, or didn't accept the call."""


class Webhook:
    """The sender of one database.

    ``wait`` is the wait before the second call for a notice; it doubles with each further call.
    """

    def __init__(
        self, store: Store, settings: Settings, key: str, wait: timedelta = timedelta(seconds=5)
    ) -> None:
        """Raise SettingsError if the address or the key can't be used."""
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
        """Deliver the due notices; failed ones are tried again later, ``TRIES`` times in total."""
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
                "The webhook did not accept notice %s (%s): given up after %d calls.",
                notice.id,
                error,
                TRIES,
            )
            self._store.inbox.remove_notice(notice)
            return
        log.warning(
            "The webhook did not accept notice %s (%s). It is called again later.",
            notice.id,
            error,
        )
        # The exponent is limited, because a timedelta of more than a billion days overflows.
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
        """Return a connection to the address that was checked.

        Raises:
            Undelivered: The address is private.
            OSError: The connection failed.

        """
        host, secure = self._address.hostname or "", self._address.scheme == "https"
        port = self._address.port or (443 if secure else 80)
        addresses = [
            str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        ]
        # all of them, because the first one that accepts a connection is used
        if not self._private and not all(map(is_public, addresses)):
            raise Undelivered("the address is private, which needs webhook_private")
        context = ssl.create_default_context() if secure else None
        plain = _connect_first(addresses, port)
        try:
            if context is None:
                connection = http.client.HTTPConnection(host, port)
                connection.sock = plain
            else:
                connection = http.client.HTTPSConnection(host, port, context=context)
                # The certificate is checked against the name, although the socket is connected to
                # the address that was checked.
                connection.sock = context.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise
        return connection


def _connect_first(addresses: Sequence[str], port: int) -> socket.socket:
    """Return a connection to the first address that accepts one.

    Raises:
        OSError: The error of the last address.

    """
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return socket.create_connection((address, port), _TIMEOUT_S)
    return socket.create_connection((addresses[-1], port), _TIMEOUT_S)


def _check_webhook_address(address: str, *, private: bool) -> SplitResult:
    try:
        parts = urlsplit(address)
        # The codec checks the labels of the host. Otherwise an empty or too long one would only
        # fail at the first call.
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
            "webhook_address: use an address such as https://hooks.example.org/masis."
        )
    if parts.scheme == "http" and not private:
        raise SettingsError(
            "webhook_address: use https. webhook_private = true allows http as well."
        )
    return parts


def start(workbench: Workbench) -> RepeatedTask | None:
    """Start delivering for as long as the program runs, or return None if no address is set.

    Raises:
        SettingsError: The address or the secret can't be used.

    """
    store, settings = workbench.store, workbench.settings
    if not settings.webhook_address:
        store.inbox.report(on=False)
        return None
    key = secret(SECRET)
    if key is None:
        raise SettingsError(
            f"webhook_address is set, but {SECRET} isn't. Set it to a secret for the signature."
        )
    return RepeatedTask(
        Webhook(store, settings, key.get_secret_value()).deliver, _EVERY, "webhook"
    ).start()
