"""Webhooks as configurations declare them: which requests they are for, and how they are called.

Compiled once from a configuration. Pure: nothing here talks to a webhook.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.admission.review import (
    AdmissionRequest,
    GroupVersionResource,
    Target,
    attributes,
    in_version,
)
from hyperjob_sandbox.apiserver.cel import CelError, Expression
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.state.selectors import LabelSelector, SelectorError, label_selector

_EXEMPT: Final = frozenset(
    {
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)
_NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
VARIABLES: Final = ("object", "oldObject", "request")


@dataclass(frozen=True, slots=True)
class Service:
    """A webhook behind a Service."""

    namespace: str
    name: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """An expression that a request must satisfy; an expression that does not compile never is."""

    name: str
    source: str
    expression: Expression | None
    problem: str = ""

    def evaluate(self, values: Mapping[str, Json]) -> Json:
        """Return what the expression says of a request; raise CelError."""
        if self.expression is None:
            raise CelError(self.problem)
        return self.expression.evaluate(values)


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a configuration."""

    configuration: str
    index: int
    name: str
    rules: tuple[Object, ...]
    url: str
    service: Service | None
    ca_bundle: bytes
    timeout_seconds: int
    ignore_failures: bool
    equivalent: bool
    reinvocable: bool
    side_effect_free: bool
    speaks_v1: bool
    namespace_selector: LabelSelector
    object_selector: LabelSelector
    conditions: tuple[MatchCondition, ...]
    problem: str = ""

    @property
    def uid(self) -> tuple[str, int]:
        """Tell the hook from all others."""
        return (self.configuration, self.index)

    def target(
        self, request: AdmissionRequest, namespace: Mapping[str, Json] | None
    ) -> Target | None:
        """Return the version that the hook is to be asked about, None where it is not.

        `namespace` is the request's, if it exists. Raises ApiError where it is needed and missing.
        """
        if not self._matches_objects(request):
            return None
        target = self._matching_rule(request)
        if target is None or not self._matches_namespace(request, namespace):
            return None
        return target

    def _matching_rule(self, request: AdmissionRequest) -> Target | None:
        if any(_rule_matches(rule, request, request.gvr) for rule in self.rules):
            return Target(request.gvr, request.gvk)
        if not self.equivalent:
            return None
        return next(
            (
                Target(gvr, gvk)
                for rule in self.rules
                for gvr, gvk in request.equivalents
                if gvr != request.gvr and _rule_matches(rule, request, gvr)
            ),
            None,
        )

    def _matches_namespace(
        self, request: AdmissionRequest, namespace: Mapping[str, Json] | None
    ) -> bool:
        if not self.namespace_selector:
            return True
        if not request.namespace and request.gvr.resource != "namespaces":
            return True
        found = namespace
        if request.gvr == _NAMESPACES and not request.subresource and request.operation != "DELETE":
            found = request.object
        if found is None:
            raise errors.not_found("", "namespaces", request.namespace)
        return self.namespace_selector.matches(_labels(found))

    def _matches_objects(self, request: AdmissionRequest) -> bool:
        if not self.object_selector:
            return True
        return any(
            obj is not None and self.object_selector.matches(_labels(obj))
            for obj in (request.object, request.old_object)
        )

    def admits(self, request: AdmissionRequest, target: Target, current: Object | None) -> bool:
        """Tell whether the match conditions hold; raise ApiError 403 where one must not fail."""
        if not self.conditions:
            return True
        seen = attributes(request, target, uid="")
        seen["dryRun"] = request.dry_run
        seen["options"] = request.options
        values = {
            "object": in_version(current, target.gvk),
            "oldObject": in_version(request.old_object, target.gvk),
            "request": seen,
        }
        failures: list[str] = []
        for condition in self.conditions:
            try:
                holds = condition.evaluate(values)
            except CelError as error:
                failures.append(f"expression '{condition.source}' resulted in error: {error}")
                continue
            if holds is False:
                return False
        if not failures:
            return True
        if self.ignore_failures:
            return False
        why = failures[0] if len(failures) == 1 else f"[{', '.join(dict.fromkeys(failures))}]"
        raise errors.forbidden(request.gvr.group, request.gvr.resource, request.name, why)


