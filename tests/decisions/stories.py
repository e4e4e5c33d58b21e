"""The stories of the controller: one HyperJob in trouble, queues that compete, and whole days.

`passes` has one HyperJob, whose members report anything at any time. In `rounds` many small ones
arrive in a tree of queues, and in `contests` one queue has taken all before the others want their
share. `days` has HyperJobs of every kind, users, refused writes and a controller that is killed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.decisions import acts
from tests.decisions.draw import Draw
from tests.decisions.hyperjobs import GPU, Object, hyperjob, hyperjob_of, task
from tests.decisions.karmada import Fate
from tests.decisions.sites import Site, queue, queues_of, sites_of, urgent
from tests.decisions.stage import RESTART, Act, Stage, Story

PAUSES = (1.0, 9.0, 10.0, 11.0, 29.0, 30.0, 31.0, 59.0, 60.0, 61.0, 299.0, 300.0, 301.0, 899.0,
          900.0, 901.0, 3600.0)  # fmt: skip
"""Seconds between two acts: around the times that the controller waits for."""
HOUR = 3600.0
LEAVES = ("default", "q0", "q1")


def arrival(draw: Draw, name: str, *, most: int = 2) -> Act:
    """Apply a HyperJob, the first of a few that admission accepts."""

    def apply(stage: Stage) -> str:
        texts = (stage.apply(hyperjob_of(draw.at(n), name, most=most)) for n in range(9))
        return next((text for text in texts if "refused" not in text), "all are refused")

    return apply


def applied(raw: Object) -> Act:
    return lambda stage: stage.apply(raw)


def fates(draw: Draw, *, fails: float) -> Callable[[str, int], Fate]:
    """Let each run of a vcjob end at some time, or fail."""

    def fate(key: str, run: int) -> Fate:
        at = draw.at(f"fate of {key}").at(run)
        if at.some("fails", fails):
            return Fate(at.pick("fails after", (1.0, 60.0, 600.0)), "Failed")
        return Fate(at.pick("ends after", (60.0, 600.0, 1800.0, 7200.0)), "Completed")

    return fate


def passes(number: int, modes: Sequence[str]) -> Story:
    draw = Draw(f"passes {number}")
    doings = {
        "report": acts.report, "report again": acts.report, "report anew": acts.report,
        "user": acts.user(), "break": acts.breaks, "cluster": acts.cluster_changes,
        "taint": acts.taint, "killed": RESTART,
    }  # fmt: skip
    moment, happens = 1.0, [(1.0, arrival(draw.at("hj"), "hj", most=3))]
    for index in range(12):
        at = draw.at(f"step {index}")
        moment += at.pick("pause", PAUSES)
        happens.append((moment, at.named("doing", doings)))
    return Story(
        draw=draw,
        title=f"passes {number}",
        sites=sites_of(draw),
        objects=[*queues_of(draw), urgent()],
        acts=happens,
        seconds=moment + 400.0,
        mode=draw.pick("mode", modes),
        members=draw.pick("members", ("off", "off", "nodes")),
        refuses=draw.pick("refuses", (0.0, 0.0, 0.1)),
    )


def small(draw: Draw, name: str, named: str) -> Object:
    """Make a HyperJob of a few pods in a queue."""
    least = draw.pick("least", (0, 0, 1))
    groups: list[Object] = []
    for index in range(draw.pick("groups", (1, 1, 1, 2))):
        at = draw.at(f"g{index}")
        worker = task("worker", 1, at.pick("gpus", (1, 2, 4, 4, 8, 8)))
        spec = {"queue": named, "tasks": [worker]} | at.fields(
            priorityClassName=(0.25, ("urgent",)),
            runningEstimate=(0.5, ("60s", "600s", "4000s")),
        )
        made = {"name": f"g{index}", "replicas": at.pick("replicas", (1, 1, 2, 3)),
                "templateSpec": spec}  # fmt: skip
        if at.some("clusterNames", 0.15):
            made |= {"clusterNames": ["a"], "clusterPolicy": "Required"}
        groups.append(made)
    fields = draw.fields(maxDomains=(0.25, (1, 2)))
    return hyperjob(name, *groups, **fields, **({"minAvailable": least} if least else {}))


def split(draw: Draw, name: str, named: str) -> Object:
    total = draw.pick("accelerators", (4, 8, 12, 16))
    policy = {"mode": "auto", "accelerators": total, "acceleratorType": GPU}
    spec = {"queue": named, "tasks": [task("worker", 1, draw.pick("gpus", (1, 2, 4)))]}
    return hyperjob(name, {"name": "g0", "splitPolicy": policy, "templateSpec": spec})


def submitted(draw: Draw, name: str, named: str) -> Act:
    return applied((split if draw.some("split", 0.15) else small)(draw, name, named))


def rounds(number: int, _: Sequence[str]) -> Story:
    draw = Draw(f"rounds {number}")
    happens: list[tuple[float, Act]] = []
    doings = {"queue": acts.queue_changes, "cluster": acts.cluster_changes,
              "user": acts.user({"suspend": acts.suspend, "delete": acts.delete})}  # fmt: skip
    for index in range(14):
        at = draw.at(f"j{index}")
        when = at.pick("arrives", (1.0, 1.0, 30.0, 60.0, 600.0, 1800.0))
        happens.append((when, submitted(at, f"j{index}", at.pick("queue", LEAVES))))
    for index in range(6):
        at = draw.at(f"event {index}")
        happens.append((at.pick("when", range(100, 5000, 50)), at.named("doing", doings)))
    return Story(
        draw=draw,
        title=f"rounds {number}",
        sites=sites_of(draw, most=4),
        objects=[*queues_of(draw), urgent()],
        acts=happens,
        seconds=3 * HOUR,
        fate=fates(draw, fails=0.0),
    )


def contests(number: int, _: Sequence[str]) -> Story:
    draw = Draw(f"contests {number}")
    rich = draw.pick("rich", LEAVES)
    happens: list[tuple[float, Act]] = []
    for index in range(16):
        at = draw.at(f"j{index}")
        when, named = (1.0, rich) if index < 8 else (at.pick("arrives", range(120, 1200, 60)), "")
        happens.append((when, submitted(at, f"j{index}", named or at.pick("queue", LEAVES))))
    marks = draw.fields(reclaimable=(0.1, (False,)), weight=(0.5, (3,)))
    queues = [queue(each, **(marks if each == rich else {})) for each in LEAVES]
    return Story(
        draw=draw,
        title=f"contests {number}",
        sites=sites_of(draw, most=2),
        objects=[*queues, urgent()],
        acts=happens,
        seconds=2 * HOUR,
        fate=fates(draw, fails=0.0),
        members=draw.pick("members", ("off", "nodes")),
    )


def days(number: int, modes: Sequence[str]) -> Story:
    draw = Draw(f"days {number}")
    doings = {
        "user": acts.user(), "user again": acts.user(), "queue": acts.queue_changes,
        "cluster": acts.cluster_changes, "killed": RESTART,
        "user deletes": acts.user({"delete": acts.delete}),
    }  # fmt: skip
    happens: list[tuple[float, Act]] = []
    for index in range(4):
        at = draw.at(f"j{index}")
        when = at.pick("arrives", (1.0, 60.0, 600.0, 1800.0)) + index
        happens.append((when, arrival(at, f"j{index}")))
    for index in range(8):
        at = draw.at(f"event {index}")
        happens.append((at.pick("when", range(100, 9000, 70)) + 0.3, at.named("doing", doings)))
    return Story(
        draw=draw,
        title=f"days {number}",
        sites=sites_of(draw, least=2),
        objects=[*queues_of(draw), urgent()],
        acts=happens,
        seconds=4 * HOUR,
        mode=draw.pick("mode", modes),
        members=draw.pick("members", ("off", "pods", "nodes", "logs")),
        refuses=draw.pick("refuses", (0.0, 0.0, 0.03)),
        fate=fates(draw, fails=0.2),
    )


def crowd(number: int, members: str, *, kills: float = 0.0, others: float = 0.0) -> Story:
    """Let small HyperJobs come, end and be deleted in two clusters of one node."""
    draw = Draw(f"crowd {number}")

    def fate(key: str, run: int) -> Fate:
        at = draw.at(f"fate of {key}").at(run)
        return Fate(3.0 + 60.0 * at.share("ends"), "Completed", at.pick("stops", (1.0, 2.0, 4.0)))

    node = {"cpu": 64, "memory": 2**39, "pods": 110, GPU: 16}
    happens: list[tuple[float, Act]] = []
    for second in range(1, 120):
        at = draw.at(f"second {second}")
        if at.some("arrives", 0.25):
            spec = {"queue": at.pick("queue", ("x", "x", "y"))} | at.fields(
                priorityClassName=(0.3, ("urgent",))
            )
            spec |= {"tasks": [task("worker", at.pick("gpus", (2, 4, 8, 16)), 1)]}
            name = f"j{second}of{spec['tasks'][0]['replicas']}"
            raw = hyperjob(name, {"name": "g0", "replicas": 1, "templateSpec": spec})
            happens.append((float(second), applied(raw)))
        if at.some("deleted", 0.08):
            happens.append((second + 0.3, acts.user({"delete": acts.delete})))
        if at.some("others", others):
            happens.append((second + 0.5, acts.others))
        if at.some("killed", kills):
            happens.append((second + 0.7, RESTART))
    sites = [Site(name, [node]) for name in "ab"]
    for site in sites:
        site.held = draw.number(f"held of {site.name}", 0, 4)
        site.free[0][GPU] -= site.held
    return Story(
        draw=draw,
        title=f"crowd {number}",
        sites=sites,
        objects=[queue("x"), queue("y", reclaimable=False), urgent()],
        acts=happens,
        seconds=130.0,
        members=members,
        beats=True,
        fate=fate,
    )


def gang(draw: Draw, name: str) -> Object:
    """Make a HyperJob whose sub-jobs start together, or one that may start with fewer."""
    groups: list[Object] = []
    for index in range(draw.pick("groups", (1, 1, 2))):
        at = draw.at(f"g{index}")
        worker = task("worker", at.pick("gpus", (1, 4, 8)), 1)
        spec = {"queue": at.pick("queue", ("q0", "q0", "q1")), "tasks": [worker]}
        group = {"name": f"g{index}", "replicas": at.pick("replicas", (1, 2, 2, 3))}
        groups.append({**group, "templateSpec": spec})
    if len(groups) == 1 and draw.some("elastic", 0.25):
        groups[0] |= {"minReplicas": 1} | draw.fields(maxReplicas=(0.5, (3, 4)))
    fields = draw.fields(minAvailable=(0.3, (1, 2, 3)), maxDomains=(0.2, (1, 2)))
    policy = {"maxRestarts": 99, "rules": [{"action": "RestartJob"}]}
    return hyperjob(name, *groups, failurePolicy=policy, **fields)


def gangs(number: int, mode: str, *, kills: float) -> Story:
    """Let gangs compete while clusters are lost, others take room, queues close; then all heals."""
    draw = Draw(f"gangs {number}")

    def fate(key: str, run: int) -> Fate:
        at = draw.at(f"fate of {key}").at(run)
        return Fate(at.pick("ends after", (60.0, 200.0, 600.0)), "Completed")

    node = {"cpu": 64, "memory": 2**39, "pods": 110}
    sites = [
        Site(each, [{**node, GPU: draw.pick(f"size of {each}", (8, 16, 24))}])
        for each in "abc"[: draw.number("sites", 2, 3)]
    ]
    doings = {"cluster": acts.cluster_lost, "others": acts.others, "queue": acts.queue_closes,
              "user": acts.user({"suspend": acts.suspend, "delete": acts.delete})}  # fmt: skip
    happens: list[tuple[float, Act]] = []
    for index in range(9):
        at = draw.at(f"j{index}")
        when = at.pick("arrives", (1.0, 1.0, 1.2, 60.0, 400.0)) + index / 100
        happens.append((when, applied(gang(at, f"j{index}"))))
    for second in range(1, 900):
        at = draw.at(f"second {second}")
        if at.some("event", 0.015):
            happens.append((second + 0.3, at.named("doing", doings)))
        if at.some("killed", kills):
            happens.append((second + at.share("killed at"), RESTART))
    happens += [(900.0, acts.heal), (901.0, acts.resume)]
    limits = {each: {GPU: draw.pick(f"limit of {each}", ("16", "24"))} for each in ("q0", "q1")}
    above = [queue("up", capability={GPU: "32"})] if draw.some("up", 0.5) else []
    parent = {"parent": "up"} if above else {}
    queues = [
        queue(name, capability=limit, reclaimable=draw.some(f"{name} lends", 0.5), **parent)
        for name, limit in limits.items()
    ]
    return Story(
        draw=draw,
        title=f"gangs {number}",
        sites=sites,
        objects=[*above, *queues, urgent()],
        acts=happens,
        seconds=4 * HOUR,
        mode=mode,
        fate=fate,
    )


def stream(mode: str, *, large: int) -> Story:
    """Let two small HyperJobs come each minute, which fill two clusters, and once a large one.

    `large` is the number of its sub-jobs, each of which takes a whole cluster.
    """
    node = {"cpu": 64, "memory": 2**39, "pods": 110, GPU: 16}

    def apply(name: str, gpus: int, replicas: int = 1) -> Act:
        spec = {"tasks": [task("worker", 1, gpus)]}
        return applied(hyperjob(name, {"name": "g0", "replicas": replicas, "templateSpec": spec}))

    happens = [(60.0 * n + k, apply(f"small{n}x{k}", 8)) for n in range(10) for k in (1, 2)]
    return Story(
        draw=Draw("stream"),
        title=f"a stream, {mode}",
        sites=[Site(name, [node]) for name in "ab"],
        objects=[queue("default")],
        acts=[*happens, (240.0, apply("large", 16, large))],
        seconds=1200.0,
        mode=mode,
        fate=lambda _key, _run: Fate(120.0, "Completed"),
    )


def stops(number: int, members: str, *, kills: bool = False, late: float = 0.0) -> Story:
    """Stop HyperJobs whose pods end up to 40 seconds later, in two clusters that are never full."""
    draw = Draw(f"stops {number}")

    def fate(key: str, run: int) -> Fate:
        at = draw.at(f"fate of {key}").at(run)
        return Fate(9e9, "Completed", 40.0 * at.share("stops"), saves=at.some("saves", 0.7))

    node = {"cpu": 64, "memory": 2**39, "pods": 110, GPU: 64}
    sites = [Site("a", [node]), Site("b", [node], late=late)]
    happens: list[tuple[float, Act]] = []
    for index in range(6):
        groups = {"name": "g0", "replicas": 1 + index % 2}
        spec = {"tasks": [task("worker", 2, 1)]}
        grace = 60 if late else draw.pick(f"grace of j{index}", (10, 60))
        checkpoint = {"directory": "s3://bucket/run", "gracePeriodSeconds": grace}
        raw = hyperjob(f"j{index}", {**groups, "templateSpec": spec}, checkpoint=checkpoint)
        raw["spec"]["plugins"] = {"env": []}
        happens.append((1.0 + index, applied(raw)))
    doings = (
        {"request": acts.request_all}
        if late
        else {"request": acts.request_all, "suspend": acts.suspend}
    )
    moment = 60.0
    for index in range(24):
        at = draw.at(f"stop {index}")
        moment += 1.0 + 29.0 * at.share("pause")
        happens.append((moment, acts.user(doings)))
        if kills and at.some("kill", 0.4):
            happens.append((moment + 40.0 * at.share("killed"), RESTART))
    end = moment + 100.0
    return Story(
        draw=draw,
        title=f"stops {number}",
        sites=sites,
        objects=[queue("default")],
        acts=[*happens, (end, acts.resume)],
        seconds=end + 300.0,
        members=members,
        away=5.0 if kills else 0.0,
        beats=True,
        fate=fate,
    )


def settled(story: Story) -> Story:
    """Return a story without refused writes that goes on until all is at rest, then starts anew."""
    end = story.seconds + 4 * HOUR
    return replace(story, refuses=0.0, seconds=end, acts=[*story.acts, (end - HOUR, RESTART)])


def without_nodes(story: Story) -> Story:
    """Return a story in which each cluster is one node: what is free in it fits."""
    sites = [
        Site(each.name, [{**each.total(each.size), "pods": 999}], each.spec) for each in story.sites
    ]
    return replace(story, sites=sites)
