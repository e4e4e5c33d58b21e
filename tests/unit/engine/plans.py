"""What tests read from a plan."""

from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.model.planned import (
    CreateChild,
    Plan,
)
from tests.unit.engine.builders import (
    Object,
    binding,
    cluster,
    job,
    policy,
)

A, B = cluster("a"), cluster("b")
FULL = cluster("a", 0), cluster("b", 0)  # reservations taken off


GLOBAL = QueueAdmission.VOLCANO_GLOBAL


def kinds(decided: Plan) -> list[tuple[str, str]]:
    return [(type(action).__name__, action.name) for action in decided.actions]


def creations(decided: Plan) -> dict[str, CreateChild]:
    return {item.name: item for item in decided.actions if isinstance(item, CreateChild)}


def phase(decided: Plan) -> tuple[str, str]:
    return decided.status["state"]["phase"], decided.status["state"]["reason"]


def message(decided: Plan) -> str:
    return str(decided.status["state"]["message"])


def gated(name: str, *, scheduling: bool, where: str = "", gate: str = "held") -> list[Object]:
    suspension = {"dispatching": True, "scheduling": scheduling}
    return [
        job(name),
        policy(name, cluster="a", suspended=gate == "held"),
        binding(name, cluster=where, gate=gate, suspension=suspension),
    ]
