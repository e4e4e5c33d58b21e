"""The decision about each field of a TrainJob and of its runtime: carried over, or refused.

A field that the tables lack is refused by name: no field is accepted without effect. The page
docs/reference/trainjob.md is generated from the tables.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object


@dataclass(frozen=True, slots=True)
class Field:
    """The decision about one field."""

    carried: bool
    text: str
    """What becomes of the field, or why a TrainJob with it is refused."""
    accepted: tuple[object, ...] = ()
    """Values of a refused field that mean the same as no value."""


def _carried(text: str) -> Field:
    return Field(carried=True, text=text)


def _refused(text: str, *accepted: object) -> Field:
    return Field(carried=False, text=text, accepted=(None, *accepted))


_POD: Final = "template.spec.template"
_JOB_KEPT: Final = "label or annotation of the sub-jobs"
_INITIALIZER: Final = "of the init container that every node runs before its training"
_PATCHED: Final = "changes the pods"
_INDEXED: Final = "HyperJob creates one pod for each node"


def _unnamed(path: str) -> Mapping[str, Field]:
    """Return the fields of a template's metadata that no template of a pod or job may have."""
    why = "HyperJob names the objects, and deletes them without finalizers"
    return {f"{path}.{name}": _refused(why, "") for name in ("name", "namespace", "finalizers")}


TRAINJOB: Final[Mapping[str, Field]] = {
    "runtimeRef.name": _carried("the runtime, read once, when the HyperJob is created"),
    "runtimeRef.apiGroup": _carried("trainer.kubeflow.org only"),
    "runtimeRef.kind": _carried("ClusterTrainingRuntime or TrainingRuntime"),
    "initializer.dataset.storageUri": _carried(f"variable STORAGE_URI {_INITIALIZER}"),
    "initializer.dataset.env": _carried(f"variables {_INITIALIZER}"),
    "initializer.dataset.secretRef.name": _carried(
        f"a Secret whose keys are variables {_INITIALIZER}"
    ),
    "initializer.model.storageUri": _carried(f"variable STORAGE_URI {_INITIALIZER}"),
    "initializer.model.env": _carried(f"variables {_INITIALIZER}"),
    "initializer.model.secretRef.name": _carried(
        f"a Secret whose keys are variables {_INITIALIZER}"
    ),
    "trainer.image": _carried("image of the container `node`"),
    "trainer.command": _carried("command of the container `node`; `tune run` alone is refused"),
    "trainer.args": _carried("arguments of the container `node`"),
    "trainer.env": _carried("variables of the container `node`"),
    "trainer.numNodes": _carried("number of pods of all sub-jobs together; 0 is refused"),
    "trainer.resourcesPerNode": _carried("resources of the container `node`"),
    "trainer.numProcPerNode": _carried(
        "PET_NPROC_PER_NODE of a torch runtime; no effect for others, as in Trainer"
    ),
    "runtimePatches.manager": _carried("the author of the patch; no effect"),
    "runtimePatches.time": _carried("the time of the patch; no effect"),
    "runtimePatches.trainingRuntimeSpec.template.metadata.labels": _carried(
        "labels of the HyperJob"
    ),
    "runtimePatches.trainingRuntimeSpec.template.metadata.annotations": _carried(
        "annotations of the HyperJob"
    ),
    **_unnamed("runtimePatches.trainingRuntimeSpec.template.metadata"),
    **{
        f"runtimePatches.trainingRuntimeSpec.template.spec.replicatedJobs.{path}": decided
        for path, decided in {
            "name": _carried("the job that the patch changes"),
            **_unnamed("template.metadata"),
            **_unnamed(f"{_POD}.metadata"),
            "template.metadata.labels": _carried(_JOB_KEPT),
            "template.metadata.annotations": _carried(_JOB_KEPT),
            f"{_POD}.metadata.labels": _carried("labels of the pods"),
            f"{_POD}.metadata.annotations": _carried("annotations of the pods"),
            **{
                f"{_POD}.spec.{name}": _carried(_PATCHED)
                for name in (
                    "serviceAccountName",
                    "volumes",
                    "initContainers.name",
                    "initContainers.env",
                    "initContainers.volumeMounts",
                    "initContainers.securityContext",
                    "containers.name",
                    "containers.env",
                    "containers.volumeMounts",
                    "containers.securityContext",
                    "imagePullSecrets",
                    "securityContext",
                    "nodeSelector",
                    "affinity",
                    "tolerations",
                    "terminationGracePeriodSeconds",
                )
            },
            f"{_POD}.spec.schedulingGates": _refused(
                "no controller in the member clusters removes the gates"
            ),
        }.items()
    },
    "suspend": _carried("suspend of the HyperJob"),
    "activeDeadlineSeconds": _carried(
        "the TrainJob fails this long after its creation or its last resume"
    ),
    "managedBy": _carried("trainer.kubeflow.org/trainjob-controller; another value is left alone"),
}
"""The fields below `spec` of a TrainJob; lists have no index in a path."""

