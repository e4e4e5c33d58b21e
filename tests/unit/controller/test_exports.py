"""Exports of Services: made once, removed with their sub-job, others' left alone."""

from typing import Any

import pytest

from hyperjob_controller.apply.claims import Exports
from hyperjob_core.kube.errors import AlreadyExists, NotFound
from hyperjob_core.kube.resources import SERVICE_EXPORTS, Resource
from tests.support.apiserver import refusal

Object = dict[str, Any]


def export(owner: str = "mine", **metadata: Any) -> Object:
    references = [{"kind": "HyperJob", "name": "hj", "uid": owner, "controller": True}]
    return {
        "metadata": {
            "name": "x",
            "namespace": "ns",
            "ownerReferences": references if owner else [],
            **metadata,
        }
    }


class Server:
    """Holds at most one export, and notes what is asked of it."""

    def __init__(self, found: Object | None = None, *, served: bool = True) -> None:
        self.found = found
        self.served = served
        self.calls: list[str] = []

    async def create(self, resource: Resource, obj: Object) -> Object:
        self.calls.append(f"create {resource.plural}")
        if not self.served:
            raise refusal(404, "NotFound", "the server says so")
        if self.found is not None:
            raise refusal(409, "AlreadyExists")
        self.found = obj
        return obj

    async def get(self, resource: Resource, name: str, *, namespace: str) -> Object:
        self.calls.append(f"get {namespace}/{name}")
        if self.found is None or not self.served:
            raise refusal(404, "NotFound")
        return self.found

    async def delete(self, resource: Resource, name: str, *, uid: str, **_: Any) -> Object:
        self.calls.append(f"delete {name} {uid}")
        self.found = None
        return {"kind": "Status"}


async def test_an_export_is_made_once() -> None:
    server = Server()
    for _ in range(2):
        await Exports(server).create(export())
    assert server.calls == [f"create {SERVICE_EXPORTS.plural}"] * 2 + ["get ns/x"]


async def test_an_export_that_somebody_made_serves_as_well() -> None:
    server = Server(export(owner=""))
    await Exports(server).create(export())
    await Exports(server).delete(export())
    assert server.found is not None


@pytest.mark.parametrize(
    "found", [export(owner="earlier"), export(deletionTimestamp="2026-01-02T03:04:05Z")]
)
async def test_one_that_is_on_its_way_out_is_waited_for(found: Object) -> None:
    with pytest.raises(AlreadyExists):
        await Exports(Server(found)).create(export())


async def test_a_server_without_the_kind_is_named_with_the_way_around_it() -> None:
    with pytest.raises(NotFound, match=r"the server says so .*installed.*--export=false"):
        await Exports(Server(served=False)).create(export())


async def test_an_export_goes_by_its_uid() -> None:
    server = Server(export(uid="u"))
    for _ in range(2):
        await Exports(server).delete(export())
    assert server.calls == ["get ns/x", "delete x u", "get ns/x"]


async def test_an_export_that_goes_meanwhile_is_as_good_as_deleted() -> None:
    class Racing(Server):
        async def delete(self, resource: Resource, name: str, *, uid: str, **_: Any) -> Object:
            await super().delete(resource, name, uid=uid)
            raise refusal(404, "NotFound")

    server = Racing(export(uid="u"))
    await Exports(server).delete(export())
    assert server.calls == ["get ns/x", "delete x u"]
