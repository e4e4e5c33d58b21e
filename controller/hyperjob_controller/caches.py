"""The informer caches: copies of the API server's objects, which a pass reads without a request.

Each has the controller's own writes on top, until its informer has seen them. The caches hold raw
objects; `hyperjob_controller.observe` parses them. Equal parts of objects are in memory once, since
sub-jobs of a template differ little: readers of a cache never change its objects.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from sys import intern
from typing import Any, Final, TypeVar

import orjson

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import (
    CLAIMED_NAME,
    CLAIMED_WIDELY_NAME,
    GATE,
    KIND,
    LABEL_HYPERJOB,
    VCJOB_API_VERSION,
    VCJOB_KIND,
    binding_name,
)
from hyperjob_core.api.wire import at, mapping, objects, string, string_map
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.informer import (
    Faulty,
    Handler,
    Informer,
    InTurn,
    end_when_restored,
    strip_managed_fields,
    untimed,
)
from hyperjob_core.kube.mutationcache import MutationCache
from hyperjob_core.kube.resources import (
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTERS,
    DEPLOYMENTS,
    HYPERJOBS,
    MUTATING_WEBHOOKS,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    RESOURCE_CLAIM_TEMPLATES,
    VCJOBS,
    Resource,
    key_of,
)
from hyperjob_engine.model.claimcopies import claim_policy_name, is_of_claim, parse_claim, users_of
from hyperjob_engine.model.parse import controller_of
from hyperjob_engine.status.transitions import merge_patch

T = TypeVar("T")

_KNOWN: Final = 8192
_STATUSES: Final = 1024
_SHORT: Final = 64


class Shared:
    """The recently seen parts, in two generations: the older one is dropped at times."""

    def __init__(self, known: int = _KNOWN) -> None:
        """`known` is the number of parts in a generation."""
        self._size = known
        self._young: dict[int, Any] = {}
        self._old: dict[int, Any] = {}

    def part(self, value: T) -> T:
        """Return an equal JSON value that was seen before, else the value itself, part by part."""
        if isinstance(value, str):
            return intern(value) if len(value) <= _SHORT else value  # type: ignore[return-value]
        if not isinstance(value, dict | list):
            return value
        # As bytes, 1, true and 1.0 differ, which are equal in Python.
        key = hash(orjson.dumps(value))
        known = self._young.get(key)
        if known is None and (known := self._old.get(key)) is not None:
            self._keep(key, known)
        if known == value:
            return known  # type: ignore[no-any-return]
        made: Any
        if isinstance(value, dict):
            # A dict that grows by its keys has a smaller table than one of the JSON parser.
            made = {intern(name): self.part(each) for name, each in value.items()}
        else:
            made = [self.part(each) for each in value]
        self._keep(key, made)
        return made  # type: ignore[no-any-return]

    def _keep(self, key: int, value: object) -> None:
        if len(self._young) >= self._size:
            self._young, self._old = {}, self._young
        self._young[key] = value

    def of(self, slim: Callable[[Object], Object]) -> Callable[[Object], Object]:
        """Return a transform for informers: `slim`, then shared parts.

        Statuses have generations of their own, a small one: their parts change often, and would
        keep replaced ones in memory and drop the templates.
        """
        statuses = Shared(_STATUSES)

        def transform(obj: Object) -> Object:
            obj = slim(obj)
            obj["metadata"] = {
                name: each if name == "resourceVersion" else self.part(each)
                for name, each in obj["metadata"].items()
            }
            for name in ("apiVersion", "kind"):
                if name in obj:
                    obj[name] = intern(obj[name])
            if "spec" in obj:
                obj["spec"] = self.part(obj["spec"])
            if "status" in obj:
                obj["status"] = statuses.part(obj["status"])
            return obj

        return transform


log = logging.getLogger(__name__)

BY_HYPERJOB: Final = "hyperjob"
_BY_USER: Final = "user"
"""The ResourceBindings of claims, by the ResourceBindings that need them."""
_PATIENCE: Final = 10.0


def hyperjob_keys(obj: Object) -> Iterable[str]:
    """Return the keys of an object's HyperJobs: its controller, and the HyperJob of its label."""
    metadata = mapping(obj.get("metadata"))
    namespace = string(metadata.get("namespace"))
    reference = controller_of(metadata)
    names = [string_map(metadata.get("labels")).get(LABEL_HYPERJOB, "")]
    if reference.get("kind") == KIND:
        names.append(string(reference.get("name")))
    return {intern(f"{namespace}/{name}") for name in names if name}


