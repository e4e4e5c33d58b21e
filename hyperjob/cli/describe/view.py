"""A HyperJob in the layout of `kubectl describe`."""

from collections.abc import Sequence
from datetime import datetime

from rich.text import Text

from hyperjob.cli.kubectl.styles import phase
from hyperjob.client.durations import age, lasted
from hyperjob.client.events import event_time
from hyperjob.client.summary import Summary, pods_text, read
from hyperjob.client.training import goodput_of, training_of
from hyperjob.table import indented, table
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import MIGRATE_REQUEST, RESTART_REQUEST
from hyperjob_core.api.status import JobStatus
from hyperjob_core.api.wire import mapping, objects, string, string_map, strings
from hyperjob_core.text import once
from hyperjob_engine.reasons.failure import container_text

_NOTHING = "<none>"
_WIDTH = 20
_RUNS_SHOWN = 20
_LOGS_SHOWN = 3
_HIDDEN = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})


def lines(hyperjob: Object, events: Sequence[Object] | str, now: datetime) -> list[Text]:
    """Describe a HyperJob; a text in place of `events` is the reason why they could not be read."""
    summary = read(hyperjob)
    metadata, spec = mapping(hyperjob.get("metadata")), mapping(hyperjob.get("spec"))
    annotations = {k: v for k, v in summary.annotations.items() if k not in _HIDDEN}
    found = [
        _field("Name", summary.name),
        _field("Namespace", summary.namespace),
        *_several("Labels", string_map(metadata.get("labels"))),
        *_several("Annotations", annotations),
        _field("Created", f"{summary.created} ({age(summary.created, now)} ago)"),
    ]
    if summary.deleting:
        found.append(
            _field("Deleted", f"{summary.deleting}, held by {_joined(summary.finalizers)}")
        )
    found += [
        _field("Status", phase(summary.phase, summary.reason)),
        _field("Reason", summary.reason or _NOTHING),
        _field("Message", summary.message or _NOTHING),
        _field("Since", f"{age(summary.since, now)}" if summary.since else _NOTHING),
        _field("Observed generation", f"{summary.observed_generation} of {summary.generation}"),
        _field("Queue", summary.queue or _NOTHING),
        _field("Sub-jobs ready", summary.jobs_ready),
        _field("Pods running", str(summary.running_pods)),
        _field("Restarts", str(summary.restarts)),
        *_training(summary, now),
        *_wishes(spec),
        *_requests(summary),
        *_claims(hyperjob),
        *_replicated_jobs(spec, summary),
        *_sub_jobs(summary, now),
        *_history(summary, now),
        *_last_lines(summary),
        *_conditions(hyperjob, now),
        *_events(events, now),
    ]
    return found


def _training(summary: Summary, now: datetime) -> list[Text]:
    """Show the progress of the training, and its goodput."""
    training = training_of(summary.training)
    goodput = goodput_of(summary.goodput, training, now)
    found = []
    if training is not None:
        found.append(_field("Progress", training.words(now)))
        metrics = [f"{name}={number:g}" for name, number in sorted(training.metrics.items())]
        if metrics:
            found.append(_field("Metrics", _joined(metrics)))
    if goodput is not None:
        found.append(_field("Goodput", goodput.words()))
    return found


def _field(title: str, value: str | Text) -> Text:
    line = Text(f"{title}:".ljust(_WIDTH + 1))
    return line.append_text(value if isinstance(value, Text) else Text(value))


def _several(title: str, values: dict[str, str]) -> list[Text]:
    pairs = [f"{key}={value}" for key, value in sorted(values.items())] or [_NOTHING]
    return [_field(title, pairs[0]), *(Text(" " * (_WIDTH + 1) + pair) for pair in pairs[1:])]


def _joined(names: Sequence[str]) -> str:
    return ", ".join(names) or _NOTHING


def _wishes(spec: Object) -> list[Text]:
    """Show the fields of the spec that apply to the HyperJob as a whole."""
    found = []
    for title, key in (
        ("Min available", "minAvailable"),
        ("Max domains", "maxDomains"),
        ("Suspend", "suspend"),
        ("TTL after finished", "ttlSecondsAfterFinished"),
    ):
        if key in spec:
            value = spec[key]
            text = str(value).lower() if isinstance(value, bool) else str(value)
            found.append(_field(title, text))
    policy = mapping(spec.get("failurePolicy"))
    if policy:
        rules = [string(rule.get("action")) for rule in objects(policy.get("rules"))]
        text = f"at most {policy.get('maxRestarts', 0)} restarts"
        found.append(_field("Failure policy", f"{text}; rules: {_joined(rules)}"))
    if success := mapping(spec.get("successPolicy")):
        found.append(_field("Success policy", string(success.get("operator")) or "All"))
    if plugins := mapping(spec.get("plugins")):
        found.append(_field("Plugins", _joined(sorted(plugins))))
    return found


def _requests(summary: Summary) -> list[Text]:
    """Show requested restarts and moves, and whether the controller has accepted them."""
    found = []
    for title, annotation, kind in (
        ("Requested restart", RESTART_REQUEST, "restart"),
        ("Requested move", MIGRATE_REQUEST, "migrate"),
    ):
        text = summary.annotations.get(annotation, "")
        if text:
            taken = summary.requests.get(kind) == text.split()[0]
            found.append(_field(title, f"{text} ({'accepted' if taken else 'not accepted yet'})"))
    return found


