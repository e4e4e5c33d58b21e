"""What of a TrainJob and its runtime cannot be carried over to a HyperJob."""

from collections.abc import Iterable
from typing import Final

from hyperjob_core.api.field import SPEC, FieldError, Path, forbidden, invalid
from hyperjob_core.api.limits import MAX_ALL_TASKS
from hyperjob_core.api.meta import Object
from hyperjob_core.api.trainer import (
    CLUSTER_RUNTIME_KIND,
    NODE,
    RUNTIME_KIND,
    TRAINER_GROUP,
    TRAINER_STEP,
)
from hyperjob_core.api.wire import at, count, mapping, objects, string, string_map, strings
from hyperjob_trainjobs.fields import RUNTIME, TRAINJOB, misfits, pod_misfits
from hyperjob_trainjobs.pods import INITIALIZERS, pod_of, step_of
from hyperjob_trainjobs.pods import RESERVED as MPI_RESERVED

RUNTIME_REF = SPEC.child("runtimeRef")


class Refusals:
    """Collects the refusals of a TrainJob; a field of its runtime is named below runtimeRef."""

    def __init__(self, trainjob: Object) -> None:
        reference = at(trainjob, "spec", "runtimeRef")
        kind = string(at(reference, "kind")) or CLUSTER_RUNTIME_KIND
        self.runtime = f"{kind} {string(at(reference, 'name'))}"
        self.errors: list[FieldError] = []

    def field(self, path: Path | str, text: str) -> None:
        """Refuse a field of the TrainJob; `path` as text begins below `spec`."""
        where = SPEC.child(path) if isinstance(path, str) else path
        self.errors.append(forbidden(where, text))

    def value(self, path: str, value: object, text: str) -> None:
        """Refuse the value of a field below `spec` of the TrainJob."""
        self.errors.append(invalid(SPEC.child(path), value, text))

    def of_runtime(self, path: str, text: str) -> None:
        """Refuse a field below `spec` of the runtime."""
        self.errors.append(forbidden(RUNTIME_REF, f"{self.runtime} has spec.{path}: {text}"))


