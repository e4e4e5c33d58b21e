"""The sources of the CRDs, the code and the committed file say the same."""

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import pytest
import yaml

from docs.generators import podschema
from hyperjob_core.api import choices, limits, schema
from hyperjob_core.api.plugins import PLUGINS
from tests.support.structural import FOLDERS, ROOT, crds, schema_of

Schema = dict[str, Any]


def test_the_committed_file_is_what_the_sources_give() -> None:
    committed = (ROOT / schema.HYPERJOB_FILE).read_text()
    assert committed == schema.render(), "run python -m hyperjob_core.api.schema"


def test_the_pod_template_is_what_the_client_gives() -> None:
    assert schema.DATA.read_text() == podschema.render(), "run python -m docs.generators.podschema"


DEFINITION = yaml.safe_load((schema.HERE / "hyperjob.yaml").read_text())
(VERSION,) = DEFINITION["spec"]["versions"]
SPEC: Schema = VERSION["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
JOB: Schema = SPEC["replicatedJobs"]["items"]["properties"]
RULE: Schema = SPEC["failurePolicy"]["properties"]["rules"]["items"]["properties"]


@pytest.mark.parametrize(
    ("node", "known"),
    [
        pytest.param(
            JOB["dependsOn"]["items"]["properties"]["status"], choices.DependencyStatus, id="after"
        ),
        pytest.param(RULE["action"], choices.FailurePolicyAction, id="action"),
        pytest.param(SPEC["onNoProgress"], choices.OnNoProgress, id="no progress"),
        pytest.param(
            SPEC["successPolicy"]["properties"]["operator"], choices.SuccessOperator, id="success"
        ),
        pytest.param(SPEC["activeDeadlineMode"], choices.DeadlineMode, id="deadline"),
    ],
)
def test_the_schema_allows_the_values_that_the_code_knows(
    node: Schema, known: type[StrEnum]
) -> None:
    assert node["enum"] == list(known)


def test_the_schema_has_the_limits_that_the_code_knows() -> None:
    assert SPEC["replicatedJobs"]["maxItems"] == limits.MAX_REPLICATED_JOBS
    assert JOB["replicas"]["maximum"] == limits.MAX_SUB_JOBS
    assert f": {', '.join(PLUGINS)}." in SPEC["plugins"]["description"]


# Soundness, for every CRD that the project has.


def nodes(node: Schema, at: str = "") -> Iterator[tuple[str, Schema]]:
    yield at, node
    for name, value in node.get("properties", {}).items():
        yield from nodes(value, f"{at}.{name}")
    if "items" in node:
        yield from nodes(node["items"], f"{at}[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from nodes(node["additionalProperties"], f"{at}{{}}")


KEYWORDS = {
    "additionalProperties", "default", "description", "enum", "format", "items", "maxItems",
    "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minimum", "nullable",
    "pattern", "properties", "required", "type", "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}  # fmt: skip
KINDS = sorted(crds())


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_structural(kind: str) -> None:
    for at, node in nodes(schema_of(crds()[kind])):
        assert set(node) <= KEYWORDS, at
        if node.get("x-kubernetes-int-or-string"):
            assert "type" not in node, at
        else:
            assert node["type"] in {"object", "array", "string", "integer", "boolean"}, at
        assert not ("properties" in node and "additionalProperties" in node), at
        assert set(node.get("required", [])) <= set(node.get("properties", {})), at
        if node.get("type") == "array":
            assert "items" in node, at


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_a_list_are_required_or_have_a_default(kind: str) -> None:
    for at, node in nodes(schema_of(crds()[kind])):
        if node.get("x-kubernetes-list-type") == "map":
            item = node["items"]
            for key in node["x-kubernetes-list-map-keys"]:
                field = item["properties"][key]
                assert field["type"] in {"string", "integer"}, at
                assert key in item.get("required", []) or "default" in field, at


@pytest.mark.parametrize("kind", KINDS)
def test_a_crd_is_named_for_its_plural_and_group(kind: str) -> None:
    crd = crds()[kind]
    spec = crd["spec"]
    assert crd["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"
    assert spec["names"]["listKind"] == f"{kind}List"
    file = f"{spec['group']}_{spec['names']['plural']}.yaml"
    folders = (*FOLDERS, ROOT / "core/hyperjob_core/api/crds")
    assert [(folder / file).is_file() for folder in folders].count(True) == 1


def test_every_field_of_the_hyperjob_is_described() -> None:
    for at, node in nodes(schema_of(crds()["HyperJob"])):
        if at and not at.endswith(("[]", "{}")) and at != ".metadata":
            assert node.get("description"), at


@pytest.mark.parametrize(
    ("path", "explained"),
    [
        (".tasks[].template.spec.containers[].image", "pod.spec.containers.image"),
        (".volumes[].volumeClaim.resources.requests", "pvc.spec.resources.requests"),
    ],
)
def test_a_field_of_a_pod_names_the_command_that_explains_it(path: str, explained: str) -> None:
    found = {at: node.get("description") for at, node in nodes(schema_of(crds()["HyperJob"]))}
    field = f".spec.replicatedJobs[].templateSpec{path}"
    assert found[field] == f"See: kubectl explain {explained}"


def test_the_pod_template_brings_no_text_along() -> None:
    for at, node in nodes(schema.schema("PodTemplateSpec")):
        assert "description" not in node, at


def test_the_hyperjob_fits_into_an_annotation_of_client_side_apply() -> None:
    limit = 256 * 1024
    assert len(json.dumps(crds()["HyperJob"], separators=(",", ":"))) < limit * 9 // 10


def test_no_list_of_a_spec_gets_a_default_that_its_author_did_not_write() -> None:
    """`kubectl apply` compares a list as a whole: with a default in the store it differs."""
    spec = schema_of(crds()["HyperJob"])["properties"]["spec"]
    assert [at for at, node in nodes(spec) if "default" in node and "[]" in at] == []


def test_lists_of_a_template_that_have_a_key_are_merged_by_it() -> None:
    keys = {
        at.partition(".templateSpec")[2]: node["x-kubernetes-list-map-keys"]
        for at, node in nodes(schema_of(crds()["HyperJob"])["properties"]["spec"])
        if "x-kubernetes-list-map-keys" in node and at.count("[]") < 2
    }
    assert keys == {"": ["name"], ".tasks": ["name"], ".volumes": ["mountPath"]}
