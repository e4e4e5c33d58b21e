"""What is told about each request: one log line, and controller-runtime's webhook metrics.

Names the object, never shows it.
"""

import logging
from typing import Final

from hyperjob.telemetry.metrics import Metrics
from webhook.admission import Reply

_log: Final = logging.getLogger("webhook")


class Report:
    """Logs and counts requests."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def started(self, webhook: str) -> None:
        """Count a request that has arrived."""
        self._metrics.webhook_started(webhook)

    def done(self, webhook: str, reply: Reply, seconds: float) -> None:
        """Count an answered request, and log it: a decision, or why there was none."""
        self._metrics.webhook_done(webhook, code=reply.status, seconds=seconds)
        if reply.bug is not None:
            _log.error(
                "the webhook failed",
                extra=_fields(webhook, reply, seconds),
                exc_info=reply.bug,
            )
        elif reply.decision is None:
            _log.warning("request refused", extra=_fields(webhook, reply, seconds))
        elif _log.isEnabledFor(logging.INFO):
            _log.info("admission decision", extra=_fields(webhook, reply, seconds))


def _fields(webhook: str, reply: Reply, seconds: float) -> dict[str, object]:
    fields: dict[str, object] = {
        "webhook": webhook,
        "code": reply.status,
        "duration": round(seconds, 6),
    }
    if (request := reply.request) is not None:
        fields |= {
            "requestID": request.uid,
            "operation": request.operation,
            request.kind or "object": {"namespace": request.namespace, "name": request.name},
            "user": request.user,
        }
        if request.dry_run:
            fields["dryRun"] = True
    if (decision := reply.decision) is not None:
        fields["allowed"] = decision.allowed
        if decision.errors:
            fields["errors"] = len(decision.errors)
            fields["reason"] = str(decision.errors[0])[:512]
        if decision.patch:
            fields["patched"] = len(decision.patch)
    if reply.problem:
        fields["reason"] = reply.problem
    return fields
