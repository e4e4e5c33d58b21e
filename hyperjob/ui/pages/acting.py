"""Carry out an action with the visitor's own rights and the functions of the command line."""

from hyperjob.client.errors import ClientError
from hyperjob.client.requests import ask, migrate, restart
from hyperjob.client.suspending import suspend
from hyperjob.ui.rows import Row
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import HYPERJOBS


async def act(kube: Kube, row: Row, action: str, *, target: str, typed: str) -> str:
    """Carry out the action and return a text about it; raises ClientError or KubeError."""
    summary = row.summary
    namespace, name = summary.namespace, summary.name
    match action:
        case "suspend" | "resume":
            await suspend(kube, namespace, name, on=action == "suspend")
            return f"{name} is being suspended." if action == "suspend" else f"{name} is resumed."
        case "restart":
            await ask(kube, namespace, name, restart([target] if target else []))
            return f"The restart of {target or name} is requested."
        case "migrate":
            if not target:
                raise ClientError("choose the cluster to move the sub-jobs away from")
            await ask(kube, namespace, name, migrate(cluster=target))
            return f"The move away from {target} is requested."
        case "delete":
            if typed.strip() != name:
                raise ClientError(f"type {name} into the field: nothing was deleted")
            await kube.delete(HYPERJOBS, name, namespace=namespace, uid=summary.uid)
            return f"{name} is being deleted."
        case _:
            raise ClientError(f"there is no action {action}")
