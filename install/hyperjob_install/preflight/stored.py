"""Stored HyperJobs that the schema of this release would refuse.

An API server with CRD ratcheting (default from Kubernetes 1.30 on) accepts writes to such a
HyperJob; other API servers refuse each write, its status included.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.resources import HYPERJOBS, key_of
from hyperjob_rules.validation.create import check_structure
from hyperjob_rules.validation.rules import Report

_PAGE: Final = "100"


@dataclass(frozen=True, slots=True)
class StoredHyperJobs:
    """The number of stored HyperJobs, and the errors of those that the schema refuses."""

    number: int = 0
    refused: Sequence[tuple[str, str]] = ()


async def read_stored(kube: Kube) -> StoredHyperJobs | KubeError:
    """Validate all stored HyperJobs, one page in memory at a time."""
    number, refused, token = 0, [], ""
    while True:
        params = {"limit": _PAGE} | ({"continue": token} if token else {})
        try:
            page = (await kube.raw("GET", HYPERJOBS.path(), params=params)).json()
        except NotFound:
            return StoredHyperJobs()
        except KubeError as error:
            return error
        items: list[Object] = page.get("items") or []
        number += len(items)
        refused += await asyncio.to_thread(_refused, items)
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return StoredHyperJobs(number, refused)


def _refused(items: Sequence[Object]) -> list[tuple[str, str]]:
    """Return the key and the first error of each HyperJob that the schema refuses."""
    found = []
    for item in items:
        report = Report()
        check_structure(item, report, strict=False)
        if report.refusals:
            found.append((key_of(item), str(report.refusals[0].error)))
    return found
