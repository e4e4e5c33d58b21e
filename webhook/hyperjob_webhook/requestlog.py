"""One log line for each request, and controller-runtime's webhook metrics.

A line has the name of the object and none of its fields. The line of an allowed mutation has the
level debug: the line of the validation that follows says that a HyperJob was written, and a
sub-job has many reviews of its ResourceBinding.
"""

import logging
from typing import Final

from hyperjob_core.telemetry.metrics import Metrics
from hyperjob_rules.configuration import MUTATE_HYPERJOB, MUTATE_RESOURCEBINDING
from hyperjob_rules.validation.rules import Decision
from hyperjob_webhook.admission import Reply
from hyperjob_webhook.review import AdmissionRequest

_log: Final = logging.getLogger("hyperjob_webhook")
_MUTATIONS: Final = frozenset({MUTATE_HYPERJOB, MUTATE_RESOURCEBINDING})


class RequestLog:
    """Logs and counts requests."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def started(self, webhook: str) -> None:
        """Count an arrived request."""
        self._metrics.webhook_started(webhook)

    def done(self, webhook: str, reply: Reply, seconds: float) -> None:
        """Count and log an answered request: its decision, or the error."""
        self._metrics.webhook_done(webhook, code=reply.status, seconds=seconds)
        request, decision = reply.request, reply.decision
        if request is not None and decision is not None:
            is_routine = decision.allowed and webhook in _MUTATIONS
            level = logging.DEBUG if is_routine else logging.INFO
            if _log.isEnabledFor(level):
                fields = _decided(webhook, request, decision, seconds)
                _log.log(level, "admission decision", extra=fields)
            return
        fields = {"webhook": webhook, "code": reply.status, "reason": reply.problem}
        fields["duration"] = round(seconds, 6)
        if request is not None:
            fields |= _named(request)
        if reply.bug is not None:
            _log.error("the webhook failed", extra=fields, exc_info=reply.bug)
        else:
            _log.warning("request refused", extra=fields)


def _decided(
    webhook: str, request: AdmissionRequest, decision: Decision, seconds: float
) -> dict[str, object]:
    fields = _named(request)
    fields["webhook"] = webhook
    fields["allowed"] = decision.allowed
    fields["duration"] = round(seconds, 6)
    if decision.patch:
        fields["patched"] = len(decision.patch)
    if decision.warnings:
        fields["warnings"] = len(decision.warnings)
    if decision.errors:
        fields["errors"] = len(decision.errors)
        fields["reason"] = str(decision.errors[0])[:512]
    return fields


def _named(request: AdmissionRequest) -> dict[str, object]:
    fields: dict[str, object] = {
        request.kind or "object": {"namespace": request.namespace, "name": request.name},
        "operation": request.operation,
        "user": request.user,
        "requestID": request.uid,
    }
    if request.dry_run:
        fields["dryRun"] = True
    return fields
