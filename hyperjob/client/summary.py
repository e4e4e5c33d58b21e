"""Parse a HyperJob into the values that views show, and select its sub-jobs by their names.

A value that the status does not have is empty.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hyperjob.client.errors import ClientError
from hyperjob.client.training import training_of
from hyperjob_core.api import table
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import ARGUMENTS
from hyperjob_core.api.overlay import (
    applied,
    number_of,
    shape_of,
    size_in,
    sizes_of,
    taken,
    wanted_of,
    with_alternative,
)
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.quantity import NANO
from hyperjob_core.api.status import AlternativeStatus, ExpectedStart, JobStatus, MeasuredSpeed
from hyperjob_core.api.training import StallStatus, TrainingStatus
from hyperjob_core.api.wire import at, count, integer, mapping, objects, string, string_map, strings
from hyperjob_core.text import listed, printable
from hyperjob_engine.resources import accelerator_of, pod_request, scale, total

COUNTERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A replicated job: its requests in the spec, and the number of its pods by state.

    `size` is the number of accelerators of a sub-job by the template, `whole` that of all sub-jobs,
    also before the controller has made any. `alternative` is what the status has of its choice:
    of a number within `bounds`, if it has these, of `units`: sub-jobs or accelerators. It would
    like `wanted` of them. `own` has accelerator and size by the alternative of a single sub-job.
    """

    name: str
    queue: str
    priority_class: str
    accelerator: str
    size: int
    whole: int
    pods: Mapping[str, int]
    tasks: tuple[str, ...] = ()
    alternative: AlternativeStatus | None = None
    bounds: str = ""
    units: str = "sub-jobs"
    wanted: int = 0
    own: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def size_text(self) -> str:
        """Return with which size it runs, and with which it could; empty without bounds."""
        if not self.bounds or self.alternative is None:
            return ""
        runs = "runs with" if self.pods.get("running") else "takes"
        name, size = self.alternative.name, size_in(self.alternative.name)
        found = f"{runs} {size} of {self.wanted} {self.units}, {self.bounds}"
        return found if name == str(size) else f"{found}: {name}"

    @property
    def choice(self) -> str:
        """Return its alternative or size with the reason of the choice; empty without one."""
        chosen = self.alternative
        return f"{chosen.name}: {chosen.message}" if chosen is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Summary:
    """A HyperJob; `phase` is Pending while it has no status."""

    namespace: str
    name: str
    uid: str
    generation: int
    observed_generation: int
    created: str
    changed: str
    deleting: str
    finalizers: tuple[str, ...]
    annotations: Mapping[str, str]
    suspend: bool
    phase: str
    reason: str
    message: str
    since: str
    jobs_ready: str
    running_pods: int
    restarts: int
    queue: str
    has_status: bool
    groups: tuple[Group, ...] = ()
    jobs: tuple[JobStatus, ...] = ()
    requests: Mapping[str, str] = field(default_factory=dict)
    training: TrainingStatus | None = None
    goodput: Object = field(default_factory=dict)
    speeds: tuple[MeasuredSpeed, ...] = ()
    stall: StallStatus | None = None
    expected_start: ExpectedStart | None = None

    def __repr__(self) -> str:
        where = f" on {', '.join(self.clusters)}" if self.clusters else ""
        why = f": {self.message or self.reason}" if self.message or self.reason else ""
        return f"<{self.key} {self.phase} {self.jobs_ready}{where}{why}>"

    @property
    def key(self) -> str:
        """Return namespace/name."""
        return f"{self.namespace}/{self.name}"

    @property
    def arguments(self) -> str:
        """Return the arguments of its program, as the SDK has written them down; one line."""
        return printable(self.annotations.get(ARGUMENTS, "")).replace("\n", " ")

    @property
    def placed(self) -> list[JobStatus]:
        """Return the sub-jobs that are on a cluster and have not ended."""
        return [job for job in self.jobs if job.cluster and not job.has_ended]

    @property
    def without_sub_jobs(self) -> list[Group]:
        """Return the replicated jobs of which the controller has not made any sub-job yet."""
        made = {job.replicated_job for job in self.jobs}
        return [group for group in self.groups if group.name not in made]

    @property
    def has_ended(self) -> bool:
        """Return whether it has completed or failed."""
        return self.phase in (Phase.COMPLETED, Phase.FAILED)

    @property
    def is_current(self) -> bool:
        """Return whether the status is about the present generation of the spec."""
        return self.observed_generation >= self.generation

    @property
    def clusters(self) -> tuple[str, ...]:
        """Return the clusters of the sub-jobs, each once."""
        return tuple(sorted({job.cluster for job in self.jobs if job.cluster}))

    @property
    def running_text(self) -> str:
        """Return how many pods run: `4/5` if fewer run than its sub-jobs in clusters have."""
        pods = sum(job.pods for job in self.jobs if job.running and not job.has_ended)
        return f"{self.running_pods}/{pods}" if self.running_pods < pods else str(self.running_pods)

    @property
    def group_names(self) -> list[str]:
        """Return the replicated jobs in the order of the spec, then those of the status alone."""
        names = [group.name for group in self.groups] + [job.replicated_job for job in self.jobs]
        return list(dict.fromkeys(names))

    def group(self, name: str) -> Group | None:
        """Return a replicated job by name; None if there is none."""
        return next((group for group in self.groups if group.name == name), None)

    def queue_of(self, job: JobStatus) -> str:
        """Return the queue of a sub-job."""
        group = self.group(job.replicated_job)
        return group.queue if group is not None else "default"

    def accelerators(self, job: JobStatus) -> tuple[str, int]:
        """Return the accelerator of a sub-job and the number it requests; ("", 0) without any."""
        group = self.group(job.replicated_job)
        if group is None:
            return "", 0
        name, size = group.own.get(job.alternative, (group.accelerator, group.size))
        return (name, size if job.accelerators is None else job.accelerators) if name else ("", 0)


