"""What the server counts: requests, as kube-apiserver's `apiserver_request_total` names them."""

from collections import Counter

from hyperjob_sandbox.apiserver.transport.requestinfo import RequestInfo

_VERBS = {"create": "POST", "update": "PUT"}
_HEAD = (
    "# HELP apiserver_request_total Requests by verb, resource and HTTP code.\n"
    "# TYPE apiserver_request_total counter\n"
)


class Metrics:
    """Counters since the server was made, by their labels as Prometheus' text format has them."""

    def __init__(self) -> None:
        self._requests: Counter[str] = Counter()

    def count(self, info: RequestInfo, code: int, *, applied: bool) -> None:
        """Count a request that was answered with a code."""
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
