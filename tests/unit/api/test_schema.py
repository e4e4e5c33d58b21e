"""The types, the generator and the committed CRDs say the same."""

import collections.abc
import copy
import dataclasses
import json
import types
import typing
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Any

import pytest
from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic.fields import FieldInfo

from docs.generators import podschema
from hyperjob_core.api import batch, corev1, schema, v1alpha1
from hyperjob_core.api.model import Model
from hyperjob_core.api.table import Table, camel
from tests.support.structural import FOLDERS, ROOT, crds, schema_of

Schema = dict[str, Any]


@pytest.mark.parametrize("path", list(schema.files()), ids=str)
def test_the_committed_file_is_what_the_types_give(path: Any) -> None:
    assert (ROOT / path).read_text() == schema.files()[path], (
        "run python -m hyperjob_core.api.schema"
    )


def test_the_pod_template_is_what_the_client_gives() -> None:
    assert corev1.DATA.read_text() == podschema.render(), "run python -m docs.generators.podschema"


# Agreement, field by field: what a type declares against what the committed file says.

PAIRS = [
    pytest.param(v1alpha1.HyperJobSpec, "HyperJob", "spec", id="HyperJobSpec"),
    pytest.param(v1alpha1.HyperJobStatus, "HyperJob", "status", id="HyperJobStatus"),
    pytest.param(batch.JobSpec, "Job", "spec", id="JobSpec"),
    pytest.param(batch.JobStatus, "Job", "status", id="JobStatus"),
]


@pytest.mark.parametrize(("model", "kind", "part"), PAIRS)
def test_a_type_and_its_schema_have_the_same_fields(
    model: type[Model], kind: str, part: str
) -> None:
    committed = copy.deepcopy(schema_of(crds()[kind])["properties"][part])
    if model is v1alpha1.HyperJobSpec:
        unbounded(committed, part)
        # The key of a list-map is required; the webhook gives it to a task without a name.
        job = committed["properties"]["replicatedJobs"]["items"]["properties"]["templateSpec"]
        assert job["properties"]["tasks"]["items"].pop("required") == ["name"]
    if model is batch.JobSpec:
        # Only a vcjob must have tasks; a HyperJob's webhook says so in its own words.
        assert committed["properties"]["tasks"].pop("minItems") == 1
    assert disagreements(model, committed, part) == []


def unbounded(node: Schema, at: str) -> None:
    """Take away the maxima that a HyperJob's lists and maps have beyond those of their types."""
    node.pop("maxProperties", None)
    if "templateSpec" in at or at.endswith(".plugins"):
        node.pop("maxItems", None)
    if at.endswith(".tasks.replicas"):
        node.pop("maximum", None)
    for key, child in node.get("properties", {}).items():
        unbounded(child, f"{at}.{key}")
    for below in (node.get("items"), node.get("additionalProperties")):
        if isinstance(below, dict):
            unbounded(below, at)


def disagreements(model: type[Model], node: Schema, at: str) -> list[str]:
    """Compare a type with a schema by their own words, not through the generator."""
    found: list[str] = []
    fields = declared(model)
    if set(fields) != set(node["properties"]):
        found.append(f"{at}: {sorted(map(str, set(fields) ^ set(node['properties'])))}")
    required = {name for name, info in fields.items() if info.is_required()}
    if required != set(node.get("required", [])):
        found.append(f"{at}: required {required} is not {node.get('required')}")
    for name, info in fields.items():
        found += _compare(info, node["properties"][name], f"{at}.{name}")
    return found


def declared(model: type[Any]) -> dict[str | None, FieldInfo]:
    """Return the fields of a model or a table by their names in JSON."""
    if issubclass(model, Model):
        return {info.alias: info for info in model.model_fields.values()}
    hints = typing.get_type_hints(model)
    return {
        each.metadata.get("alias") or camel(each.name): FieldInfo.from_annotated_attribute(
            hints[each.name], each
        )
        for each in dataclasses.fields(model)
        if "description" in each.metadata
    }


def _compare(info: FieldInfo, node: Schema, at: str) -> list[str]:
    annotation, metadata = _unwrap(info.annotation, list(info.metadata))
    found: list[str] = []
    if info.description != node.get("description"):
        found.append(f"{at}: description")
    if info.default and isinstance(info.default, int | str):
        if info.default != node.get("default"):
            found.append(f"{at}: default {info.default!r}")
    elif "default" in node and at not in VOLCANO_DEFAULTS:
        found.append(f"{at}: default {node['default']!r} is only in the schema")
    extra = info.json_schema_extra
    if isinstance(extra, dict) and "additionalProperties" in extra:
        return found if node["additionalProperties"] == extra["additionalProperties"] else [at]
    return found + _compare_type(annotation, metadata, node, at)


