"""Each alert fires in its outage, and none in a healthy company beside others in trouble.

Prometheus' own promtool evaluates the rules. `requirements/promtool.sh` finds or unpacks one.
"""

import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from prometheus_client import generate_latest

from docs.generators.metrics import computed
from hyperjob_core.registry import REGISTRY
from tests.support.prometheus import PROMTOOL, needs_promtool

ROOT = Path(__file__).parents[3]
FILES = ROOT / "charts" / "hyperjob" / "files"
RULES = FILES / "alerts.yaml"
RECORDS = FILES / "records.yaml"
ALERTS = [
    rule["alert"]
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
MINUTES: Final = 480

Series = dict[str, str]
"""Values by minute in promtool's notation, by series."""

GONE: Final = "_x480"
"""The values of a series that nobody has."""


def pods(name: str, job: str, /, *values: str, **labels: str) -> Series:
    """Give the series of each pod of a job: its values, in the order of the pods."""
    own = "".join(f',{label}="{value}"' for label, value in labels.items())
    return {
        f'{name}{{job="{job}",instance="{job}-{number}:8080",pod="{job}-{number}"{own}}}': each
        for number, each in enumerate(values)
    }


def webhook(name: str, /, *values: str, **labels: str) -> Series:
    return pods(name, "hyperjob-webhook", *(values * (2 // len(values))), **labels)


def controller(name: str, /, *values: str, **labels: str) -> Series:
    return pods(name, "hyperjob-controller", *(values * (2 // len(values))), **labels)


def latencies(make: Any, name: str, fast: str, slow: str, **labels: str) -> Series:
    """Give a histogram whose requests take less than a millisecond, or more than 5 seconds."""
    every = {
        bound: make(f"{name}_bucket", fast, le=bound, **labels) for bound in ("0.001", "1", "5")
    }
    return (
        every["0.001"] | every["1"] | every["5"] | make(f"{name}_bucket", slow, le="+Inf", **labels)
    )


def steady(value: float) -> str:
    return f"{value}x{MINUTES}"


def growing(per_minute: float) -> str:
    return f"0+{per_minute}x{MINUTES}"


def phases(**counts: int) -> Series:
    """Give the HyperJobs by phase, as both controllers count them."""
    every = {"Pending": 0, "Queued": 0, "Starting": 0, "Running": 0, "Degraded": 0}
    found: Series = {}
    for phase, count in (every | {"Restarting": 0} | counts).items():
        found |= controller("hyperjob_hyperjobs", steady(count), phase=phase)
    return found


def tokens(*accounts: str, renewed: int) -> Series:
    """Give the renewal and the expiry of tokens of three days, in seconds of the test."""
    found: Series = {}
    for account in accounts:
        for name, at in (("renewed", renewed), ("expiry", renewed + 3 * 86400)):
            found |= controller(
                f"hyperjob_credential_{name}_timestamp_seconds", steady(at), account=account
            )
    return found


REQUESTS = ("rest_client_requests_total", growing(50))
REVIEWS = "controller_runtime_webhook_requests_total"
LATENCY = "controller_runtime_webhook_latency_seconds"
MUTATE = "/mutate-training-volcano-sh-v1alpha1-hyperjob"

# A day of a busy fleet: all accelerators taken, a long line, and now and then a restart.
HEALTHY: Series = {
    **webhook("hyperjob_build_info", steady(1)),
    **controller("hyperjob_build_info", steady(1)),
    **webhook("hyperjob_certificate_expiry_timestamp_seconds", steady(40 * 86400)),
    **webhook("certwatcher_read_certificate_errors_total", steady(0)),
    **webhook(REVIEWS, growing(50), webhook=MUTATE, code="200"),
    **latencies(webhook, LATENCY, growing(50), growing(50), webhook=MUTATE),
    **tokens(*("certs", "controller", "members", "ui", "webhook"), renewed=(MINUTES - 360) * 60),
    **webhook(*REQUESTS, code="200", method="GET", host="karmada"),
    **controller(*REQUESTS, code="200", method="GET", host="karmada"),
    **webhook("rest_client_requests_total", steady(0), code="401", method="GET", host="karmada"),
    **controller("leader_election_master_status", steady(1), steady(0), name="hyperjob-controller"),
    **controller("workqueue_longest_running_processor_seconds", steady(2), name="hyperjob"),
    **controller("controller_runtime_reconcile_total", growing(60), controller="hyperjob"),
    **controller("controller_runtime_reconcile_errors_total", growing(1), controller="hyperjob"),
    **controller("hyperjob_internal_errors_total", steady(0), place="pass"),
    **controller("hyperjob_refusals_total", growing(0.05), reason="Forbidden"),
    **controller("hyperjob_informer_short_watches_total", growing(0.1), resource="hyperjobs"),
    **controller("hyperjob_events_dropped_total", steady(0), reason="failed"),
    **phases(Pending=25, Queued=40, Starting=3, Running=300, Degraded=4, Restarting=1),
    **controller("hyperjob_queue_wait_seconds_count", steady(17), steady(0)),
    **controller("hyperjob_gang_wait_seconds_count", growing(0.2), outcome="opened"),
    **controller("hyperjob_gang_wait_seconds_count", growing(0.01), outcome="gave_back"),
    **controller("hyperjob_restarts_total", growing(0.2), steady(0)),
    **controller("hyperjob_accelerators_free", steady(3), cluster="east", type="nvidia.com/gpu"),
    **controller(
        "hyperjob_accelerators_allocatable", steady(2048), cluster="east", type="nvidia.com/gpu"
    ),
}

KARMADA, KUEUE, CERTMANAGER = "karmada-controller-manager", "kueue-controller", "cert-manager"
# Each of them leads, fails, is slow and is stuck, under the names that every Go controller has.
NEIGHBOURS: Series = {
    series: values
    for job, lease, name, path in (
        (KARMADA, "karmada-controller-manager", "binding-controller", "/mutate-propagationpolicy"),
        (KUEUE, "c1f6bfd2.kueue.x-k8s.io", "workload", "/mutate-kueue-x-k8s-io-v1beta1-workload"),
        (CERTMANAGER, "cert-manager-controller", "certificates-issuing", "/mutate"),
    )
    for series, values in {
        **pods("leader_election_master_status", job, steady(1), name=lease),
        **pods("certwatcher_read_certificate_errors_total", job, growing(1)),
        **pods(REVIEWS, job, growing(5), webhook=path, code="500"),
        **pods(f"{LATENCY}_bucket", job, growing(1), webhook=path, le="1"),
        **pods(f"{LATENCY}_bucket", job, growing(50), webhook=path, le="+Inf"),
        **pods("workqueue_longest_running_processor_seconds", job, growing(60), name=name),
        **pods("workqueue_unfinished_work_seconds", job, growing(60), name=name),
        **pods("controller_runtime_reconcile_total", job, growing(60), controller=name),
        **pods("controller_runtime_reconcile_errors_total", job, growing(50), controller=name),
        **pods("rest_client_requests_total", job, growing(50), code="401", method="GET", host="h"),
    }.items()
}
# The same targets without an error: they lead and work, which must not hide an outage of HyperJob.
QUIET: Series = {
    series: steady(1)
    if "leader" in series
    else growing(60)
    if "reconcile_total" in series
    else steady(0)
    for series in NEIGHBOURS
}
ALL_PODS_GONE = dict.fromkeys(HEALTHY, GONE)
NO_WEBHOOK = {series: GONE for series in HEALTHY if "hyperjob-webhook" in series}
NO_CONTROLLER = {series: GONE for series in HEALTHY if "hyperjob-controller-" in series}
FREE = controller("hyperjob_accelerators_free", steady(2000), cluster="east", type="nvidia.com/gpu")

OUTAGES: dict[str, tuple[set[str], Series]] = {
    "no webhook has run for hours": ({"HyperJobWebhookDown"}, NO_WEBHOOK),
    "no controller has run for hours": ({"HyperJobNoLeader"}, NO_CONTROLLER),
    "nothing of HyperJob has run for hours": (
        {"HyperJobWebhookDown", "HyperJobNoLeader"},
        ALL_PODS_GONE,
    ),
    "both controllers run and neither gets the Lease": (
        {"HyperJobNoLeader"},
        controller("leader_election_master_status", steady(0), name="hyperjob-controller"),
    ),
    "one webhook answers with status 500": (
        {"HyperJobWebhookFails"},
        webhook(REVIEWS, growing(2), steady(0), webhook=MUTATE, code="500"),
    ),
    "reviews take seconds": (
        {"HyperJobWebhookSlow"},
        latencies(webhook, LATENCY, growing(1), growing(50), webhook=MUTATE),
    ),
    "the new certificate does not match its key": (
        {"HyperJobCertificateUnreadable"},
        webhook("certwatcher_read_certificate_errors_total", growing(0.1)),
    ),
    "the certificate was not renewed for weeks": (
        {"HyperJobCertificateExpires"},
        webhook("hyperjob_certificate_expiry_timestamp_seconds", steady(6 * 86400)),
    ),
    "the renewal has not run for two days": (
        {"HyperJobCredentialExpires"},
        tokens("certs", "controller", "members", "ui", "webhook", renewed=-2 * 86400),
    ),
    "the token of the renewal alone was not renewed": (
        {"HyperJobCredentialExpires"},
        tokens("certs", renewed=-2 * 86400),
    ),
    "the ServiceAccount of the webhook was deleted": (
        {"HyperJobCredentialRefused"},
        webhook("rest_client_requests_total", growing(2), code="401", method="GET", host="karmada"),
    ),
    "an API call hangs until each pass ends by its time limit": (
        {"HyperJobQueueStuck"},
        controller(
            "workqueue_longest_running_processor_seconds",
            " ".join(["30 60 90 119 0 0"] * (MINUTES // 6)),
            name="hyperjob",
        ),
    ),
    "passes fail": (
        {"HyperJobReconcileErrors"},
        controller("controller_runtime_reconcile_errors_total", growing(30), controller="hyperjob"),
    ),
    "a pass meets a bug": (
        {"HyperJobInternalErrors"},
        controller("hyperjob_internal_errors_total", growing(0.2), steady(0), place="pass"),
    ),
    "a quota refuses vcjobs": (
        {"HyperJobObjectsRefused"},
        controller("hyperjob_refusals_total", growing(1), steady(0), reason="Forbidden"),
    ),
    "a proxy closes watches": (
        {"HyperJobWatchesFlap"},
        controller("hyperjob_informer_short_watches_total", growing(20), resource="hyperjobs"),
    ),
    "Events are refused": (
        {"HyperJobEventsDropped"},
        controller("hyperjob_events_dropped_total", growing(3), steady(0), reason="failed"),
    ),
    "a cluster of a third of the fleet is lost": (
        {"HyperJobDegraded"},
        phases(Running=200, Degraded=100),
    ),
    "the only HyperJob has too few sub-jobs": (
        {"HyperJobDegraded"},
        phases(Degraded=1) | controller("hyperjob_restarts_total", steady(0)),
    ),
    "a line waits beside an empty fleet": ({"HyperJobNothingStarts"}, FREE),
    "a line of HyperJobs without accelerators waits": (
        {"HyperJobNothingStarts"},
        {
            series: GONE
            for series in HEALTHY
            if series.startswith(("hyperjob_accelerators_free", "hyperjob_accelerators_alloc"))
        },
    ),
    "gangs never become complete": (
        {"HyperJobGangsGiveBack"},
        controller("hyperjob_gang_wait_seconds_count", growing(1), outcome="gave_back"),
    ),
    "a broken image restarts all": (
        {"HyperJobRestartsOften"},
        controller("hyperjob_restarts_total", growing(3), steady(0)),
    ),
    "others took the accelerators of placed sub-jobs": (
        {"HyperJobClusterOvercommitted"},
        controller("hyperjob_accelerators_free", steady(-8), cluster="east", type="nvidia.com/gpu"),
    ),
}


def played(
    rules: Path,
    series: Series,
    wanted: dict[str, list[dict[str, Any]]],
    folder: Path,
    every: str = "1m",
) -> subprocess.CompletedProcess[str]:
    """Let promtool compare the samples of expressions after eight hours with those wanted."""
    asked = [
        {"expr": expression, "eval_time": f"{MINUTES}m", "exp_samples": samples}
        for expression, samples in wanted.items()
    ]
    given = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "1m", "input_series": given, "promql_expr_test": asked}
    document = {"rule_files": [str(rules)], "evaluation_interval": every, "tests": [test]}
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return subprocess.run(
        [PROMTOOL, "test", "rules", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def firing(series: Series, folder: Path, wanted: set[str]) -> subprocess.CompletedProcess[str]:
    """Compare the alerts that fire after eight hours with those that are wanted."""
    fires = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in sorted(wanted)]
    expression = 'count by (alertname) (ALERTS{alertstate="firing"}) > bool 0'
    return played(RULES, series, {expression: fires}, folder)


@needs_promtool
def test_records_add_up_to_what_the_pods_counted_also_after_another_pod_leads(
    tmp_path: Path,
) -> None:
    use = "hyperjob_accelerator_seconds_total"
    wait = "hyperjob_queue_wait_seconds_bucket"
    labels = {"queue": "vision", "namespace": "a", "cluster": "c", "accelerator": "gpu"}
    # The first pod counts for three hours, the second from then on: 8 accelerators train for 7
    # hours, of which 4 were lost for one hour.
    series = {
        **controller(use, "0+480x180 _x300", f"_x180 0+480x239 {480 * 239}x61", **labels, use="x"),
        **controller(use, "_x480", "_x239 0+240x60 14400x181", **labels, use="lost"),
        **controller(wait, "_x480", growing(9), queue="vision", le="60"),
        **controller(wait, "_x480", growing(10), queue="vision", le="+Inf"),
    }
    record = "sum_over_time(hyperjob:accelerator_seconds:increase5m[8h])"
    waits = "sum_over_time(hyperjob:queue_wait_seconds_bucket:increase5m[1h])"
    # Within one per cent of 8 * 60 * 419 and 4 * 3600, and a median of 60 s * 5 / 9.
    wanted = {
        f"round(sum by (queue, use) ({record}), 2000)": [
            {"labels": '{queue="vision",use="lost"}', "value": 14000},
            {"labels": '{queue="vision",use="x"}', "value": 202000},
        ],
        f"round(histogram_quantile(0.5, sum by (le) ({waits})))": [{"value": 33}],
    }
    done = played(RECORDS, series, wanted, tmp_path, every="5m")  # promtool reads no interval
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    done = subprocess.run(
        [PROMTOOL, "check", "rules", RULES, RECORDS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout


@needs_promtool
def test_promtool_has_no_objection_to_the_metrics() -> None:
    shown = b"".join(generate_latest(each) for each in (REGISTRY, *computed()))
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"], input=shown, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


@needs_promtool
@pytest.mark.parametrize("beside", [{}, NEIGHBOURS], ids=["alone", "beside others in trouble"])
def test_no_alert_fires_in_a_healthy_company(beside: Series, tmp_path: Path) -> None:
    done = firing(HEALTHY | beside, tmp_path, set())
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.parametrize(("alerts", "changes"), OUTAGES.values(), ids=OUTAGES)
def test_each_outage_fires_its_alert_beside_healthy_others(
    alerts: set[str], changes: Series, tmp_path: Path
) -> None:
    done = firing(HEALTHY | QUIET | changes, tmp_path, alerts)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_an_outage() -> None:
    assert set().union(*(alerts for alerts, _ in OUTAGES.values())) == set(ALERTS)
