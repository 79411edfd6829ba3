"""The webhook: what is reported, to whom it may be, and that nothing of it is lost."""

from __future__ import annotations

import json
import logging
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from masis.errors import SettingsError
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.arrivals import webhook
from masis.services.arrivals.ingestion import CaseStatus
from masis.services.arrivals.webhook import Webhook, is_public
from masis.settings import Settings
from tests.loopback import Call, receiver
from tests.reviewing import ADA, decide, undone
from tests.store.factories import a_case
from tests.waiting import until

SECRET = "0123456789abcdef" * 2


def hook(bench: Workbench, address: str, *, private: bool = True) -> Webhook:
    settings = Settings(webhook_address=address, webhook_private=private)
    return Webhook(bench.store, settings, SECRET, wait=timedelta(0))


def add_arrivals(bench: Workbench, *ids: str, audited: bool = True) -> None:
    for case_id in ids:
        bench.cases.add_one(ADA, a_case(case_id))
        bench.store.inbox.record_arrivals([bench.store.cases.get(case_id)], "chatbot")
        if audited:
            bench.audits.audit(ADA, bench.store.cases.get(case_id))


def events(calls: list[Call]) -> list[tuple[str, str, str | None]]:
    """Event, case and verdict of each call."""
    read = [json.loads(call.body) for call in calls]
    return [
        (event["event"].removeprefix("case."), event["case"]["id"], event["case"]["verdict"])
        for event in read
    ]


def create_certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, Path]:
    """What a server of a name serves with, and the certificate to trust."""
    key, subject = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]),
    )
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    path.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / f"{name}.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, folder / f"{name}.key")
    return context, path


@pytest.mark.parametrize(
    ("name", "trusted", "told"),
    [("localhost", True, 1), ("localhost", False, 0), ("x.org", True, 0)],
)
def test_tls_webhooks_need_a_trusted_certificate(
    bench: Workbench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    trusted: bool,
    told: int,
) -> None:
    tls, certificate = create_certificate(tmp_path, name)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with receiver(tls=tls) as (address, calls):
        sender = hook(bench, address.replace("127.0.0.1", "localhost"))
        add_arrivals(bench, "a")
        sender.deliver()
    assert len(calls) == told
    assert bool(bench.store.inbox.due(1)) is not bool(told), "what was not delivered is tried again"


def test_the_webhook_reports_needed_reviews_and_decisions(
    bench: Workbench,
) -> None:
    with receiver() as (address, calls):
        sender = hook(bench, f"{address}/masis?team=1")
        add_arrivals(bench, "a")
        bench.cases.add_one(ADA, a_case("typed"))
        bench.audits.audit(ADA, bench.store.cases.get("typed"))
        sender.deliver()
        decide(bench, "a", "reject")
        sender.deliver()
        undone(bench, "a", "Ada")
        sender.deliver()
        sender.deliver()
    assert events(calls) == [
        ("needs_review", "a", None),
        ("decided", "a", "reject"),
        ("needs_review", "a", None),
    ]
    assert {call.path for call in calls} == {"/masis?team=1"}
    first = json.loads(calls[0].body)
    assert first["sources"] == ["chatbot"]
    texts = a_case("a")
    assert not any(
        text in calls[0].body.decode()
        for text in (texts.query, texts.answer or "", texts.evidence[0].text)
    )
    assert "headline" not in first["case"]


@pytest.mark.parametrize("verdicts", [("approve", "approve"), ("approve", "reject")])
def test_the_webhook_reports_shared_cases_only_when_settled(
    bench: Workbench, verdicts: tuple[str, str]
) -> None:
    bench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    with receiver() as (address, calls):
        sender = hook(bench, address)
        add_arrivals(bench, "a")
        decide(bench, "a", verdicts[0], "Ada")
        sender.deliver()
        assert [event for event, *_ in events(calls)] == ["needs_review"]
        decide(bench, "a", verdicts[1], "Bo")
        sender.deliver()
        differ = len(set(verdicts)) > 1
        assert events(calls)[1:] == ([] if differ else [("decided", "a", "approve")])
        if differ:
            decide(bench, "a", "reject", "Cy", kind="adjudication")
            sender.deliver()
            assert events(calls)[1:] == [("decided", "a", "reject")]


def test_the_webhook_omits_single_decisions_on_unaudited_shared_cases(
    bench: Workbench,
) -> None:
    bench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    hook(bench, "https://hooks.example.org")
    add_arrivals(bench, "a", audited=False)
    before = CaseStatus.of(bench.store.cases.summary("a"))
    for verdict, who in (("approve", "Ada"), ("reject", "Bo")):
        decide(bench, "a", verdict, who)
        assert CaseStatus.of(bench.store.cases.summary("a")) == before
        assert bench.store.inbox.due(10) == []


