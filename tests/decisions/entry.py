"""Where this tree decides: all that generated cases ask of the code.

`make decisions` reads this file of both of its trees, and the first version of this file for a tree
that is older. A tree that moves one of its entries changes this file alone.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from click.testing import CliRunner

from hyperjob.cli import main
from hyperjob_controller.manager import Manager
from hyperjob_controller.options import Options, Tuning
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.field import make_status
from hyperjob_core.kube import resources
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, from_status
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.virtualtime import now, run
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_rules.configuration import MUTATE_HYPERJOB, MUTATE_RESOURCEBINDING, VALIDATE_HYPERJOB
from hyperjob_rules.validation.context import Context, kept_classes, known_clusters, known_queues
from hyperjob_webhook.admission import admit

Object = dict[str, Any]

__all__ = ["KINDS", "MODES", "control", "error", "now", "plan", "review", "run", "server"]

KINDS = {
    each.kind: each
    for each in (
        resources.HYPERJOBS,
        resources.VCJOBS,
        resources.QUEUES,
        resources.PROPAGATION_POLICIES,
        resources.RESOURCE_BINDINGS,
        resources.CLUSTERS,
        resources.PRIORITY_CLASSES,
        resources.NODES,
        resources.PODS,
    )
}
"""What `server` stores, by kind."""
MODES = tuple(str(each) for each in QueueAdmission)
ROUTES = {
    "default": MUTATE_HYPERJOB,
    "validate": VALIDATE_HYPERJOB,
    "stamp": MUTATE_RESOURCEBINDING,
}


def server() -> MemoryServer:
    """Return an API server in memory: get, items, create, change, remove, listen and requests."""
    return MemoryServer(now=now)


def error(code: int, reason: str, message: str) -> KubeError:
    """Return what a request raises that the API server refuses."""
    return from_status(make_status(code, message, reason=reason), "simulation")


async def control(plane: Any, *, mode: str, members: str) -> None:
    """Run the controller in virtual time until cancelled, with `plane` as its transport."""
    options = Options(
        queue_admission=QueueAdmission(mode),
        members=MemberAccess(members),
        leader_elect=False,
        workers=1,
    )
    tuning = Tuning(writes=1)
    async with Kube(plane) as kube:
        manager = Manager(
            kube,
            options,
            now=now,
            clock=asyncio.get_running_loop().time,
            members=kube if members != "off" else None,
            tuning=tuning,
        )
        await manager.run()


def review(
    route: str, body: bytes, around: Sequence[Object], *, controllers: Sequence[str] = ()
) -> tuple[int, bytes]:
    """Answer an AdmissionReview; `around` are all Clusters, Queues and PriorityClasses."""
    kinds: dict[str, list[Object]] = {"Cluster": [], "Queue": [], "PriorityClass": []}
    for each in around:
        kinds[each["kind"]].append(each)
    classes = kinds["PriorityClass"]
    context = Context(
        clusters=known_clusters(kinds["Cluster"]),
        queues=known_queues(kinds["Queue"]),
        priority_classes=frozenset(each["metadata"]["name"] for each in classes),
        kept_classes=kept_classes(classes),
        controllers=frozenset(controllers),
    )
    reply = admit(ROUTES[route], body, context)
    return reply.status, reply.body


def plan(manifests: str, clusters: str) -> tuple[int, str]:
    """Return the exit code and the output of `hyperjob plan -o json` for two files."""
    result = CliRunner().invoke(
        main,
        ["plan", "-f", manifests, "--clusters", clusters, "-o", "json"],
        catch_exceptions=False,
    )
    return result.exit_code, result.stdout
