"""Print the effect of changes on the HyperJobs of a control plane, as a table or JSON. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from rich.text import Text

from hyperjob.client.expected import expected_start_value
from hyperjob.client.plan.whatif import HyperJobChange, Prospect
from hyperjob.table import Row, table
from hyperjob_core.api.meta import Object

_WORDS: Final = {
    HyperJobChange.STARTS: "start",
    HyperJobChange.NO_LONGER_STARTS: "no longer start",
    HyperJobChange.MOVES: "move",
    HyperJobChange.STOPS: "lose sub-jobs that fit on no other cluster",
    HyperJobChange.GIVES_BACK: "release their accelerators",
    HyperJobChange.WAITS: "wait as before",
    HyperJobChange.NONE: "do not change",
}
_STYLES: Final = {
    HyperJobChange.STARTS: "bold green",
    HyperJobChange.MOVES: "yellow",
    HyperJobChange.NO_LONGER_STARTS: "bold red",
    HyperJobChange.STOPS: "bold red",
    HyperJobChange.GIVES_BACK: "bold red",
}
_NONE: Final = "<none>"


def as_table(found: Sequence[Prospect]) -> list[Text]:
    """Count the changes, and list the HyperJobs that change, then those that wait."""
    counts = Counter(each.change for each in found)
    text = ", ".join(
        f"{counts[change]} {_WORDS[change]}" for change in HyperJobChange if counts[change]
    )
    lines = [Text(f"After the changes: {text or 'no HyperJob runs or waits'}")]
    order = list(HyperJobChange)
    shown = sorted(
        (each for each in found if each.change is not HyperJobChange.NONE),
        key=lambda each: (order.index(each.change), each.namespace, each.name),
    )
    rows: list[Row] = [
        (
            f"{each.namespace}/{each.name}",
            each.queue or _NONE,
            Text(str(each.change), style=_STYLES.get(each.change, "")),
            _cluster_names(each.now),
            _cluster_names(each.then),
            each.message,
        )
        for each in shown
    ]
    header = ("HYPERJOB", "QUEUE", "CHANGE", "ON", "THEN ON", "MESSAGE")
    return [*lines, *(table(header, rows) if rows else [])]


def value(each: Prospect) -> Object:
    """Return the change of one HyperJob as JSON values."""
    return {
        "namespace": each.namespace,
        "name": each.name,
        "queue": each.queue,
        "change": str(each.change),
        "clusters": dict(each.now),
        "clustersThen": dict(each.then),
        "message": each.message,
        **expected_start_value(each.expected),
    }


def _cluster_names(places: Mapping[str, str]) -> str:
    return ",".join(sorted({where for where in places.values() if where})) or _NONE
