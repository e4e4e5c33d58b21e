"""The record of the last renewal of each token, which is kept beside the controller's own token.

No process sees the tokens of all others: `hyperjob credentials renew` writes the record, and the
controller shows it in its metrics.
"""

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from hyperjob_core.api.wire import count, decoded, mapping

RENEWALS: Final = "renewals.json"
"""The key of the Secret, and the file beside the kubeconfig."""
LONGEST: Final = 64 * 1024
_MOST: Final = 100


class Renewal(NamedTuple):
    """The times of a token, in seconds since 1970."""

    renewed: int
    expires: int


def render(renewals: Mapping[str, Renewal]) -> str:
    """Return the record, by the name of the ServiceAccount."""
    return json.dumps({name: renewal._asdict() for name, renewal in renewals.items()})


def parse(text: bytes) -> dict[str, Renewal]:
    """Return the renewals of a record; what is none of them is left out."""
    try:
        found = decoded(text[:LONGEST])
    except ValueError:
        return {}
    entries = list(mapping(found).items())[:_MOST]
    renewals = {
        name: Renewal(*(count(mapping(entry).get(each)) for each in Renewal._fields))
        for name, entry in entries
    }
    return {name: renewal for name, renewal in renewals.items() if all(renewal)}
