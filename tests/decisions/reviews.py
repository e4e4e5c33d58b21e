"""Reviews: HyperJobs of all kinds with one field changed to a value nearby, and ResourceBindings.

A row has what the answer says beside the answer to the HyperJob without the change.
"""

import base64
import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from tests.decisions.draw import Draw
from tests.decisions.hyperjobs import Object, hyperjob_of
from tests.decisions.karmada import CONTROLLER, patched_by
from tests.decisions.rows import Row, changes, line
from tests.decisions.sites import Site, queue, urgent
from tests.decisions.stage import envelope, reviewed

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/unit/rules/corpus/bases", "examples")
"""Folders with HyperJobs that together have every field."""
GONE = object()
DEEP = 9
"""Steps from which on a place is inside a pod, where there are a thousand."""
PARTS = 12
AROUND = [
    *(Site(name, []).cluster() for name in ("a", "cluster-a")),
    queue("default"), queue("training", state="Closed"), queue("root"),
    queue("team", parent="root"), urgent(),
]  # fmt: skip
STATUSES: dict[str, Object | None] = {
    "new": None,
    "runs": {"state": {"phase": "Running"}, "jobs": [{"name": "hj-g0-0", "cluster": "a"}]},
    "suspended": {"state": {"phase": "Suspended"}},
    "ended": {"conditions": [{"type": "Completed", "status": "True"}]},
}
Steps = tuple[str | int, ...]


@cache
def documents() -> dict[str, Object]:
    """Return the HyperJobs of the folders and some generated ones, by name."""
    found: dict[str, Object] = {}
    for path in sorted(each for folder in FOLDERS for each in (ROOT / folder).glob("*.yaml")):
        for content in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            named = content if path.parent.name == "bases" else {path.name: content}
            for name, each in named.items():
                if isinstance(each, dict) and "replicatedJobs" in each.get("spec", {}):
                    found[name] = orjson.loads(orjson.dumps(each, default=str))
    for number in range(60):
        draw = Draw(f"review {number}")
        status = draw.named("status", STATUSES)
        made = hyperjob_of(draw, "hj")
        found[f"HyperJob {number}"] = made if status is None else {**made, "status": status}
    return found


def places(value: Any, at: Steps = ()) -> Iterator[Steps]:
    """Yield every place of a document, the whole first."""
    yield at
    pairs = value.items() if isinstance(value, dict) else ()
    for step, child in enumerate(value) if isinstance(value, list) else pairs:
        yield from places(child, (*at, step))


def near(value: Any) -> dict[str, Any]:
    """Return values beside a value: just over a bound, empty, twice, of another type."""
    found: dict[str, Any] = {"gone": GONE, "null": None}
    match value:
        case bool():
            return found | {"not": not value, "text": "true"}
        case int():
            return found | {"less": value - 1, "more": value + 1, "zero": 0, "negative": -1,
                            "large": 2**31, "text": str(value), "half": value + 0.5}  # fmt: skip
        case str():
            return found | {"empty": "", "dash": f"{value}-", "loud": f"{value.upper()}_",
                            "long": "x" * 64, "number": 7}  # fmt: skip
        case list():
            return found | {"empty": [], "twice": [*value, *value[:1]], "rest": value[1:],
                            "mapping": {}}  # fmt: skip
        case dict():
            return found | {"empty": {}, "surplus": {**value, "surplus": 1}, "list": [value]}
    return found


def replaced(node: Any, place: Steps, value: Any) -> Any:
    """Return a document with another value at a place; what is beside the way is shared."""
    step, *rest = place
    made = copy.copy(node)
    if rest:
        made[step] = replaced(node[step], tuple(rest), value)
    elif value is GONE:
        del made[step]
    else:
        made[step] = value
    return made


def at_place(document: Any, place: Steps) -> Any:
    for step in place:
        document = document[step]
    return document


def facts_of(response: Object) -> list[str]:
    """Return what a response says: its patch, its errors and its warnings."""
    patch = orjson.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    status = response.get("status", {})
    return [
        *(f"{each['op']} {each['path']} {line(each.get('value'))}" for each in patch),
        *(f"{each.get('field')}: {each['message']}" for each in causes(status)),
        *(f"warns: {each}" for each in response.get("warnings", ())),
    ]


def causes(status: Object) -> list[Object]:
    return (status.get("details") or {}).get("causes") or ([status] if "message" in status else [])


def answers(entry: Any, raw: Object, old: Object | None) -> list[str]:
    """Return what admission says to a HyperJob, with its defaults."""
    patch = reviewed(entry, "default", raw, old, AROUND)
    whole = patched_by(raw, patch)
    return [*facts_of(patch), *facts_of(reviewed(entry, "validate", whole, old, AROUND))]


def stored(entry: Any, raw: Object) -> Object:
    return patched_by(raw, reviewed(entry, "default", raw, None, AROUND))


