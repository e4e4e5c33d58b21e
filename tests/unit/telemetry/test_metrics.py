"""The names that dashboards for Go controllers look for, and that no count has a creation time."""

from prometheus_client import generate_latest

from docs.generators.metrics import families
from hyperjob_core.registry import REGISTRY

NAMES = {
    "controller_runtime_reconcile_total": ("controller", "result"),
    "controller_runtime_reconcile_errors_total": ("controller",),
    "controller_runtime_reconcile_time_seconds": ("controller",),
    "controller_runtime_active_workers": ("controller",),
    "controller_runtime_max_concurrent_reconciles": ("controller",),
    "controller_runtime_webhook_requests_total": ("webhook", "code"),
    "controller_runtime_webhook_latency_seconds": ("webhook",),
    "controller_runtime_webhook_requests_in_flight": ("webhook",),
    "workqueue_depth": ("name", "controller"),
    "workqueue_adds_total": ("name", "controller"),
    "workqueue_queue_duration_seconds": ("name", "controller"),
    "workqueue_work_duration_seconds": ("name", "controller"),
    "workqueue_unfinished_work_seconds": ("name", "controller"),
    "workqueue_longest_running_processor_seconds": ("name", "controller"),
    "workqueue_retries_total": ("name", "controller"),
    "rest_client_requests_total": ("code", "method", "host"),
    "rest_client_request_duration_seconds": ("verb", "host"),
    "leader_election_master_status": ("name",),
    "certwatcher_read_certificate_total": (),
    "certwatcher_read_certificate_errors_total": (),
}


def test_names_and_labels_are_those_of_controller_runtime_and_client_go() -> None:
    found = {family.name: family.labels for family in families()}
    assert {name: found.get(name) for name in NAMES} == NAMES
    assert all(name in NAMES or name.startswith("hyperjob_") for name in found)


def test_the_text_form_is_what_prometheus_reads() -> None:
    lines = generate_latest(REGISTRY).decode().splitlines()
    assert "# TYPE controller_runtime_reconcile_total counter" in lines
    assert not [line for line in lines if "_created" in line]
