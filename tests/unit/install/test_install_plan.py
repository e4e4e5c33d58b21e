"""Installations where the API server refuses a request other than a dry run, and rights."""

from typing import Any, cast

import pytest

from hyperjob_core.kube.accessreviews import User
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Forbidden, NotFound
from hyperjob_core.kube.resources import ADMISSION_POLICIES, RESOURCE_INTERPRETERS, Resource
from hyperjob_install.interpreters import VCJOB_NAME, interpreters
from hyperjob_install.manifest import certs_guard
from hyperjob_install.objects import Item
from hyperjob_install.plan import plan
from hyperjob_install.preflight.observed import read_rights
from hyperjob_install.problems import Problem
from hyperjob_install.settings import TRAINJOBS, Settings

Object = dict[str, Any]
DENIED = Forbidden({"message": "denied", "reason": "Forbidden", "code": 403})
MISSING = NotFound({"message": "not found", "reason": "NotFound", "code": 404})
OTHER = {
    "metadata": {"name": "other"},
    "spec": {
        "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"},
        "customizations": {"retention": {"luaScript": "return"}},
    },
}


class Server:
    """An API server without objects, which refuses some lists and reads."""

    def __init__(self, *, lists: Resource | None = None, gets: Resource | None = None) -> None:
        self.lists, self.gets = lists, gets

    async def get(self, resource: Resource, _name: str, *, namespace: str | None = None) -> Object:
        del namespace
        raise DENIED if resource is self.gets else MISSING

    async def list(self, resource: Resource) -> Any:
        if resource is self.lists:
            raise DENIED
        items = [OTHER] if resource is RESOURCE_INTERPRETERS else []
        return type("Listed", (), {"items": items})

    async def apply(self, _resource: Resource, obj: Object, **_how: object) -> Object:
        return obj

    async def create(self, _resource: Resource, review: Object, **_how: object) -> Object:
        asked = review["spec"]["resourceAttributes"]["resource"]
        return {"status": {"allowed": asked != "trainjobs"}}


async def problems(server: Server, items: list[Item]) -> tuple[Problem, ...]:
    return (await plan(cast("Kube", server), items)).problems


@pytest.mark.parametrize(
    ("server", "items", "title"),
    [
        (
            Server(lists=ADMISSION_POLICIES),
            certs_guard("certs"),
            "validatingadmissionpolicy.admissionregistration.k8s.io/hyperjob-certs",
        ),
        (
            Server(gets=RESOURCE_INTERPRETERS),
            interpreters(),
            f"resourceinterpretercustomization.config.karmada.io/{VCJOB_NAME}",
        ),
    ],
    ids=["whether a kind is served", "a customization beside a conflicting one"],
)
async def test_a_refused_read_is_a_problem_of_its_object(
    server: Server, items: list[Item], title: str
) -> None:
    found = {each.title: each for each in await problems(server, items)}
    assert found[title].message == "denied"
    assert "administrator" in found[title].remedy


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        (
            Settings(parts=frozenset({TRAINJOBS})),
            (
                "list trainjobs.trainer.kubeflow.org",
                "watch trainjobs.trainer.kubeflow.org",
                "patch trainjobs/status.trainer.kubeflow.org",
                "update trainjobs/finalizers.trainer.kubeflow.org",
            ),
        ),
        (Settings(), ()),
        (None, ()),
    ],
    ids=["with TrainJobs", "without", "no installation"],
)
async def test_the_rights_of_optional_parts_are_reviewed_where_they_are_installed(
    settings: Settings | None, refused: tuple[str, ...]
) -> None:
    found = await read_rights(cast("Kube", Server()), User("controller"), settings)
    assert found.refused == refused
