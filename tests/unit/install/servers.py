"""An API server in memory with server-side apply and dry runs, for installations."""

from collections.abc import Iterable
from typing import Any

import orjson

from hyperjob_core.kube.client import PatchType
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.memory import Call
from hyperjob_core.kube.patches import merged
from hyperjob_core.kube.resources import CRDS, Resource
from hyperjob_core.kube.transport import Response
from hyperjob_install.objects import Item
from tests.support.apiserver import ApiServer, refusal

Object = dict[str, Any]
ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}


class InstallServer(ApiServer):
    """`calls` are the writes that are no dry runs; a CRD is served once it is `established`.

    `unserved` are kinds that the server does not have.
    """

    def __init__(self, *, unserved: Iterable[Resource] = (), established: bool = True) -> None:
        super().__init__()
        self.unserved = tuple(unserved)
        self.established = established
        self.groups: list[str] = []
        self.dry_runs: list[str] = []
        self.tokens: list[Object] = []
        self.refuses_dry_run: dict[str, KubeError] = {}

    async def request(self, method: str, path: str, **more: Any) -> Response:
        if path == "/apis":
            groups = [{"name": name} for name in self.groups]
            return Response(200, {}, orjson.dumps({"groups": groups}))
        return await super().request(method, path, **more)

    def answer(self, call: Call) -> Any:
        if call.resource in self.unserved:
            raise refusal(404, "NotFound", f"no kind {call.resource.kind}")
        if call.subresource == "token":
            self.tokens.append(call.content())
            raise_if(self.fails("create", call.resource, call.name))
            return {"status": {"token": "t", "expirationTimestamp": "2027-01-02T00:00:00Z"}}
        if "All" in (call.params.get("dryRun"), *(call.content().get("dryRun") or ())):
            return self._dry_run(call)
        if call.content_type == PatchType.APPLY and self.get(call.resource, call.key) is None:
            self.calls.append(("apply", call.resource.plural, call.name))
            raise_if(self.fails("apply", call.resource, call.name))
            made = self.put(call.resource, call.content())
            if call.resource is CRDS and self.established:
                made = self.put(CRDS, {**made, "status": ESTABLISHED})
            return made
        return super().answer(call)

    def _dry_run(self, call: Call) -> Any:
        name = call.name or call.content()["metadata"]["name"]
        self.dry_runs.append(name)
        raise_if(self.refuses_dry_run.get(name))
        return merged(self.get(call.resource, call.key) or {}, call.content())

    def install(self, items: Iterable[Item]) -> None:
        """Store objects as an earlier run has applied them."""
        for item in items:
            if not item.absent:
                status = {"status": ESTABLISHED} if item.resource is CRDS else {}
                self.put(item.resource, {**item.object, **status})


def raise_if(error: KubeError | None) -> None:
    if error is not None:
        raise error
