"""Which stored HyperJobs the schema of this release would refuse, read page by page."""

from typing import Any

import orjson
import pytest

from hyperjob_core.api.limits import MAX_REPLICATED_JOBS
from hyperjob_core.kube.errors import Forbidden, KubeError
from hyperjob_core.kube.transport import Response
from hyperjob_install.preflight.observed import StoredHyperJobs, read_stored
from tests.support.apiserver import refusal

Object = dict[str, Any]


def hyperjob(name: str, *, groups: int = 1, **fields: Any) -> Object:
    container = {"name": "c", "image": "i"}
    task = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    group = {"name": "g", "templateSpec": {"tasks": [task]}, **fields}
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"replicatedJobs": [group | {"name": f"g{index}"} for index in range(groups)]},
    }


class Pages:
    """Gives pages one after the other; an error in their place is raised."""

    def __init__(self, *pages: list[Object] | KubeError) -> None:
        self.pages = pages
        self.asked: list[dict[str, str]] = []

    async def raw(self, _method: str, _path: str, *, params: dict[str, str]) -> Response:
        self.asked.append(params)
        number = int(params.get("continue") or 0)
        page = self.pages[number]
        if isinstance(page, KubeError):
            raise page
        more = str(number + 1) if number + 1 < len(self.pages) else ""
        return Response(200, {}, orjson.dumps({"metadata": {"continue": more}, "items": page}))


async def test_those_beyond_a_bound_are_named_with_the_field() -> None:
    pages = Pages(
        [hyperjob("fine"), hyperjob("wide", groups=MAX_REPLICATED_JOBS + 1)],
        [hyperjob("many", replicas=10**7), hyperjob("newer", fieldOfALaterRelease=1)],
    )
    found = await read_stored(pages)  # type: ignore[arg-type]  # has the one call that is made
    assert isinstance(found, StoredHyperJobs)
    assert found.number == 4
    assert [name for name, _ in found.refused] == ["ml/wide", "ml/many"]
    (_, wide), (_, many) = found.refused
    assert wide.startswith("spec.replicatedJobs: Too many")
    assert many.startswith("spec.replicatedJobs[0].replicas: Invalid value: 10000000")
    assert [params["limit"] for params in pages.asked] == ["100", "100"]


@pytest.mark.parametrize(("code", "reason"), [(403, "Forbidden"), (503, "ServiceUnavailable")])
async def test_what_cannot_be_read_is_an_error(code: int, reason: str) -> None:
    found = await read_stored(Pages(refusal(code, reason)))  # type: ignore[arg-type]
    assert isinstance(found, KubeError)
    assert isinstance(found, Forbidden) == (code == 403)


async def test_without_the_definition_nothing_is_stored() -> None:
    assert await read_stored(Pages(refusal(404, "NotFound"))) == StoredHyperJobs()  # type: ignore[arg-type]
