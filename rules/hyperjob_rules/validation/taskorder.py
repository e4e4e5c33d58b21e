"""Validation of the order in which the tasks of a vcjob start (`dependsOn`).

Volcano's webhook only reports that the tasks form no directed acyclic graph; these rules report the
cycle or the missing task.
"""

from collections.abc import Mapping

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import task_name
from hyperjob_rules.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    Report,
    rule,
)
from hyperjob_rules.validation.templates import task_names

UNKNOWN = rule(
    "X10.unknown",
    NOT_FOUND,
    "{hint}",
    "a task depends on a task that the template lacks",
    "correct the name",
)
TWICE = rule(
    "X10.twice",
    DUPLICATE,
    "",
    "a task depends twice on the same task, which Volcano takes for a cycle",
    "remove one of them",
)
ITSELF = rule(
    "X10.itself",
    FORBIDDEN,
    "must not depend on itself",
    "a task waits for itself and never starts",
    "remove the dependency",
)
CYCLE = rule(
    "V17",
    INVALID,
    "is part of a cycle: {cycle}",
    "tasks wait for each other, so none of them starts",
    "remove one of the dependencies in the message",
)
Edges = Mapping[str, tuple[str, ...]]


def validate_task_order(tasks: list[Object], path: Path, report: Report) -> None:
    """Validate the dependencies between tasks."""
    if not any(task.get("dependsOn") for task in tasks):
        return
    names = {name: index for index, name in enumerate(task_names(tasks))}
    edges: dict[str, tuple[str, ...]] = {}
    for index, task in enumerate(tasks):
        name = task_name(task, index)
        at = path.index(index).child("dependsOn")
        wanted = task.get("dependsOn") or {}
        edges[name] = _validate_dependencies(name, wanted.get("name") or [], names, at, report)
    for cycle in _cycles(edges):
        at = path.index(names[cycle[0]]).child("dependsOn", "name")
        report.add(CYCLE, at, cycle[0], cycle=" -> ".join((*cycle, cycle[0])))


def _validate_dependencies(
    name: str, wanted: list[str], names: Mapping[str, int], path: Path, report: Report
) -> tuple[str, ...]:
    """Validate the dependencies of one task; return the valid ones."""
    known: dict[str, None] = {}
    for index, other in enumerate(wanted):
        at = path.child("name").index(index)
        if other == name:
            report.add(ITSELF, at)
        elif other not in names:
            report.missing(UNKNOWN, at, other, names)
        elif other in known:
            report.add(TWICE, at, other)
        else:
            known[other] = None
    return tuple(known)


def _cycles(edges: Edges) -> list[list[str]]:
    """Return the cycles; no task is in two of them."""
    done: set[str] = set()
    found: list[list[str]] = []
    for start in edges:
        trail: dict[str, int] = {}
        stack = [(start, iter(edges[start]))] if start not in done else []
        while stack:
            name, rest = stack[-1]
            trail.setdefault(name, len(stack) - 1)
            following = next(rest, None)
            if following is None:
                stack.pop()
                trail.pop(name)
                done.add(name)
            elif following in done:
                continue
            elif following in trail:
                found.append([step for step, _ in stack[trail[following] :]])
                done.update(found[-1])
            else:
                stack.append((following, iter(edges.get(following, ()))))
    return found
