"""What the server counts: requests, as kube-apiserver's `apiserver_request_total` names them."""

from collections import Counter
from dataclasses import dataclass

from hyperjob_sandbox.apiserver.transport.requestinfo import RequestInfo

_VERBS = {"create": "POST", "update": "PUT"}


@dataclass(frozen=True, slots=True)
class Request:
    """The labels of one counter."""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str
    code: int
    dry_run: str


class Metrics:
    """Counters since the server was made."""

    def __init__(self) -> None:
        self._requests: Counter[Request] = Counter()

    def count(self, info: RequestInfo, code: int, *, applied: bool) -> None:
        """Count a request that was answered with a code."""
        verb = "APPLY" if applied else _VERBS.get(info.verb, info.verb.upper())
        scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
        dry_run = info.query.get("dryRun", "")
        self._requests[
            Request(
                verb,
                info.group,
                info.version,
                info.resource,
                info.subresource,
                scope,
                code,
                dry_run,
            )
        ] += 1

    def text(self) -> str:
        """Print all counters in Prometheus' text format."""
        lines = [
            "# HELP apiserver_request_total Requests by verb, resource and HTTP code.",
            "# TYPE apiserver_request_total counter",
        ]
        for request, count in sorted(self._requests.items(), key=lambda item: str(item[0])):
            labels = (
                ("code", str(request.code)),
                ("component", "apiserver"),
                ("dry_run", request.dry_run),
                ("group", request.group),
                ("resource", request.resource),
                ("scope", request.scope),
                ("subresource", request.subresource),
                ("verb", request.verb),
                ("version", request.version),
            )
            shown = ",".join(f'{name}="{_escape(value)}"' for name, value in labels)
            lines.append(f"apiserver_request_total{{{shown}}} {count}")
        return "\n".join(lines) + "\n"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