RUNTIME: Final[Mapping[str, Field]] = {
    "mlPolicy.numNodes": _carried("number of nodes where the TrainJob has none"),
    "mlPolicy.torch.envInjection.targets.jobName": _carried("the job of the trainer only"),
    "mlPolicy.torch.envInjection.targets.containerNames": _carried("containers that get PET_*"),
    "mlPolicy.jax": _carried("plugin jax: one coordinator for all sub-jobs"),
    "mlPolicy.mpi.numProcPerNode": _carried("slots of each host of the hostfile"),
    "mlPolicy.mpi.mpiImplementation": _refused("only the hostfile of OpenMPI", "", "OpenMPI"),
    "mlPolicy.mpi.sshAuthMountPath": _carried("folder of the SSH keys, which Volcano creates"),
    "mlPolicy.mpi.runLauncherAsNode": _carried("the launcher is the first host of the hostfile"),
    "mlPolicy.flux": _refused("HyperJob installs no Flux broker in the pods"),
    "mlPolicy.xgboost": _refused("HyperJob provides no tracker address for XGBoost"),
    "podGroupPolicy.coscheduling": _carried(
        "a HyperJob starts as one gang; the time limit of the gang is the controller's"
    ),
    "podGroupPolicy.volcano.networkTopology": _carried("networkTopology of the sub-jobs"),
    **_unnamed("template.metadata"),
    "template.metadata.labels": _carried("labels of the HyperJob"),
    "template.metadata.annotations": _carried(
        "annotations of the HyperJob; scheduling.volcano.sh/queue-name is its queue"
    ),
    **{
        f"template.spec.{path}": decided
        for path, decided in {
            "network.enableDNSHostnames": _carried("pods always have host names"),
            "network.publishNotReadyAddresses": _carried("HyperJob always publishes them"),
            "network.subdomain": _refused("the host names of the pods are Volcano's"),
            "successPolicy.operator": _carried("All; Any means the same for one job"),
            "successPolicy.targetReplicatedJobs": _carried("the job of the trainer only"),
            "failurePolicy.maxRestarts": _carried("restarts of the HyperJob"),
            "failurePolicy.restartStrategy": _refused(
                "the pods of a restarted HyperJob are created again", "Recreate", "BlockingRecreate"
            ),
            "failurePolicy.rules": _refused("HyperJob restarts after every failure"),
            "startupPolicy.startupPolicyOrder": _carried("there is one job to start"),
            "suspend": _refused("suspend the TrainJob by its spec.suspend", False),
            "coordinator": _refused("the address of the coordinator is a host name of JobSet"),
            "managedBy": _refused(
                "no other controller runs the jobs", "jobset.sigs.k8s.io/jobset-controller"
            ),
            "ttlSecondsAfterFinished": _carried(
                "seconds from the end of the TrainJob to the deletion of its HyperJob"
            ),
            "volumeClaimPolicies.templates": _carried("an ephemeral claim of each pod"),
            "volumeClaimPolicies.retentionPolicy.whenDeleted": _refused(
                "the claim is deleted with the HyperJob", "Delete"
            ),
            **{
                f"replicatedJobs.{below}": each
                for below, each in {
                    "name": _carried("the trainer's is the name of the replicatedJob"),
                    "groupName": _refused("HyperJob has no groups of jobs", "", "default"),
                    "replicas": _refused("Trainer has one job of each kind", 1),
                    "dependsOn.name": _carried("the trainer waits for its initializers"),
                    "dependsOn.status": _carried(
                        "Complete for initializers; Ready for the nodes of an MPI launcher, which"
                        " waits until SSH reaches them"
                    ),
                    **_unnamed("template.metadata"),
                    **_unnamed(f"{_POD}.metadata"),
                    "template.metadata.labels": _carried(_JOB_KEPT),
                    "template.metadata.annotations": _carried(_JOB_KEPT),
                    "template.spec.parallelism": _carried("number of nodes without an mlPolicy"),
                    "template.spec.completions": _carried("equals the number of nodes"),
                    "template.spec.completionMode": _refused(_INDEXED, "Indexed"),
                    "template.spec.backoffLimit": _carried(
                        "restarts of the HyperJob after a failed pod; 6 if unset"
                    ),
                    "template.spec.activeDeadlineSeconds": _refused(
                        "set spec.activeDeadlineSeconds of the TrainJob"
                    ),
                    "template.spec.suspend": _refused(
                        "suspend the TrainJob by its spec.suspend", False
                    ),
                    "template.spec.manualSelector": _refused("Volcano selects the pods", False),
                    "template.spec.podReplacementPolicy": _refused(
                        "a HyperJob restarts as a whole", "TerminatingOrFailed", "Failed"
                    ),
                    "template.spec.managedBy": _refused(
                        "no other controller runs the jobs", "kubernetes.io/job-controller"
                    ),
                    "template.spec.backoffLimitPerIndex": _refused(_INDEXED),
                    "template.spec.maxFailedIndexes": _refused(_INDEXED),
                    "template.spec.podFailurePolicy": _refused(
                        "HyperJob restarts after every failure"
                    ),
                    "template.spec.selector": _refused("Volcano selects the pods"),
                    "template.spec.successPolicy": _refused("all nodes must succeed"),
                    "template.spec.ttlSecondsAfterFinished": _refused(
                        "set ttlSecondsAfterFinished of the JobSet"
                    ),
                    f"{_POD}.metadata.labels": _carried("labels of the pods"),
                    f"{_POD}.metadata.annotations": _carried("annotations of the pods"),
                    f"{_POD}.spec": _carried("the pods; the rules of HyperJob apply"),
                }.items()
            },
        }.items()
    },
}
"""The fields below `spec` of a TrainingRuntime or ClusterTrainingRuntime."""