_RESERVED: Final = frozenset(
    {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"}
)
_COUNTED: Final = ("auto", "cpu", "gpu")
"""The numbers of processes that torchrun counts itself."""
_EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_OWN: Final = frozenset({"containers", "volumes", "restartPolicy"})
"""The fields of an initializer's pod that its init container keeps."""
_POD: Final = "template.spec.template.spec"


def check(
    trainjob: Object, runtime: Object, template: Object, nodes: int, refusals: Refusals
) -> None:
    """Refuse what cannot be carried over; `template` is the runtime's with the patches."""
    spec = mapping(trainjob.get("spec"))
    for found in misfits(spec, TRAINJOB):
        refusals.field(SPEC.child(found.path), found.text)
    for found in misfits(mapping(runtime.get("spec")), RUNTIME):
        refusals.of_runtime(found.path, found.text)
    _check_reference(mapping(spec.get("runtimeRef")), refusals)
    policy = mapping(at(runtime, "spec", "mlPolicy"))
    _check_trainer(spec, policy, nodes, refusals)
    jobs = objects(at(template, "spec", "replicatedJobs"))
    trainer = _check_jobs(jobs, refusals, mpi="mpi" in policy)
    if "mpi" in policy and trainer:
        _check_mpi(template, policy, trainer, refusals)
    _check_patches(spec, mapping(runtime.get("spec")), refusals)
    if trainer:
        _check_initializers(spec, jobs, trainer, refusals)
        _check_claims(template, jobs, nodes, refusals)
        _check_names(runtime, template, trainer, refusals)


def _check_reference(reference: Object, refusals: Refusals) -> None:
    """Refuse a runtimeRef to another kind than a runtime of Trainer."""
    group, kind = reference.get("apiGroup"), reference.get("kind")
    if group not in (None, TRAINER_GROUP):
        refusals.value("runtimeRef.apiGroup", group, f"must be {TRAINER_GROUP}")
    if kind not in (None, CLUSTER_RUNTIME_KIND, RUNTIME_KIND):
        refusals.value("runtimeRef.kind", kind, f"must be {CLUSTER_RUNTIME_KIND} or {RUNTIME_KIND}")


def _check_trainer(spec: Object, policy: Object, nodes: int, refusals: Refusals) -> None:
    """Refuse values of `spec.trainer`: no nodes, a recipe, variables that each node gets."""
    trainer = mapping(spec.get("trainer"))
    if nodes < 1:
        refusals.value("trainer.numNodes", nodes, "a HyperJob has at least one node")
    if nodes > MAX_ALL_TASKS and "mpi" not in policy:  # each is a task
        refusals.value("trainer.numNodes", nodes, f"it has at most {MAX_ALL_TASKS:,} nodes")
    processes, known = trainer.get("numProcPerNode"), _COUNTED if "torch" in policy else ()
    if processes not in (None, *known) and count(processes) < 1:
        text = ", or ".join(["must be at least 1", *known])
        refusals.value("trainer.numProcPerNode", processes, text)
    if strings(trainer.get("command")) == ("tune", "run") and "torch" in policy:
        refusals.field(
            "trainer.command",
            "only Trainer completes `tune run` with a recipe: write the whole command",
        )
    names = {string(each.get("name")) for each in objects(trainer.get("env"))}
    reserved = {"torch": _RESERVED, "mpi": MPI_RESERVED}
    for name in sorted(names & set().union(*(reserved[key] for key in reserved.keys() & policy))):
        refusals.value("trainer.env", name, "is set for each node")


def _check_jobs(jobs: list[Object], refusals: Refusals, *, mpi: bool) -> Object:
    """Check the replicatedJobs of a runtime; return the job that trains, empty if there is none."""
    where = "template.spec.replicatedJobs"
    trainers = [job for job in jobs if step_of(job) == TRAINER_STEP]
    if len(trainers) != 1:
        refusals.of_runtime(where, f"{len(trainers)} jobs of the step {TRAINER_STEP}, must be one")
    for index, job in enumerate(jobs):
        step = step_of(job)
        is_node = mpi and not step and job.get("name") == NODE
        if step != TRAINER_STEP and step not in INITIALIZERS and not is_node:
            refusals.of_runtime(
                f"{where}[{index}]",
                f"the job {string(job.get('name'))!r} is no trainer and no initializer",
            )
            continue
        container = step if step in INITIALIZERS else NODE
        if container not in _container_names(job, "containers"):
            refusals.of_runtime(f"{where}[{index}].{_POD}.containers", f"none is named {container}")
        for found in pod_misfits(pod_of(job)):
            refusals.of_runtime(f"{where}[{index}].{_POD}.{found.path}", found.text)
        _check_order(job, f"{where}[{index}]", refusals, mpi=mpi)
        annotations = string_map(at(job, "template", "metadata", "annotations"))
        if _EXCLUSIVE in annotations:
            refusals.of_runtime(f"{where}[{index}].template.metadata.annotations", _one_job_each())
    return trainers[0] if len(trainers) == 1 else {}


def _check_order(job: Object, where: str, refusals: Refusals, *, mpi: bool) -> None:
    """Refuse an order of jobs that the init containers of a pod cannot keep."""
    for number, each in enumerate(objects(job.get("dependsOn"))):
        name, status = each.get("name"), each.get("status")
        if mpi and (step_of(job), name, status) == (TRAINER_STEP, NODE, "Ready"):
            continue
        if mpi or status not in (None, "Complete"):
            must = f"{NODE} be Ready, for the launcher" if mpi else "an initializer be Complete"
            refusals.of_runtime(f"{where}.dependsOn[{number}]", f"must let {must}")


def _check_mpi(template: Object, policy: Object, launcher: Object, refusals: Refusals) -> None:
    """Check what Trainer needs for an MPI training: a launcher that ends, and nodes that serve."""
    where = "template.spec.replicatedJobs"
    jobs = objects(at(template, "spec", "replicatedJobs"))
    name = string(launcher.get("name"))
    if name == NODE or not any(job.get("name") == NODE for job in jobs):
        refusals.of_runtime(where, f"MPI needs a launcher, and a job {NODE} that it reaches by SSH")
    if any(step_of(job) in INITIALIZERS for job in jobs):
        refusals.of_runtime(where, "no initializer runs before an MPI training")
    if (numbers := policy.get("numNodes")) not in (None, 1):
        refusals.of_runtime(
            "mlPolicy.numNodes",
            f"Trainer would start {numbers} launchers: set trainer.numNodes of the TrainJob",
        )
    if not strings(at(template, "spec", "successPolicy", "targetReplicatedJobs")):
        refusals.of_runtime(
            "template.spec.successPolicy.targetReplicatedJobs", f"must be [{name}], which ends"
        )


def _one_job_each() -> str:
    return f"{_EXCLUSIVE} is JobSet's: a HyperJob keeps no other job from its nodes"


def _check_initializers(
    spec: Object, jobs: list[Object], trainer: Object, refusals: Refusals
) -> None:
    """Refuse an initializer that cannot be an init container of the trainer's pods.

    Its pod may differ from the trainer's in the fields of `_OWN` only.
    """
    steps = {step_of(job) for job in jobs}
    for step, field in INITIALIZERS.items():
        if mapping(spec.get("initializer")).get(field) is not None and step not in steps:
            refusals.field(f"initializer.{field}", f"{refusals.runtime} has no job {step}")
    main = pod_of(trainer)
    for index, job in enumerate(jobs):
        if step_of(job) not in INITIALIZERS:
            continue
        where, pod = f"template.spec.replicatedJobs[{index}].{_POD}", pod_of(job)
        if len(objects(pod.get("containers"))) > 1:
            refusals.of_runtime(f"{where}.containers", "an initializer has one container")
        for field, value in pod.items():
            if field not in _OWN and value != main.get(field):
                refusals.of_runtime(
                    f"{where}.{field}",
                    "the initializer runs in the pods of the trainer, which has another value",
                )
        theirs = {string(each.get("name")): each for each in objects(main.get("volumes"))}
        for volume in objects(pod.get("volumes")):
            if theirs.get(string(volume.get("name")), volume) != volume:
                refusals.of_runtime(
                    f"{where}.volumes", f"{volume.get('name')} is another volume of the trainer"
                )


def _check_claims(template: Object, jobs: list[Object], nodes: int, refusals: Refusals) -> None:
    """Refuse volumes that the nodes of Trainer share and the nodes of a HyperJob do not."""
    if nodes <= 1:
        return
    policies = objects(at(template, "spec", "volumeClaimPolicies"))
    for index, policy in enumerate(policies):
        for claim in objects(policy.get("templates")):
            if "ReadWriteMany" in strings(at(claim, "spec", "accessModes")):
                refusals.of_runtime(
                    f"template.spec.volumeClaimPolicies[{index}]",
                    "each node has a claim of its own, and a ReadWriteMany claim is shared",
                )
    for index, job in enumerate(jobs):
        claims = [
            string(volume.get("name"))
            for volume in objects(pod_of(job).get("volumes"))
            if "persistentVolumeClaim" in volume
        ]
        if step_of(job) in INITIALIZERS and claims:
            refusals.of_runtime(
                f"template.spec.replicatedJobs[{index}].{_POD}.volumes",
                f"all {nodes} nodes would initialize the claim of {claims[0]} at the same time",
            )


def _check_names(runtime: Object, template: Object, trainer: Object, refusals: Refusals) -> None:
    """Check the references of a runtime to its own jobs and containers."""
    name = string(trainer.get("name"))
    targets = at(template, "spec", "successPolicy", "targetReplicatedJobs")
    if set(strings(targets)) - {name}:
        refusals.of_runtime("template.spec.successPolicy.targetReplicatedJobs", f"only {name} ends")
    if _EXCLUSIVE in string_map(at(template, "metadata", "annotations")):
        refusals.of_runtime("template.metadata.annotations", _one_job_each())
    there = {*_container_names(trainer, "containers"), *_container_names(trainer, "initContainers")}
    injected = objects(at(runtime, "spec", "mlPolicy", "torch", "envInjection", "targets"))
    for index, target in enumerate(injected):
        where = f"mlPolicy.torch.envInjection.targets[{index}]"
        if target.get("jobName") != name:
            refusals.of_runtime(f"{where}.jobName", f"only {name} trains")
        if missing := set(strings(target.get("containerNames"))) - there:
            refusals.of_runtime(f"{where}.containerNames", f"{name} has no {min(missing)}")


def _check_patches(spec: Object, runtime: Object, refusals: Refusals) -> None:
    """Refuse patches of jobs and containers that the runtime lacks, as Trainer does."""
    jobs = {
        string(job.get("name")): job
        for job in objects(at(runtime, "template", "spec", "replicatedJobs"))
    }
    for index, patch in enumerate(objects(spec.get("runtimePatches"))):
        changes = at(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")
        where = SPEC.child("runtimePatches").index(index)
        path = where.child("trainingRuntimeSpec", "template", "spec", "replicatedJobs")
        for number, change in enumerate(objects(changes)):
            name = string(change.get("name"))
            if name not in jobs:
                refusals.field(path.index(number), f"{refusals.runtime} has no job {name!r}")
                continue
            _check_patch(change, jobs[name], path.index(number), refusals)


def _check_patch(change: Object, job: Object, path: Path, refusals: Refusals) -> None:
    """Refuse changes of absent containers, and of the variables of Trainer's own containers."""
    for field in ("containers", "initContainers"):
        there = _container_names(job, field)
        where = path.below(("template", "spec", "template", "spec", field))
        for index, container in enumerate(objects(pod_of(change).get(field))):
            name = string(container.get("name"))
            if name not in there:
                refusals.field(where.index(index), f"{refusals.runtime} has no container {name!r}")
            elif name in {NODE, *INITIALIZERS} and container.get("env"):
                refusals.field(
                    where.index(index).child("env"), "set the variables in trainer or initializer"
                )


def _container_names(job: Object, field: str) -> Iterable[str]:
    return [string(each.get("name")) for each in objects(pod_of(job).get(field))]
