"""The sizes of sub-jobs, their growth, and what plugins and checkpoints write into templates."""

import random
from collections.abc import Iterable, Iterator
from typing import Any, Final

from hyperjob_core.api.meta import Object
from hyperjob_engine.expansion.checkpoint import with_checkpoint
from hyperjob_engine.expansion.expand import SpecError, check_size, expand, sub_job_count, sub_jobs
from hyperjob_engine.expansion.growth import growth
from hyperjob_engine.expansion.parts import is_auto, part_of, pieces
from hyperjob_engine.expansion.resize import resize
from hyperjob_engine.model.child import child_of
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.subjobs import SubJob
from hyperjob_engine.plugins.equip import TooLongError, equip, export_of
from hyperjob_engine.plugins.hosts import UnknownHostError
from hyperjob_engine.plugins.world import world_of
from tests.unit.controller.builders import GPU, binding, hyperjob, job, observed, policy
from tests.unit.recorded.generated import some
from tests.unit.recorded.plans import amounts
from tests.unit.recorded.recording import Case, changes, line

GPUS: Final = ("0", "1", "1", "2", "8", "500m")
PLUGINS: Final[dict[str, tuple[str, ...]]] = {
    "env": (),
    "svc": (
        "--export=false", "--name-pattern={pod}.{service}.{namespace}.svc",
        "--name-pattern={pod}.{cluster}.{service}.x", "--name-pattern={pod}-{cluster}.x",
    ),
    "jax": ("--port=0x10", "--port=8000", "--port=odd"),
    "pytorch": (
        "--port=2345", "--nproc-per-node=3", "--nproc-per-node=-1", "--timeout=60",
        "--master=master", "--worker=worker", "--master=none",
    ),
    "mpi": ("--master=master", "--worker=worker", "--port=2222", "--port=odd", "--worker=none"),
    "torchft": (
        "--lighthouse=master", "--lighthouse=worker", "--address=http://l:1", "--port=1000",
        "--timeout=7", "--nproc-per-node=2",
    ),
}  # fmt: skip


def _container(rng: random.Random, name: str) -> Object:
    requests: Object = {"cpu": "1"}
    gpus = rng.choice(GPUS)
    if gpus != "0":
        requests[rng.choice((GPU, GPU, GPU, "amd.com/gpu"))] = gpus
    made: Object = {"name": name, "resources": {"requests": requests}}
    if some(rng, 0.2):
        made["env"] = [{"name": "HYPERJOB_NAME", "value": "mine"}, {"name": "PET_NNODES"}]
    if some(rng, 0.1):
        made["volumeMounts"] = [{"name": "own", "mountPath": "/own"}]
    return made


def _task(rng: random.Random, name: str) -> Object:
    spec: Object = {"containers": [_container(rng, "main")]}
    if some(rng, 0.2):
        spec["containers"].append(_container(rng, "side"))
    if some(rng, 0.2):
        spec["initContainers"] = [_container(rng, "first")]
    if some(rng, 0.15):
        spec["terminationGracePeriodSeconds"] = 5
    if some(rng, 0.1):
        spec["volumes"] = [{"name": "own"}]
    made: Object = {"replicas": rng.choice((0, 1, 1, 2, 3, 4)), "template": {"spec": spec}}
    if name:
        made["name"] = name
    if some(rng, 0.3):
        made["minAvailable"] = rng.choice((0, 1, made["replicas"]))
    return made