# What Volcano's own CRD fills in; the types hold no default of Volcano's.
VOLCANO_DEFAULTS = {
    "spec.maxRetry",
    "spec.queue",
    "spec.networkTopology.mode",
    "spec.tasks[].partitionPolicy.minPartitions",
    "spec.tasks[].partitionPolicy.networkTopology.mode",
}


def _compare_type(annotation: Any, metadata: list[Any], node: Schema, at: str) -> list[str]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    bounds = _bounds(metadata)
    if annotation == dict[str, Any]:
        return [] if node["type"] == "object" and node["properties"] else [f"{at}: core type"]
    if origin is tuple:
        item, item_metadata = _unwrap(arguments[0], [])
        wanted = {"minItems": bounds.get("min"), "maxItems": bounds.get("max")}
        found = [f"{at}: {key}" for key, value in wanted.items() if node.get(key) != value]
        if node["type"] != "array":
            found.append(f"{at}: not a list")
        return found + _compare_type(item, item_metadata, node["items"], f"{at}[]")
    if origin in (dict, collections.abc.Mapping):
        value, value_metadata = _unwrap(arguments[1], [])
        return _compare_type(value, value_metadata, node["additionalProperties"], f"{at}{{}}")
    if isinstance(annotation, type) and issubclass(annotation, (Model, Table)):
        return disagreements(annotation, node, at)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return [] if node["enum"] == [item.value for item in annotation] else [f"{at}: enum"]
    if annotation is datetime:
        return [] if node.get("format") == "date-time" else [f"{at}: no time"]
    if annotation is str:
        wanted = {"minLength": bounds.get("min"), "maxLength": bounds.get("max")}
        wanted["pattern"] = next(
            (item.pattern for item in metadata if getattr(item, "pattern", None)), None
        )
        found = [f"{at}: {key}" for key, value in wanted.items() if node.get(key) != value]
        return found if node["type"] == "string" else [*found, f"{at}: not a string"]
    if annotation is bool:
        return [] if node["type"] == "boolean" else [f"{at}: not a boolean"]
    if annotation is object:
        return [] if node.get("x-kubernetes-int-or-string") else [f"{at}: no amount"]
    assert annotation is int, (at, annotation)
    limits = LIMITS.get(node.get("format", ""), (None, None))
    wanted = {"minimum": bounds.get("ge"), "maximum": bounds.get("le")}
    shown = {"minimum": node.get("minimum", limits[0]), "maximum": node.get("maximum", limits[1])}
    found = [
        f"{at}: {key} {shown[key]} is not {wanted[key]}"
        for key in wanted
        if shown[key] != wanted[key]
    ]
    return found if node["type"] == "integer" else [*found, f"{at}: not an integer"]


LIMITS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def _unwrap(annotation: Any, metadata: list[Any]) -> tuple[Any, list[Any]]:
    """Peel Annotated and "or None" off a type, keeping what they say."""
    if typing.get_origin(annotation) is typing.Annotated:
        inner, *more = typing.get_args(annotation)
        flat = [item for info in more for item in getattr(info, "metadata", [info])]
        return _unwrap(inner, flat + metadata)
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        (inner,) = (item for item in typing.get_args(annotation) if item is not type(None))
        return _unwrap(inner, metadata)
    return annotation, metadata


def _bounds(metadata: list[Any]) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    for item in metadata:
        match item:
            case Ge(ge=value):
                bounds["ge"] = max(value, bounds.get("ge", value))  # type: ignore[call-overload]  # ints
            case Le(le=value):
                bounds["le"] = min(value, bounds.get("le", value))  # type: ignore[call-overload]  # ints
            case MinLen(min_length=value):
                bounds["min"] = value
            case MaxLen(max_length=value):
                bounds["max"] = value
    return bounds


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
    assert [(folder / file).is_file() for folder in FOLDERS].count(True) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_shows_a_field_that_exists(kind: str) -> None:
    (version,) = crds()[kind]["spec"]["versions"]
    paths = {at for at, _ in nodes(version["schema"]["openAPIV3Schema"])}
    for column in version.get("additionalPrinterColumns", []):
        path = column["jsonPath"].partition("[?")[0].replace("[*]", "[]")
        covered = path == ".metadata.creationTimestamp" or path in paths
        assert covered or ".manifests[]" in path, column


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
    for at, node in nodes(corev1.schema("PodTemplateSpec")):
        assert "description" not in node, at


def test_the_hyperjob_fits_into_an_annotation_of_client_side_apply() -> None:
    limit = 256 * 1024
    assert len(json.dumps(crds()["HyperJob"], separators=(",", ":"))) < limit * 9 // 10


def test_upstream_names_are_kept() -> None:
    crd = crds()["HyperJob"]
    assert crd["spec"]["names"]["shortNames"] == ["hyperjob", "hj"]
    spec = schema_of(crd)["properties"]["spec"]["properties"]
    job = spec["replicatedJobs"]["items"]["properties"]
    assert job["splitPolicy"]["properties"]["mode"]["enum"] == ["static", "auto"]


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