POD: Final[Mapping[str, Field]] = {
    "hostname": _refused("the host names of the pods are Volcano's", ""),
    "subdomain": _refused("the host names of the pods are Volcano's", ""),
    "setHostnameAsFQDN": _refused("the host names of the pods are Volcano's", False),
    "schedulerName": _refused("Volcano schedules the pods", "", "default-scheduler", "volcano"),
    "schedulingGates": _refused("no controller in the member clusters removes the gates"),
    "restartPolicy": _refused("a training ends", "", "Never", "OnFailure"),
    "activeDeadlineSeconds": _refused("set spec.activeDeadlineSeconds of the TrainJob"),
}
"""The refused fields of a pod of a runtime."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A field that cannot be carried over: its path with indexes, and the reason."""

    path: str
    text: str


def misfits(value: Object, table: Mapping[str, Field]) -> Iterator[Misfit]:
    """Yield the fields of an object that a table refuses or lacks."""
    yield from _below(value, table, "", "")


def pod_misfits(spec: Object) -> Iterator[Misfit]:
    """Yield the refused fields of the pods of a runtime."""
    for name, decided in POD.items():
        if spec.get(name) not in decided.accepted:
            yield Misfit(name, decided.text)


def _below(value: object, table: Mapping[str, Field], known: str, shown: str) -> Iterator[Misfit]:
    """Yield the same for the value at a path: `known` without indexes, `shown` with them."""
    decided = table.get(known)
    if decided is not None:
        if not decided.carried and value not in decided.accepted:
            yield Misfit(shown, decided.text)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _below(item, table, known, f"{shown}[{index}]")
    elif isinstance(value, dict) and (not known or _leads_on(known, table)):
        for name, item in value.items():
            below = f"{known}.{name}" if known else name
            yield from _below(item, table, below, f"{shown}.{name}" if shown else name)
    elif value is not None:
        text = "unexpected value" if _leads_on(known, table) else "HyperJob does not know the field"
        yield Misfit(shown, text)


def _leads_on(known: str, table: Mapping[str, Field]) -> bool:
    return any(path.startswith(f"{known}.") for path in table)
