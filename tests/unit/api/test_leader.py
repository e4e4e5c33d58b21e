"""The leader as a Lease shows it, also a Lease of another author."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperjob_core.api.leader import leader_of, user_annotation
from hyperjob_core.api.names import CONTROLLER_USER, CONTROLLER_VERSION

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RENEWED = "2026-01-02T03:04:00.000000Z"


def lease(**spec: Any) -> dict[str, Any]:
    marks = {CONTROLLER_VERSION: "0.3", CONTROLLER_USER: user_annotation("u", ["a", "b"])}
    return {"metadata": {"annotations": marks}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "leads"),
    [
        ({"holderIdentity": "pod", "renewTime": RENEWED}, True),
        ({"holderIdentity": "pod", "renewTime": RENEWED, "leaseDurationSeconds": 2}, False),
        ({"holderIdentity": "pod", "renewTime": "2026-01-02T03:04:00"}, True),
        ({"holderIdentity": "pod", "renewTime": "yesterday"}, False),
        ({"holderIdentity": "pod", "renewTime": RENEWED, "leaseDurationSeconds": "x"}, True),
        ({"holderIdentity": "", "renewTime": RENEWED}, False),
        ({}, False),
    ],
)
def test_the_holder_leads_for_two_durations_after_its_renewal(
    spec: dict[str, Any], leads: bool
) -> None:
    assert leader_of([lease(**spec)], now=NOW).leads is leads


def test_a_lease_names_the_release_and_the_user_of_its_holder() -> None:
    found = leader_of([lease(holderIdentity="pod", renewTime=RENEWED)], now=NOW)
    assert (found.holder, found.version, found.user) == ("pod", "0.3", "u")
    assert (found.groups, found.renewed) == (("a", "b"), NOW - timedelta(seconds=5))
    assert leader_of([{}], now=NOW).holder == ""
