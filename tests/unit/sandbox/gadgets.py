"""Gadgets, and how they are applied and updated: what tests of field ownership work on."""

from hyperjob_sandbox.apiserver.ownership import apply as ownership
from hyperjob_sandbox.apiserver.ownership.apply import Writer
from hyperjob_sandbox.apiserver.schema.structural import StructuralSchema

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 3},
                "mode": {"type": "string"},
                "tags": {
                    "type": "array",
                    "items": {"type": "string"},
                    "x-kubernetes-list-type": "set",
                },
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "whole": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "x-kubernetes-map-type": "atomic",
                },
                "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                    },
                },
            },
        },
        "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
    },
}


TYPES = StructuralSchema.build(SCHEMA).node
VERSION = "conf.example.dev/v1"


T1, T2, T3 = (f"2026-01-01T00:00:0{i}Z" for i in (1, 2, 3))


def gadget(**spec):
    return {
        "apiVersion": VERSION,
        "kind": "Gadget",
        "metadata": {"name": "g", "namespace": "conf"},
        "spec": spec,
    }


def writer(obj, manager, *, now=T1, types=TYPES, **more):
    version = obj["apiVersion"]
    return Writer(manager=manager, api_version=version, types=types, now=now, **more)


def apply(live, applied, manager="m1", **more):
    return ownership.apply(live, applied, writer(applied, manager, **more))


def update(live, new, manager="kubectl-edit", **more):
    return ownership.track(live, new, writer(new, manager, **more))


def managers(obj):
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields", [])
    }


def with_uid(obj):
    return {**obj, "metadata": {**obj["metadata"], "uid": "u"}}
