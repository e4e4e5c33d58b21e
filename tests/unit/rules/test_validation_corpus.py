"""The corpus: manifests and what admission says of them, as data.

A case starts from a base, changes a few fields, and tells exactly what comes back. `$task` and
the like are short for the places that most cases are about.
"""

import copy
import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperjob_core.api.defaults import completed
from hyperjob_rules.validation.context import Cluster, Context, Queue
from hyperjob_rules.validation.create import inspect
from hyperjob_rules.validation.rules import Report, declared
from hyperjob_rules.validation.schema import hyperjob_schema
from hyperjob_rules.validation.update import inspect_update

CORPUS = Path(__file__).parent / "corpus"
BASES = {
    name: json.loads(json.dumps(base))  # no part is shared by two places
    for file in sorted((CORPUS / "bases").glob("*.yaml"))
    for name, base in yaml.safe_load(file.read_text(encoding="utf-8")).items()
}

SHORT = {
    "rj": "spec.replicatedJobs[0]",
    "job": "spec.replicatedJobs[0].templateSpec",
    "task": "spec.replicatedJobs[0].templateSpec.tasks[0]",
    "template": "spec.replicatedJobs[0].templateSpec.tasks[0].template",
    "pod": "spec.replicatedJobs[0].templateSpec.tasks[0].template.spec",
    "box": "spec.replicatedJobs[0].templateSpec.tasks[0].template.spec.containers[0]",
    "init": "spec.replicatedJobs[0].templateSpec.tasks[0].template.spec.initContainers[0]",
}
GONE = "<gone>"
MANY = re.compile(r"<(\d+) times (.*)>")
STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]|\['([^']+)'\]")

# M11 is missing: it is how Volcano writes its patch, and decides nothing. X5 is missing: the
# controller names the object that has the ResourceBinding of a sub-job.
ROWS = (
    *(f"M{number}" for number in range(1, 11)),
    *(f"V{number}" for number in range(1, 18)),
    "F3",
    "F4",
    "F5",
    *(f"X{number}" for number in range(1, 24) if number != 5),
)


@dataclass(frozen=True)
class Case:
    """One case, with the file that it is in; `rules` has the rows that too few messages name."""

    name: str
    rules: tuple[str, ...] = ()
    base: str = "trainer"
    set: dict[str, Any] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    update: dict[str, Any] | None = None
    context: dict[str, Any] = field(default_factory=dict)
    strict: bool = False
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict)

    completes: bool = False
    """Whether validation gets complete objects."""

    @property
    def before(self) -> Any:
        """The object as its author wrote it, or as it was stored if the case is an update."""
        made = copy.deepcopy(BASES[self.base])
        for path, value in self.set.items():
            put(made, path, value)
        for path in self.unset:
            remove(made, path)
        return made

    @property
    def after(self) -> Any:
        """The object as its author wrote it, after the update if there is one."""
        made = self.before
        for path, value in (self.update or {}).items():
            if value == GONE:
                remove(made, path)
            else:
                put(made, path, value)
        return made

    def judge(self) -> Report:
        """Ask validation."""
        context = Context(**{name: known(name, value) for name, value in self.context.items()})
        old, new = self.before, self.after
        if self.completes:
            old, new = completed(old), completed(new)
        if self.update is None:
            return inspect(new, context=context, strict=self.strict)
        return inspect_update(new, old, context=context)


def known(name: str, value: Any) -> Any:
    """Read a part of what is known of other objects."""
    match name:
        case "clusters":
            return {key: Cluster(**(given or {})) for key, given in value.items()}
        case "queues":
            return {key: Queue(**(given or {})) for key, given in value.items()}
        case "vcjobs" | "max_grace_seconds" | "is_skipped" | "volumes":
            return value
        case _:
            return frozenset(value)


def steps(path: str) -> list[str | int]:
    """Split a path, short names spelt out."""
    path = spell_out(path)
    found = STEP.findall(path)
    return [int(index) if index else name or key for name, index, key in found]


def spell_out(text: str) -> str:
    return re.sub(r"\$(\w+)", lambda match: SHORT[match[1]], text)


def grow(value: Any) -> Any:
    """Make the long texts and lists that no one wants to read in a corpus."""
    match value:
        case dict():
            return {key: grow(child) for key, child in value.items()}
        case [str() as only] if match := MANY.fullmatch(only):
            return [match[2]] * int(match[1])
        case list():
            return [grow(item) for item in value]
        case str() if match := MANY.fullmatch(value):
            return match[2] * int(match[1])
    return value


