"""What happens to a stage: users change their HyperJobs, members fail, objects break.

An act draws its object among those that are there, by name, and does nothing without one.
"""

from collections.abc import Mapping
from typing import Any

from tests.decisions.draw import Draw
from tests.decisions.sites import queue_of
from tests.decisions.stage import Act, Object, Stage, key_of

GANG = "training.volcano.sh"
REASONS = ("NoClusterFit", "Unschedulable", "SchedulerError", "Other")
REPORTS = ("Pending", "Pending", "Running", "Running", "Running", "Completed", "Failed", "Aborted",
           "Terminated", "Terminating", "Restarting", "Completing")  # fmt: skip


def some_of(stage: Stage, kind: str, draw: Draw) -> Object | None:
    found = {key_of(each): each for each in stage.items(kind)}
    return found[draw.pick(kind, list(found))] if found else None


def suspend(stage: Stage, draw: Draw, raw: Object) -> str:
    value = not raw["spec"].get("suspend")
    stage.change("HyperJob", key_of(raw), {"spec": {"suspend": value}})
    return f"suspends {value}"


def request(stage: Stage, draw: Draw, raw: Object) -> str:
    kind = draw.pick("request", ("restart", "migrate"))
    names = [each["name"] for each in raw.get("status", {}).get("jobs", [])] or ["none"]
    words = " ".join([f"t{stage.count}", *draw.sample("of", names, draw.pick("some", (0, 0, 1)))])
    marks = {f"{GANG}/{kind}": words}
    stage.change("HyperJob", key_of(raw), {"metadata": {"annotations": marks}})
    return f"asks to {kind} {words}"


def request_all(stage: Stage, draw: Draw, raw: Object) -> str:
    """Ask to restart the HyperJob, or to move all of its sub-jobs."""
    kind = draw.pick("request", ("restart", "migrate"))
    names = [each["name"] for each in raw.get("status", {}).get("jobs", [])]
    words = " ".join([f"t{stage.count}", *(names if kind == "migrate" else ())])
    stage.change("HyperJob", key_of(raw), {"metadata": {"annotations": {f"{GANG}/{kind}": words}}})
    return f"asks to {kind} {words}"


def resume(stage: Stage) -> str:
    """Resume all HyperJobs."""
    for raw in stage.items("HyperJob"):
        stage.change("HyperJob", key_of(raw), {"spec": {"suspend": False}})
    return "resumes all"


def scale(stage: Stage, draw: Draw, raw: Object) -> str:
    group, *rest = raw["spec"]["replicatedJobs"]
    if "splitPolicy" in group:
        return "scales nothing"
    replicas = max(1, group["replicas"] + draw.pick("more", (-1, 1, 2)))
    return edit(stage, raw, replicatedJobs=[{**group, "replicas": replicas}, *rest])


def grow(stage: Stage, draw: Draw, raw: Object) -> str:
    group, *rest = raw["spec"]["replicatedJobs"]
    *others, last = group["templateSpec"]["tasks"]
    workers = max(1, last["replicas"] + draw.pick("more", (-1, 1)))
    spec = {**group["templateSpec"], "tasks": [*others, {**last, "replicas": workers}]}
    return edit(stage, raw, replicatedJobs=[{**group, "templateSpec": spec}, *rest])


def need(stage: Stage, draw: Draw, raw: Object) -> str:
    return edit(stage, raw, minAvailable=draw.number("minAvailable", 1, 3))


def edit(stage: Stage, raw: Object, **spec: Any) -> str:
    return stage.apply({**raw, "spec": {**raw["spec"], **spec}})


def delete(stage: Stage, draw: Draw, raw: Object) -> str:
    stage.remove("HyperJob", key_of(raw))
    return "deletes it"


USERS = {
    "suspend": suspend,
    "request": request,
    "scale": scale,
    "grow": grow,
    "need": need,
    "suspend again": suspend,
    "request again": request,
}


