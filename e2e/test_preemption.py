"""A HyperJob of higher priority preempts another, and added sub-jobs wait for the queue."""

from e2e.support.manifests import both, group, hyperjob
from hyperjob_core.kube.resources import EVENTS, HYPERJOBS, VCJOBS

_LONG = 3600.0


async def test_an_urgent_gang_takes_the_place_of_one_that_runs_and_gives_it_back(scenario):
    world = scenario.world
    await scenario.until_free()
    async with scenario.priority(1000) as urgent, scenario.queue() as queue:
        await scenario.apply(both(world, "low", queue=queue, seconds=_LONG))
        await scenario.until_phase("low", "Running")
        await scenario.apply(both(world, "high", queue=queue, priorityClassName=urgent))
        ended = await scenario.until_phase("high", "Completed", "Failed")
        assert ended["status"]["state"]["phase"] == "Completed"
        low = await scenario.until_phase("low", "Running")
        assert [job["attempt"] for job in low["status"]["jobs"]] == [1, 1]
        assert not low["status"].get("restarts"), "making way costs no restart"
        events = (await scenario.kube.list(EVENTS, namespace=scenario.namespace)).items
        said = {each["note"] for each in events if each["regarding"]["name"] == "low"}
        assert any(f"is preempted by {scenario.namespace}/high" in note for note in said)


async def test_an_urgent_one_takes_only_what_another_can_spare(scenario):
    world = scenario.world
    await scenario.until_free()
    async with scenario.priority(1000) as urgent, scenario.queue() as queue:
        shape = {"pods": world.sizes[world.largest] // 2 + 1, "accelerators": world.per_pod}
        shape |= {"queue": queue, "seconds": _LONG, "only_on": world.pair}
        low = {**group(world, "g", replicas=2, **shape), "minReplicas": 1}
        checkpoint = {"directory": "/checkpoints", "gracePeriodSeconds": 1}
        await scenario.apply(hyperjob("low", low, checkpoint=checkpoint))
        started = await scenario.until_phase("low", "Running")
        assert len(started["status"]["jobs"]) == 2
        high = group(world, "g", priorityClassName=urgent, **shape)
        await scenario.apply(hyperjob("high", high))
        await scenario.until_phase("high", "Running")

        def runs_smaller(found: dict | None) -> bool:
            return ((found or {}).get("status") or {}).get("jobsReady") == "1/1"

        small = await scenario.until(HYPERJOBS, "low", runs_smaller, what="Running with one")
        (entry,) = small["status"]["jobs"]
        (size,) = small["status"]["alternatives"]
        assert (entry["attempt"], size["name"], size["reason"]) == (1, "1", "MadeWay")
        assert not small["status"].get("restarts"), "making way costs no restart"
        high = await scenario.until_phase("high", "Running")
        assert {each["cluster"] for each in high["status"]["jobs"]} != {entry["cluster"]}
        for name in ("high", "low"):
            await scenario.kubectl("delete", HYPERJOBS.group_resource, name)


async def test_an_urgent_one_takes_only_the_accelerators_that_a_split_can_spare(scenario):
    world = scenario.world
    await scenario.until_free()
    async with scenario.priority(1000) as urgent, scenario.queue() as queue:
        pods = world.sizes[world.largest] // 2 + 1
        shape = {"accelerators": world.per_pod, "queue": queue, "seconds": _LONG}
        shape |= {"only_on": world.pair}
        split = {"mode": "auto", "acceleratorType": world.accelerator}
        whole = sum(world.sizes[each] for each in world.pair) * world.per_pod
        split |= {"accelerators": whole, "minAccelerators": world.per_pod}
        checkpoint = {"directory": "/checkpoints", "gracePeriodSeconds": 1}
        low = group(world, "g", split=split, **shape)
        await scenario.apply(hyperjob("low", low, checkpoint=checkpoint))
        started = await scenario.until_phase("low", "Running")
        assert len(started["status"]["jobs"]) == 2
        high = group(world, "g", pods=pods, priorityClassName=urgent, **shape)
        await scenario.apply(hyperjob("high", high))
        await scenario.until_phase("high", "Running")

        def runs_smaller(found: dict | None) -> bool:
            status = (found or {}).get("status") or {}
            (size,) = status.get("alternatives") or [{}]
            return size.get("reason") == "MadeWay" and status["state"]["phase"] == "Running"

        small = await scenario.until(HYPERJOBS, "low", runs_smaller, what="Running with less")
        has = sum(job["accelerators"] for job in small["status"]["jobs"])
        assert small["status"]["alternatives"][0]["name"] == str(has)
        assert world.per_pod <= has < whole
        assert not small["status"].get("restarts"), "making way costs no restart"
        await scenario.until_phase("high", "Running")
        for name in ("high", "low"):
            await scenario.kubectl("delete", HYPERJOBS.group_resource, name)


async def test_more_pods_of_what_runs_wait_for_the_queue_and_leave_it_untouched(scenario):
    world = scenario.world
    await scenario.until_free()
    whole = world.sizes[world.largest]
    limits = {"capability": {world.accelerator: whole * world.per_pod}}
    async with scenario.queue(**limits) as queue:

        def of(name: str, pods: int) -> dict:
            shape = {"pods": pods, "accelerators": world.per_pod, "only_on": [world.largest]}
            return hyperjob(name, group(world, "g", queue=queue, seconds=_LONG, **shape))

        await scenario.apply(of("grows", 1), of("other", whole - 1))
        await scenario.until_phase("grows", "Running")
        await scenario.until_phase("other", "Running")
        before = (await scenario.children("grows"))["grows-g-0"]
        await scenario.apply(of("grows", 2))

        def waits(found: dict | None) -> bool:
            jobs = (found or {}).get("status", {}).get("jobs", ())
            return any("waits to grow to 2 pods" in (job.get("message") or "") for job in jobs)

        waiting = await scenario.until(HYPERJOBS, "grows", waits, what="waiting to grow")
        assert waiting["status"]["state"]["phase"] == "Running"
        now = (await scenario.children("grows"))["grows-g-0"]
        assert now["metadata"]["uid"] == before["metadata"]["uid"]
        assert now["spec"]["tasks"][0]["replicas"] == 1
        await scenario.kubectl("delete", HYPERJOBS.group_resource, "other")

        def runs_with_two(found: dict | None) -> bool:
            return ((found or {}).get("status") or {}).get("running") == 2

        member = scenario.members[world.largest]
        what = "running with two pods"
        grown = await scenario.until(VCJOBS, "grows-g-0", runs_with_two, what=what, kube=member)
        assert grown["spec"]["tasks"][0]["replicas"] == 2
        jobs = (await scenario.until_phase("grows", "Running"))["status"]["jobs"]
        assert [job.get("attempt", 0) for job in jobs] == [0]
