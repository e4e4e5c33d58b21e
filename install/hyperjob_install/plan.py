"""Plan the changes of an installation by dry runs in the API server.

The module applies every object as a server dry run: all conflicts and refusals are known before
the first write.
"""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Conflict, KubeError, NotFound
from hyperjob_core.kube.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    CRDS,
    NAMESPACES,
    RESOURCE_BINDINGS,
    RESOURCE_INTERPRETERS,
    Resource,
)
from hyperjob_core.tasks import at_once
from hyperjob_install import problems
from hyperjob_install.definitions import lost_fields
from hyperjob_install.interpreters import VOLCANO_GLOBAL, Clash, clashes
from hyperjob_install.objects import FIELD_MANAGER, Component, Item, is_ours
from hyperjob_install.problems import InstallError, Problem

# The API server sets these fields itself; no apply requests them.
_SERVERS: Final = frozenset(
    {"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}
)
_LONGEST: Final = 12


def changed_fields(before: Object, after: Object) -> tuple[str, ...]:
    """Return the paths that differ, without the status and the API server's own metadata."""
    return tuple(_differences(_asked(before), _asked(after), ""))


def shorten(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return a long list of paths shortened to their parents."""
    if len(paths) <= _LONGEST:
        return paths
    return tuple(dict.fromkeys(".".join(path.split(".")[:2]) for path in paths))[:_LONGEST]


def _asked(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _SERVERS}
    kept = {key: value for key, value in obj.items() if key != "status"}
    return {**kept, "metadata": metadata}


def _differences(before: object, after: object, at: str) -> Iterator[str]:
    """Yield the paths at which two JSON values differ, each as deep as possible."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            where = f"{at}.{key}" if at else key
            if key in before and key in after:
                yield from _differences(before[key], after[key], where)
            else:
                yield where
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, f"{at}[{index}]")
    elif before != after:
        yield at


_AT_ONCE: Final = 8
_KARMADA: Final = (CLUSTER_PROPAGATION_POLICIES, RESOURCE_BINDINGS, RESOURCE_INTERPRETERS)


class Action(enum.StrEnum):
    """The change of an object."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    DELETED = "deleted"
    ABSENT = "absent"

    @property
    def changes(self) -> bool:
        """Return whether the action writes to the API server."""
        return self in {Action.CREATED, Action.CONFIGURED, Action.DELETED}


@dataclass(frozen=True, slots=True)
class Change:
    """The change of an object: `fields` differ, `note` is the reason for keeping the object."""

    item: Item
    action: Action
    fields: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """All changes in order; `execute` must not run while there are problems."""

    changes: tuple[Change, ...]
    problems: tuple[Problem, ...]


async def require_karmada(kube: Kube) -> None:
    """Raise InstallError unless the API server answers and serves Karmada's APIs."""
    try:
        served = (await kube.raw("GET", "/apis")).json().get("groups") or []
    except KubeError as error:
        raise InstallError(
            f"the API server at {kube.host} does not answer: {error.message}"
        ) from error
    missing = {resource.group for resource in _KARMADA} - {group["name"] for group in served}
    if missing:
        raise InstallError(
            f"the API server at {kube.host} is not a Karmada API server: it does not serve"
            f" {', '.join(sorted(missing))}; give the kubeconfig of the Karmada API server with"
            " --kubeconfig"
        )


async def plan(
    kube: Kube,
    items: Sequence[Item],
    *,
    force_conflicts: bool = False,
    allow_field_loss: bool = False,
    replace_others: bool = False,
) -> InstallPlan:
    """Return the changes of applying the items, and the problems of those that are refused.

    `replace_others` deletes Volcano Global's customizations that conflict with HyperJob's.
    """
    planner = _Planner(kube, force=force_conflicts, allow_field_loss=allow_field_loss)
    clashes_ = await planner.clashes(items)
    replaced = {each.name for each in clashes_ if each.name in VOLCANO_GLOBAL and replace_others}
    clashing = [problems.clash(each) for each in clashes_ if each.name not in replaced]

    async def one(item: Item) -> Change | Problem:
        is_clashing = bool(clashes_) and item.part is Component.INTERPRETERS
        try:
            return await (planner.unasked(item) if is_clashing else planner.step(item, items))
        except Conflict as error:
            return problems.field_conflict(item.title, error)
        except KubeError as error:
            return problems.refused(item.title, error)

    found = await at_once(one, items, most=_AT_ONCE)
    changes = [each for each in found if isinstance(each, Change)]
    changes = [change for change in changes if change.action is not Action.ABSENT]
    if replaced:
        first = [change.item.part for change in changes].index(Component.INTERPRETERS)
        changes[first:first] = [_removal(name) for name in sorted(replaced)]
    return InstallPlan(
        tuple(changes),
        (*clashing, *(each for each in found if isinstance(each, Problem))),
    )


class _Planner:
    """Plans the items of one installation, each by requests that change nothing."""

    def __init__(self, kube: Kube, *, force: bool, allow_field_loss: bool) -> None:
        self._kube = kube
        self._force = force
        self._allow_field_loss = allow_field_loss

    async def clashes(self, items: Sequence[Item]) -> list[Clash]:
        """Read the customizations for which Karmada would refuse HyperJob's."""
        if not any(item.part is Component.INTERPRETERS for item in items):
            return []
        try:
            listed = await self._kube.list(RESOURCE_INTERPRETERS)
        except NotFound:
            return []  # the dry run of each customization reports that its kind is not served
        return clashes(listed.items)

    async def unasked(self, item: Item) -> Change | Problem:
        """Plan an interpreter without a dry run: Karmada refuses it while another one conflicts."""
        try:
            live = await self._kube.get(item.resource, item.name)
        except NotFound:
            return Change(item, Action.CREATED)
        if self._is_foreign(item, live):
            return problems.taken(item.title)
        return Change(item, Action.CONFIGURED, fields=changed_fields(live, item.object))

    async def step(self, item: Item, items: Sequence[Item]) -> Change | Problem:
        """Plan one of `items`. Raises KubeError where the API server refuses its dry run."""
        try:
            live = await self._kube.get(item.resource, item.name, namespace=item.namespace)
        except NotFound:
            return Change(item, Action.ABSENT) if item.absent else await self._create(item, items)
        if item.absent:
            found = replace(item, object=live)
            return Change(found, Action.DELETED if is_ours(live) else Action.ABSENT)
        if item.only_where_missing and not is_ours(live):
            return Change(item, Action.KEPT, note=problems.NOT_OURS)
        if self._is_foreign(item, live):
            return problems.taken(item.title)
        if (
            item.part is Component.CRDS
            and not self._allow_field_loss
            and (gone := lost_fields(live))
        ):
            return problems.lost(item.title, gone)
        item = _keeping_bundles(item, live)  # the step applies it too
        fields = changed_fields(live, await self._dry_run(item))
        return Change(item, Action.CONFIGURED if fields else Action.UNCHANGED, fields=fields)

    def _is_foreign(self, item: Item, live: Object) -> bool:
        """Return whether an object of another owner has the name; a CRD's name is its kind's."""
        return not (is_ours(live) or self._force or item.resource is CRDS)

    async def _create(self, item: Item, items: Sequence[Item]) -> Change:
        """Return the step that creates an object, after a dry run where the API server has one."""
        if item.only_where_served and not await self._is_served(item.resource):
            return Change(item, Action.ABSENT)
        # A dry run would fail before the creation of the namespace or of the CRD.
        if not await self._awaits_another(item, items):
            await self._dry_run(item)
        return Change(item, Action.CREATED)

    async def _dry_run(self, item: Item) -> Object:
        return await self._kube.apply(
            item.resource,
            item.object,
            field_manager=FIELD_MANAGER,
            force=self._force,
            dry_run=True,
        )

    async def _is_served(self, resource: Resource) -> bool:
        try:
            await self._kube.list(resource)
        except NotFound:
            return False
        return True

    async def _awaits_another(self, item: Item, items: Sequence[Item]) -> bool:
        """Return whether the plan creates the namespace of an item, or the CRD of its kind."""
        needed = {(NAMESPACES, item.namespace), (CRDS, item.resource.group_resource)}
        for other in items:
            if (other.resource, other.name) in needed:
                try:
                    await self._kube.get(other.resource, other.name)
                except NotFound:
                    return True
        return False


def _removal(name: str) -> Change:
    """Plan the deletion of a customization that HyperJob's replaces."""
    other = {**RESOURCE_INTERPRETERS.head, "metadata": {"name": name}}
    item = Item(
        part=Component.INTERPRETERS, resource=RESOURCE_INTERPRETERS, object=other, absent=True
    )
    return Change(item, Action.DELETED, note="Volcano Global's; HyperJob's replaces it")


def _keeping_bundles(item: Item, live: Object) -> Item:
    """Return the item with the present caBundle, for webhooks without a caBundle of their own.

    Without caBundle, server-side apply would remove the caBundle of an earlier run.
    """
    if item.part is not Component.WEBHOOKS:
        return item
    there = {hook["name"]: hook["clientConfig"] for hook in live.get("webhooks") or []}
    webhooks = []
    for hook in item.object["webhooks"]:
        bundle = there.get(hook["name"], {}).get("caBundle")
        if bundle and not hook["clientConfig"].get("caBundle"):
            hook = {**hook, "clientConfig": {**hook["clientConfig"], "caBundle": bundle}}
        webhooks.append(hook)
    return replace(item, object={**item.object, "webhooks": webhooks})
