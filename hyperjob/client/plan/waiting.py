"""The room that a HyperJob must leave to the first in line, where no queues of ours decide.

The controller's own line, over a plan's world.
"""

from dataclasses import replace

from controller.firstinline import FirstInLine
from controller.model.observed import Observed
from controller.plan import plan
from controller.queueing.units import OrderInQueue
from controller.waiting import Waiting
from hyperjob.client.plan.world import World


def behind_others(observed: Observed, world: World) -> Observed:
    """Return what the controller would see while others wait."""
    mine = _order(observed)
    waiting = Waiting(lambda _key, _delay: None)
    for key, raw in {**world.hyperjobs, **world.earlier}.items():
        seen = world.observe(raw)
        if key == mine[2] or _order(seen) > mine:
            continue
        decided = plan(seen)
        if decided.waits_for_capacity:
            waiting.put(_order(seen), needs=decided.needs, claim=decided.claim)
    line = FirstInLine(waiting)
    line.connect(lambda: (world.clusters, world.eventual))
    line.look_again()
    return replace(observed, kept=line.kept_from(mine))


def _order(observed: Observed) -> OrderInQueue:
    hyperjob = observed.hyperjob
    return -observed.priority, hyperjob.created, f"{hyperjob.namespace}/{hyperjob.name}"
