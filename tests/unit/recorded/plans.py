"""A plan as lines: what is done in order, what changes in the status, and when comes the next."""

from collections.abc import Iterator, Mapping
from typing import Any

from hyperjob_core.api.quantity import NANO
from hyperjob_engine.model.planned import Action, CreateChild, Plan, Repin
from tests.unit.controller.builders import GPU, Object
from tests.unit.recorded.recording import changes, line


def plan_lines(old: Object, templates: dict[str, Object], decided: Plan) -> Iterator[str]:
    """Write a plan for a HyperJob with this status and these templates by replicatedJob.

    A line that begins with a dot is a field of the status.
    """
    said: set[str] = set()
    for action in decided.actions:
        for each in _action(templates, action):
            if each.startswith("    "):
                each = each.replace(action.name, "<name>")
            # What the sub-jobs of a pass have alike is written for the first of them.
            alike = each.startswith("    ") and each in said
            said.add(each)
            if not alike:
                yield each
    if decided.status is not None:
        for each in changes(old, decided.status):
            yield f"  .{each}"
    for event in decided.events:
        yield f"  {event.type} {event.reason} {event.action}: {event.note}"
    if decided.failed:
        yield f"  asks why {line([item.name for item in decided.failed])} failed"
    for question in decided.questions:
        yield f"  asks the splitter {line(question)}"
    rest: dict[str, Any] = {}
    if decided.requeue_after is not None:
        rest["again after"] = decided.requeue_after
    if decided.waits_for_capacity:
        rest["waits for"] = [amounts(each) for each in decided.needs]
    yield f"  then {line(rest)}"


def amounts(resources: Mapping[str, int]) -> str:
    """Write amounts in whole units, accelerators without their name."""
    return " ".join(
        f"{'' if name == GPU else name + ' '}{amount / NANO:g}"
        for name, amount in sorted(resources.items())
    )


def _action(templates: dict[str, Object], action: Action) -> Iterator[str]:
    if isinstance(action, Repin):
        yield f"  Repin {action.name} to {action.cluster}: {where(action.placement)}"
        return
    if not isinstance(action, CreateChild):
        yield f"  {line(action)}"
        return
    pods = ", ".join(f"{each.number} x {amounts(each.request)}" for each in action.pods)
    yield f"  CreateChild {action.name} on {action.cluster}: {amounts(action.demand)} = {pods}"
    if action.overflow is not None:
        yield f"    overflow {line(action.overflow)}"
    if action.export is not None:
        yield f"    export {line(action.export['metadata']['labels'])}"
    if action.policy is None or action.job is None:
        yield f"    policy {action.policy is not None}, vcjob {action.job is not None}"
    if action.policy is not None:
        spec = dict(action.policy["spec"])
        yield f"    {where(spec.pop('placement'))}"
        yield f"    policy {line(spec)}"
    if action.job is not None:
        metadata = action.job["metadata"]
        for name in ("labels", "annotations"):
            yield f"    {name} {line(metadata.get(name))}"
        group = metadata["labels"]["volcano.sh/replicatedjob-name"]
        for each in changes(templates.get(group, {}), action.job["spec"]):
            yield f"    {each}"


def where(placement: Object) -> str:
    """Write a placement of the usual form short."""
    match placement:
        case {
            "clusterAffinities": [{"affinityName": name, "clusterNames": clusters}],
            "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        } if len(placement) == 2:
            return f"{name} in {', '.join(clusters)}"
    return line(placement)