def _group(rng: random.Random, name: str) -> Object:
    names = rng.choice((("worker",), ("master", "worker"), ("launcher", "worker", ""), ("",)))
    spec: Object = {"tasks": [_task(rng, each) for each in names]}
    total = sum(each["replicas"] for each in spec["tasks"])
    if some(rng, 0.4):
        spec["minAvailable"] = rng.choice((0, 1, total, max(0, total - 1)))
    if some(rng, 0.3):
        spec["priorityClassName"] = "high"
    if some(rng, 0.3):
        spec["plugins"] = {"svc": rng.choice(([], ["--publish-not-ready-addresses=false"]))}
    made: Object = {"name": name, "templateSpec": spec, "replicas": rng.choice((0, 1, 1, 2, 3))}
    match rng.randrange(5):
        case 0 | 1:
            made["splitPolicy"] = {
                "mode": rng.choice(("static", "auto")),
                "accelerators": rng.choice((0, 1, 2, 3, 4, 7, 8, 12, 16)),
                "acceleratorType": rng.choice((GPU, GPU, GPU, "amd.com/gpu")),
            }
        case 2 if some(rng, 0.3):
            made["splitPolicy"] = {"mode": "static", "acceleratorType": GPU}
    return made


def _shape(each: Object) -> str:
    tasks = [
        f"{item.get('name', '')} {item['replicas']}x"
        + "+".join(
            "".join(
                container["resources"]["requests"].get(kind, "") for kind in (GPU, "amd.com/gpu")
            )
            for container in item["template"]["spec"]["containers"]
        )
        + (f" min {item['minAvailable']}" if "minAvailable" in item else "")
        for item in each["templateSpec"]["tasks"]
    ]
    rest = {key: value for key, value in each.items() if key != "templateSpec"}
    return f"{line(rest)} {', '.join(tasks)} min {each['templateSpec'].get('minAvailable')}"


def _wanted(raw: Object) -> list[SubJob]:
    found = parse_hyperjob(raw)
    groups = expand(found)
    indices = {each.replicated_job.name: range(len(each.sizes)) for each in groups}
    return [*sub_jobs(found, groups, indices)]


def size_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        rng = random.Random(f"sizes {seed}")
        rows = [row for _ in range(5) for row in _sized(rng)]
        yield f"sizes {seed}", rows


def _sized(rng: random.Random) -> Iterator[str]:
    raw = hyperjob(_group(rng, "g0"))
    group = raw["spec"]["replicatedJobs"][0]
    yield _shape(group)
    found = parse_hyperjob(raw)
    try:
        check_size(found)
        count = sub_job_count(found.replicated_jobs[0])
        wanted = _wanted(raw)
    except SpecError as error:
        yield f"  {error}"
        return
    yield f"  {count} sub-jobs"
    for each in wanted:
        size = each.size
        differs = "; ".join(changes(group["templateSpec"], size.template)) or "as it is"
        parts = [(amounts(item.request), item.number) for item in size.pod_groups]
        yield f"  {size.accelerators} {size.pods} {amounts(size.demand)} {line(parts)} {differs}"
    yield from _lives(rng, raw, wanted)


def _lives(rng: random.Random, raw: Object, wanted: list[SubJob]) -> Iterator[str]:
    """Compare with vcjobs of other sizes, and divide what an automatic split still lacks."""
    objects = []
    for each in wanted[:2]:
        spec = {**each.size.template}
        spec["tasks"] = [
            {**item, "replicas": max(0, item["replicas"] + rng.choice((-1, 0, 0, 1)))}
            for item in spec["tasks"]
        ]
        for item in spec["tasks"]:
            if some(rng, 0.3):
                item["minAvailable"] = rng.choice((1, item["replicas"]))
        if some(rng, 0.3):
            spec["minAvailable"] = sum(item["replicas"] for item in spec["tasks"])
        if some(rng, 0.2):
            spec["priorityClassName"] = "low"
        if some(rng, 0.1):
            spec["tasks"] = spec["tasks"][1:]
        phase = rng.choice(("Running", "Running", "Pending", "Completed"))
        objects += [
            job(each.name, phase=phase, spec=spec),
            policy(each.name),
            binding(each.name, cluster=rng.choice(("a", ""))),
        ]
        if some(rng, 0.2):
            objects = objects[:-3]
    seen = observed(raw, *objects)
    for each in wanted[:2]:
        child = child_of(seen, each.name)
        if child.job is None:
            continue
        tasks = [(item.replicas, item.min_available) for item in child.job.tasks]
        yield f"  {child.phase} {line(tasks)} min {child.job.min_available}"
        change = resize(child.job, each.size.template)
        yield f"    {line([] if change is None else change.operations)}"
        more = growth(seen, each, child)
        if more is not None:
            yield f"    grows by {amounts(more.demand)} {more.name} {line(more.preferred)}"
    for group in seen.hyperjob.replicated_jobs:
        if is_auto(group):
            part = part_of(seen, group)
            yield f"  {line([part.decided, part.parked])} {line(part.wish)}"
            if part.wish is not None:
                cut = list(pieces("hj", part.wish, {"hj-g0-0"}))
                yield f"    {line([(each.name, amounts(each.demand)) for each in cut])}"


