"""All recorded sections by the name of their file."""

from functools import partial
from typing import Final

from hyperjob_engine.model.observed import QueueAdmission
from tests.unit.recorded.admissions import bare_cases, mixed_cases, near_cases, pod_cases
from tests.unit.recorded.clients import call_cases, watch_cases
from tests.unit.recorded.contests import contest_cases
from tests.unit.recorded.histories import history_cases
from tests.unit.recorded.judgements import judgement_cases
from tests.unit.recorded.limits import limit_cases
from tests.unit.recorded.loops import event_cases, leader_cases, work_cases
from tests.unit.recorded.memories import refusal_cases, reservation_cases
from tests.unit.recorded.passes import pass_cases
from tests.unit.recorded.placements import placement_cases, split_cases
from tests.unit.recorded.programs import goodput_cases, log_cases, whole_training_cases
from tests.unit.recorded.queueparts import account_cases, document_cases, space_cases, unit_cases
from tests.unit.recorded.readings import READ, reading_cases
from tests.unit.recorded.recording import Section
from tests.unit.recorded.reviews import binding_cases, envelope_cases
from tests.unit.recorded.rounds import round_cases
from tests.unit.recorded.sizes import size_cases, world_cases
from tests.unit.recorded.snapshots import snapshot_cases, state_cases
from tests.unit.recorded.texts import text_cases
from tests.unit.recorded.whole import whole_cases

MODES: Final = list(QueueAdmission)

SECTIONS: Final[dict[str, Section]] = {
    **{f"near-{n}": partial(near_cases, n, 3) for n in range(3)},
    **{f"pods-{n}": partial(pod_cases, n, 3) for n in range(3)},
    "limits": limit_cases,
    "bare": bare_cases,
    "mixed": partial(mixed_cases, range(36)),
    "client-calls": partial(call_cases, range(40)),
    "client-watches": partial(watch_cases, range(14)),
    "client-queues": partial(work_cases, range(10)),
    "client-leaders": partial(leader_cases, range(14)),
    "client-events": partial(event_cases, range(4)),
    "reviews-bindings": partial(binding_cases, range(60)),
    "reviews-envelopes": envelope_cases,
    **{f"histories-{n}": partial(history_cases, range(n * 6, n * 6 + 6)) for n in range(2)},
    **{f"passes-{n}": partial(pass_cases, range(n * 14, n * 14 + 14)) for n in range(5)},
    **{f"rounds-{n}": partial(round_cases, range(n * 9, n * 9 + 9)) for n in range(4)},
    **{f"contests-{n}": partial(contest_cases, range(n * 20, n * 20 + 20)) for n in range(3)},
    "queue-accounts": partial(account_cases, range(100)),
    "queue-documents": document_cases,
    "queue-units": partial(unit_cases, range(80)),
    "queue-spaces": partial(space_cases, range(100)),
    **{f"gangs-{n}": partial(placement_cases, range(n * 30, n * 30 + 30)) for n in range(4)},
    **{f"reads-{kind.replace(' ', '-')}": partial(reading_cases, kind) for kind in READ},
    "programs": partial(log_cases, range(40)),
    "programs-together": partial(whole_training_cases, range(16)),
    "goodput": partial(goodput_cases, range(40)),
    "reservations": partial(reservation_cases, range(24)),
    "refusals": partial(refusal_cases, range(2)),
    "sizes": partial(size_cases, range(40)),
    "worlds": partial(world_cases, range(40)),
    "judgements": partial(judgement_cases, range(160)),
    "texts": text_cases,
    **{f"snapshots-{n}": partial(snapshot_cases, range(n * 30, n * 30 + 30)) for n in range(3)},
    **{f"states-{n}": partial(state_cases, range(n * 15, n * 15 + 15)) for n in range(2)},
    **{f"splits-{n}": partial(split_cases, range(n * 40, n * 40 + 40)) for n in range(2)},
    **{
        f"whole-{n}": partial(
            whole_cases, n, jobs=3, refuses=0.03 if n % 2 else 0.0, mode=MODES[(n + 1) % 3]
        )
        for n in range(16)
    },
}
