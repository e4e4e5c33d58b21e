"""What histories of gangs have in common: the HyperJobs, the events of any queue, and the end."""

from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.unit.controller.gangworld import GangWorld, feasible
from tests.unit.engine.builders import Object, group, hyperjob, task, template

MOST = 5
PATIENCE = timedelta(days=2)
ROUNDS = 4000

group_shapes = st.tuples(
    st.integers(1, 3), st.integers(1, 8), st.sampled_from(["q0", "q1"]), st.booleans()
)
shapes = st.tuples(
    st.lists(group_shapes, min_size=1, max_size=2),
    st.one_of(st.none(), st.integers(1, 4)),
    st.one_of(st.none(), st.integers(1, 2)),
)


def made(number: int, shape: Any) -> Object:
    """Build a HyperJob: groups of (replicas, accelerators, queue, prefers c1)."""
    groups, least, domains = shape
    raw = hyperjob(
        *(
            group(
                f"g{index}",
                replicas=replicas,
                templateSpec=template(task(replicas=gpus), queue=queue),
                **({"clusterNames": ["c1"]} if prefers else {}),
            )
            for index, (replicas, gpus, queue, prefers) in enumerate(groups)
        ),
        name=f"hj{number}",
    )
    raw["metadata"]["uid"] = f"hj-uid-{number}"
    if least is not None:
        raw["spec"]["minAvailable"] = least
    if domains is not None:
        raw["spec"]["maxDomains"] = domains
    return raw


def demand(raw: Object, queue: str) -> int:
    """Count the accelerators that a HyperJob wants of a queue."""
    return sum(
        each["replicas"] * each["templateSpec"]["tasks"][0]["replicas"]
        for each in raw["spec"]["replicatedJobs"]
        if each["templateSpec"]["queue"] == queue
    )


class StuckError(AssertionError):
    """Not all have ended, and nothing but what may go on for ever happens."""


def run_out(world: GangWorld, *, patience: timedelta = PATIENCE) -> None:
    """Heal everything, then let each part do its work; fail unless all ends by itself."""
    world.heal()
    began = world.now
    for _ in range(ROUNDS):
        world.bind()
        world.schedule()
        world.dispatch()
        for name in list(world.hyperjobs):
            world.deliver(name)
        world.time_is_up()
        for name in list(world.due):
            world.work(name)
        world.delete_ended()
        if not world.hyperjobs:
            return
        if world.due:
            continue
        world.bind()
        world.release(in_turn=True)
        world.schedule()
        if world.due or any(world.bindings[k] != world.seen.get(k) for k in world.bindings):
            continue
        moments = world.next_moments()
        if not moments:
            raise StuckError(f"nothing will ever wake {told(world)}")
        world.now = max(world.now, min(moments))
        world.finish_jobs()
        if world.now - began >= patience:
            raise StuckError(f"no end: {told(world)}")
    raise AssertionError(f"no end after {ROUNDS} rounds: {told(world)}")


def told(world: GangWorld) -> dict[str, Any]:
    return {name: raw["status"].get("state") for name, raw in world.hyperjobs.items()}


def settings_of(examples: int) -> settings:
    """Give the settings of a model that runs so many histories."""
    return settings(
        phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking takes minutes
        max_examples=examples,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


class Events(RuleBasedStateMachine):
    """What happens whoever admits: submissions, losses, restarts, late or repeated messages."""

    world: GangWorld

    def start(
        self, kind: type[GangWorld], sizes: list[int], spare: tuple[int, int], first: list[Any]
    ) -> None:
        """Quotas hold the largest of the first HyperJobs and a little more: they compete."""
        wishes = [made(number, shape) for number, shape in enumerate(first)]
        wishes = [raw for raw in wishes if feasible(raw, sizes, [999, 999])]
        self.quotas = [
            extra + max((demand(raw, queue) for raw in wishes), default=8)
            for queue, extra in zip(("q0", "q1"), spare, strict=True)
        ]
        self.world = kind.of(sizes, self.quotas)
        self.sizes, self.number = sizes, len(first)
        for raw in wishes:
            self.world.submit(raw)

    def pick(self, data: st.DataObject, names: Any) -> str | None:
        return data.draw(st.sampled_from(sorted(names))) if names else None

    @precondition(lambda self: self.number < MOST)
    @rule(shape=shapes)
    def a_user_submits(self, shape: Any) -> None:
        raw = made(self.number, shape)
        if feasible(raw, self.sizes, self.quotas):
            self.world.submit(raw)
            self.number += 1

    @rule(data=st.data())
    def a_pass(self, data: st.DataObject) -> None:
        name = self.pick(data, self.world.hyperjobs)
        if name is not None:
            self.world.work(name)

    @rule(data=st.data(), actions=st.integers(0, 4))
    def the_controller_dies_in_a_pass(self, data: st.DataObject, actions: int) -> None:
        name = self.pick(data, self.world.hyperjobs)
        if name is not None:
            self.world.work(name, dies_after=actions)

    @rule()
    def all_passes_that_are_due(self) -> None:
        for name in list(self.world.due):
            self.world.work(name)

    @rule(data=st.data())
    def a_message_arrives(self, data: st.DataObject) -> None:
        name = self.pick(data, self.world.hyperjobs)
        if name is not None:
            self.world.deliver(name)

    @rule()
    def all_messages_arrive(self) -> None:
        for name in self.world.hyperjobs:
            self.world.deliver(name)

    @rule(data=st.data(), gpus=st.integers(0, 32))
    def others_take_room(self, data: st.DataObject, gpus: int) -> None:
        name = self.pick(data, self.world.sizes)
        if name is not None:
            self.world.foreign[name] = min(gpus, self.world.sizes[name])
            self.world.clusters_change()

    @rule(data=st.data())
    def a_cluster_is_lost_or_comes_back(self, data: st.DataObject) -> None:
        name = self.pick(data, self.world.sizes)
        if name is not None:
            self.world.lost ^= {name}
            self.world.clusters_change()

    @rule(minutes=st.sampled_from([0.1, 1, 2.5, 6]))
    def time_goes_by(self, minutes: float) -> None:
        self.world.now += timedelta(minutes=minutes)
        self.world.finish_jobs()

    @rule()
    def users_take_away_what_has_ended(self) -> None:
        self.world.delete_ended()
