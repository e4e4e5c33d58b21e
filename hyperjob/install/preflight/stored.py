"""Stored HyperJobs that the schema of this release would refuse.

An API server that compares an object with its stored form (CRD ratcheting, Kubernetes 1.30 and
newer by default) keeps them; any other refuses each write to such a HyperJob, its status included.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.install.preflight.finding import CheckResult, ok, warning
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import KubeError, NotFound
from hyperjob.kube.resources import HYPERJOBS, key_of
from hyperjob.text import listed, shortened
from webhook.validation.report import Report
from webhook.validation.structure import check_structure

_PAGE: Final = "100"
_SHOWN: Final = 3
_WORDS: Final = 200


@dataclass(frozen=True, slots=True)
class Stored:
    """How many HyperJobs are stored, and of those that the schema refuses the first errors."""

    number: int = 0
    refused: Sequence[tuple[str, str]] = ()


async def read_stored(kube: Kube) -> Stored | KubeError:
    """Check all HyperJobs page by page; only one page is in memory at a time."""
    number, refused, token = 0, [], ""
    while True:
        params = {"limit": _PAGE} | ({"continue": token} if token else {})
        try:
            page = (await kube.raw("GET", HYPERJOBS.path(), params=params)).json()
        except NotFound:
            return Stored()
        except KubeError as error:
            return error
        items: list[Object] = page.get("items") or []
        number += len(items)
        refused += await asyncio.to_thread(_refused, items)
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return Stored(number, refused)


def stored_hyperjobs(stored: Stored) -> CheckResult:
    """Check that the schema of this release takes the HyperJobs that are stored."""
    if not stored.refused:
        return ok(f"the schema of this release takes all {stored.number} stored HyperJobs")
    names = listed([name for name, _ in stored.refused], shown=_SHOWN)
    _, first = stored.refused[0]
    return warning(
        f"the schema of this release refuses {len(stored.refused)} of {stored.number} stored"
        f" HyperJobs ({names}): {shortened(first, _WORDS)}; without CRD ratcheting the API server"
        " refuses each later write to them, their status included",
        remedy="let them end or delete them before the upgrade, or correct the fields named:"
        " kubectl get hj NAME -n NAMESPACE -o yaml | hyperjob lint -",
    )


def _refused(items: Sequence[Object]) -> list[tuple[str, str]]:
    found = []
    for item in items:
        report = Report()
        check_structure(item, report, strict=False)
        if report.refusals:
            found.append((key_of(item), str(report.refusals[0].error)))
    return found
