"""HyperJobs of jobs of other kinds, field by field, where the result does the same. Pure.

A field that a HyperJob cannot express is a refusal; the conversion drops none without a word.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from hyperjob_core.api.field import ROOT, Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, KIND, may_be_given
from hyperjob_core.api.wire import at, integer, mapping, objects, string

_INDEX: Final[Object] = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['volcano.sh/task-index']"}},
}
_FAILS: Final[Object] = {"event": "PodFailed", "action": "TerminateJob"}
_NO_LIMIT: Final = 2**31 - 1
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_KUEUE: Final = "kueue.x-k8s.io/queue-name"
_WRITTEN: Final = ("name", "generateName", "namespace", "labels", "annotations")


@dataclass(slots=True)
class Conversion:
    """What becomes of a job: the spec of its HyperJob, and what cannot be expressed."""

    spec: Object = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def refuse(self, path: Path, why: str) -> None:
        """Record a field that a HyperJob cannot express."""
        self.refusals.append(f"{path}: {why}")

    def only(self, part: Object, path: Path, known: Iterable[str]) -> None:
        """Refuse the fields that the conversion does not know."""
        for name in sorted(set(part) - set(known)):
            self.refuse(path.child(name), "a HyperJob has nothing like it")

    def take(self, part: Object, *names: str, into: Object) -> None:
        """Copy the fields that are set."""
        into.update({name: part[name] for name in names if part.get(name) is not None})


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of job: its name for people, and its conversion where there is one."""

    title: str
    convert: Callable[[Object, Conversion], None] | None = None
    advice: str = ""


def form_of(content: Object) -> Form | None:
    """Return the form of an object that is a job of another kind."""
    group = string(content.get("apiVersion")).partition("/")[0]
    return FORMS.get((group, string(content.get("kind"))))


def converted(content: Object, form: Form) -> tuple[Object, Conversion]:
    """Return the HyperJob of a job, and what is told about it; with refusals it has no value."""
    made = Conversion()
    if form.convert is None:
        made.refusals.append(form.advice)
        return {}, made
    form.convert(content, made)
    metadata, at_metadata = mapping(content.get("metadata")), ROOT.child("metadata")
    kept = {name: metadata[name] for name in _WRITTEN if metadata.get(name)}
    if annotations := _without_last_applied(kept.pop("annotations", None)):
        kept["annotations"] = annotations
    if _EXCLUSIVE in annotations:
        made.refuse(
            at_metadata.child("annotations").key(_EXCLUSIVE),
            "a HyperJob keeps no other pods off its nodes; networkTopology keeps its own together",
        )
    if mapping(kept.get("labels")).get(_KUEUE):
        ends = "; it stays suspended until it is resumed" if made.spec.get("suspend") else ""
        made.remarks.append(
            f"{at_metadata.child('labels').key(_KUEUE)}: Kueue admits no HyperJob: it waits in the"
            f" Volcano Queue that templateSpec.queue names{ends}"
        )
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": kept, "spec": made.spec}
    return document, made


def _without_last_applied(annotations: object) -> Object:
    return {key: value for key, value in mapping(annotations).items() if key != _LAST_APPLIED}


def _vcjob(content: Object, made: Conversion) -> None:
    spec = dict(mapping(content.get("spec")))
    # Karmada removes this field from the vcjobs that it delivers.
    if (seconds := spec.pop("ttlSecondsAfterFinished", None)) is not None:
        made.spec["ttlSecondsAfterFinished"] = seconds
    tasks = {string(each.get("name")): each for each in objects(spec.get("tasks"))}
    _refuse_host_names(content, tasks, ROOT.child("spec", "tasks"), made)
    metadata = mapping(content.get("metadata"))
    given = {"labels": mapping(metadata.get("labels"))}
    given["annotations"] = _without_last_applied(metadata.get("annotations"))
    # the sub-job is a vcjob too: Volcano and others read its labels and annotations there
    own = {
        name: {key: value for key, value in values.items() if may_be_given(key)}
        for name, values in given.items()
    }
    kept = {name: values for name, values in own.items() if values}
    group: Object = {"name": "job", "replicas": 1, "templateSpec": spec}
    made.spec["replicatedJobs"] = [{**group, **({"templateMetadata": kept} if kept else {})}]


