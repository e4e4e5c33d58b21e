"""HyperJobs of the scenarios, sized for the clusters of the world."""

from collections.abc import Sequence

from e2e.support.world import World
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, KIND


def hyperjob(name: str, *groups: Object, **spec: object) -> Object:
    """Return a HyperJob of replicated jobs."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {**spec, "replicatedJobs": list(groups)},
    }


def both(world: World, name: str, **template: object) -> Object:
    """Return a HyperJob that fills the two largest members."""
    return hyperjob(
        name,
        *(
            group(
                world,
                part,
                pods=world.sizes[member],
                accelerators=world.per_pod,
                only_on=[member],
                **template,  # type: ignore[arg-type]  # passed through
            )
            for part, member in zip(("left", "right"), world.pair, strict=True)
        ),
    )


def group(
    world: World,
    name: str,
    *,
    replicas: int = 1,
    pods: int = 1,
    accelerators: int = 0,
    seconds: float = 3,
    exit_code: int = 0,
    only_on: Sequence[str] = (),
    first_on: Sequence[str] = (),
    split: Object | None = None,
    **template: object,
) -> Object:
    """Return a replicated job of one task; `pods` is per sub-job, `accelerators` per pod.

    In the sandbox, pods of replicated jobs named `failing` fail; on other clusters pods end with
    `exit_code`.
    """
    made: Object = {
        "name": name,
        "replicas": replicas,
        "templateSpec": {
            **template,
            "tasks": [
                task(
                    world,
                    "worker",
                    pods=pods,
                    accelerators=accelerators,
                    seconds=seconds,
                    exit_code=exit_code,
                )
            ],
        },
    }
    if split is not None:
        made["splitPolicy"] = split
    if only_on:
        made |= {"clusterNames": list(only_on), "clusterPolicy": "Required"}
    elif first_on:
        made["clusterNames"] = list(first_on)
    return made


def task(
    world: World,
    name: str,
    *,
    pods: int,
    accelerators: int = 0,
    seconds: float = 3,
    exit_code: int = 0,
    **more: object,
) -> Object:
    """Return a task whose pods run for a time and end with an exit code."""
    resources = {"limits": {world.accelerator: accelerators}} if accelerators else {}
    return {
        "name": name,
        "replicas": pods,
        **more,
        "template": {
            "metadata": world.pod_metadata(seconds=seconds, exit_code=exit_code),
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {
                        "name": "main",
                        "image": world.settings.image,
                        "command": ["sh", "-c", f"sleep {seconds:g}; exit {exit_code}"],
                        "resources": resources,
                    }
                ],
            },
        },
    }


def adapted(world: World, document: Object) -> Object:
    """Return a document's HyperJob for other clusters: amounts, cluster names, images, run times.

    Replicated jobs, replicas, gang, plugins and policies stay unchanged.
    """
    names = iter(world.sizes)
    fitted: Object = {**document, "metadata": {"name": document["metadata"]["name"]}}
    groups = []
    for made in document["spec"]["replicatedJobs"]:
        template = made["templateSpec"]
        group: Object = {
            **made,
            "templateSpec": {
                **template,
                "tasks": [_adapted_task(world, each) for each in template["tasks"]],
            },
        }
        if "clusterNames" in made:
            group["clusterNames"] = [next(names)]
        groups.append(group)
    fitted["spec"] = {**document["spec"], "replicatedJobs": groups}
    return fitted


def _adapted_task(world: World, given: Object) -> Object:
    room = min(world.sizes.values()) * world.per_pod
    container = given["template"]["spec"]["containers"][0]
    resources = container.get("resources") or {}
    asked = {**resources.get("limits", {}), **resources.get("requests", {})}
    pods = min(given["replicas"], room) if given["replicas"] > 3 else given["replicas"]
    made = task(world, given["name"], pods=pods)
    made |= {key: given[key] for key in ("policies",) if key in given}
    if asked:
        kept = "limits" if "limits" in resources else "requests"
        made["template"]["spec"]["containers"][0]["resources"] = {
            kept: {world.accelerator: next(iter(asked.values()))}
        }
    return made
