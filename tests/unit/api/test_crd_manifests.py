"""The manifests that people have are valid, what is wrong in one is said."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperjob_core.api.v1alpha1 import HyperJob
from tests.support.structural import ROOT, crds, violations

DATA = Path(__file__).parent / "data"
Object = dict[str, Any]


def manifests() -> Iterator[Any]:
    for file in sorted([*DATA.glob("*.yaml"), *(ROOT / "examples").glob("*.yaml")]):
        for number, obj in enumerate(yaml.safe_load_all(file.read_text())):
            if obj.get("kind") in crds():
                yield pytest.param(obj, id=f"{file.stem}-{number}")


def recorded() -> Iterator[Any]:
    for line in (DATA / "recorded.jsonl").read_text().splitlines():
        obj = json.loads(line)
        yield pytest.param(obj, id=f"{obj['kind']}-{obj['metadata']['name']}")


@pytest.mark.parametrize("obj", [*manifests()])
def test_a_manifest_of_the_documents_and_examples_is_valid(obj: Object) -> None:
    assert violations(obj) == []


@pytest.mark.parametrize("obj", [*recorded()])
def test_an_object_of_a_real_control_plane_is_valid_and_loses_nothing(obj: Object) -> None:
    assert violations(obj) == []


HYPERJOBS = [case for case in (*manifests(), *recorded()) if case.values[0]["kind"] == "HyperJob"]


@pytest.mark.parametrize("obj", HYPERJOBS)
def test_a_hyperjob_is_read_and_written_without_loss(obj: Object) -> None:
    obj = without_nulls(obj)
    assert HyperJob.from_object(obj).to_object() == obj


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


EVERYTHING = yaml.safe_load((DATA / "everything.yaml").read_text())


def job(obj: Object, index: int = 0) -> Object:
    found: Object = obj["spec"]["replicatedJobs"][index]
    return found


def container(obj: Object) -> Object:
    template = job(obj)["templateSpec"]["tasks"][0]["template"]
    found: Object = template["spec"]["containers"][0]
    return found


Change = Callable[[Object], object]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param(lambda o: o.pop("spec"), "$: 'spec' is a required property", id="no spec"),
        pytest.param(
            lambda o: o["spec"].update(replicatedJobs=[]),
            "spec.replicatedJobs: [] should be non-empty",
            id="no jobs",
        ),
        pytest.param(
            lambda o: o["spec"].update(minAvailble=1),
            "spec: Additional properties are not allowed ('minAvailble' was unexpected)",
            id="a misspelt field",
        ),
        pytest.param(
            lambda o: o["spec"].update(minAvailable=-1),
            "spec.minAvailable: -1 is less than the minimum of 0",
            id="negative minAvailable",
        ),
        pytest.param(
            lambda o: o["spec"].update(maxDomains=0),
            "spec.maxDomains: 0 is less than the minimum of 1",
            id="no cluster allowed",
        ),
        pytest.param(
            lambda o: job(o).update(name="A_b"),
            "spec.replicatedJobs[0].name: 'A_b' does not match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
            id="a name that is no label",
        ),
        pytest.param(
            lambda o: job(o).update(replicas=0),
            "spec.replicatedJobs[0].replicas: 0 is less than the minimum of 1",
            id="no replicas",
        ),
        pytest.param(
            lambda o: job(o).update(clusterPolicy="Maybe"),
            "spec.replicatedJobs[0].clusterPolicy: 'Maybe' is not one of ['Preferred', 'Required']",
            id="an unknown policy",
        ),
        pytest.param(
            lambda o: job(o, 2).update(replicas=2),
            "HyperJob.spec.replicatedJobs[2]: replicas must be unset if splitPolicy.mode is auto:"
            " the split decides it",
            id="replicas that the split decides",
        ),
        pytest.param(
            lambda o: job(o).pop("clusterNames"),
            "HyperJob.spec.replicatedJobs[0]: clusterNames must be set if clusterPolicy is"
            " Required",
            id="required clusters that are not named",
        ),
        pytest.param(
            lambda o: job(o, 1)["dependsOn"][0].update(name="trainer"),
            "HyperJob.spec.replicatedJobs[1]: a replicated job must not depend on itself",
            id="a job that waits for itself",
        ),
        pytest.param(
            lambda o: job(o, 2).update(name="driver"),
            "HyperJob.spec.replicatedJobs: duplicate ('driver',)",
            id="two jobs of one name",
        ),
        pytest.param(
            lambda o: container(o).update(imagePulPolicy="Always"),
            "spec.replicatedJobs[0].templateSpec.tasks[0].template.spec.containers[0]: Additional"
            " properties are not allowed ('imagePulPolicy' was unexpected)",
            id="a misspelt field of a container",
        ),
        pytest.param(
            lambda o: container(o).pop("name"),
            "spec.replicatedJobs[0].templateSpec.tasks[0].template.spec.containers[0]: 'name' is a"
            " required property",
            id="a container without a name",
        ),
    ],
)
def test_what_is_wrong_is_refused_at_its_place(change: Change, error: str) -> None:
    obj = copy.deepcopy(EVERYTHING)
    change(obj)
    assert violations(obj) == [error]


@pytest.mark.parametrize("amount", ["1", 1, "500m", "1.5Gi", "-1", "1e3", "1E"])
def test_an_amount_may_be_written_in_every_way(amount: object) -> None:
    obj = copy.deepcopy(EVERYTHING)
    container(obj)["resources"]["limits"]["nvidia.com/gpu"] = amount
    assert violations(obj) == []


@pytest.mark.parametrize("amount", ["", "1 Gi", "1K", "one", True, 0.5, None])
def test_what_is_no_amount_is_refused(amount: object) -> None:
    obj = copy.deepcopy(EVERYTHING)
    container(obj)["resources"]["limits"]["nvidia.com/gpu"] = amount
    assert len(violations(obj)) == 1
