"""The page of HyperJobs, clusters and findings that need a person."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final

from hyperjob.client.clusters import is_ready, why_not_ready
from hyperjob_core.api.phases import Phase
from hyperjob_core.api.wire import condition, mapping, string
from hyperjob_core.kube.resources import key_of
from hyperjob_page.attention import Attention, AttentionItem
from hyperjob_page.render import render
from hyperjob_page.rows import Row
from hyperjob_page.visitor import Scope
from hyperjob_page.world import LiveState

_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class AttentionPage:
    """HyperJobs, clusters and findings."""

    world: LiveState = field(compare=False)
    attention: Attention = field(compare=False)
    scope: Scope

    title = "Needs attention"
    section = "attention"
    template = "parts.html"

    def version(self) -> Hashable:
        """Return a value that changes when a part may have changed."""
        return self.world.version("attention", "clusters")

    async def parts(self) -> Mapping[str, str]:
        """Return the lists as HTML."""
        found = visible(self.attention, self.scope)
        rows = self.world.rows
        failed: list[tuple[Row, AttentionItem]] = []
        stuck: list[tuple[Row, AttentionItem]] = []
        for trouble in found:
            row = rows.get(trouble.key)
            if row is not None:
                ended = row.summary.phase == Phase.FAILED
                (failed if ended else stuck).append((row, trouble))
        failed.sort(key=lambda each: each[0].ended or each[0].summary.since, reverse=True)
        stuck.sort(key=lambda each: each[0].summary.since)
        clusters = lost(self.world) if self.scope.clusters else []
        everything = self.scope.namespaces is None
        return {
            "attention": str(
                render(
                    "parts/attention.html",
                    failed=failed[:_SHOWN],
                    failed_count=len(failed),
                    stuck=stuck[:_SHOWN],
                    stuck_count=len(stuck),
                    clusters=clusters,
                    findings=self.attention.findings if everything else [],
                    examined=self.attention.examined if everything else None,
                    everything=everything,
                )
            )
        }


def visible(attention: Attention, scope: Scope) -> list[AttentionItem]:
    """Return the HyperJobs that need a person and that a visitor may see."""
    return [
        trouble
        for key, trouble in attention.troubles.items()
        if scope.includes(key.partition("/")[0])
    ]


def lost(world: LiveState) -> list[tuple[str, str, str]]:
    """Return name, reason and transition time of the clusters that are not Ready."""
    found = []
    for cluster in world.clusters:
        if not is_ready(cluster):
            ready = condition(mapping(cluster.get("status")), "Ready")
            since = string(ready.get("lastTransitionTime"))
            found.append((key_of(cluster), why_not_ready(cluster), since))
    return found
