"""The names that dashboards for Go controllers look for, and that every count arrives."""

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from hyperjob_core.kube import instruments
from hyperjob_core.telemetry.metrics import Metrics, ReconcileResult
from hyperjob_core.telemetry.training import TrainingMetrics


@pytest.fixture
def metrics():
    return Metrics()


def value(metrics, name, /, **labels):
    return metrics.registry.get_sample_value(name, labels)


NAMES = {
    "controller_runtime_reconcile_total": {"controller", "result"},
    "controller_runtime_reconcile_errors_total": {"controller"},
    "controller_runtime_terminal_reconcile_errors_total": {"controller"},
    "controller_runtime_reconcile_time_seconds_count": {"controller"},
    "controller_runtime_active_workers": {"controller"},
    "controller_runtime_max_concurrent_reconciles": {"controller"},
    "controller_runtime_webhook_requests_total": {"webhook", "code"},
    "controller_runtime_webhook_latency_seconds_count": {"webhook"},
    "controller_runtime_webhook_requests_in_flight": {"webhook"},
    "workqueue_depth": {"name", "controller"},
    "workqueue_adds_total": {"name", "controller"},
    "workqueue_queue_duration_seconds_count": {"name", "controller"},
    "workqueue_work_duration_seconds_count": {"name", "controller"},
    "workqueue_unfinished_work_seconds": {"name", "controller"},
    "workqueue_longest_running_processor_seconds": {"name", "controller"},
    "workqueue_retries_total": {"name", "controller"},
    "rest_client_requests_total": {"code", "method", "host"},
    "leader_election_master_status": {"name"},
    "certwatcher_read_certificate_total": set(),
    "certwatcher_read_certificate_errors_total": set(),
    "hyperjob_build_info": {"version", "python"},
    "hyperjob_events_dropped_total": {"reason"},
    "hyperjob_informer_lists_total": {"resource"},
    "hyperjob_informer_watches_total": {"resource"},
    "hyperjob_informer_short_watches_total": {"resource"},
    "process_resident_memory_bytes": set(),
}


class Stats:
    waiting = 3

    def depth(self):
        return self.waiting

    def unfinished_seconds(self):
        return 5.5

    def longest_running_seconds(self):
        return 4.5


def use_everything(metrics):
    metrics.controller_started("hyperjob", workers=4)
    with metrics.reconciling("hyperjob"):
        pass
    metrics.reconciled("hyperjob", ReconcileResult.ERROR, terminal=True)
    metrics.webhook_started("/validate")
    metrics.webhook_done("/validate", code=200, seconds=0.002)
    metrics.certificate_read(failed=True)
    metrics.request_done(code="200", method="GET", host="h:6443")
    metrics.informer_list("jobs")
    metrics.informer_watch("jobs", short=True)
    metrics.queue_started("hyperjob", Stats())
    metrics.queue_added("hyperjob")
    metrics.queue_retried("hyperjob")
    metrics.queue_waited("hyperjob", 0.1)
    metrics.queue_worked("hyperjob", 0.1)
    metrics.leader_changed("hyperjob", leading=True)
    metrics.event_dropped("spam")


def test_names_and_labels_are_controller_runtimes(metrics):
    use_everything(metrics)
    seen = {
        sample.name: set(sample.labels) - {"le"}
        for family in metrics.registry.collect()
        for sample in family.samples
    }
    assert {name: seen.get(name) for name in NAMES} == NAMES
    assert not [name for name in seen if name.endswith("_created")]


def test_a_reconciliation_is_counted_while_and_after_it_runs(metrics):
    metrics.controller_started("hyperjob", workers=4)
    assert (
        value(
            metrics, "controller_runtime_reconcile_total", controller="hyperjob", result="success"
        )
        == 0
    )
    active = []

    def reconcile():
        with metrics.reconciling("hyperjob"):
            active.append(value(metrics, gauge, controller="hyperjob"))
            raise LookupError("no such queue")

    gauge = "controller_runtime_active_workers"
    with pytest.raises(LookupError):
        reconcile()
    assert [*active, value(metrics, gauge, controller="hyperjob")] == [1, 0]
    name = "controller_runtime_reconcile_time_seconds_count"
    assert value(metrics, name, controller="hyperjob") == 1


