"""The generator of the CustomResourceDefinitions, from the API types.

`python -m hyperjob_core.api.schema` writes their files, which users apply.
"""

from pathlib import Path
from typing import Final

from hyperjob_core.api import batch, names, phases, v1alpha1
from hyperjob_core.api.bounded import bounded
from hyperjob_core.api.markers import list_map
from hyperjob_core.api.meta import Object
from hyperjob_core.api.structural import schema_of

_ROOT: Final = Path(__file__).parents[3]
HYPERJOB_FILE: Final = Path("crds") / f"{names.GROUP}_{names.PLURAL}.yaml"
VCJOB_FILE: Final = Path("core/hyperjob_core/api/crds/batch.volcano.sh_jobs.yaml")

_HEADER: Final = (
    "# Made by `python -m hyperjob_core.api.schema` from the types in core/hyperjob_core/api.\n"
)


def hyperjob_crd() -> Object:
    """Return the CRD of the HyperJob."""
    return _crd(
        group=names.GROUP,
        version=names.VERSION,
        crd_names={
            "kind": names.KIND,
            "listKind": f"{names.KIND}List",
            "plural": names.PLURAL,
            "singular": "hyperjob",
            "shortNames": ["hyperjob", "hj"],
            "categories": ["all", "volcano"],
        },
        columns=[
            _column("Status", ".status.state.phase", "Phase of the HyperJob."),
            _column("Jobs", ".status.jobsReady", "Sub-jobs that run or completed, of all."),
            _column("Running", ".status.runningPods", "Pods running.", kind="integer"),
            _column("Progress", ".status.training.progress", "Steps done, in percent of all."),
            _column("Clusters", ".status.clusterNames", "Clusters in use."),
            _column("Restarts", ".status.restarts", "Restarts and moves.", kind="integer"),
            _column("Reason", ".status.state.reason", "Reason of the phase, one word."),
            _column("Age", ".metadata.creationTimestamp", "Time since creation.", kind="date"),
            _column(
                "Queue", ".status.queue", "Queues in which the HyperJob waits or ran.", priority=1
            ),
            _column("Message", ".status.state.message", "Message about the reason.", priority=1),
        ],
        schema=_with_bounds(
            _keyed(
                _object_schema(
                    "One training job that is split over several clusters and runs as one.",
                    v1alpha1.HyperJobSpec,
                    v1alpha1.HyperJobStatus,
                )
            )
        ),
    )


def _keyed(schema: Object) -> Object:
    """Mark the lists of a template that have a key, so that server-side apply merges their items.

    The API server demands the key of every item; the webhook names a task without a name.
    """
    jobs = schema["properties"]["spec"]["properties"]["replicatedJobs"]["items"]
    template = jobs["properties"]["templateSpec"]["properties"]
    template["tasks"] |= list_map("name")
    template["tasks"]["items"]["required"] = ["name"]
    template["volumes"] |= list_map("mountPath")
    return schema


def _with_bounds(schema: Object) -> Object:
    """Return the schema with bounds for the fields of users; the controller writes the status."""
    properties = schema["properties"]
    return {**schema, "properties": {**properties, "spec": bounded(properties["spec"])}}


def vcjob_crd() -> Object:
    """Return a CRD of Volcano's Job, with the defaults of Volcano 1.14 and later."""
    schema = _object_schema("Pods that start together.", batch.JobSpec, batch.JobStatus)
    # `spec` is required in a HyperJob only: Volcano's own CRD has it optional.
    del schema["required"]
    spec = schema["properties"]["spec"]["properties"]
    spec["queue"]["default"] = "default"
    spec["maxRetry"]["default"] = 3
    spec["tasks"]["minItems"] = 1
    task = spec["tasks"]["items"]["properties"]
    _key_pod_lists(task["template"]["properties"]["spec"]["properties"])
    partition = task["partitionPolicy"]["properties"]
    partition["minPartitions"]["default"] = 0
    for topology in (spec["networkTopology"], partition["networkTopology"]):
        topology["properties"]["mode"]["default"] = "hard"
    state = schema["properties"]["status"]["properties"]["state"]["properties"]
    state["phase"]["enum"] = [
        phase.value for phase in phases.JobPhase if phase is not phases.JobPhase.UNKNOWN
    ]
    return _crd(
        group="batch.volcano.sh",
        version="v1alpha1",
        crd_names={
            "kind": "Job",
            "listKind": "JobList",
            "plural": "jobs",
            "singular": "job",
            "shortNames": ["vcjob", "vj"],
        },
        columns=[
            _column("STATUS", ".status.state.phase"),
            _column("minAvailable", ".status.minAvailable", kind="integer"),
            _column("RUNNINGS", ".status.running", kind="integer"),
            _column("AGE", ".metadata.creationTimestamp", kind="date"),
            _column("QUEUE", ".spec.queue", priority=1),
        ],
        schema=schema,
    )


def _key_pod_lists(pod: Object) -> None:
    """Key the lists that may have an item twice in a Pod, and not in Volcano's CRD."""
    pod["hostAliases"] |= list_map("ip")
    pod["imagePullSecrets"] |= list_map("name")
    pod["imagePullSecrets"]["items"]["properties"]["name"]["default"] = ""
    for field in ("containers", "initContainers", "ephemeralContainers"):
        container = pod[field]["items"]["properties"]
        container["env"] |= list_map("name")
        container["ports"] |= list_map("containerPort", "protocol")
        container["ports"]["items"]["properties"]["protocol"]["default"] = "TCP"


def render(crd: Object) -> str:
    """Return the text of a CRD's file."""
    import yaml

    text: str = yaml.safe_dump(crd, sort_keys=False, width=100)
    return _HEADER + text


def files() -> dict[Path, str]:
    """Return every generated file: path from the project's top folder, and text."""
    return {HYPERJOB_FILE: render(hyperjob_crd()), VCJOB_FILE: render(vcjob_crd())}


def _crd(
    *, group: str, version: str, crd_names: Object, columns: list[Object], schema: Object
) -> Object:
    """Return a namespaced CRD with one version, which is stored, and a status subresource."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{crd_names['plural']}.{group}"},
        "spec": {
            "group": group,
            "names": crd_names,
            "scope": "Namespaced",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _object_schema(description: str, spec: type, status: type) -> Object:
    """Return the schema of an object with a required spec, and with a status."""
    return {
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Group and version of the type."},
            "kind": {"type": "string", "description": "Name of the type."},
            "metadata": {"type": "object"},
            "spec": schema_of(spec),
            "status": schema_of(status),
        },
    }


def _column(
    name: str, path: str, description: str = "", *, kind: str = "string", priority: int = 0
) -> Object:
    """Return a column of `kubectl get`; one with a priority is shown by `-o wide` only."""
    column: Object = {"name": name, "type": kind, "jsonPath": path}
    if description:
        column["description"] = description
    if priority:
        column["priority"] = priority
    return column


def main() -> None:
    """Write the files."""
    for path, text in files().items():
        target = _ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


if __name__ == "__main__":
    main()
