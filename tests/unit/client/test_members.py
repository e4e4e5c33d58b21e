"""What members have is read to its last page."""

from typing import Any

import orjson
import pytest

from hyperjob.client.members import pods_of, refusals_of_all
from hyperjob.client.summary import read
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.transport import Response
from hyperjob_core.virtualtime import run
from tests.unit.cli.objects import CREATED, hyperjob, sub_job

NAME = "llm-trainer-0"
(JOB,) = read(hyperjob("Running", sub_job(cluster="east"))).jobs
ABOUT = {"kind": "Job", "namespace": "ml", "name": NAME}


class Pages:
    """An API server that answers a list with one object a page."""

    host = "karmada"

    def __init__(self, items: list[Object]) -> None:
        self._items = items

    async def request(
        self, method: str, path: str, *, params: dict[str, str], **_: object
    ) -> Response:
        assert method == "GET"
        assert "/clusters/east/proxy/" in path
        place = int(params.get("continue", "0"))
        token = str(place + 1) if place + 1 < len(self._items) else ""
        page = {"items": [self._items[place]], "metadata": {"continue": token}}
        return Response(200, {}, orjson.dumps(page))


def listed(items: list[Object]) -> Kube:
    return Kube(Pages(items))  # type: ignore[arg-type]  # it answers lists alone


def named(name: str, **metadata: Any) -> Object:
    return {"metadata": {"namespace": "ml", "name": name, **metadata}}


def refused(name: str, job: str) -> Object:
    about = {**ABOUT, "name": job}
    return named(name) | {
        "reason": "FailedCreate",
        "involvedObject": about,
        "message": "exceeded quota",
        "firstTimestamp": CREATED,
    }


def test_pods_are_in_the_order_of_their_indexes() -> None:
    labels = [{"volcano.sh/task-spec": "worker", "volcano.sh/task-index": n} for n in ("10", "2")]
    pods = [named(each["volcano.sh/task-index"], labels=each) for each in labels]
    found = run(pods_of(listed(pods), "ml", JOB))
    assert [pod["metadata"]["name"] for pod in found] == ["2", "10"]


@pytest.mark.parametrize("others", [0, 3])
def test_a_refusal_on_a_later_page_is_found(others: int) -> None:
    events = [*[refused("other", "another")] * others, refused("own", NAME)]
    found = run(refusals_of_all(listed(events), "ml", [JOB]))
    assert {name: each.message for name, each in found.items()} == {NAME: "exceeded quota"}