def _is_labelled(obj: Object) -> bool:
    return LABEL_HYPERJOB in string_map(mapping(obj.get("metadata")).get("labels"))


def job_key_of_binding(binding: Object) -> str | None:
    """Return the key of the vcjob of a ResourceBinding; None for another kind."""
    resource = at(binding, "spec", "resource")
    if (
        at(resource, "apiVersion") != VCJOB_API_VERSION
        or at(resource, "kind") != VCJOB_KIND
        or not at(resource, "name")
    ):
        return None
    return intern(f"{string(at(resource, 'namespace'))}/{string(at(resource, 'name'))}")


def workload_of_binding(binding: Object) -> tuple[str, str]:
    """Return kind and key of a workload that Volcano Global counts, else empty texts."""
    resource = at(binding, "spec", "resource")
    version, kind = string(at(resource, "apiVersion")), string(at(resource, "kind"))
    if (version, kind) not in _WORKLOADS:
        return "", ""
    return kind, f"{string(at(resource, 'namespace'))}/{string(at(resource, 'name'))}"


_WORKLOADS: Final = ((VCJOB_API_VERSION, VCJOB_KIND), (DEPLOYMENTS.api_version, DEPLOYMENTS.kind))


def slim_binding(obj: Object) -> Object:
    """Return a ResourceBinding with only the fields that the controller reads.

    Of another workload's ResourceBinding these are its identity and its request. Without fields
    such as the applied placement, twenty thousand ResourceBindings need much less memory.
    """
    ours, metadata = job_key_of_binding(obj) is not None, obj["metadata"]
    spec = mapping(obj.get("spec"))
    slim: Object = {key: obj[key] for key in _TYPE if key in obj}
    slim["metadata"] = {key: metadata[key] for key in (*_IDENTITY, _AGE) if key in metadata}
    slim["spec"] = {part: spec[part] for part in _READ if part in spec and (ours or part in _ASKED)}
    if is_of_claim(obj):
        slim["spec"] |= {part: spec[part] for part in _OF_CLAIM if part in spec}
        marks = string_map(metadata.get("annotations"))
        slim["metadata"]["annotations"] = {key: marks[key] for key in _CLAIMED if key in marks}
    if not ours:
        return slim
    if gate := string_map(metadata.get("annotations")).get(GATE):
        slim["metadata"]["annotations"] = {GATE: gate}
    if reference := controller_of(metadata):
        slim["metadata"]["ownerReferences"] = [_interned(reference, _OWNER)]
    slim["spec"]["resource"] = _interned(mapping(spec.get("resource")), _RESOURCE)
    if "status" in obj:
        slim["status"] = obj["status"]
    return slim


def _interned(obj: Object, names: Iterable[str]) -> Object:
    """Return some fields, with equal texts of several objects as one string in memory."""
    return {
        name: intern(each) if type(each := obj[name]) is str else each
        for name in names
        if name in obj
    }


def _identity(obj: Object) -> Object:
    return {key: obj["metadata"][key] for key in _IDENTITY if key in obj["metadata"]}


def _users_of_claim(binding: Object) -> Iterable[str]:
    return users_of(binding) if is_of_claim(binding) else ()


def slim_queue_binding(obj: Object) -> Object:
    """Return a ClusterResourceBinding with only its object, and the states of a Queue."""
    resource = mapping(at(obj, "spec", "resource"))
    slim: Object = {
        "metadata": _identity(obj),
        "spec": {"resource": _interned(resource, _RESOURCE)},
    }
    if resource.get("kind") == QUEUES.kind:
        states = [
            {
                "clusterName": at(item, "clusterName"),
                "status": {"state": at(item, "status", "state")},
            }
            for item in objects(at(obj, "status", "aggregatedStatus"))
        ]
        slim["status"] = {"aggregatedStatus": states}
    return slim


def slim_policy(obj: Object) -> Object:
    """Return a PropagationPolicy without its resourceSelectors: its vcjob has the same name."""
    strip_managed_fields(obj)
    mapping(obj.get("spec")).pop("resourceSelectors", None)
    return obj


def slim_job(obj: Object) -> Object:
    """Return a vcjob that is no sub-job with only its identity and queue."""
    return {"metadata": _identity(obj), "spec": {"queue": at(obj, "spec", "queue")}}


