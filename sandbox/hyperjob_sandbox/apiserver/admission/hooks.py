"""Webhooks as configurations declare them: which requests they are for, and how they are called.

Compiled once from a configuration. Pure: nothing here talks to a webhook.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.admission.review import (
    AdmissionRequest,
    GroupVersionResource,
    attributes,
)
from hyperjob_sandbox.apiserver.cel import CelError, Expression
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.state.selectors import LabelSelector, label_selector

_NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
_VARIABLES: Final = ("object", "oldObject", "request")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One webhook of a configuration."""

    name: str
    client: Object
    """How the webhook is reached: its `clientConfig`."""
    ca_bundle: bytes
    rules: Sequence[Object]
    namespace_selector: LabelSelector
    object_selector: LabelSelector
    conditions: tuple[Expression, ...]
    timeout_seconds: int
    ignore_failures: bool
    """Whether a request goes on where the webhook cannot be asked."""
    is_reinvoked: bool
    """Whether the webhook is asked again where a later one changed the object."""
    side_effect_free: bool
    """Whether the webhook may be asked about a dry run."""

    def matches(self, request: AdmissionRequest, namespace: Mapping[str, Json] | None) -> bool:
        """Tell whether the webhook is for a request, by its rules and selectors.

        `namespace` is the request's, if it exists. Raises ApiError where it is needed and missing.
        """
        objects = (request.object, request.old_object)
        return (
            any(self.object_selector.matches(_labels(obj)) for obj in objects if obj is not None)
            and any(_rule_matches(rule, request) for rule in self.rules)
            and self._matches_namespace(request, namespace)
        )

    def _matches_namespace(
        self, request: AdmissionRequest, namespace: Mapping[str, Json] | None
    ) -> bool:
        if not self.namespace_selector or not (request.namespace or request.gvr == _NAMESPACES):
            return True
        found = namespace
        if request.gvr == _NAMESPACES and not request.subresource and request.operation != "DELETE":
            found = request.object
        if found is None:
            raise errors.not_found("", "namespaces", request.namespace)
        return self.namespace_selector.matches(_labels(found))

    def admits(self, request: AdmissionRequest) -> bool:
        """Tell whether the match conditions hold; raise ApiError 403 where one must not fail."""
        if not self.conditions:
            return True
        seen = {**attributes(request, uid=""), "dryRun": request.dry_run}
        values = {
            "object": request.object,
            "oldObject": request.old_object,
            "request": {**seen, "options": request.options},
        }
        failure = ""
        for condition in self.conditions:
            try:
                if condition.evaluate(values) is False:
                    return False
            except CelError as error:
                failure = f"expression '{condition.source}' resulted in error: {error}"
        if failure and not self.ignore_failures:
            group, _, resource = request.gvr
            raise errors.forbidden(group, resource, request.name, failure)
        return not failure


def _labels(obj: Mapping[str, Json]) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def _rule_matches(rule: Object, request: AdmissionRequest) -> bool:
    scope = rule.get("scope") or "*"
    cluster_wide = request.gvr == _NAMESPACES or not request.namespace
    return (
        (scope == "*" or (scope == "Cluster") is cluster_wide)
        and _listed(rule.get("operations"), request.operation)
        and _listed(rule.get("apiGroups"), request.gvr.group)
        and _listed(rule.get("apiVersions"), request.gvr.version)
        and any(_resource_matches(text, request) for text in rule.get("resources") or ())
    )


def _listed(items: list[str] | None, wanted: str) -> bool:
    return items is not None and ("*" in items or wanted in items)


def _resource_matches(pattern: str, request: AdmissionRequest) -> bool:
    wanted, _, below = pattern.partition("/")
    return wanted in ("*", request.gvr.resource) and below in ("*", request.subresource)


def exempt(request: AdmissionRequest) -> bool:
    """Tell whether no webhook may ever be asked: else one could block its own removal."""
    return request.gvk.group == "admissionregistration.k8s.io"


def compile_hooks(configurations: Iterable[Object]) -> tuple[Hook, ...]:
    """Compile all webhooks of configurations, in the order in which they are called.

    Raises SelectorError and CelError for what does not compile.
    """
    ordered = sorted(configurations, key=lambda found: str(found["metadata"]["name"]))
    return tuple(
        _compile(raw) for configuration in ordered for raw in configuration.get("webhooks") or ()
    )


def _compile(raw: Object) -> Hook:
    client: Object = raw.get("clientConfig") or {}
    conditions = (each.get("expression", "") for each in raw.get("matchConditions") or ())
    return Hook(
        name=str(raw.get("name", "")),
        client=client,
        ca_bundle=base64.b64decode(client.get("caBundle") or ""),
        rules=raw.get("rules") or (),
        namespace_selector=label_selector(raw.get("namespaceSelector") or {}),
        object_selector=label_selector(raw.get("objectSelector") or {}),
        conditions=tuple(Expression(each, variables=_VARIABLES) for each in conditions),
        timeout_seconds=raw.get("timeoutSeconds") or 10,
        ignore_failures=raw.get("failurePolicy") == "Ignore",
        is_reinvoked=raw.get("reinvocationPolicy") == "IfNeeded",
        side_effect_free=raw.get("sideEffects") in ("None", "NoneOnDryRun"),
    )