def _job(content: Object, made: Conversion) -> None:
    spec, path = dict(mapping(content.get("spec"))), ROOT.child("spec")
    for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "suspend"):
        made.take(spec, name, into=made.spec)
        spec.pop(name, None)
    if not at(spec, "template", "spec", "restartPolicy"):
        where = path.child("template", "spec", "restartPolicy")
        made.refuse(where, "must be OnFailure or Never, as in every Kubernetes Job")
    template = _of_job(spec, path, made)
    made.spec["replicatedJobs"] = [{"name": "job", "replicas": 1, "templateSpec": template}]


def _of_job(spec: Object, path: Path, made: Conversion) -> Object:
    """Return the vcjob of a Kubernetes Job all of whose pods run at the same time."""
    known = ("backoffLimit", "completionMode", "completions", "parallelism", "template")
    made.only(spec, path, known)
    pods = integer(spec.get("parallelism"))
    pods = 1 if pods is None else pods
    if spec.get("completions", 1 if pods == 1 else None) != pods:
        made.refuse(
            path.child("completions"),
            f"must be {pods}, as parallelism: all pods of a HyperJob run together, each once",
        )
    template = dict(mapping(spec.get("template")))
    pod = dict(mapping(template.get("spec")))
    if pod.get("schedulerName") == "default-scheduler":  # the default of Kubernetes
        del pod["schedulerName"]
    policy, limit = pod.setdefault("restartPolicy", "OnFailure"), spec.get("backoffLimit")
    if policy == "OnFailure" and limit == 0:  # the first restart of a container fails the Job
        policy = pod["restartPolicy"] = "Never"
    if policy == "Never" and limit != 0:
        made.refuse(path.child("backoffLimit"), "must be 0: Volcano replaces no failed pod")
    elif policy != "Never" and limit not in (None, _NO_LIMIT):
        why = f"must be 0 or left out: with restartPolicy {policy} Volcano counts no restarts"
        made.refuse(path.child("backoffLimit"), why)
    if spec.get("completionMode") == "Indexed":
        for name in ("initContainers", "containers"):
            if pod.get(name):
                pod[name] = [
                    {**each, "env": [*objects(each.get("env")), _INDEX]}
                    for each in objects(pod[name])
                ]
    task: Object = {"name": "pod", "replicas": pods, "template": {**template, "spec": pod}}
    return {"tasks": [task], **({"policies": [_FAILS]} if policy == "Never" else {})}


def _jobset(content: Object, made: Conversion) -> None:
    spec, path = mapping(content.get("spec")), ROOT.child("spec")
    known = ("failurePolicy", "network", "replicatedJobs", "startupPolicy", "successPolicy")
    made.only(spec, path, (*known, "suspend", "ttlSecondsAfterFinished"))
    made.take(spec, "suspend", "ttlSecondsAfterFinished", "successPolicy", into=made.spec)
    failures, at_failures = mapping(spec.get("failurePolicy")), path.child("failurePolicy")
    made.only(failures, at_failures, ("maxRestarts",))
    made.spec["failurePolicy"] = {"maxRestarts": failures.get("maxRestarts", 0)}
    if at(spec, "network", "enableDNSHostnames") is not False:
        groups = objects(spec.get("replicatedJobs"))
        parts = {string(each.get("name")): mapping(each.get("template")) for each in groups}
        _refuse_host_names(content, parts, path.child("replicatedJobs"), made)
    in_order = at(spec, "startupPolicy", "startupPolicyOrder") == "InOrder"
    replicated: list[Object] = []
    for index, each in enumerate(objects(spec.get("replicatedJobs"))):
        place = path.child("replicatedJobs").index(index)
        made.only(each, place, ("dependsOn", "name", "replicas", "template"))
        job = {"completionMode": "Indexed", **mapping(at(each, "template", "spec"))}
        template = _of_job(job, place.child("template", "spec"), made)
        group: Object = {"name": each.get("name"), "replicas": each.get("replicas", 1)}
        made.take(each, "dependsOn", into=group)
        if in_order and replicated:
            group["dependsOn"] = [{"name": replicated[-1]["name"], "status": "Ready"}]
        replicated.append({**group, "templateSpec": template})
    made.spec["replicatedJobs"] = replicated