def user(doings: Mapping[str, Any] = USERS) -> Act:
    """Let a user do something with a HyperJob."""

    def act(stage: Stage) -> str:
        draw = stage.draw
        raw = some_of(stage, "HyperJob", draw)
        if raw is None:
            return "there is no HyperJob"
        return f"{key_of(raw)}: {draw.named('doing', doings)(stage, draw, raw)}"

    return act


def queue_changes(stage: Stage) -> str:
    """Close or open a queue, or give it another spec."""
    draw = stage.draw
    raw = some_of(stage, "Queue", draw)
    if raw is None:
        return "there is no Queue"
    name, parent = raw["metadata"]["name"], raw["spec"].get("parent", "")
    other = queue_of(draw, name, (parent,))
    status = draw.pick("state", (raw["status"], {"state": "Closed"}, {"state": "Open"}))
    stage.plane.api.replace(stage.entry.KINDS["Queue"], name, {**raw, **other, "status": status,
                            "metadata": raw["metadata"]})  # fmt: skip
    return f"queue {name} changes"


def cluster_lost(stage: Stage) -> str:
    """Lose a cluster, or find it again."""
    site = stage.draw.named("site", stage.plane.karmada.sites)
    stage.plane.karmada.lose(site, down=not site.down)
    return f"cluster {site.name} is {'down' if site.down else 'up'}"


def cluster_changes(stage: Stage) -> str:
    """Lose a cluster or find it again, or let others use some of it."""
    draw = stage.draw
    site = draw.named("site", stage.plane.karmada.sites)
    if draw.some("lost", 0.5):
        stage.plane.karmada.lose(site, down=not site.down)
        return f"cluster {site.name} is {'down' if site.down else 'up'}"
    site.foreign = draw.pick("foreign", (0, 2, 4, 8))
    stage.plane.karmada.touch(site)
    return f"others use {site.foreign} of {site.name}"


def others(stage: Stage) -> str:
    """Let others use more or less of a cluster."""
    draw = stage.draw
    site = draw.named("site", stage.plane.karmada.sites)
    stage.plane.karmada.use(site, draw.number("held", 0, 6))
    return f"others hold {site.held} of {site.name}"


def queue_closes(stage: Stage) -> str:
    """Close a queue, or open it again."""
    raw = some_of(stage, "Queue", stage.draw)
    assert raw is not None
    state = "Open" if raw["status"]["state"] == "Closed" else "Closed"
    stage.change("Queue", key_of(raw), {"status": {"state": state}}, status=True)
    return f"queue {key_of(raw)} is {state}"


def heal(stage: Stage) -> str:
    """Bring all clusters and queues back as they were at the beginning."""
    karmada = stage.plane.karmada
    for site in karmada.sites.values():
        karmada.use(site, 0)
        if site.down:
            karmada.lose(site, down=False)
    for raw in stage.items("Queue"):
        stage.change("Queue", key_of(raw), {"status": {"state": "Open"}}, status=True)
    return "all heals"


def taint(stage: Stage) -> str:
    draw = stage.draw
    name = draw.pick("site", list(stage.plane.karmada.sites))
    taints = [{"key": "maintenance", "value": "true", "effect": "NoSchedule"}]
    stage.change("Cluster", name, {"spec": {"taints": draw.pick("taints", (taints, None))}})
    return f"the taints of {name} change"


def report(stage: Stage) -> str:
    """Let the members report anything about any vcjobs."""
    draw = stage.draw
    same = draw.pick("all", (*REPORTS, *("",) * len(REPORTS)))
    told = []
    for raw in stage.items("Job"):
        at = draw.at(key_of(raw))
        if at.some("silent", 0.2):
            continue
        size = sum(each.get("replicas", 0) for each in raw["spec"]["tasks"])
        phase = same or at.pick("phase", REPORTS)
        pods: dict[str, dict[str, int]] = {
            "Pending": at.pick("pending", ({}, {"pending": size}, {"pending": 1})),
            "Running": at.pick("running", ({"running": size}, {"running": size}, {"running": 1})),
            "Completed": {"succeeded": size},
            "Failed": {"failed": 1, "running": size - 1},
        }
        stage.plane.karmada.report(key_of(raw), phase, **pods.get(phase, {}))
        told.append(f"{key_of(raw)} {phase}")
    return f"reports {', '.join(told)}"


