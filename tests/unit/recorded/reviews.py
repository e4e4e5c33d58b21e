"""Reviews of ResourceBindings and broken reviews: the whole answers of admission."""

import random
from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from hyperjob_core.api.meta import Object
from hyperjob_rules.configuration import MUTATE_HYPERJOB, MUTATE_RESOURCEBINDING, VALIDATE_HYPERJOB
from hyperjob_rules.validation.context import Context
from hyperjob_webhook.admission import admit, check_http
from hyperjob_webhook.review import cut_warnings
from tests.unit.recorded.generated import some
from tests.unit.recorded.recording import Case, line

CONTROLLER = "system:serviceaccount:hyperjob-system:hyperjob-controller"


def _binding(rng: random.Random) -> Object:
    names = rng.choice(
        (["hyperjob-gang"], ["hyperjob-held"], ["hyperjob"], ["x", "hyperjob-gang"], [])
    )
    spec: Object = {
        "resource": {
            "apiVersion": rng.choice(("batch.volcano.sh/v1alpha1",) * 5 + ("apps/v1",)),
            "kind": rng.choice(("Job",) * 5 + ("Deployment",)),
            "name": "hj-a-0",
        },
        "placement": {"clusterAffinities": [{"affinityName": name} for name in names]},
    }
    if some(rng, 0.6):
        spec["suspension"] = rng.choice((
            {}, {"dispatching": True}, {"dispatching": False}, {"scheduling": True}, None,
            {"scheduling": True, "dispatching": True}, {"dispatchingOnClusters": {}},
        ))  # fmt: skip
    if some(rng, 0.1):
        spec["placement"] = rng.choice(({}, None, {"clusterAffinities": "x"}))
    metadata: Object = {"name": "hj-a-0-job"}
    if some(rng, 0.7):
        gate = rng.choice(("held", "held", "open", ""))
        metadata["annotations"] = {"training.volcano.sh/gate": gate}
    if some(rng, 0.5):
        metadata["labels"] = rng.choice(({}, {"training.volcano.sh/binding": "hyperjob"}))
    if some(rng, 0.08):
        metadata["deletionTimestamp"] = "2026-01-02T03:04:00Z"
    made: Object = {"metadata": metadata, "spec": spec}
    if some(rng, 0.05):
        made.pop(rng.choice(("metadata", "spec")))
    return made


def _review(operation: str, obj: Any, old: Any, kind: Object, user: str) -> Object:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": kind,
            "name": "",
            "namespace": "team",
            "operation": operation,
            "userInfo": {"username": user},
            "object": obj,
            "oldObject": old,
        },
    }


BINDING = {"group": "work.karmada.io", "version": "v1alpha2", "kind": "ResourceBinding"}
HYPERJOB = {"group": "training.volcano.sh", "version": "v1alpha1", "kind": "HyperJob"}


def _answer(path: str, body: bytes, context: Context) -> Iterator[str]:
    reply = admit(path, body, context)
    answer = orjson.loads(reply.body)
    response = answer.get("response", {})
    if "patch" in response:
        response["patch"] = orjson.loads(b64decode(response["patch"]))
    yield f"  {reply.status} {line(response or answer)} {reply.problem}".rstrip()


def binding_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        rng = random.Random(f"binding {seed}")
        obj, old = _binding(rng), _binding(rng)
        operation = rng.choice(("CREATE", "UPDATE", "UPDATE", "DELETE"))
        user = rng.choice((CONTROLLER, "eve"))
        controllers = frozenset({CONTROLLER}) if some(rng, 0.7) else frozenset()
        raw = _review(operation, obj, old if operation == "UPDATE" else None, BINDING, user)
        rows = [f"{user.rpartition(':')[2]}, of {len(controllers)}: {line(obj)}"]
        if operation == "UPDATE":
            rows.append(f"before {line(old)}")
        context = Context(controllers=controllers)
        rows.extend(_answer(MUTATE_RESOURCEBINDING, orjson.dumps(raw), context))
        yield f"{operation} {seed}", rows


def envelope_cases() -> Iterator[Case]:
    """Break the envelope of a review in every place."""
    obj = {"metadata": {"name": "x", "annotations": {"training.volcano.sh/webhook-version": ""}}}
    good = _review("CREATE", obj, None, HYPERJOB, "me")
    for path in (MUTATE_HYPERJOB, VALIDATE_HYPERJOB, MUTATE_RESOURCEBINDING, "/nowhere"):
        yield f"to {path}", list(_answer(path, orjson.dumps(good), Context()))
    places = (
        ("apiVersion",),
        ("kind",),
        ("request",),
        *(("request", each) for each in good["request"]),
    )
    for place in places:
        rows = []
        for value in (None, "", "x", 7, [], {}, {"metadata": {}}, True):
            changed = orjson.loads(orjson.dumps(good))
            node = changed
            for step in place[:-1]:
                node = node[step]
            node[place[-1]] = value
            rows.append(line(value))
            rows.extend(_answer(VALIDATE_HYPERJOB, orjson.dumps(changed), Context()))
        yield ".".join(place), rows
    bodies = {
        "nothing": b"", "a list": b"[]", "torn": orjson.dumps(good)[:-5],
        "a key twice": orjson.dumps(good).replace(b'"uid"', b'"uid":"y","uid"'),
        "blanks": orjson.dumps(good, option=orjson.OPT_INDENT_2),
        "escapes": orjson.dumps(good).replace(b'"me"', b'"\\u003cme\\u003e"'),
        "deep": b'{"a":' + b"[" * 300 + b"]" * 300 + b"}",
        "an update without the old": orjson.dumps(_review("UPDATE", obj, None, HYPERJOB, "me")),
        "being deleted": orjson.dumps(_review(
            "CREATE", {"metadata": {"deletionTimestamp": "now"}}, None, HYPERJOB, "me")),
        "a status": orjson.dumps({**good, "request": {**good["request"], "subResource": "status"}}),
    }  # fmt: skip
    for name, body in bodies.items():
        rows = [
            row
            for path in (MUTATE_HYPERJOB, VALIDATE_HYPERJOB)
            for row in _answer(path, body, Context())
        ]
        yield name, rows
    rows = []
    for method, kind, coding, length in (
        ("POST", "application/json", "", 10), ("GET", "application/json", "", None),
        ("POST", "text/html", "", None), ("POST", "Application/JSON; charset=utf-8", "gzip", 1),
        ("POST", "application/json", "identity", 7 * 2**20),
        ("POST", "application/json", "", 7 * 2**20 + 1), ("POST", "", "", None),
    ):  # fmt: skip
        reply = check_http(method=method, content_type=kind, content_encoding=coding, length=length)
        found = "read" if reply is None else f"{reply.status} {reply.body.decode()}"
        rows.append(f"{method} {kind} {coding} {length}: {found}")
    yield "heads", rows
    rows = []
    for size, count in ((10, 3), (255, 16), (256, 16), (257, 16), (300, 15), (256, 17), (100, 60)):
        kept = cut_warnings([f"{number:03}" + "w" * (size - 3) for number in range(count)])
        rows.append(f"{count} of {size}: {[len(each) for each in kept]} {kept[-1][:40]}")
    rows.append(line(cut_warnings(["a\nb", "a b", "", "é" * 300])))
    yield "warnings", rows