def _claims(hyperjob: Object) -> list[Text]:
    """Show the clusters that keep a copy of each PersistentVolumeClaim."""
    entries = objects(mapping(hyperjob.get("status")).get("persistentVolumeClaims"))
    rows = [
        (
            string(entry.get("name")),
            _joined(strings(entry.get("clusters"))),
            string(entry.get("message")) or "-",
        )
        for entry in entries
    ]
    if not rows:
        return []
    return [Text("Claims:"), *indented(table(("NAME", "KEPT IN", "WHY NOT ELSEWHERE"), rows))]


def _replicated_jobs(spec: Object, summary: Summary) -> list[Text]:
    rows = []
    for item in objects(spec.get("replicatedJobs")):
        group = summary.group(string(item.get("name")))
        if group is None:
            continue
        jobs = [job for job in summary.jobs if job.replicated_job == group.name]
        clusters = [*(item.get("clusterNames") or ())]
        wanted = ",".join(map(str, clusters)) or "any"
        policy = f" ({item['clusterPolicy']})" if clusters and item.get("clusterPolicy") else ""
        number = sum(summary.accelerators(job)[1] for job in jobs) or group.whole
        accelerators = f"{number} {group.accelerator}" if group.accelerator else _NOTHING
        pods = pods_text(group.pods) or _NOTHING
        rows.append((group.name, str(len(jobs)), accelerators, wanted + policy, group.queue, pods))
    header = ("NAME", "SUB-JOBS", "ACCELERATORS", "CLUSTERS WANTED", "QUEUE", "PODS")
    return [Text("Replicated jobs:"), *indented(table(header, rows))]


def _sub_jobs(summary: Summary, now: datetime) -> list[Text]:
    rows = [
        (
            job.name,
            phase(job.phase or "Pending"),
            job.cluster or "-",
            f"{job.running}/{job.pods}",
            str(job.number),
            age(job.last_transition_time, now) if job.last_transition_time else "-",
            why,
        )
        for job, why in zip(
            summary.jobs, once([_why_text(job) for job in summary.jobs]), strict=True
        )
    ]
    if not rows:
        return [_field("Sub-jobs", _NOTHING)]
    header = ("NAME", "PHASE", "CLUSTER", "PODS", "ATTEMPT", "SINCE", "WHY")
    return [Text("Sub-jobs:"), *indented(table(header, rows))]


def _why_text(job: JobStatus) -> str:
    text = (
        container_text(job.failure) if job.failure is not None else job.message or job.reason or "-"
    )
    return (
        f"{text} (kept away from {', '.join(job.excluded_clusters)})"
        if job.excluded_clusters
        else text
    )


def _history(summary: Summary, now: datetime) -> list[Text]:
    """List the runs that have ended, the latest first."""
    runs = [(run, job) for job in summary.jobs for run in job.history]
    runs.sort(key=lambda each: each[0].end, reverse=True)
    rows = [
        (
            job.name,
            str(run.attempt + 1),
            run.cluster or "-",
            lasted(run.start, run.end),
            age(run.end, now) if run.end else "-",
            run.reason,
            container_text(run.failure) if run.failure is not None else run.message or "-",
        )
        for run, job in runs[:_RUNS_SHOWN]
    ]
    if not rows:
        return []
    header = ("SUB-JOB", "ATTEMPT", "CLUSTER", "RAN", "ENDED", "REASON", "WHY")
    hidden = len(runs) - len(rows)
    more = [Text(f"  and {hidden} older, in status.jobs[].history")] if hidden else []
    return [Text("Earlier runs:"), *indented(table(header, rows)), *more]


def _last_lines(summary: Summary) -> list[Text]:
    """Show the last lines of the containers that failed last, such as their tracebacks."""
    ended = [
        (f"{job.name}, attempt {run.attempt + 1} on {run.cluster}", run.failure)
        for job in summary.jobs
        for run in (job.failed_run, *job.history)
        if run is not None and run.failure is not None and run.failure.last_lines
    ]
    ended.sort(key=lambda each: each[1].time, reverse=True)
    lines = []
    for run, cause in ended[:_LOGS_SHOWN]:
        lines.append(Text(f"Last lines of {run}:"))
        lines += [Text(f"  | {line}", style="dim") for line in cause.last_lines]
    return lines


def _conditions(hyperjob: Object, now: datetime) -> list[Text]:
    rows = [
        (
            string(item.get("type")),
            string(item.get("status")),
            age(item.get("lastTransitionTime"), now),
            string(item.get("reason")),
            string(item.get("message")),
        )
        for item in objects(mapping(hyperjob.get("status")).get("conditions"))
    ]
    if not rows:
        return [_field("Conditions", _NOTHING)]
    header = ("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")
    return [Text("Conditions:"), *indented(table(header, rows))]


def _events(events: Sequence[Object] | str, now: datetime) -> list[Text]:
    if isinstance(events, str):
        return [_field("Events", f"not readable: {events}")]
    if not events:
        return [_field("Events", _NOTHING)]
    rows = [
        (
            string(item.get("type")),
            string(item.get("reason")),
            age(event_time(item), now),
            string(item.get("reportingComponent")) or string(item.get("reportingController")),
            string(item.get("message")) or string(item.get("note")),
        )
        for item in sorted(events, key=event_time)
    ]
    return [
        Text("Events:"),
        *indented(table(("TYPE", "REASON", "AGE", "FROM", "MESSAGE"), rows)),
    ]
