"""What every handler works with: the store, the served resources and the admission chain."""

from collections import Counter
from dataclasses import dataclass

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.admission.chain import AdmissionChain
from hyperjob_sandbox.apiserver.rbac import Rbac
from hyperjob_sandbox.apiserver.selectors import (
    LabelSelector,
    SelectorError,
    field_value,
    parse_fields,
    parse_labels,
)
from hyperjob_sandbox.apiserver.state.resources import Registry, ResourceInfo
from hyperjob_sandbox.apiserver.state.store import Collection, Key, Store, Stored
from hyperjob_sandbox.apiserver.transport.authn import Tokens, User
from hyperjob_sandbox.apiserver.transport.authorization import (
    Action,
    Audit,
    Authorizer,
    allow_known_users,
    refusal,
)
from hyperjob_sandbox.apiserver.transport.call import Call
from hyperjob_sandbox.apiserver.transport.encode import to_version
from hyperjob_sandbox.apiserver.transport.requestinfo import RequestInfo


class Core:
    """The state behind the API."""

    def __init__(
        self,
        *,
        history_limit: int = 4096,
        bookmark_seconds: float = 60.0,
        rbac: bool = False,
        audit: Audit | None = None,
    ) -> None:
        self.bookmark_seconds = bookmark_seconds
        self.store = Store(history_limit=history_limit)
        self.tokens = Tokens(self.store)
        self.allows: Authorizer = Rbac(self.store).allows if rbac else allow_known_users
        self._audit = audit
        self.registry = Registry()
        self.metrics = Metrics()
        self.admission = AdmissionChain(
            namespaces=self.namespace, resolve_service=self._service_address
        )

    def require(self, user: User, action: Action) -> None:
        """Raise 403 for what a user may not do; the audit sees it either way."""
        allowed = self.allows(user, action)
        if self._audit is not None:
            self._audit(user, action, allowed)
        if not allowed:
            raise refusal(user, action)

    def collection(self, resource: ResourceInfo) -> Collection:
        """Give the collection that stores a resource's objects."""
        return self.store.collection(resource.storage)

    def find(self, resource: ResourceInfo, namespace: str, name: str) -> Stored | None:
        """Find one stored object."""
        return self.collection(resource).get((namespace if resource.namespaced else "", name))

    def live(self, call: Call) -> Stored:
        """Find the object that a request names; raise 404 where there is none."""
        stored = self.find(call.resource, call.info.namespace, call.info.name)
        if stored is None:
            raise call.not_found()
        return stored

    def _service_address(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """Find what is behind a webhook's Service; raise LookupError where nothing does."""
        service = self.store.collection(("", "services")).get((namespace, name))
        if service is not None and (host := service.obj["spec"].get("externalName")):
            return str(host), port
        endpoints = self.store.collection(("", "endpoints")).get((namespace, name))
        for subset in (endpoints.obj.get("subsets") or ()) if endpoints is not None else ():
            for address in subset.get("addresses") or ():
                ports = subset.get("ports") or ({"port": port},)
                return str(address["ip"]), int(ports[0]["port"])
        raise LookupError(f'service "{name}" not found')

    def namespace(self, name: str) -> Object | None:
        """Find a Namespace."""
        found = self.store.collection(("", "namespaces")).get(("", name))
        return found.obj if found else None


def key_of(resource: ResourceInfo, obj: Object) -> Key:
    """Give an object's key in its collection."""
    meta = obj["metadata"]
    return (str(meta.get("namespace") or "") if resource.namespaced else "", str(meta["name"]))


@dataclass(frozen=True, slots=True)
class Selection:
    """What a list or watch selects; an empty one selects everything."""

    labels: LabelSelector
    fields: LabelSelector

    def __bool__(self) -> bool:
        return bool(self.labels) or bool(self.fields)

    def matches(self, stored: Stored, resource: ResourceInfo) -> bool:
        """Tell whether an object is selected."""
        if self.labels and not self.labels.matches(stored.metadata.get("labels")):
            return False
        if not self.fields:
            return True
        obj, paths = to_version(stored.obj, resource), [t.key for t in self.fields.requirements]
        return self.fields.matches({path: field_value(obj, path) for path in paths})


def selection(info: RequestInfo, resource: ResourceInfo) -> Selection:
    """Read the selectors of a request; refuse what cannot be selected by (400)."""
    try:
        labels = parse_labels(info.query.get("labelSelector", ""))
        fields = parse_fields(info.query.get("fieldSelector", ""))
    except SelectorError as error:
        raise errors.bad_request(f"unable to parse requirement: {error}") from None
    for term in fields.requirements:
        if term.key not in ("metadata.name", "metadata.namespace", *resource.selectable):
            raise errors.bad_request(f"field label not supported: {term.key}")
    return Selection(labels, fields)


_VERBS = {"create": "POST", "update": "PUT"}
_HEAD = (
    "# HELP apiserver_request_total Requests by verb, resource and HTTP code.\n"
    "# TYPE apiserver_request_total counter\n"
)


class Metrics:
    """Counters since the server was made, by their labels as Prometheus' text format has them."""

    def __init__(self) -> None:
        self.by_verb: Counter[tuple[str, str, str]] = Counter()
        self._requests: Counter[str] = Counter()

    def count(self, info: RequestInfo, code: int, *, applied: bool) -> None:
        """Count a request that was answered with a code."""
        self.by_verb[info.verb, info.resource, info.subresource] += 1
        labels = {
            "code": code,
            "component": "apiserver",
            "dry_run": info.query.get("dryRun", ""),
            "group": info.group,
            "resource": info.resource,
            "scope": "resource" if info.name else "namespace" if info.namespace else "cluster",
            "subresource": info.subresource,
            "verb": "APPLY" if applied else _VERBS.get(info.verb, info.verb.upper()),
            "version": info.version,
        }
        self._requests[",".join(f'{name}="{value}"' for name, value in labels.items())] += 1

    def text(self) -> str:
        """Print all counters in Prometheus' text format."""
        found = sorted(self._requests.items())
        return _HEAD + "".join(f"apiserver_request_total{{{key}}} {n}\n" for key, n in found)
