"""`hyperjob usage` asks Prometheus what queues used, and says what to do where it cannot tell."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hyperjob.cli import main
from hyperjob_core.kube.config import direct
from tests.support.peer import misbehaving, whole
from tests.support.prometheus import needs_prometheus, remembering

BEGIN = datetime(2025, 11, 3, tzinfo=UTC)
HOUR = 3600
STEP = 300
# What a pod of the controller counts from when to when, in hours of three days; a second pod leads
# from the second day on, with counters that begin at 0.
SERIES = [
    ("controller-0", "vision", "a", "nvidia.com/gpu", "productive", 0, 20, 8),
    ("controller-1", "vision", "a", "nvidia.com/gpu", "productive", 24, 60, 8),
    ("controller-1", "vision", "a", "nvidia.com/gpu", "lost", 24, 30, 8),
    ("controller-1", "vision", "b", "nvidia.com/gpu", "lost", 24, 30, 4),
    ("controller-0", "nlp", "b", "nvidia.com/gpu", "productive", 0, 10, 2),
    ("controller-1", "nlp", "b", "huawei.com/npu", "starting", 40, 50, 16),
]


def past() -> Iterator[str]:
    """Yield the samples of three days, of each series one after the other."""
    yield "# TYPE hyperjob_build_info gauge"
    for at in range(0, 72 * HOUR, STEP):
        yield f'hyperjob_build_info{{pod="page"}} 1 {int(BEGIN.timestamp()) + at}'
    yield "# TYPE hyperjob_accelerator_seconds counter"
    for pod, queue, space, accelerator, use, first, last, devices in SERIES:
        labels = f'queue="{queue}",namespace="{space}",cluster="c",accelerator="{accelerator}"'
        name = f'hyperjob_accelerator_seconds_total{{pod="{pod}",{labels},use="{use}"}}'
        lasts = 24 if pod == "controller-0" else 72
        for at in range(first * HOUR, lasts * HOUR, STEP):
            counted = devices * (min(at, last * HOUR) - first * HOUR)
            yield f"{name} {counted} {int(BEGIN.timestamp()) + at}"
    yield "# TYPE hyperjob:accelerator_seconds:increase5m gauge"
    for at in range(STEP, 24 * HOUR + STEP, STEP):
        labels = 'queue="vision",use="productive",accelerator="gpu"'
        moment = int(BEGIN.timestamp()) + at
        yield f"hyperjob:accelerator_seconds:increase5m{{{labels}}} {8 * STEP} {moment}"


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with remembering(past(), tmp_path_factory.mktemp("prometheus")) as url:
        yield url


def usage(*words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, ["usage", *words], env=env)


def hours(url: str, *words: str) -> dict[tuple[str, ...], float]:
    """Ask about three days, and give the hours by the values of the labels."""
    period = ("--since", "2025-11-03", "--until", "2025-11-06T00:00:00Z")
    done = usage("--prometheus-url", url, *period, *words, "-o", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["since"], found["until"]) == ("2025-11-03T00:00:00Z", "2025-11-06T00:00:00Z")
    return {tuple(list(each.values())[:-1]): each["acceleratorHours"] for each in found["usage"]}


@needs_prometheus
@pytest.mark.parametrize(
    ("by", "wanted"),
    [
        (
            "queue,use",
            {
                ("nlp", "productive", "nvidia.com/gpu"): 20,
                ("nlp", "starting", "huawei.com/npu"): 160,
                ("vision", "lost", "nvidia.com/gpu"): 72,
                ("vision", "productive", "nvidia.com/gpu"): 448,
            },
        ),
        (
            "namespace",
            {
                ("a", "nvidia.com/gpu"): 496,
                ("b", "huawei.com/npu"): 160,
                ("b", "nvidia.com/gpu"): 44,
            },
        ),
        ("accelerator,cluster", {("huawei.com/npu", "c"): 160, ("nvidia.com/gpu", "c"): 540}),
    ],
)
def test_the_hours_are_those_of_the_pods_also_after_another_controller_leads(
    prometheus: str, by: str, wanted: dict[tuple[str, ...], float]
) -> None:
    assert hours(prometheus, "--by", by) == pytest.approx(wanted, rel=0.01)


@needs_prometheus
def test_the_record_of_the_chart_is_added_up(prometheus: str) -> None:
    found = hours(prometheus, "--recorded")
    assert found == {("vision", "productive", "gpu"): 192}
    period = ("--since", "2025-11-05", "--until", "2025-11-06")
    none = usage("--prometheus-url", prometheus, *period, "--recorded")
    assert (
        "has no hyperjob:accelerator_seconds:increase5m: set metrics.prometheusRule" in none.stderr
    )


@needs_prometheus
def test_a_table_has_the_share_of_each_use_in_its_queue(prometheus: str) -> None:
    period = ("--since", "2025-11-03", "--until", "2025-11-06", "--queue", "vision")
    done = usage(*period, env={"HYPERJOB_PROMETHEUS_URL": prometheus})
    head, lost, productive = (line.split() for line in done.stdout.splitlines())
    assert head == ["QUEUE", "USE", "HOURS", "SHARE"]
    assert [*lost[:2], *productive[:2]] == ["vision", "lost", "vision", "productive"]
    assert [lost[3], productive[3]] == ["13.8%", "86.2%"]


@needs_prometheus
def test_accelerators_of_several_kinds_are_told_apart(prometheus: str) -> None:
    period = ("--since", "2025-11-03", "--until", "2025-11-06", "--by", "cluster")
    done = usage("--prometheus-url", prometheus, *period)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["CLUSTER", "ACCELERATOR", "HOURS", "SHARE"]
    assert [line[1] for line in lines[1:]] == ["huawei.com/npu", "nvidia.com/gpu"]
    assert [line[3] for line in lines[1:]] == ["100.0%", "100.0%"]


@needs_prometheus
def test_what_prometheus_does_not_know_is_said(prometheus: str) -> None:
    ask = ("--prometheus-url", prometheus, "--until", "2025-11-06")
    longer = usage(*ask, "--since", "2025-10-03")
    assert longer.exit_code == 0
    assert longer.stderr.startswith("The metrics of HyperJob begin at 2025-11-03T0")
    nothing = usage(*ask, "--since", "2025-11-05T23:00:00Z", "--queue", 'of "nobody"\\')
    assert nothing.exit_code == 0
    assert nothing.stderr.startswith("No pod of a HyperJob held an accelerator")
    never = usage("--prometheus-url", prometheus, "--since", "30d")
    assert never.exit_code == 1
    assert never.stderr.startswith("error: Prometheus has no metrics of HyperJob in this time")


VECTOR = b'{"status":"success","data":{"resultType":"vector","result":%s}}'


def answers(status: str, body: bytes, header: bytes = b"") -> Any:
    async def answer(_request: str) -> AsyncIterator[bytes]:
        yield whole(body, status=status, header=header)

    return answer


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        ("401 Unauthorized", b"", "refuses with status 401: Unauthorized; give a token that may"),
        ("302 Found", b"", "refuses with status 302: Found; give the address of Prometheus"),
        ("404 Not Found", b"<html>", "refuses with status 404: <html>; give the address"),
        (
            "503 Service Unavailable",
            b'{"status":"error","error":"query timed out in expression evaluation"}',
            "status 503: query timed out in expression evaluation; ask about a shorter time",
        ),
        ("200 OK", b"<html>", "does not answer as Prometheus; give the address"),
        ("200 OK", b"[" * 100_000, "does not answer as Prometheus; give the address"),
        ("200 OK", VECTOR.replace(b"vector", b"matrix") % b"[]", "does not answer as Prometheus"),
        ("200 OK", b"x" * 9_000_000, "has more than 8388608 bytes"),
        ("200 OK", VECTOR % b"[]", "no metrics of HyperJob in this time: let it scrape"),
        (
            "200 OK",
            VECTOR % b'[{"metric":[],"value":[1,"NaN"]},{"value":{}},7]',
            "no metrics of HyperJob in this time: let it scrape",
        ),
    ],
)
async def test_each_other_answer_ends_with_what_to_do(
    status: str, body: bytes, told: str, tmp_path: Path
) -> None:
    async with misbehaving(answers(status, body), tmp_path) as peer:
        done = await asyncio.to_thread(usage, "--prometheus-url", peer.url)
    assert done.exit_code == 1
    assert done.stderr.startswith("error: ")
    assert told in done.stderr


async def test_a_service_is_asked_through_the_api_server_of_the_kubeconfig(tmp_path: Path) -> None:
    async with misbehaving(answers("200 OK", VECTOR % b"[]"), tmp_path) as peer:
        where = ("--kubeconfig", str(peer.kubeconfig), "--service", "monitoring/prometheus:web")
        await asyncio.to_thread(usage, *where, "--until", "2025-11-06", "--since", "2025-11-03")
    path, _, query = peer.requests[0].removeprefix("GET ").partition("?")
    assert path == "/api/v1/namespaces/monitoring/services/prometheus:web/proxy/api/v1/query"
    assert "time=1762387200.000&timeout=120s" in query


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name one Prometheus: --prometheus-url, or --service"),
        (["--service", "a/b:1", "--prometheus-url", "http://a"], "name one Prometheus"),
        (["--service", "a/../b:1"], "give NAMESPACE/NAME:PORT"),
        (["--by", "pod"], "'pod' is not of queue, namespace, cluster, accelerator, use"),
        (["--since", "soon"], "'soon' is neither a duration (30d, 12h) nor a date"),
        (["--since", "1d", "--until", "2d"], "--since must be before --until"),
        (
            ["--prometheus-url", "http://a", "--token-file", "token"],
            "--token-file needs a --prometheus-url with https",
        ),
    ],
)
def test_a_wrong_command_line_is_told(words: list[str], told: str) -> None:
    done = usage(*words)
    assert done.exit_code == 2
    assert told in done.stderr


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://a", "is no http(s) address"),
        ("https://me:secret@a", "a: give an address without a user, ? and #"),
        ("https://127.0.0.1:1", "credentials of 127.0.0.1: "),
        ("http://127.0.0.1:1", "Prometheus does not answer: could not talk to http://127.0.0.1:1"),
    ],
)
def test_an_address_that_cannot_be_asked_is_told(url: str, told: str, tmp_path: Path) -> None:
    token = ("--token-file", str(tmp_path / "none")) if url.startswith("https:") else ()
    done = usage("--prometheus-url", url, *token)
    assert done.exit_code == 1
    assert told in done.stderr
    assert "secret" not in done.stderr


async def test_the_token_of_the_file_goes_to_an_https_address(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    connection = await direct("https://a", token_file=tmp_path / "token", ca_file=None)
    assert await connection.authorize() == "Bearer abc"
