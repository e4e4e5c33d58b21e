"""Reviews of the maximum size of a body, with a large field of a HyperJob or a binding."""

import random
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import orjson

from hyperjob_core.api.limits import MAX_SPEC_BYTES
from hyperjob_core.api.meta import Object
from hyperjob_rules.configuration import MUTATE_HYPERJOB, MUTATE_RESOURCEBINDING, VALIDATE_HYPERJOB
from hyperjob_webhook.review import MAX_BODY_BYTES
from tests.support.growth import Growing, growing
from tests.support.reviewfuzz import mutated

SIZES: Final = (
    300_000,
    MAX_SPEC_BYTES - 50_000,
    MAX_BODY_BYTES // 2 - 50_000,
    MAX_BODY_BYTES - 50_000,
)
"""Bytes: of a spec that admission reads, of each object in an update, of all of a review."""


class Review(NamedTuple):
    """A body for a path of the webhook; `name` is its large field."""

    name: str
    path: str
    body: bytes


def large_reviews(seed: int, count: int) -> Iterator[Review]:
    """Yield `count` reviews of up to `MAX_BODY_BYTES`, the same ones for the same seed."""
    rng = random.Random(seed)
    fields = list(growing())
    fields += 2 * [field for field in fields if field.schema["type"] != "string"]
    for _ in range(count):
        kind = rng.choice((_field, _field, _field, _field, _metadata, _anything, _binding))
        review = kind(rng, fields)
        if len(review.body) <= MAX_BODY_BYTES:
            yield review


def _field(rng: random.Random, fields: list[Growing]) -> Review:
    field = rng.choice(fields)
    hyperjob = _grown(field.hyperjob, rng.choice(SIZES))
    return _review(rng, field.name, hyperjob, _path(rng))


def _metadata(rng: random.Random, _: list[Growing]) -> Review:
    name, make = rng.choice(sorted(_METADATA.items()))

    def hyperjob(count: int) -> Object:
        made = _hyperjob()
        made["metadata"] |= make(count)
        return made

    return _review(rng, f"metadata: {name}", _grown(hyperjob, rng.choice(SIZES)), _path(rng))


def _anything(rng: random.Random, _: list[Growing]) -> Review:
    """Return a review with a large unknown field, in the object or around it."""
    name, make = rng.choice(sorted(_VALUES.items()))
    place = rng.choice(("status", "spec", "request"))

    def hyperjob(count: int) -> Object:
        made = _hyperjob()
        made.setdefault(place, {})["unknown"] = make(count)
        return made

    return _review(rng, f"{place}: {name}", _grown(hyperjob, rng.choice(SIZES)), _path(rng))


def _binding(rng: random.Random, _: list[Growing]) -> Review:
    name, make = rng.choice(sorted(_VALUES.items()))
    field = rng.choice(("clusters", "requiredBy", "placement", "suspension", "unknown"))

    def binding(count: int) -> Object:
        affinity = {"affinityName": "hyperjob-gang", "clusterNames": ["m"]}
        spec = {
            "resource": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a"},
            "placement": {"clusterAffinities": [affinity]},
        }
        return {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {"name": "a-job", "namespace": "default"},
            "spec": spec | {field: make(count)},
        }

    made = _grown(binding, rng.choice(SIZES))
    return _review(rng, f"binding: {field}: {name}", made, MUTATE_RESOURCEBINDING)


def _path(rng: random.Random) -> str:
    return rng.choice((MUTATE_HYPERJOB, VALIDATE_HYPERJOB, VALIDATE_HYPERJOB))


def _hyperjob() -> Object:
    task = {"name": "t", "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": "large", "namespace": "default"},
        "spec": {"replicatedJobs": [{"name": "a", "templateSpec": {"tasks": [task]}}]},
    }


_METADATA: Final[dict[str, Callable[[int], Object]]] = {
    "labels": lambda n: {"labels": {f"k{i}": "v" for i in range(n)}},
    "annotations": lambda n: {"annotations": {f"k{i}": "v" for i in range(n)}},
    "one annotation": lambda n: {"annotations": {"training.volcano.sh/restart": "x" * n}},
    "finalizers": lambda n: {"finalizers": [f"example.com/f{i}" for i in range(n)]},
    "ownerReferences": lambda n: {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": f"p{i}", "uid": f"u{i}"} for i in range(n)
        ]
    },
    "managedFields": lambda n: {
        "managedFields": [
            {"manager": "m", "fieldsV1": {"f:spec": {f"f:k{i}": {} for i in range(n)}}}
        ]
    },
    "name": lambda n: {"name": "a" * n},
    "generateName": lambda n: {"generateName": "a-" * n},
}
_VALUES: Final[dict[str, Callable[[int], Any]]] = {
    "text": lambda n: "x" * n,
    "escaped text": lambda n: "\x01<" * n,
    "numbers": lambda n: [1] * n,
    "fractions": lambda n: [0.1] * n,
    "empty lists": lambda n: [[]] * n,
    "nested lists": lambda n: [[[[[[1]]]]]] * n,
    "small maps": lambda n: [{"a": 1}] * n,
    "wide maps": lambda n: [{f"k{i}": 1 for i in range(50)}] * n,
    "one map": lambda n: {f"k{i}": i for i in range(n)},
    "texts": lambda n: ["abcdefgh"] * n,
}


def _grown(make: Callable[[int], Object], size: int) -> Object:
    """Return an object of about `size` bytes."""
    few, more = (len(_written(make(count))) for count in (20, 40))
    count = 20 * (size - few) // max(more - few, 1)
    # The length of numbers in names grows with their number.
    return make(max(1, int(count * min(1, size / len(_written(make(count)))))))


def _written(value: Object) -> bytes:
    return orjson.dumps(value)


def _review(rng: random.Random, name: str, new: Object, path: str) -> Review:
    """Return a review of an object, or of its change where both fit, in a random JSON form."""
    around = new.pop("request", {})
    group, _, version = new["apiVersion"].partition("/")
    old = None
    if len(_written(new)) < MAX_BODY_BYTES // 2 and rng.random() < 0.7:
        old, spec = new, new["spec"]
        new = {**new, "spec": {**spec, "maxDomains": 3}} if rng.random() < 0.5 else new
    operation = "UPDATE" if old else rng.choice(("CREATE", "CREATE", "DELETE"))
    request = {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": new["kind"]},
        "operation": operation,
        "namespace": "default",
        "name": "large",
        "userInfo": {"username": "mallory"},
        "object": None if operation == "DELETE" else new,
        "oldObject": new if operation == "DELETE" else old,
        **around,
    }
    head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    body = _written({**head, "request": request})
    spelling = rng.choice(("", "", "", " with a space", " broken"))
    if spelling == " with a space":
        body = body.replace(b":", b": ", 1)
    elif spelling == " broken":
        body = mutated(rng, [body])
    return Review(f"{operation} {name}{spelling}", path, body)
