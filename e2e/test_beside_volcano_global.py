"""Built-in queue admission beside Volcano Global, a misconfiguration: every HyperJob still ends."""

from collections.abc import Iterator

import pytest
import yaml

from e2e.support.manifests import both, group, hyperjob
from e2e.support.scenario import clusters_of
from e2e.support.settings import from_environment
from e2e.support.world import CLUSTERS_FILE, World, open_world
from hyperjob_core.api.names import GATE, GATE_OPEN
from hyperjob_core.kube.resources import RESOURCE_BINDINGS

_NEVER = 3600.0


@pytest.fixture(scope="module", params=[0.2, _NEVER], ids=["releases", "never releases"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Yield a world in which both admit, with a period of Volcano Global's dispatcher."""
    settings = from_environment()
    if not settings.embedded:
        pytest.skip("a Karmada at hand is not set up wrongly for a test")
    directory = tmp_path_factory.mktemp("beside")
    theirs = {"enabled": True, "dispatchPeriod": request.param}
    file = directory / "clusters.yaml"
    content = yaml.safe_load(CLUSTERS_FILE.read_text()) | {"volcanoGlobal": theirs}
    file.write_text(yaml.safe_dump(content))
    with open_world(settings, directory, clusters=file, queue_admission="builtin") as opened:
        assert opened.volcano_global
        yield opened


async def test_two_that_need_both_clusters_end_one_after_the_other(scenario):
    async with scenario.queue() as queue, scenario.sightings() as sightings:
        await scenario.apply(
            both(scenario.world, "a", queue=queue), both(scenario.world, "b", queue=queue)
        )
        for name in ("a", "b"):
            ended = await scenario.until_phase(name, "Completed", "Failed")
            assert ended["status"]["state"]["phase"] == "Completed"
            assert len(set(clusters_of(ended).values())) == 2
    for alive in sightings.together():
        assert len({job.partition("-")[0] for job in alive}) <= 1, "two gangs at a time"
    assert sightings.jobs == {"a-left-0", "a-right-0", "b-left-0", "b-right-0"}


async def test_our_queues_say_who_waits_and_why_and_leave_nothing_held(scenario, request):
    world = scenario.world
    limit = {"capability": {world.accelerator: world.per_pod}}
    async with scenario.queue(**limit) as queue:
        one = group(world, "g", accelerators=world.per_pod, seconds=8, queue=queue)
        await scenario.apply(hyperjob("first", one))
        await scenario.until_phase("first", "Running")
        bindings = await scenario.children("first", RESOURCE_BINDINGS)
        for binding in bindings.values():
            assert binding["metadata"]["annotations"][GATE] == GATE_OPEN
            held = [on for on in binding["spec"].get("suspension", {}).values() if on]
            assert not held, "both have let it go"
        await scenario.apply(hyperjob("second", one))
        waiting = await scenario.until_phase("second", "Queued")
        text = f"queue {queue} uses {world.per_pod} of its capability of {world.per_pod}"
        assert text in waiting["status"]["state"]["message"]
        assert not await scenario.children("second"), "nothing is made that Volcano Global counts"
        ended = await scenario.until_phase("second", "Completed", "Failed")
        assert ended["status"]["state"]["phase"] == "Completed"
    assert world.stack is not None
    log = world.stack.controller.text()
    said = log.count("or run with --queue-admission auto")
    if "never" in request.node.name:
        assert said == 1
    assert said <= 1, "a release within a moment is not always seen"