def read(hyperjob: Object) -> Summary:
    """Parse a HyperJob; malformed fields count as absent."""
    metadata, spec = mapping(hyperjob.get("metadata")), mapping(hyperjob.get("spec"))
    status = mapping(hyperjob.get("status"))
    state = mapping(status.get("state"))
    jobs = table.read_all(JobStatus, status.get("jobs"))
    return Summary(
        namespace=string(metadata.get("namespace")) or "default",
        name=string(metadata.get("name")),
        uid=string(metadata.get("uid")),
        generation=count(metadata.get("generation")),
        observed_generation=count(status.get("observedGeneration")),
        created=string(metadata.get("creationTimestamp")),
        changed=_last_change(metadata),
        deleting=string(metadata.get("deletionTimestamp")),
        finalizers=strings(metadata.get("finalizers")),
        annotations=string_map(metadata.get("annotations")),
        suspend=spec.get("suspend") is True,
        phase=string(state.get("phase")) or Phase.PENDING,
        reason=string(state.get("reason")),
        message=string(state.get("message")),
        since=string(state.get("lastTransitionTime")),
        jobs_ready=string(status.get("jobsReady")) or f"0/{len(jobs)}",
        running_pods=count(status.get("runningPods")),
        restarts=count(status.get("restarts")),
        queue=string(status.get("queue")),
        has_status=bool(string(state.get("phase"))),
        groups=_groups(spec, status),
        jobs=jobs,
        requests=string_map(status.get("requests")),
        training=training_of(status),
        stall=table.read(StallStatus, status.get("stall")),
        goodput=mapping(status.get("goodput")),
        speeds=table.read_all(MeasuredSpeed, status.get("speeds")),
        expected_start=table.read(ExpectedStart, status.get("expectedStart")),
    )


