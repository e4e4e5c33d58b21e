"""Webhooks as configurations declare them: which requests they are for, and how they are called."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.admission.review import (
    AdmissionRequest,
    GroupVersionResource,
    attributes,
)
from hyperjob_sandbox.apiserver.cel import CelError, Expression
from hyperjob_sandbox.apiserver.jsonvalue import Json
from hyperjob_sandbox.apiserver.selectors import label_selector

_NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
_VARIABLES: Final = ("object", "oldObject", "request")


class Hook:
    """One webhook of a configuration."""

    def __init__(self, raw: Object) -> None:
        """Compile; raise SelectorError and CelError."""
        self.name = str(raw.get("name", ""))
        self.client: Object = raw.get("clientConfig") or {}
        self.ca_bundle = base64.b64decode(self.client.get("caBundle") or "")
        self.timeout_seconds: int = raw.get("timeoutSeconds") or 10
        # A request goes on where the webhook cannot be asked.
        self.ignore_failures = raw.get("failurePolicy") == "Ignore"
        # The webhook is asked again where a later one changed the object.
        self.is_reinvoked = raw.get("reinvocationPolicy") == "IfNeeded"
        # The webhook may be asked about a dry run.
        self.side_effect_free = raw.get("sideEffects") in ("None", "NoneOnDryRun")
        self._rules: Sequence[Object] = raw.get("rules") or ()
        self._namespaces = label_selector(raw.get("namespaceSelector") or {})
        self._objects = label_selector(raw.get("objectSelector") or {})
        self._conditions = [
            Expression(each.get("expression", ""), variables=_VARIABLES)
            for each in raw.get("matchConditions") or ()
        ]

    def matches(self, request: AdmissionRequest, namespace: Mapping[str, Json] | None) -> bool:
        """Tell whether the webhook is for a request, by its rules and selectors.

        `namespace` is the request's, if it exists. Raises ApiError where it is needed and missing.
        """
        objects = [obj for obj in (request.object, request.old_object) if obj is not None]
        if not any(self._objects.matches(_labels(obj)) for obj in objects) or not any(
            _rule_matches(rule, request) for rule in self._rules
        ):
            return False
        if request.gvr == _NAMESPACES:
            namespace = objects[0]
        if not self._namespaces or not (request.namespace or namespace):
            return True
        if namespace is None:
            raise errors.not_found("", "namespaces", request.namespace)
        return self._namespaces.matches(_labels(namespace))

    def admits(self, request: AdmissionRequest) -> bool:
        """Tell whether the match conditions hold; raise ApiError 403 where one must not fail."""
        if not self._conditions:
            return True
        seen = {**attributes(request, uid=""), "dryRun": request.dry_run}
        values = {
            "object": request.object,
            "oldObject": request.old_object,
            "request": {**seen, "options": request.options},
        }
        failure = ""
        for condition in self._conditions:
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
    return tuple(Hook(raw) for found in ordered for raw in found.get("webhooks") or ())
