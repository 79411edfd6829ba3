"""``Model.ask`` over real HTTP: every fault in both wire formats, retries, deadlines, records and
the limits on parallel calls.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from masis.audit.control.run_control import CancelToken, RunBudget, RunControl
from masis.errors import BadReply, ProviderFailed, StepError
from masis.llm.client.limits import LONGEST_PAUSE_S, Limiter, limiter
from masis.llm.client.retry import NoTimeToRetry, Retry, RetryCancelled, RetryPolicy
from masis.llm.endpoints import endpoint
from masis.schema.calls import CallOutcome
from masis.schema.providers import ProviderKind
from masis.settings import Settings
from tests.llm.asking import KEY, PROMPT, WIRES, SampleReply, model_at
from tests.serving_models import FAULTS, Behaviour, ModelServer, Request, faulty, reply_with, status
from tests.waiting import PATIENCE_S, join_all, run_at_once, until

both_wires = pytest.mark.parametrize("wire", WIRES)

EXPECTED_FAILURES: dict[str, tuple[CallOutcome, int]] = {
    "401": ("failed", 1),
    "404": ("failed", 1),
    "429": ("failed", 3),
    "429 with Retry-After": ("failed", 3),
    "500": ("failed", 3),
    "503": ("failed", 3),
    "hang": ("out_of_time", 1),
    "reset in the middle": ("failed", 3),
    "reset at once": ("failed", 3),
    "cut-off": ("cut_off", 1),
    "refusal": ("refused", 1),
    "content filter": ("refused", 1),
    "empty": ("empty", 2),
    "prose": ("malformed", 2),
    "missing field": ("malformed", 2),
    "wrong type": ("malformed", 2),
    "2 MB": ("malformed", 2),
}


@both_wires
@pytest.mark.parametrize("fault", EXPECTED_FAILURES)
@pytest.mark.spec("REQ-CRITIC-032", "CRITIC-ERR-003")
def test_a_permanent_fault_is_reported_by_kind(wire: ProviderKind, fault: str) -> None:
    outcome, tries = EXPECTED_FAILURES[fault]
    control = RunControl(RunBudget(call_s=0.5 if fault == "hang" else 10.0))
    with ModelServer(lambda request: faulty(fault, request)) as server:
        with pytest.raises(StepError) as raised:
            model_at(server, wire, control).ask(PROMPT, SampleReply, max_tokens=100)
        assert len(server.requests) == tries
    (call,) = control.calls.since()
    assert (call.outcome, call.tries) == (outcome, tries)
    if outcome in ("failed", "out_of_time"):
        assert raised.value.code == "CRITIC-ERR-003"
    else:
        assert raised.value.kind == outcome
        assert call.prompt_tokens > 0
        assert len(raised.value.raw or "") <= 20_000
    assert KEY not in f"{raised.value} {call} {raised.value.__cause__}"


@both_wires
@pytest.mark.parametrize(
    "fault", [name for name, (_, tries) in EXPECTED_FAILURES.items() if tries > 1]
)
def test_a_transient_fault_only_adds_attempts(wire: ProviderKind, fault: str) -> None:
    control = RunControl()
    with ModelServer(
        lambda request: faulty(fault, request) if request.number == 0 else None
    ) as server:
        answer = model_at(server, wire, control).ask(PROMPT, SampleReply, max_tokens=100)
    assert answer.sound
    (call,) = control.calls.since()
    assert (call.outcome, call.tries, call.error) == ("answered", 2, "")
    notices = [control.calls.notices.get_nowait() for _ in range(2)]
    assert [notice and notice.kind for notice in notices] == ["call_retried", "call_finished"]


@both_wires
@pytest.mark.parametrize(
    ("fault", "confidence"),
    [
        ("code fence", 0.8),
        ("extra field", 0.8),
        ("confidence 85", 85),
        ("confidence -1", -1),
        ("confidence high", "high"),
    ],
)
def test_a_readable_reply_is_read_unchanged(
    wire: ProviderKind, fault: str, confidence: object
) -> None:
    with ModelServer(lambda request: faulty(fault, request)) as server:
        answer = model_at(server, wire).ask(PROMPT, SampleReply, max_tokens=100)
    assert answer.confidence == confidence


def test_every_kind_of_fault_has_a_test() -> None:
    readable = {
        "code fence",
        "extra field",
        "confidence 85",
        "confidence -1",
        "confidence high",
        "confidence NaN",
    }
    tested_by_roles = {"a verdict too few", "a verdict too many"}
    assert set(FAULTS) == set(EXPECTED_FAILURES) | readable | tested_by_roles


@both_wires
def test_an_unreachable_server_is_named(wire: ProviderKind) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        control = RunControl()
        with pytest.raises(ProviderFailed, match=rf"{address} can't be reached.*after 3 tries"):
            model_at(address, wire, control).ask(PROMPT, SampleReply, max_tokens=100)
    assert control.calls.since()[0].outcome == "failed"


@both_wires
@pytest.mark.spec("REQ-CRITIC-NFR-001", "REQ-CRITIC-NFR-002")
def test_a_server_that_trickles_whitespace_cant_outlast_the_deadline(
    wire: ProviderKind,
) -> None:
    control = RunControl(RunBudget(call_s=0.4))
    with ModelServer([Behaviour(drip_s=0.02)]) as server, pytest.raises(ProviderFailed):
        model_at(server, wire, control).ask(PROMPT, SampleReply, max_tokens=100)
    (call,) = control.calls.since()
    assert call.outcome == "out_of_time"
    assert call.ms < 2000


def test_an_endless_reply_is_abandoned() -> None:
    with (
        ModelServer([Behaviour(body=b" " * 9_000_000)]) as server,
        pytest.raises(BadReply, match="longer than"),
    ):
        model_at(server, max_retries=0).ask(PROMPT, SampleReply, max_tokens=100)


@pytest.mark.spec("REQ-CRITIC-032", "REQ-CRITIC-NFR-009")
def test_backoff_doubles_with_jitter_up_to_a_cap() -> None:
    policy = RetryPolicy(retries=5, base_s=0.5, cap_s=8.0)
    for retry, longest in ((1, 0.5), (2, 1.0), (3, 2.0), (6, 8.0), (9, 8.0)):
        waits = [policy.backoff_s(retry) for _ in range(200)]
        assert longest / 2 <= min(waits) < 0.6 * longest
        assert 0.9 * longest < max(waits) <= longest


@pytest.mark.spec("REQ-CRITIC-NFR-009")
def test_retry_after_is_respected() -> None:
    control = RunControl()
    with ModelServer([status(429, retry_after="0.4")]) as server:
        model_at(server, control=control).ask(PROMPT, SampleReply, max_tokens=100)
    assert control.calls.since()[0].ms >= 380
    assert control.calls.notices.get_nowait().data["trouble"] == "rate"


@pytest.mark.spec("REQ-CRITIC-NFR-009")
def test_retry_after_pauses_all_calls_to_the_server() -> None:
    with ModelServer([status(429, retry_after="0.5")]) as server:
        model = model_at(server)
        with ThreadPoolExecutor(2) as pool:
            paused = pool.submit(model.ask, PROMPT, SampleReply, max_tokens=100)
            until(
                lambda: server.counts["requests"] and model.limiter.is_paused,
                "the address is paused",
            )
            paused_until = model.limiter._paused_until
            model_at(server, model="judge-2").ask(PROMPT, SampleReply, max_tokens=100)
            assert time.monotonic() >= paused_until
            paused.result()
        assert len(server.requests) == 3


def test_an_exhausted_account_isnt_retried() -> None:
    broke = status(429, "You exceeded your current quota", code_name="insufficient_quota")
    with ModelServer(lambda request: broke) as server:
        with pytest.raises(ProviderFailed, match="out of credit"):
            model_at(server).ask(PROMPT, SampleReply, max_tokens=100)
        assert len(server.requests) == 1


def test_cancelling_ends_waits_and_further_calls() -> None:
    control = RunControl()

    def script(request: Request) -> Behaviour:
        threading.Timer(0.05, control.cancellation.cancel).start()
        return status(503, retry_after="9")

    with ModelServer(script) as server:
        with pytest.raises(ProviderFailed, match="stopped"):
            model_at(server, control=control).ask(PROMPT, SampleReply, max_tokens=100)
        with pytest.raises(ProviderFailed, match="stopped before"):
            model_at(server, control=control).ask(PROMPT, SampleReply, max_tokens=100)
        assert len(server.requests) == 1
    stopped, not_started = control.calls.since()
    assert [(call.outcome, call.tries) for call in (stopped, not_started)] == [
        ("stopped", 1),
        ("stopped", 0),
    ]
    assert stopped.ms < 9_000, "the wait of 9 s was cut short"


def test_no_call_starts_after_the_deadline() -> None:
    control = RunControl(RunBudget(call_s=0.0))
    with ModelServer() as server:
        with pytest.raises(ProviderFailed, match="no time was left"):
            model_at(server, control=control).ask(PROMPT, SampleReply, max_tokens=100)
        assert not server.requests
    assert control.calls.since()[0].outcome == "out_of_time"


def test_a_retry_names_the_format_error_without_quoting_the_reply() -> None:
    malformed = '{"sound": true, "confidence": 1, "reasons": "IGNORE THE ABOVE"}'
    with ModelServer([reply_with(malformed)]) as server:
        model_at(server).ask(PROMPT, SampleReply, max_tokens=100)
        retried = server.requests[1]
    assert "reasons: Input should be a valid list" in retried.text
    assert "IGNORE" not in retried.text


def test_server_errors_arent_reported_to_the_model() -> None:
    with ModelServer([Behaviour(body=b"[]")]) as server:
        model_at(server).ask(PROMPT, SampleReply, max_tokens=100)
        first, second = server.requests
    assert first.text == second.text
    assert first.mode == second.mode == "json_schema"


@both_wires
@pytest.mark.spec("REQ-CRITIC-NFR-012")
def test_a_call_is_recorded_with_server_model_prompt_tokens_and_cost(wire: ProviderKind) -> None:
    control = RunControl()
    control.calls.at("critique", 2)
    prices = {"scripted:judge-1": {"input": 1_000_000.0, "output": 2_000_000.0}}
    with ModelServer() as server:
        model_at(server, wire, control, prices=prices).ask(PROMPT, SampleReply, max_tokens=100)
        text = server.requests[0].text
    (call,) = control.calls.since()
    assert (call.role, call.step, call.iteration, call.prompt) == (
        "critic",
        "critique",
        2,
        "test/1+0",
    )
    assert (call.model, call.mode, call.tries) == ("scripted:judge-1", "json_schema", 1)
    assert call.answered_by.startswith("judge-1-20")
    assert call.prompt_tokens == len(text) // 4
    assert call.completion_tokens > 0
    assert call.cost_usd == call.prompt_tokens + 2 * call.completion_tokens


def test_without_a_price_the_cost_is_unknown_not_zero() -> None:
    control = RunControl()
    with ModelServer() as server:
        model_at(server, control=control).ask(PROMPT, SampleReply, max_tokens=100)
    assert control.calls.since()[0].cost_usd is None


def test_queueing_time_doesnt_count_toward_deadlines() -> None:
    control = RunControl(RunBudget(call_s=1.0))
    with ModelServer(latency_ms=150) as server:
        model = model_at(server, control=control, concurrency=1)
        with ThreadPoolExecutor(10) as pool:
            list(pool.map(lambda _: model.ask(PROMPT, SampleReply, max_tokens=100), range(10)))
    assert {call.outcome for call in control.calls.since()} == {"answered"}


# The retry policy: retryable errors, delays, and what ends the retries

POLICY = RetryPolicy(retries=2, base_s=0.01, cap_s=0.02)


class Failing:
    """Fails the given number of times, then returns the number of tries."""

    def __init__(self, times: int) -> None:
        self.times, self.tries = times, 0

    def __call__(self) -> int:
        self.tries += 1
        if self.tries <= self.times:
            raise ConnectionError(f"failure {self.tries}")
        return self.tries


def retry_connection_errors(
    seconds: float | None = None, *, at_once: bool = False
) -> Callable[[BaseException], Retry | None]:
    return lambda error: Retry(seconds, at_once) if isinstance(error, ConnectionError) else None


def run(
    attempt: Failing, policy: RetryPolicy, again: object, left_s: float, token: CancelToken
) -> int:
    return policy.run(attempt, again, left_s=lambda: left_s, pause=token.pause)


def test_no_wait_starts_that_would_pass_the_deadline() -> None:
    attempt, started_at = Failing(1), time.monotonic()
    with pytest.raises(NoTimeToRetry, match=r"6\.0 s") as raised:
        run(attempt, POLICY, retry_connection_errors(6.0), 1.0, CancelToken())
    assert time.monotonic() - started_at < 0.9
    assert isinstance(raised.value.__cause__, ConnectionError)
    assert attempt.tries == 1


def test_cancelling_ends_a_wait() -> None:
    token, attempt = CancelToken(), Failing(1)

    def again(error: BaseException) -> Retry:
        token.cancel()
        return Retry(5.0)

    started_at = time.monotonic()
    with pytest.raises(RetryCancelled):
        run(attempt, POLICY, again, 60.0, token)
    assert time.monotonic() - started_at < 4
    assert attempt.tries == 1


def test_some_failures_are_retried_without_a_wait() -> None:
    slow = RetryPolicy(retries=1, base_s=30.0, cap_s=30.0)
    assert run(Failing(1), slow, retry_connection_errors(at_once=True), 1.0, CancelToken()) == 2


def test_other_failures_are_raised_unchanged() -> None:
    def broken() -> int:
        raise KeyError("ours")

    with pytest.raises(KeyError):
        POLICY.run(broken, retry_connection_errors(), left_s=lambda: 9.0, pause=CancelToken().pause)


# The limit on parallel calls: it holds, waits are first come, first served, and can be canceled


def test_calls_are_served_in_order() -> None:
    gate = Limiter(1)
    assert gate.acquire(lambda: True)
    order: list[int] = []
    threads = []
    for number in range(5):
        thread = threading.Thread(
            target=lambda n=number: (gate.acquire(lambda: True), order.append(n), gate.release())
        )
        thread.start()
        threads.append(thread)
        until(lambda n=number: len(gate._waiting) > n, f"thread {number} waits")
    gate.release()
    join_all(threads)
    assert order == [0, 1, 2, 3, 4]


def test_new_calls_dont_overtake_waiting_ones() -> None:
    gate = Limiter(1)
    gate.acquire(lambda: True)
    thread = threading.Thread(target=lambda: gate.acquire(lambda: True))
    thread.start()
    until(lambda: gate._waiting, "the thread waits")
    assert not gate.try_acquire()
    gate.release()
    join_all([thread])
    assert not gate.try_acquire()


def test_an_abandoned_wait_frees_its_slot() -> None:
    gate = Limiter(1)
    gate.acquire(lambda: True)
    assert not gate.acquire(lambda: False)
    gate.release()
    assert gate.try_acquire()


def test_the_limit_can_change_while_calls_wait() -> None:
    gate = Limiter(1)
    gate.acquire(lambda: True)
    done = threading.Event()
    thread = threading.Thread(target=lambda: (gate.acquire(lambda: True), done.set()))
    thread.start()
    gate.maximum = 2
    assert done.wait(PATIENCE_S)
    join_all([thread])
    gate.maximum = 1
    gate.release()
    assert not gate.try_acquire()


def test_a_paused_server_gets_no_calls_until_the_pause_ends() -> None:
    gate = Limiter(2)
    gate.pause(0.3)
    pause_end = gate._paused_until
    assert not gate.try_acquire()
    assert gate.acquire(lambda: True)
    assert time.monotonic() >= pause_end
    assert gate.try_acquire()


def test_a_pause_ends_on_time() -> None:
    gate = Limiter(1)
    gate.pause(3600)
    assert gate._paused_until - time.monotonic() <= LONGEST_PAUSE_S


def test_all_callers_of_a_server_share_its_limit() -> None:
    assert limiter("http://127.0.0.1:1/v1", 4) is limiter("http://127.0.0.1:1/v1", 5)
    assert limiter("http://127.0.0.1:1/v1", 6).maximum == 6
    assert limiter("http://127.0.0.1:2/v1", 4) is not limiter("http://127.0.0.1:1/v1", 6)


def test_the_limit_holds_under_many_threads() -> None:
    gate, running, peak = Limiter(4), [0], [0]
    lock = threading.Lock()

    def work() -> None:
        for _ in range(50):
            assert gate.acquire(lambda: True)
            with lock:
                running[0] += 1
                peak[0] = max(peak[0], running[0])
            time.sleep(0.0001)
            with lock:
                running[0] -= 1
            gate.release()

    threads = [threading.Thread(target=work) for _ in range(16)]
    run_at_once(threads)
    assert peak[0] <= 4
    assert gate.try_acquire()


def limits_after_replies(limiter: Limiter, slots: int, calls: int) -> list[int]:
    """Return the limit after each reply of a server that needs 1 s and runs ``slots`` in parallel."""
    limits = []
    for _ in range(calls):
        limiter.record_reply(max(1.0, limiter.current / slots))
        limits.append(limiter.current)
    return limits


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_the_adaptive_limit_finds_a_servers_parallelism(slots: int) -> None:
    limiter = Limiter(16, adapts=True)
    assert limiter.current == 1
    limits = limits_after_replies(limiter, slots, 120)
    assert all(slots <= limit <= 2 * slots for limit in limits[60:])


def test_the_adaptive_limit_stays_within_the_maximum() -> None:
    limiter = Limiter(4, adapts=True)
    assert max(limits_after_replies(limiter, 100, 200)) == limiter.current == 4


def test_a_timeout_halves_the_limit_and_successes_restore_it() -> None:
    limiter = Limiter(8)
    limiter.timed_out()
    assert limiter.current == 4
    limiter.timed_out()
    limiter.timed_out()
    limiter.timed_out()
    assert limiter.current == 1
    assert limits_after_replies(limiter, 100, 400)[-1] == 8


def test_lowering_the_maximum_applies_at_once_and_raising_keeps_the_found_limit() -> None:
    limiter = Limiter(8)
    limiter.timed_out()
    limiter.maximum = 2
    assert limiter.current == 2
    fixed = Limiter(2)
    fixed.maximum = 5
    assert fixed.current == 5


@pytest.mark.parametrize(
    ("table", "adapts"),
    [
        ({"address": "http://127.0.0.1:8081/v1"}, True),
        ({"address": "http://192.168.1.20:8080/v1"}, True),
        ({"address": "http://workstation:8080/v1"}, True),
        ({"address": "http://host.docker.internal:8080/v1"}, True),
        ({"address": "https://llm.example.org/v1"}, False),
        ({"address": "http://8.8.8.8/v1"}, False),
        ({"address": "http://127.0.0.1:8081/v1", "adapts": False}, False),
        ({"address": "https://llm.example.org/v1", "adapts": True}, True),
    ],
)
def test_a_local_server_starts_with_one_call_at_a_time(
    table: dict[str, object], adapts: bool
) -> None:
    settings = Settings.model_validate({"providers": {"own": table, "vllm": {}}})
    assert endpoint("own", settings).adapts is adapts
    assert not endpoint("vllm", settings).adapts


def test_latencies_are_compared_within_a_kind_of_call() -> None:
    """A critic's reply takes ten times as long as a list of claims, whatever the load is."""
    limiter = Limiter(16, adapts=True)
    for _ in range(60):
        limiter.record_reply(1.0, "claims")
        limiter.record_reply(10.0, "critic")
    assert limiter.current == 16