def world_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        rng = random.Random(f"world {seed}")
        plugins = {
            name: rng.sample(given, rng.randint(0, min(2, len(given))))
            for name, given in PLUGINS.items()
            if some(rng, 0.4)
        }
        spec: Object = {"plugins": plugins or {"env": []}}
        if some(rng, 0.3):
            spec["quorum"] = rng.choice((1, 2))
        if some(rng, 0.4):
            spec["checkpoint"] = rng.choice((
                {"directory": "/d"},
                {"persistentVolumeClaim": "c", "gracePeriodSeconds": 90},
            ))  # fmt: skip
        status = {"checkpoint": {"resumeStep": 7}} if some(rng, 0.3) else {}
        groups = [_group(rng, f"g{number}") for number in range(rng.choice((1, 1, 2)))]
        for each in groups:
            each.pop("splitPolicy", None)
        raw = hyperjob(*groups, status=status, **spec)
        rows = [line(spec), *map(_shape, groups)]
        yield f"world {seed}", [*rows, *_equipped(rng, raw)]


def _equipped(rng: random.Random, raw: Object) -> Iterator[str]:
    found, wanted = parse_hyperjob(raw), _wanted(raw)
    clusters = {each.name: rng.choice(("a", "a", "b", "b", "")) for each in wanted}
    world = world_of(
        found,
        wanted,
        attempts={each.name: rng.choice((0, 2)) for each in wanted},
        clusters=clusters,
        generation=rng.choice((0, 3)),
        minimum=rng.choice((1, max(1, len(wanted) - 1), max(1, len(wanted)))),
    )
    yield f"minimum {world.minimum}, generation {world.generation}, {line(clusters)}"
    said: set[str] = set()
    for each in wanted:
        template = with_checkpoint(each.size.template, found.checkpoint)
        try:
            made = equip(found, template, world.by_name[each.name], world)
        except (UnknownHostError, TooLongError) as error:
            yield f"{each.name}: {error}"
            continue
        yield f"{each.name} {made.digest}"
        for row in _variables(each.size.template, made.template):
            if row not in said:  # what another sub-job has alike is written once
                said.add(row)
                yield row
    exported = None if not wanted else export_of(found, wanted[0].name)
    yield f"exports {line(exported and exported['metadata']['name'])}"


def _variables(template: Object, made: Object) -> Iterator[str]:
    for task, after in zip(template["tasks"], made["tasks"], strict=True):
        before, spec = task["template"]["spec"], after["template"]["spec"]
        for field in ("initContainers", "containers"):
            for container in spec.get(field, ()):
                found: dict[str, Any] = {
                    each["name"]: each.get("value", each.get("valueFrom", {}).get("fieldRef"))
                    for each in container.get("env", ())
                }
                yield f"  {task.get('name')} {container['name']} {line(found)}"
        for each in changes(before, spec):
            if ".env" not in each:
                yield f"  {task.get('name')} {each}"
    rest = {key: value for key, value in made.items() if key != "tasks"}
    for each in changes({**template, "tasks": None}, rest):
        yield f"  {each}"
