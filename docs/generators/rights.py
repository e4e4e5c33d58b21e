"""A table of the rights in the Karmada API server that each command needs.

A test runs every command and compares its requests with this table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.names import LEASE_NAME
from hyperjob_core.kube.resources import (
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    HYPERJOBS,
    LEASES,
    MUTATING_WEBHOOKS,
    PERSISTENT_VOLUME_CLAIMS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
    TRAINJOBS,
    VCJOBS,
    Resource,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """Verbs on a resource; with `optional` the command works without them and prints a remark.

    `name` is the only object that the command reads. `shared` rights show objects of others, and
    the roles of users have none of them.
    """

    group: str
    resource: str
    verbs: Sequence[str]
    namespaced: bool = True
    name: str = ""
    when: str = ""
    optional: bool = False
    shared: bool = False

    @property
    def title(self) -> str:
        """The name of the resource in the form of `kubectl auth can-i`."""
        head, slash, sub = self.resource.partition("/")
        return f"{head}.{self.group}{slash}{sub}" if self.group else self.resource


def _right(
    resource: Resource,
    *verbs: str,
    sub: str = "",
    name: str = "",
    when: str = "",
    optional: bool = False,
    shared: bool = False,
) -> Right:
    return Right(
        group=resource.group,
        resource=f"{resource.plural}/{sub}" if sub else resource.plural,
        verbs=verbs,
        namespaced=resource.namespaced,
        name=name,
        when=when,
        optional=optional,
        shared=shared,
    )


_EVENTS: Final = Right(group="", resource="events", verbs=("list",), optional=True)
_SHOWN: Final = (
    _right(HYPERJOBS, "get", when="with names"),
    _right(HYPERJOBS, "list", when="without names"),
)
_WATCHED: Final = _right(HYPERJOBS, "get", "list", "watch", when="with -w")
_CHANGED: Final = (_right(HYPERJOBS, "get", "patch"),)
_ASKED: Final = (
    _right(HYPERJOBS, "get", "patch"),
    _right(HYPERJOBS, "list", "watch", when="without --no-wait"),
)
_VCJOBS: Final = _right(VCJOBS, "list", optional=True)
_LEASE: Final = _right(LEASES, "get", name=LEASE_NAME, when="in karmada-system", optional=True)

RIGHTS: Final[Mapping[str, Sequence[Right]]] = {
    "get": (*_SHOWN, _WATCHED),
    "tree": (
        *_SHOWN,
        _WATCHED,
        _VCJOBS,
        _right(CLUSTERS, "get", sub="proxy", when="with --pods", optional=True),
    ),
    "why": (
        _right(HYPERJOBS, "get"),
        _right(TRAINJOBS, "get", when="for trainjob/NAME", optional=True),
        _VCJOBS,
        _right(RESOURCE_BINDINGS, "list", optional=True),
        _EVENTS,
        _LEASE,
        _right(CLUSTERS, "get", sub="proxy", when="while pods do not start", optional=True),
    ),
    "logs": (
        _right(HYPERJOBS, "get"),
        _right(HYPERJOBS, "list", "watch", when="with -f"),
        _right(CLUSTERS, "get", sub="proxy"),
    ),
    "exec": (
        _right(HYPERJOBS, "get"),
        _right(CLUSTERS, "get", "create", sub="proxy", when="kubectl creates the stream"),
    ),
    "port-forward": (
        _right(HYPERJOBS, "get"),
        _right(CLUSTERS, "get", "create", sub="proxy", when="kubectl creates the stream"),
    ),
    "run": (
        _right(HYPERJOBS, "create"),
        _right(HYPERJOBS, "get", "list", "watch", when="with -f"),
        _right(CLUSTERS, "get", sub="proxy", when="with -f"),
    ),
    "top": (
        _right(HYPERJOBS, "list", when="in all namespaces, else in one"),
        _right(CLUSTERS, "list", optional=True),
        _right(QUEUES, "list", optional=True),
        _right(CLUSTER_RESOURCE_BINDINGS, "list", optional=True),
        _LEASE,
        _right(RESOURCE_BINDINGS, "list", when="beside Volcano Global", optional=True, shared=True),
    ),
    "wait": (
        _right(HYPERJOBS, "list", "watch"),
        _right(HYPERJOBS, "get", when="with --for=step", optional=True),
        _right(CLUSTERS, "get", sub="proxy", when="with --for=step", optional=True),
    ),
    "suspend": _CHANGED,
    "resume": _CHANGED,
    "restart": _ASKED,
    "migrate": _ASKED,
    "plan": (
        _right(CLUSTERS, "list", when="without --clusters"),
        *(
            _right(resource, "list", when="in all namespaces", optional=True, shared=True)
            for resource in (HYPERJOBS, VCJOBS, PROPAGATION_POLICIES, RESOURCE_BINDINGS)
        ),
        _right(QUEUES, "list", optional=True),
        _right(CLUSTER_RESOURCE_BINDINGS, "list", optional=True),
        _right(MUTATING_WEBHOOKS, "list", optional=True, shared=True),
        _right(PRIORITY_CLASSES, "list", optional=True),
        _LEASE,
        _right(DEPLOYMENTS, "list", when="beside Volcano Global", optional=True, shared=True),
        _right(
            CLUSTERS,
            "get",
            sub="proxy",
            when="where the controller places by nodes",
            optional=True,
        ),
        *(
            _right(resource, "get", when="where the pods name one", optional=True)
            for resource in (CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, SERVICE_ACCOUNTS)
        ),
        _right(SECRETS, "get", when="where the pods name one", optional=True, shared=True),
    ),
}
"""By command. Commands that are absent make no request, or need an administrator's rights."""


def allowed(command: str) -> set[tuple[str, str, str]]:
    """Return (group, resource, verb) of every request that a command can make."""
    return {
        (right.group, right.resource, verb) for right in RIGHTS[command] for verb in right.verbs
    }