def put(root: Any, path: str, value: Any) -> None:
    value = grow(value)
    found = steps(path)
    last = found[-1]
    for step, following in pairwise(found):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int) and step == len(root):
            root.append(empty)
        elif isinstance(step, str) and step not in root:
            root[step] = empty
        root = root[step]
    if isinstance(last, int) and last == len(root):
        root.append(value)
    else:
        root[last] = value


def remove(root: Any, path: str) -> None:
    *way, last = steps(path)
    for step in way:
        root = root[step]
    del root[last]


def get(root: Any, path: str) -> Any:
    for step in steps(path):
        root = root[step]
    return root


def load() -> list[Case]:
    """Read the cases of all files."""
    cases = []
    for file in sorted(CORPUS.glob("*.yaml")):
        for number, raw in enumerate(yaml.safe_load(file.read_text(encoding="utf-8"))):
            raw["rules"] = tuple(re.findall(r"\w+", str(raw.get("rules", ""))))
            cases.append(Case(**{**raw, "name": f"{file.stem}-{number}: {raw['name']}"}))
    return cases


CASES = load()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_admission_says_exactly_what_the_corpus_says(case: Case):
    decision = case.judge().decision()
    assert list(map(str, decision.errors)) == list(map(spell_out, case.errors))
    assert list(decision.warnings) == list(map(spell_out, case.warnings))


def test_what_an_author_leaves_out_counts_as_its_default_in_every_rule():
    for case in CASES:
        made, whole = case.judge(), replace(case, completes=True).judge()
        assert made.decision()[:3] == whole.decision()[:3], case.name


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.defaults], ids=lambda case: case.name
)
def test_defaults_are_those_of_the_corpus(case: Case):
    made = completed(case.before)
    assert {path: get(made, path) for path in case.defaults} == case.defaults


def test_there_are_enough_cases_and_each_says_something_new():
    assert len(CASES) >= 400
    texts = Counter(repr((c.before, c.after, c.context, c.strict)) for c in CASES)
    assert [text for text, count in texts.items() if count > 1] == []


def test_every_row_of_the_specification_is_in_at_least_two_cases():
    named: Counter[str] = Counter()
    for case in CASES:
        report = case.judge()
        said = {each.rule.id.partition(".")[0] for each in (*report.refusals, *report.remarks)}
        named.update({*case.rules, *said})
    assert {row: named[row] for row in ROWS if named[row] < 2} == {}


def test_every_message_of_the_catalogue_is_given_by_some_case():
    given = set()
    for case in CASES:
        report = case.judge()
        given.update(found.rule.id for found in (*report.refusals, *report.remarks))
    # The schema says it first, and may become more lenient: upstream's has no required field here.
    given.add("X7.incomplete")
    # These take very large objects: see test_growth.
    given.update(("X6.too-large", "X6.too-many-keys", "X6.too-many-tasks"))
    assert [rule.id for rule in declared() if rule.id not in given] == []


def test_every_field_of_the_api_is_used_by_some_case():
    used: set[str] = set()
    for case in CASES:
        note(case.before, hyperjob_schema(), "", used)
        note(case.after, hyperjob_schema(), "", used)
    assert sorted(set(fields(hyperjob_schema(), "")) - used) == []


def fields(node: dict[str, Any], at: str) -> list[str]:
    """Return the places of all fields that a schema names."""
    found = []
    for name, child in node.get("properties", {}).items():
        found += [f"{at}.{name}", *fields(child, f"{at}.{name}")]
    if isinstance(node.get("items"), dict):
        found += fields(node["items"], f"{at}[]")
    if isinstance(node.get("additionalProperties"), dict):
        found += fields(node["additionalProperties"], f"{at}{{}}")
    return found


def note(value: Any, node: dict[str, Any], at: str, used: set[str]) -> None:
    """Note the places of the fields that a value has."""
    if isinstance(value, list) and isinstance(node.get("items"), dict):
        for item in value:
            note(item, node["items"], f"{at}[]", used)
    if not isinstance(value, dict):
        return
    for name, child in value.items():
        if name in node.get("properties", {}):
            used.add(f"{at}.{name}")
            note(child, node["properties"][name], f"{at}.{name}", used)
        elif isinstance(node.get("additionalProperties"), dict):
            note(child, node["additionalProperties"], f"{at}{{}}", used)