def test_failed_deliveries_are_retried_under_one_id_then_dropped(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with receiver(lambda number: 503 if number < 2 else 204) as (address, calls):
        sender = hook(bench, address)
        add_arrivals(bench, "a")
        for _ in range(4):
            sender.deliver()
    assert [json.loads(call.body)["id"] for call in calls] == [json.loads(calls[0].body)["id"]] * 3
    monkeypatch.setattr(webhook, "TRIES", 3)
    sender = hook(bench, address)  # where nobody listens any more
    decide(bench, "a", "reject")
    for _ in range(5):
        sender.deliver()
    assert not bench.store.inbox.due(10)
    assert [record.levelname for record in caplog.records if "given up" in record.getMessage()] == [
        "ERROR"
    ]


def test_retry_waits_double_up_to_an_hour(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[timedelta] = []
    postponed: Callable[..., None] = bench.store.inbox.postpone
    monkeypatch.setattr(
        bench.store.inbox,
        "postpone",
        lambda notice, wait: (waits.append(wait), postponed(notice, timedelta(0))),
    )
    with receiver(lambda number: 500) as (address, calls):
        sender = Webhook(
            bench.store, Settings(webhook_address=address, webhook_private=True), SECRET
        )
        add_arrivals(bench, "a")
        for _ in range(webhook.TRIES + 2):
            sender.deliver()
    assert len(calls) == webhook.TRIES
    assert [wait.total_seconds() for wait in waits[:3]] == [5, 10, 20]
    assert waits[-1] == timedelta(hours=1)
    assert sum(waits, timedelta()) > timedelta(hours=18)


def test_undelivered_events_are_delivered_by_the_next_process(
    tmp_path: Path,
) -> None:
    database = tmp_path / "kept.db"
    with receiver(lambda number: 500 if number == 0 else 200) as (address, calls):
        first = Workbench.open(database)
        hook(first, address).deliver()
        add_arrivals(first, "a")
        hook(first, address).deliver()
        first.close()
        second = Workbench.open(database)
        decide(second, "a", "approve")  # by a process that knows no webhook
        hook(second, address).deliver()
        second.close()
    assert [event for event, *_ in events(calls)] == ["needs_review", "needs_review", "decided"]


def test_without_an_address_no_events_are_stored(bench: Workbench) -> None:
    assert webhook.start(bench) is None
    add_arrivals(bench, "a")
    assert not bench.store.inbox.due(10)


def test_delivery_runs_in_the_background_and_logs_no_address_or_text(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("MASIS_WEBHOOK_SECRET", SECRET)
    with receiver(lambda number: 500 if number == 0 else 204) as (address, calls):
        bench.settings = Settings(webhook_address=f"{address}/token-in-path", webhook_private=True)
        started = webhook.start(bench)
        add_arrivals(bench, "a", "b")
        until(
            lambda: len({json.loads(call.body)["id"] for call in calls}) == 2, "both are delivered"
        )
        started.end()
    logged = "\n".join(f"{record.getMessage()} {record.args}" for record in caplog.records)
    assert "status 500" in logged
    assert not any(
        word in logged for word in ("token-in-path", SECRET, "needs_review", a_case("a").query)
    )


PRIVATE = (
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a00:1::1",
)  # fmt: skip


def test_only_public_addresses_are_allowed() -> None:
    assert not [address for address in PRIVATE if is_public(address)]
    assert all(
        map(
            is_public,
            (
                "93.184.216.34",
                "2606:2800:220:1:248:1893:25c8:1946",
                "64:ff9b::5db8:d822",
                "::ffff:93.184.216.34",
            ),
        )
    )


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Have names resolve to these addresses, all at once; returns whom connections are then made
    to.
    """
    reached: list[str] = []

    def resolve(host: str, port: int, **about: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answer, port)) for answer in answers]

    def connect(place: tuple[str, int], timeout: float) -> socket.socket:
        reached.append(place[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    return reached


def test_a_name_that_resolves_to_a_private_address_isnt_called(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sender = hook(bench, "https://hooks.example.org", private=False)
    add_arrivals(bench, "a")
    for answers in (("10.0.0.1",), ("93.184.216.34", "127.0.0.1")):
        reached = resolving(monkeypatch, *answers)
        sender.deliver()
        assert not reached
    assert "private" in caplog.text
    reached = resolving(monkeypatch, "93.184.216.34", "93.184.216.35")
    sender.deliver()
    assert reached == [
        "93.184.216.34",
        "93.184.216.35",
    ], "addresses that were looked at, no name to resolve again"


def test_redirects_arent_followed(bench: Workbench) -> None:
    with (
        receiver() as (elsewhere, reached),
        receiver(lambda number: f"{elsewhere}/inside") as (address, calls),
    ):
        sender = hook(bench, address)
        add_arrivals(bench, "a")
        sender.deliver()
        assert (len(calls), len(reached)) == (1, 0)
        assert bench.store.inbox.due(10), "it was not taken"


@pytest.mark.parametrize(
    "address",
    [
        *(
            "http://hooks.example.org",
            "ftp://a.b",
            "https://",
            "https://u:p@a.b",
            "https://a.b/ c",
            "https://ä.b",
            "x",
        ),
        *("https://a..b/x", f"https://{'x' * 64}.example.org"),
    ],
)
def test_an_invalid_webhook_address_is_rejected_at_the_start(
    bench: Workbench, address: str
) -> None:
    with pytest.raises(SettingsError, match="webhook_address"):
        hook(bench, address, private=False)


def test_a_webhook_needs_a_long_enough_secret(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.settings = Settings(webhook_address="https://hooks.example.org")
    with pytest.raises(SettingsError, match="MASIS_WEBHOOK_SECRET"):
        webhook.start(bench)
    monkeypatch.setenv("MASIS_WEBHOOK_SECRET", "short")
    with pytest.raises(SettingsError, match="at least 32"):
        webhook.start(bench)