def slim_deployment(obj: Object) -> Object:
    """Return a Deployment with only its identity and its pod template's metadata."""
    template = {"metadata": at(obj, "spec", "template", "metadata")}
    return {"metadata": _identity(obj), "spec": {"template": template}}


_TYPE: Final = ("apiVersion", "kind")
_IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp")
_ASKED: Final = ("resource", "replicas", "replicaRequirements", "suspension")
_AGE: Final = "creationTimestamp"
_OWNER: Final = ("kind", "name", "uid", "controller")
_RESOURCE: Final = ("apiVersion", "kind", "namespace", "name", "uid")
_READ: Final = (*_ASKED, "clusters", "placement")
_OF_CLAIM: Final = ("clusters", "requiredBy")
_CLAIMED: Final = (CLAIMED_NAME, CLAIMED_WIDELY_NAME)


class Caches:
    """All informers of the controller."""

    def __init__(
        self,
        kube: Kube,
        *,
        namespace: str | None = None,
        webhooks: bool = False,
        faulty: Faulty | None = None,
        in_turn: InTurn = untimed,
    ) -> None:
        """With `webhooks` the controller also needs MutatingWebhookConfigurations.

        `faulty` gets the exceptions of event handlers, each with the object of the event, and
        `in_turn` times the handlers.
        """

        def informer(resource: Resource, **options: object) -> Informer:
            scope = namespace if resource.namespaced else None
            options |= {"faulty": faulty, "in_turn": in_turn, "restored": end_when_restored}
            return Informer(kube, resource, namespace=scope, **options)  # type: ignore[arg-type]  # passed through

        ours = {"label_selector": LABEL_HYPERJOB, "indexers": {BY_HYPERJOB: hyperjob_keys}}
        shared = Shared()
        whole = shared.of(strip_managed_fields)
        self.hyperjobs = informer(HYPERJOBS, transform=whole)
        self.jobs = informer(VCJOBS, transform=whole, **ours)
        self.policies = informer(PROPAGATION_POLICIES, transform=shared.of(slim_policy), **ours)
        self.bindings = informer(
            RESOURCE_BINDINGS,
            transform=shared.of(slim_binding),
            indexers={_BY_USER: _users_of_claim},
        )
        self.clusters = informer(CLUSTERS)
        self.queues = informer(QUEUES)
        self.queue_bindings = informer(CLUSTER_RESOURCE_BINDINGS, transform=slim_queue_binding)
        self.priority_classes = informer(PRIORITY_CLASSES)
        self.claim_templates = informer(
            RESOURCE_CLAIM_TEMPLATES, transform=shared.of(strip_managed_fields)
        )
        self.mutating_webhooks = informer(MUTATING_WEBHOOKS)
        self.other_jobs = informer(VCJOBS, label_selector=f"!{LABEL_HYPERJOB}", transform=slim_job)
        self.deployments = informer(DEPLOYMENTS, transform=slim_deployment)
        self._needs_webhooks = webhooks
        self._expected: dict[str, Object] = {}
        self._written = {
            HYPERJOBS: MutationCache(self.hyperjobs),
            VCJOBS: MutationCache(
                self.jobs, index=BY_HYPERJOB, indexer=hyperjob_keys, selected=_is_labelled
            ),
            PROPAGATION_POLICIES: MutationCache(
                self.policies, index=BY_HYPERJOB, indexer=hyperjob_keys, selected=_is_labelled
            ),
            RESOURCE_BINDINGS: MutationCache(self.bindings),
        }

    @property
    def required(self) -> tuple[Informer, ...]:
        """Return the informers that must be synced before the first pass."""
        always = self.hyperjobs, self.jobs, self.policies, self.bindings, self.clusters
        return (*always, self.mutating_webhooks) if self._needs_webhooks else always

    @property
    def all(self) -> tuple[Informer, ...]:
        """Return all informers; the controller also works without the optional ones."""
        webhooks = () if self._needs_webhooks else (self.mutating_webhooks,)
        queues = self.queues, self.queue_bindings
        beside = self.priority_classes, self.claim_templates, self.other_jobs
        return *self.required, *webhooks, *queues, *beside

    async def say_what_is_missing(self) -> None:
        """Log once if the states of Queues in the clusters cannot be read.

        A Queue that one cluster has closed then counts as open there.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                await self.queue_bindings.synced.wait()
        except TimeoutError:
            log.warning(
                "Cannot list ClusterResourceBindings: a Queue that one cluster has closed counts as"
                " open there; run `hyperjob install` for the right",
                extra={"error": str(self.queue_bindings.last_error or "no answer yet")},
            )

    def add_handler(self, resource: Resource, handler: Handler) -> None:
        """Call the handler after a change of an object, unless the controller wrote the change."""
        self._written[resource].add_handler(handler)

    def note(self, resource: Resource, obj: Object) -> None:
        """Add the object that the API server returned for a write of the controller."""
        self._written[resource].note(obj)

    def note_deleted(self, resource: Resource, key: str, uid: str) -> None:
        """Record that the controller has deleted an object."""
        self._written[resource].note_deleted(key, uid)

    def expect_status(self, key: str, status: Object) -> None:
        """Record the status that the controller is about to write to a HyperJob."""
        self._expected[key] = status

    def is_expected(self, key: str, status: object) -> bool:
        """Return, once, whether an observed status is the controller's own write, not a user's."""
        expected = self._expected.get(key)
        if expected is None or merge_patch(status, expected):
            return False
        del self._expected[key]
        return True

    def forget_status(self, key: str) -> None:
        """Drop the expected status of a deleted HyperJob."""
        self._expected.pop(key, None)

    def hyperjob(self, key: str) -> Object | None:
        """Return a HyperJob."""
        return self._written[HYPERJOBS].get(key)

    def job(self, key: str) -> Object | None:
        """Return a vcjob."""
        return self._written[VCJOBS].get(key)

    def may_exist(self, key: str) -> bool:
        """Return whether a vcjob of this name that is no sub-job may exist.

        It is False only if the list of such vcjobs is complete, up to the delay of its watch.
        """
        return not self.other_jobs.synced.is_set() or self.other_jobs.get(key) is not None

    def policy(self, key: str) -> Object | None:
        """Return a PropagationPolicy."""
        return self._written[PROPAGATION_POLICIES].get(key)

    def binding_of(self, job_key: str) -> Object | None:
        """Return the ResourceBinding of a vcjob."""
        namespace, _, name = job_key.partition("/")
        return self._written[RESOURCE_BINDINGS].get(f"{namespace}/{binding_name(name)}")

    def claims_of(
        self, namespace: str, bindings: Iterable[str], names: Iterable[str]
    ) -> list[Object]:
        """Return the ResourceBindings of the claims that `bindings` need or `names` name."""
        found = {
            key_of(claim): claim
            for name in bindings
            for claim in self.bindings.by_index(_BY_USER, f"{namespace}/{name}")
        }
        for name in names:
            key = f"{namespace}/{claim_policy_name(name)}"
            if key not in found and (claim := self.bindings.get(key)) is not None:
                found[key] = claim
        return list(found.values())

    def users_of_claim(self, old: Object | None, new: Object | None) -> list[str]:
        """Return the keys of the vcjobs that a changed ResourceBinding of a claim concerns.

        A claim may have thousands of users: a change concerns those that are new, or have moved,
        and those whose cluster keeps the copy now.
        """
        if new is None or not is_of_claim(new):
            return []
        before, claim = None if old is None else parse_claim(old), parse_claim(new)
        found = []
        for name, clusters in claim.needed.items():
            is_same = before is not None and before.needed.get(name) == clusters
            if is_same and before is not None and not clusters & (claim.kept - before.kept):
                continue
            binding = self.bindings.get(f"{string(new['metadata'].get('namespace'))}/{name}")
            job_key = None if binding is None else job_key_of_binding(binding)
            if job_key is not None:
                found.append(job_key)
        return found

    def jobs_of(self, key: str, names: Iterable[str] = ()) -> list[Object]:
        """Return the vcjobs of a HyperJob, and vcjobs of other owners with these names."""
        return self._of(VCJOBS, key, names)

    def policies_of(self, key: str, names: Iterable[str] = ()) -> list[Object]:
        """Return the PropagationPolicies of a HyperJob, and others with these names."""
        return self._of(PROPAGATION_POLICIES, key, names)

    def _of(self, resource: Resource, key: str, names: Iterable[str]) -> list[Object]:
        """Return the objects of a HyperJob, and others with these names; own writes count."""
        cache = self._written[resource]
        found = {key_of(obj): obj for obj in cache.written(f"{key}-")}
        found |= {key_of(obj): obj for obj in cache.by_index(key)}
        namespace, _, _ = key.partition("/")
        for wanted in (f"{namespace}/{name}" for name in names):
            if wanted not in found and (other := cache.get(wanted)) is not None:
                found[wanted] = other
        return list(found.values())
