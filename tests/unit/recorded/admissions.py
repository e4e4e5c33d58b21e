"""Answers of admission: HyperJobs with one field changed to a value nearby, and with several."""

import copy
import random
import re
from collections.abc import Iterable, Iterator
from typing import Any

from hyperjob_core.api.field import ROOT
from hyperjob_core.api.meta import Object
from hyperjob_rules.defaulting import default
from hyperjob_rules.patch import diff
from hyperjob_rules.validation.context import Cluster, Context, Queue
from hyperjob_rules.validation.create import validate_create
from hyperjob_rules.validation.rules import Decision
from hyperjob_rules.validation.update import validate_update
from tests.unit.recorded.generated import hyperjob_of, some
from tests.unit.recorded.recording import Case, line
from tests.unit.webhook.test_never_raises import (
    DEEP,
    EXAMPLES,
    GONE,
    Steps,
    form_of,
    places,
    replaced,
)

KNOWN = Context(
    clusters={"a": Cluster(), "b": Cluster(ready=False), "cluster-a": Cluster()},
    queues={
        "default": Queue(),
        "training": Queue(state="Closed"),
        "root": Queue(children=2),
        "team": Queue(children=1),
    },
    priority_classes=frozenset({"high"}),
    config_maps=frozenset({"config"}),
    secrets=frozenset(),
    persistent_volume_claims=frozenset({"data"}),
    service_accounts=frozenset({"default"}),
    vcjobs={"hj-g0-0": "other", "x-a-0": "y"},
    batch_jobs=frozenset({"llm-trainer-0"}),
)
SHALLOW = tuple(
    (name, document)
    for name, document in EXAMPLES
    if name in ("trainer", "pytorch", "mpi", "stages", "running", "torchft", "rare")
    or name.startswith(("split", "status", "torchft-training", "ascend"))
)
EVERYTHING = dict(EXAMPLES)["everything"]


def near(value: Any, *, deep: bool) -> Iterator[Any]:
    """Yield values beside a value: just over a bound, empty, twice, of another type."""
    yield GONE
    match value:
        case bool():
            yield not value
            yield "true"
        case int():
            yield from (value - 1, value + 1, 0, -1) if not deep else (value + 1,)
            if not deep:
                yield from (2**31, str(value), value + 0.5)
        case str():
            yield ""
            yield from (
                (value + "-", value.upper() + "_", "x" * 64, 7) if not deep else (value + "-",)
            )
        case list():
            yield []
            if value:
                yield [*value, value[0]]
                if len(value) > 1:
                    yield value[1:]
            if not deep:
                yield {}
        case dict():
            if not deep:
                yield {}
            if not deep:
                yield {**value, "surplus": 1}
                yield [value]


def _short(value: Any) -> str:
    if value is GONE:
        return "gone"
    text = LETTERS.sub(lambda found: f"x*{len(found[0])}", line(value))
    return text if len(text) < 50 else f"{text[:40]}... of {len(text)}"


SHORT = (
    ("$pod", "spec.replicatedJobs[0].templateSpec.tasks[0].template.spec"),
    ("$task", "spec.replicatedJobs[0].templateSpec.tasks[0]"),
    ("$job", "spec.replicatedJobs[0].templateSpec"),
    ("$rj", "spec.replicatedJobs[0]"),
)
PHRASES = (
    ("<fixed>", "cannot change while sub-jobs exist: suspend, change it, resume"),
    (
        "<immutable>",
        "; only minAvailable, priorityClassName and the replicas of tasks can change before",
    ),
)
REGEX = re.compile(r"must consist of [^|]*? regex used for validation is '[^']*'")
LETTERS = re.compile(r"x{60,}")


def _spoken(text: str) -> str:
    """Write places and long values short, as the corpus does."""
    for short, path in SHORT:
        text = text.replace(path, short).replace(_pointer(path), short)
    for short, phrase in PHRASES:
        text = text.replace(phrase, short)
    text = REGEX.sub("<form>", text)
    return LETTERS.sub(lambda found: f"x*{len(found[0])}", text)


def _pointer(path: str) -> str:
    return "/" + path.replace("[", "/").replace("]", "").replace(".", "/")


def _answer(decision: Decision) -> list[str]:
    return [
        *(_spoken(f"{error}") for error in decision.errors),
        *(_spoken(f"(warns) {warning}") for warning in decision.warnings),
    ]


def _defaults(raw: Object) -> list[str]:
    return [
        _spoken(f"{each['op']} {each['path']} {line(each.get('value'))}")
        for each in diff(raw, default(raw))
    ]


class Compared:
    """What a document's changes bring, beside what the document itself does."""

    def __init__(self, document: Object) -> None:
        self.document = document
        self.stored = default(document)
        self.patch = _defaults(document)
        self.create = _answer(validate_create(self.stored, context=KNOWN, strict=True))
        self.same: list[str] = []

    def rows(self, place: Steps, *, deep: bool) -> Iterator[str]:
        """Say how the answers differ for all values beside that of a place, equal ones together."""
        value: Any = self.document
        for step in place:
            value = value[step]
        where = _spoken(str(ROOT.below(place)))
        found: dict[tuple[str, ...], list[str]] = {}
        taken = len(place)
        for other in near(value, deep=deep):
            if other is not GONE and deep and (taken := taken + 1) % 2:
                continue
            told = self._told(replaced(self.document, place, other), update=not deep)
            found.setdefault(tuple(told), []).append(_short(other))
        for told, others in found.items():
            if told:
                text = " | ".join(told).replace(where, "$here")
                yield f"{where} {' '.join(others)}: {text}"
        if () in found:
            self.same.append(f"{where} {' '.join(found[()])}")

    def _told(self, changed: Object, *, update: bool) -> list[str]:
        stored = default(changed)
        patch = _defaults(changed)
        create = _answer(validate_create(stored, context=KNOWN, strict=True))
        told = [each for each in patch if each not in self.patch]
        told += [f"not {each.split(' ')[1]}" for each in self.patch if each not in patch]
        told += [each for each in create if each not in self.create]
        lost = [_head(each) for each in self.create if each not in create]
        told += [f"no {' '.join(lost)}"] if lost else []
        if update:
            answer = _answer(validate_update(stored, self.stored, context=KNOWN))
            told += [f"update {each}" for each in answer if each not in create]
            lost = [each for each in create if each not in answer]
            if lost:
                told.append(f"update no {len(lost)} of them")
        return told