def _last_change(metadata: Object) -> str:
    """Return the time of the last write outside the status; empty where it is not recorded."""
    return max(
        (
            string(entry.get("time"))
            for entry in objects(metadata.get("managedFields"))
            if not entry.get("subresource")
        ),
        default="",
    )


def pods_text(counts: Mapping[str, int]) -> str:
    """Return the number of pods by state as text: `12 running, 4 pending`; empty without pods."""
    order = ("running", "pending", "succeeded", "failed", "terminating", "unknown")
    return ", ".join(f"{counts[name]} {name}" for name in order if counts.get(name))


def _groups(spec: Object, status: Object) -> tuple[Group, ...]:
    """Return the replicated jobs of the spec with the pods that the status counts."""
    reported = {
        string(item.get("name")): item for item in objects(status.get("replicatedJobsStatus"))
    }
    result = []
    chosen = taken(status)
    for written in objects(spec.get("replicatedJobs")):
        name = string(written.get("name"))
        alternative = chosen.get(name)
        shape = shape_of(written, alternative.name if alternative is not None else None)
        item = with_alternative(written, alternative.name if alternative is not None else None)
        template = mapping(item.get("templateSpec"))
        counted, size = _accelerators_of(item)
        split = integer(at(item, "splitPolicy", "accelerators"))
        counters = reported.get(name, {})
        result.append(
            Group(
                name=name,
                queue=string(template.get("queue")) or "default",
                priority_class=string(template.get("priorityClassName")),
                accelerator=counted,
                size=size,
                whole=size * _replicas(item) if split is None else split,
                pods={key: count(counters.get(key)) for key in COUNTERS if counters.get(key)},
                tasks=tuple(string(task.get("name")) for task in objects(template.get("tasks"))),
                alternative=alternative,
                bounds=f"{sizes[-1]} to {sizes[0]}" if (sizes := sizes_of(shape)) else "",
                units="sub-jobs" if number_of(shape)[0] is shape else "accelerators",
                wanted=wanted_of(shape),
                own={
                    string(each.get("name")): _accelerators_of(applied(written, each))
                    for each in objects(written.get("alternatives"))
                },
            )
        )
    return tuple(result)


def _accelerators_of(job: Object) -> tuple[str, int]:
    """Return the accelerator of a sub-job of a replicated job, and how many its pods request."""
    tasks = objects(at(job, "templateSpec", "tasks"))
    pods = [pod_request(mapping(at(task, "template", "spec"))) for task in tasks]
    demand = total(scale(pod, _replicas(task)) for task, pod in zip(tasks, pods, strict=True))
    counted = string(at(job, "splitPolicy", "acceleratorType")) or accelerator_of(demand) or ""
    return counted, demand.get(counted, 0) // NANO


def _replicas(task: Object) -> int:
    replicas = integer(task.get("replicas"))
    return 1 if replicas is None else max(replicas, 0)


_SHOWN = 8


def choose(summary: Summary, words: Sequence[str]) -> list[JobStatus]:
    """Return the selected sub-jobs in the HyperJob's order; ClientError for an unknown name."""
    for word in words:
        if not meant(summary, [word]):
            raise ClientError(f"{summary.name} has no sub-job {word!r}; {_there_are(summary)}")
    return meant(summary, words)


def meant(summary: Summary, words: Sequence[str]) -> list[JobStatus]:
    """Return the sub-jobs that match any of the words, in the HyperJob's order."""
    return [job for job in summary.jobs if any(_is_meant(summary, job, word) for word in words)]


def _is_meant(summary: Summary, job: JobStatus, word: str) -> bool:
    return word in (job.name, job.replicated_job) or job.name == f"{summary.name}-{word}"


def _there_are(summary: Summary) -> str:
    names = [job.name for job in summary.jobs]
    if not names:
        return "it has no sub-jobs yet"
    return f"there are {listed(names, shown=_SHOWN)}"
