"""The order in which Volcano takes the pods of a vcjob."""

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import TASK_PRIORITY
from hyperjob_core.api.wire import at, mapping, objects
from hyperjob_engine.expansion.expand import turns_of
from hyperjob_engine.expansion.templates import with_annotation


def in_order(template: Object) -> Object:
    """Return a vcjob's template whose pods Volcano takes in the order that placement counts with.

    Without priorities it takes the first pod of each task, then the second ones: a small pod may
    get the node that a large one needs. Templates with priorities of their own stay as they are.
    """
    tasks, turns = objects(template.get("tasks")), turns_of(template)
    ranks = sorted(set(turns), reverse=True)
    if len(ranks) < 2 or any(map(_has_priority, tasks)):
        return template
    pairs = zip(tasks, turns, strict=True)
    ordered = [
        with_annotation(task, TASK_PRIORITY, str(1 + ranks.index(turn))) for task, turn in pairs
    ]
    return {**template, "tasks": ordered}


def _has_priority(task: Object) -> bool:
    template = task.get("template")
    given = at(template, "spec", "priorityClassName")
    return bool(given) or TASK_PRIORITY in mapping(at(template, "metadata", "annotations"))