@pytest.mark.parametrize(
    ("result", "terminal", "errors", "given_up"),
    [
        (ReconcileResult.SUCCESS, False, 0, 0),
        (ReconcileResult.REQUEUE_AFTER, False, 0, 0),
        (ReconcileResult.ERROR, False, 1, 0),
        (ReconcileResult.ERROR, True, 1, 1),
    ],
)
def test_only_errors_count_as_errors(result, terminal, errors, given_up, metrics):
    metrics.controller_started("c", workers=1)
    metrics.reconciled("c", result, terminal=terminal)
    one = "controller_runtime_"
    assert value(metrics, f"{one}reconcile_total", controller="c", result=result.value) == 1
    assert value(metrics, f"{one}reconcile_errors_total", controller="c") == errors
    assert value(metrics, f"{one}terminal_reconcile_errors_total", controller="c") == given_up


def test_an_admission_request_is_in_flight_until_it_is_answered(metrics):
    name = "controller_runtime_webhook_requests_in_flight"
    metrics.webhook_started("/validate")
    assert value(metrics, name, webhook="/validate") == 1
    metrics.webhook_done("/validate", code=500, seconds=0.2)
    assert value(metrics, name, webhook="/validate") == 0
    name = "controller_runtime_webhook_requests_total"
    assert value(metrics, name, webhook="/validate", code="500") == 1


def test_queue_gauges_are_read_when_they_are_asked_for(metrics):
    stats = Stats()
    metrics.queue_started("q", stats)
    assert value(metrics, "workqueue_depth", name="q", controller="q") == 3
    stats.waiting = 8
    assert value(metrics, "workqueue_depth", name="q", controller="q") == 8
    name = "workqueue_unfinished_work_seconds"
    assert value(metrics, name, name="q", controller="q") == 5.5


def test_leadership_is_one_or_zero(metrics):
    for leading in (True, False):
        metrics.leader_changed("l", leading=leading)
        assert value(metrics, "leader_election_master_status", name="l") == int(leading)


def test_two_processes_in_one_do_not_share_counts():
    one, other = Metrics(), Metrics()
    one.event_dropped("spam")
    assert value(other, "hyperjob_events_dropped_total", reason="spam") == 0


def test_the_text_form_is_what_prometheus_reads(metrics):
    use_everything(metrics)
    text = generate_latest(metrics.registry).decode()
    assert 'workqueue_depth{controller="hyperjob",name="hyperjob"} 3.0' in text
    assert "# TYPE controller_runtime_reconcile_total counter" in text


def test_it_fits_everything_that_the_kubernetes_client_feeds(metrics):
    protocols = (
        instruments.ClientMetrics,
        instruments.InformerMetrics,
        instruments.QueueMetrics,
        instruments.LeaderMetrics,
        instruments.EventMetrics,
    )
    wanted = {
        name
        for protocol in protocols
        for name in vars(protocol)
        if not name.startswith("_") and callable(getattr(protocol, name))
    }
    assert wanted
    assert {name for name in wanted if not callable(getattr(metrics, name, None))} == set()


def test_admission_latencies_are_counted_as_prometheus_client_counts_them(metrics):
    name, seconds = "controller_runtime_webhook_latency_seconds", (0.0, 0.001, 0.3, 10.0, 11.0)
    bounds = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
    theirs = CollectorRegistry()
    histogram = Histogram(name, "", ["webhook"], buckets=bounds, registry=theirs)
    for each in seconds:
        histogram.labels("/validate").observe(each)
        metrics.webhook_started("/validate")
        metrics.webhook_done("/validate", code=200, seconds=each)
    found = {(s.name, s.labels.get("le")): s.value for s in samples(metrics.registry, name)}
    assert found == {(s.name, s.labels.get("le")): s.value for s in samples(theirs, name)}


def samples(registry, name):
    return [each for family in registry.collect() if family.name == name for each in family.samples]


def test_counters_of_alerts_begin_at_zero() -> None:
    made = Metrics()
    made.informer_list("jobs.batch.volcano.sh")
    assert value(made, "hyperjob_internal_errors_total", place="round") == 0
    assert (
        value(made, "hyperjob_informer_short_watches_total", resource="jobs.batch.volcano.sh") == 0
    )
    TrainingMetrics(made.families)
    assert value(made, "hyperjob_refusals_total", reason="Forbidden") == 0