def hyperjob_cases(entry: Any, part: int) -> Iterator[tuple[str, list[Row]]]:
    """Change each place of the documents that no earlier one has; a part of all of them."""
    seen: set[tuple[str, Steps]] = set()
    for name, document in documents().items():
        draw = Draw(f"near {name}")
        rows: list[Row] = []
        plain = answers(entry, document, None)
        if part == 0:
            rows += [(0.0, "as it is", each) for each in plain]
        for place in places(document):
            form = tuple("[]" if isinstance(step, int) else step for step in place)
            kind = name if name.startswith("HyperJob") else ""
            if not place or (kind, form) in seen or place[0] == "apiVersion":
                continue
            seen.add((kind, form))
            if len(seen) % PARTS == part:
                rows += changed(entry, draw.at(place), document, place, plain)
        if rows:
            yield f"{name}, part {part}", rows


def changed(
    entry: Any, draw: Draw, document: Object, place: Steps, plain: list[str]
) -> Iterator[Row]:
    """Give a place values nearby, at creation, and outside of pods also in updates."""
    values, deep = near(at_place(document, place)), len(place) > DEEP
    for name in draw.sample("value", list(values), 1 if deep else 3):
        other = replaced(document, place, values[name])
        about = f"{'.'.join(map(str, place))} {name}"
        if not isinstance(other.get("metadata"), dict):
            continue
        yield from differing(about, plain, answers(entry, other, None))
        if not deep and draw.some(f"update {name}", 0.3):
            old, new = stored(entry, document), stored(entry, other)
            for way, pair in (("update", (new, old)), ("back", (old, new))):
                for each in facts_of(reviewed(entry, "validate", *pair, AROUND)):
                    yield 0.0, f"{about}, {way}", each


def differing(about: str, plain: list[str], told: list[str]) -> Iterator[Row]:
    yield from ((0.0, about, each) for each in told if each not in plain)
    lost = [each.partition(": ")[0] for each in plain if each not in told]
    if lost:
        yield 0.0, about, f"says no more: {line(lost)}"


def binding_of(draw: Draw) -> Object:
    names = draw.pick("policy", (("hyperjob-gang",), ("hyperjob-held",), ("hyperjob",),
                                 ("x", "hyperjob-gang"), ()))  # fmt: skip
    kinds = (*(("batch.volcano.sh/v1alpha1", "Job"),) * 5, ("apps/v1", "Deployment"))
    version, kind = draw.pick("kind", kinds)
    suspensions = (
        {}, {"dispatching": True}, {"dispatching": False}, {"scheduling": True}, None,
        {"scheduling": True, "dispatching": True}, {"dispatchingOnClusters": {}},
    )  # fmt: skip
    metadata = {"name": "hj-a-0-job", "namespace": "default"} | draw.fields(
        annotations=(0.7, [{"training.volcano.sh/gate": each} for each in ("held", "open", "")]),
        labels=(0.5, ({}, {"training.volcano.sh/binding": "hyperjob"})),
        deletionTimestamp=(0.1, ("2026-01-02T03:04:00Z",)),
    )
    placement = {"clusterAffinities": [{"affinityName": each} for each in names]}
    spec = {
        "resource": {"apiVersion": version, "kind": kind, "name": "hj-a-0"},
        "placement": draw.pick("placement", (*(placement,) * 9, {}, None)),
    } | draw.fields(suspension=(0.6, suspensions))
    return {"metadata": metadata, "spec": spec}


def binding_cases(entry: Any, count: int) -> Iterator[tuple[str, list[Row]]]:
    for number in range(count):
        draw = Draw(f"binding {number}")
        new = binding_of(draw.at("new"))
        old = binding_of(draw.at("old")) if draw.some("update", 0.6) else None
        user = draw.pick("user", (CONTROLLER, "eve"))
        body = orjson.dumps(envelope("stamp", new, old, user=user))
        controllers = draw.pick("controllers", ([CONTROLLER], [CONTROLLER], []))
        status, answer = entry.review("stamp", body, (), controllers=controllers)
        facts = facts_of(orjson.loads(answer).get("response", {}))
        about = f"{user.rpartition(':')[2]} {'creates' if old is None else 'changes'}"
        rows = [(0.0, about, each) for each in (f"gets {status}", *facts)]
        yield f"binding {number}", [*rows, *((0.0, "binding", each) for each in changes({}, new))]


def envelope_cases(entry: Any) -> Iterator[tuple[str, list[Row]]]:
    """Break the envelope of a review in every place."""
    new = {"metadata": {"name": "x", "annotations": {"training.volcano.sh/webhook-version": ""}}}
    good = envelope("validate", new, None)
    for place in places(good):
        if not place or (place[:2] == ("request", "object") and len(place) > 2):
            continue
        rows = []
        for name, value in near(at_place(good, place)).items():
            status, answer = entry.review(
                "validate", orjson.dumps(replaced(good, place, value)), ()
            )
            rows += [(0.0, name, each) for each in changes({}, orjson.loads(answer))]
            rows.append((0.0, name, f"gets {status}"))
        yield ".".join(map(str, place)), rows