def _labels(obj: Mapping[str, Json]) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def _rule_matches(rule: Object, request: AdmissionRequest, gvr: GroupVersionResource) -> bool:
    return (
        _in_scope(rule.get("scope") or "*", request, gvr)
        and _listed(rule.get("operations"), request.operation)
        and _listed(rule.get("apiGroups"), gvr.group)
        and _listed(rule.get("apiVersions"), gvr.version)
        and any(
            _resource_matches(text, gvr.resource, request.subresource)
            for text in rule.get("resources") or ()
        )
    )


def _in_scope(scope: str, request: AdmissionRequest, gvr: GroupVersionResource) -> bool:
    cluster_wide = gvr == _NAMESPACES or not request.namespace
    return scope == "*" or (scope == "Cluster") is cluster_wide


def _listed(items: list[str] | None, wanted: str) -> bool:
    return items is not None and ("*" in items or wanted in items)


def _resource_matches(pattern: str, resource: str, subresource: str) -> bool:
    wanted, _, below = pattern.partition("/")
    return wanted in ("*", resource) and below in ("*", subresource)


def exempt(request: AdmissionRequest) -> bool:
    """Tell whether no webhook may ever be asked: else one could block its own removal."""
    return request.gvk.group == "admissionregistration.k8s.io" and request.gvk.kind in _EXEMPT


def compile_hooks(configurations: list[Object]) -> tuple[Hook, ...]:
    """Compile all webhooks of configurations, in the order in which they are called."""
    ordered = sorted(configurations, key=lambda found: found["metadata"]["name"])
    return tuple(
        _compile(configuration["metadata"]["name"], index, raw)
        for configuration in ordered
        for index, raw in enumerate(configuration.get("webhooks") or ())
    )


def _compile(configuration: str, index: int, raw: Object) -> Hook:
    client = raw.get("clientConfig") or {}
    problem = ""
    selectors = []
    for name in ("namespaceSelector", "objectSelector"):
        try:
            selectors.append(label_selector(raw.get(name) or {}) or LabelSelector())
        except SelectorError as error:
            problem = str(error)
            selectors.append(LabelSelector())
    return Hook(
        configuration=configuration,
        index=index,
        name=raw.get("name", ""),
        rules=tuple(raw.get("rules") or ()),
        url=client.get("url") or "",
        service=_service(client.get("service")),
        ca_bundle=_ca_bundle(client.get("caBundle")),
        timeout_seconds=raw.get("timeoutSeconds") or 10,
        ignore_failures=raw.get("failurePolicy") == "Ignore",
        equivalent=raw.get("matchPolicy") != "Exact",
        reinvocable=raw.get("reinvocationPolicy") == "IfNeeded",
        side_effect_free=raw.get("sideEffects") in ("None", "NoneOnDryRun"),
        speaks_v1="v1" in (raw.get("admissionReviewVersions") or ()),
        namespace_selector=selectors[0],
        object_selector=selectors[1],
        conditions=tuple(_condition(found) for found in raw.get("matchConditions") or ()),
        problem=problem,
    )


def _service(raw: Object | None) -> Service | None:
    if raw is None:
        return None
    return Service(
        raw.get("namespace", ""), raw.get("name", ""), raw.get("port") or 443, raw.get("path") or ""
    )


def _ca_bundle(text: str | None) -> bytes:
    try:
        return base64.b64decode(text or "")
    except (binascii.Error, ValueError):
        return b""


def _condition(raw: Object) -> MatchCondition:
    source = raw.get("expression", "")
    try:
        return MatchCondition(raw.get("name", ""), source, Expression(source, variables=VARIABLES))
    except CelError as error:
        return MatchCondition(raw.get("name", ""), source, None, str(error))