def _head(text: str) -> str:
    return text.partition(": ")[0]


def near_cases(part: int, parts: int) -> Iterator[Case]:
    """Change each place above the pods of the smaller examples."""
    seen: set[tuple[str, Steps]] = set()
    for name, document in SHALLOW:
        compared = Compared(document)
        rows = [*compared.patch, *compared.create] if part == 0 else []
        for place in places(document):
            kind = name if name.startswith(("split", "status")) else ""
            form = kind, form_of(place)
            if not place or len(place) > DEEP or form in seen:
                continue
            seen.add(form)
            if len(seen) % parts == part:
                rows.extend(compared.rows(place, deep=False))
        yield name, [*rows, f"as before: {', '.join(compared.same)}"]


def pod_cases(part: int, parts: int) -> Iterator[Case]:
    """Change each place of the one HyperJob with every field, in its pods."""
    compared = Compared(EVERYTHING)
    seen: set[Steps] = set()
    rows: list[str] = []
    for place in places(EVERYTHING):
        form = form_of(place)
        if not place or form in seen:
            continue
        seen.add(form)
        if len(seen) % parts == part:
            rows.extend(compared.rows(place, deep=True))
    yield f"everything {part}", [*rows, f"as before: {', '.join(compared.same)}"]


def bare_cases() -> Iterator[Case]:
    """Take each field out of HyperJobs that no defaulting has seen, at create and at update."""
    seen: set[tuple[str, Steps]] = set()
    for name, document in (*SHALLOW, ("everything", EVERYTHING)):
        before = _answer(validate_create(document, context=KNOWN))
        rows = list(before)
        found: dict[tuple[str, ...], list[str]] = {}
        for place in places(document):
            form = name if name.startswith("split") else "", form_of(place)
            if not place or form in seen:
                continue
            seen.add(form)
            changed = replaced(document, place, GONE)
            told = _news(before, _answer(validate_create(changed, context=KNOWN)))
            if name != "everything":
                told += ["to", *_answer(validate_update(changed, document, context=KNOWN))]
                told += ["back", *_answer(validate_update(document, changed, context=KNOWN))]
            where = _spoken(str(ROOT.below(place)))
            text = tuple(each.replace(where, "$here") for each in told)
            found.setdefault(text, []).append(where)
        for text, wheres in found.items():
            rows.append(f"{', '.join(wheres)}: {' | '.join(text)}")
        yield name, rows


def _news(before: list[str], after: list[str]) -> list[str]:
    lost = [f"no {_head(each)}" for each in before if each not in after]
    return [each for each in after if each not in before] + lost


def mixed_cases(seeds: Iterable[int]) -> Iterator[Case]:
    """Change several fields of generated HyperJobs at once; change them back."""
    for seed in seeds:
        rng = random.Random(f"mixed {seed}")
        raw = hyperjob_of(rng)
        raw["metadata"] = {"name": "hj", "namespace": "default"}
        raw.pop("status")
        if some(rng, 0.4):
            raw["status"] = rng.choice((
                {"state": {"phase": "Running"}, "jobs": [{"name": "hj-g0-0", "cluster": "a"}]},
                {"state": {"phase": "Suspended"}},
                {"conditions": [{"type": "Completed", "status": "True"}]},
            ))  # fmt: skip
        rows = [line(raw["spec"])] if seed % 5 == 0 else []
        rows.extend(_defaults(raw))
        old = default(raw)
        first = _answer(validate_create(old, context=KNOWN, strict=True))
        rows.extend(first)
        for _ in range(4):
            new = copy.deepcopy(raw)
            did = []
            for _ in range(rng.choice((1, 2))):
                place = rng.choice([each for each in places(new["spec"]) if each])
                value: Any = new["spec"]
                for step in place:
                    value = value[step]
                other = rng.choice(list(near(value, deep=False)))
                new["spec"] = replaced(new["spec"], place, other)
                did.append(f"{'.'.join(map(str, place))} {_short(other)}")
            stored = default(new)
            created = _answer(validate_create(stored, context=KNOWN))
            changed = _answer(validate_update(stored, old, context=KNOWN))
            back = _answer(validate_update(old, stored, context=KNOWN))
            told = [each for each in created if each not in first]
            told += [f"no {_head(each)}" for each in first if each not in created]
            rows.append(f"{', '.join(did)}: {' | '.join(told) or 'as before'}")
            for name, answer in (("update", changed), ("back", back)):
                told = [each for each in answer if each not in (*created, *first)]
                lost = [each for each in created if each not in answer]
                told += [f"no {len(lost)} of them"] if lost else []
                if told:
                    rows.append(f"  {name} {' | '.join(told)}")
        yield f"HyperJob {seed}", rows