def _refuse_host_names(
    content: Object, parts: Mapping[str, Object], path: Path, made: Conversion
) -> None:
    """Refuse texts in the parts of a job with the host names that its pods had."""
    name = string(at(content, "metadata", "name"))
    hosts = [f"{name}-{part}-" for part in parts] if name else []
    for part in parts.values():
        for text in _texts(part):
            if found := next((host for host in hosts if host in text), ""):
                made.refuse(path, f"names pods as {found}0: a HyperJob's have other host names")
                return


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _pytorchjob(content: Object, made: Conversion) -> None:
    spec, path = mapping(content.get("spec")), ROOT.child("spec")
    made.only(spec, path, ("pytorchReplicaSpecs", "runPolicy"))
    run, at_run = mapping(spec.get("runPolicy")), path.child("runPolicy")
    known = ("activeDeadlineSeconds", "schedulingPolicy", "suspend", "ttlSecondsAfterFinished")
    made.only(run, at_run, known)
    made.take(run, "activeDeadlineSeconds", "suspend", "ttlSecondsAfterFinished", into=made.spec)
    scheduling = mapping(run.get("schedulingPolicy"))
    made.only(
        scheduling, at_run.child("schedulingPolicy"), ("minAvailable", "priorityClass", "queue")
    )
    template: Object = {
        "plugins": {"pytorch": ["--master=master", "--worker=worker", "--port=23456"]}
    }
    made.take(scheduling, "minAvailable", "queue", into=template)
    if scheduling.get("priorityClass"):
        template["priorityClassName"] = scheduling["priorityClass"]
    roles, at_roles = mapping(spec.get("pytorchReplicaSpecs")), path.child("pytorchReplicaSpecs")
    made.only(roles, at_roles, ("Master", "Worker"))
    if "Master" not in roles:
        made.refuse(at_roles.child("Master"), "must be there: it is the first rank")
    parts = {role.lower(): mapping(each) for role, each in roles.items()}
    _refuse_host_names(content, parts, at_roles, made)
    template["tasks"] = [
        _pytorch_task(role, mapping(roles[role]), at_roles.child(role), made)
        for role in ("Master", "Worker")
        if role in roles
    ]
    made.spec["replicatedJobs"] = [{"name": "job", "replicas": 1, "templateSpec": template}]


def _pytorch_task(role: str, given: Object, path: Path, made: Conversion) -> Object:
    made.only(given, path, ("replicas", "restartPolicy", "template"))
    policy = given.get("restartPolicy", "Never")
    if policy == "ExitCode":
        made.refuse(path.child("restartPolicy"), "a HyperJob restarts by no class of exit codes")
    template = mapping(given.get("template"))
    pod = {**mapping(template.get("spec")), "restartPolicy": policy}
    policies = [_FAILS] if policy == "Never" else []
    if role == "Master":
        policies = [*policies, {"event": "TaskCompleted", "action": "CompleteJob"}]
    return {
        "name": role.lower(),
        "replicas": given.get("replicas", 1),
        **({"policies": policies} if policies else {}),
        "template": {**template, "spec": pod},
    }


_BY_HAND: Final = "write its pods as tasks of a HyperJob by hand"
FORMS: Final[Mapping[tuple[str, str], Form]] = {
    ("batch.volcano.sh", "Job"): Form("vcjob", _vcjob),
    ("batch", "Job"): Form("Kubernetes Job", _job),
    ("jobset.x-k8s.io", "JobSet"): Form("JobSet", _jobset),
    ("kubeflow.org", "PyTorchJob"): Form("PyTorchJob", _pytorchjob),
    ("kubeflow.org", "MPIJob"): Form("MPIJob", advice=_BY_HAND),
    ("kubeflow.org", "TFJob"): Form("TFJob", advice=_BY_HAND),
    ("ray.io", "RayJob"): Form("RayJob", advice=_BY_HAND),
    ("trainer.kubeflow.org", "TrainJob"): Form(
        "TrainJob", advice="kubectl apply it as it is: HyperJob's controller runs TrainJobs"
    ),
}