def job_goes(stage: Stage, draw: Draw, raw: Object) -> None:
    stage.remove("Job", key_of(raw))


def job_of_another(stage: Stage, draw: Draw, raw: Object) -> None:
    owner = {"apiVersion": "v1", "kind": "CronJob", "name": "other", "uid": "u", "controller": True}
    stage.change("Job", key_of(raw), {"metadata": {"ownerReferences": [owner]}})


def job_orphaned(stage: Stage, draw: Draw, raw: Object) -> None:
    stage.change("Job", key_of(raw), {"metadata": {"ownerReferences": None}})


def job_unlabelled(stage: Stage, draw: Draw, raw: Object) -> None:
    labels = {"volcano.sh/hyperjob-name": None}
    stage.change("Job", key_of(raw), {"metadata": {"labels": labels}})


def policy_goes(stage: Stage, draw: Draw, raw: Object) -> None:
    stage.remove("PropagationPolicy", key_of(raw))


def policy_orphaned(stage: Stage, draw: Draw, raw: Object) -> None:
    stage.change("PropagationPolicy", key_of(raw), {"metadata": {"ownerReferences": None}})


def policy_elsewhere(stage: Stage, draw: Draw, raw: Object) -> None:
    placement = raw["spec"]["placement"]
    terms = [{**placement["clusterAffinities"][0], "clusterNames": ["nowhere"]}]
    stage.change(
        "PropagationPolicy", key_of(raw), {"spec": {"placement": {"clusterAffinities": terms}}}
    )


def binding_goes(stage: Stage, draw: Draw, raw: Object) -> None:
    stage.remove("ResourceBinding", key_of(raw))


def binding_unscheduled(stage: Stage, draw: Draw, raw: Object) -> None:
    words = {"reason": draw.pick("reason", REASONS), "message": "0/1 fit"}
    conditions = [{"type": "Scheduled", "status": "False", **words}]
    stage.change("ResourceBinding", key_of(raw), {"spec": {"clusters": None}})
    change = {"status": {"conditions": conditions}}
    stage.change("ResourceBinding", key_of(raw), change, status=True)


def binding_refused(stage: Stage, draw: Draw, raw: Object) -> None:
    where = (raw["spec"].get("clusters") or [{"name": "a"}])[0]["name"]
    text = "admission webhook denied the request"
    report = {"aggregatedStatus": [{"clusterName": where, "appliedMessage": text}]}
    stage.change("ResourceBinding", key_of(raw), {"status": report}, status=True)


def binding_foreign(stage: Stage, draw: Draw, raw: Object) -> None:
    resource = {"kind": "Deployment", "apiVersion": "apps/v1"}
    stage.change("ResourceBinding", key_of(raw), {"spec": {"resource": resource}})


BREAKS = {
    "job goes": ("Job", job_goes),
    "job is of another": ("Job", job_of_another),
    "job is orphaned": ("Job", job_orphaned),
    "job has no label": ("Job", job_unlabelled),
    "policy goes": ("PropagationPolicy", policy_goes),
    "policy is orphaned": ("PropagationPolicy", policy_orphaned),
    "policy names another cluster": ("PropagationPolicy", policy_elsewhere),
    "binding goes": ("ResourceBinding", binding_goes),
    "binding is not scheduled": ("ResourceBinding", binding_unscheduled),
    "binding is not scheduled again": ("ResourceBinding", binding_unscheduled),
    "binding is not applied": ("ResourceBinding", binding_refused),
    "binding is of a Deployment": ("ResourceBinding", binding_foreign),
}


def breaks(stage: Stage) -> str:
    """Break an object."""
    draw = stage.draw
    what = draw.pick("what", list(BREAKS))
    kind, change = BREAKS[what]
    raw = some_of(stage, kind, draw)
    if raw is None:
        return f"there is no {kind}"
    change(stage, draw, raw)
    return f"{key_of(raw)}: {what}"
