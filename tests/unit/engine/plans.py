"""What tests read from a plan."""

from typing import Any

from hyperjob_engine.expansion.expand import expand, sub_jobs
from hyperjob_engine.model.observed import Cluster, HyperJob, QueueAdmission
from hyperjob_engine.model.planned import CreateChild, Plan
from hyperjob_engine.model.subjobs import SubJob
from hyperjob_engine.plan import plan
from tests.unit.engine.builders import Object, cluster, observed

A, B = cluster("a"), cluster("b")
FULL = cluster("a", 0), cluster("b", 0)  # reservations taken off


GLOBAL = QueueAdmission.VOLCANO_GLOBAL


def wanted(hyperjob: HyperJob) -> list[SubJob]:
    """Give the sub-jobs that the spec asks for."""
    groups = expand(hyperjob)
    indices = {each.replicated_job.name: range(len(each.sizes)) for each in groups}
    return list(sub_jobs(hyperjob, groups, indices))


def decide(
    raw: Object | None = None, *objects: Object, clusters: tuple[Cluster, ...] = (A,), **seen: Any
) -> Plan:
    """Plan a HyperJob with these objects; the default is one cluster with room for it."""
    return plan(observed(raw, *objects, clusters=clusters, **seen))


def kinds(decided: Plan) -> list[tuple[str, str]]:
    return [(type(action).__name__, action.name) for action in decided.actions]


def creations(decided: Plan) -> dict[str, CreateChild]:
    return {item.name: item for item in decided.actions if isinstance(item, CreateChild)}


def phase(decided: Plan) -> tuple[str, str]:
    return decided.status["state"]["phase"], decided.status["state"]["reason"]


def message(decided: Plan) -> str:
    return str(decided.status["state"]["message"])
