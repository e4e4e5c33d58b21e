"""The readers that run beside the passes, as the options ask for them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hyperjob_controller.members.causes import CauseReader
from hyperjob_controller.members.reader import Members
from hyperjob_controller.options import LOGS_PER_SECOND, SPLITTER_SECONDS, Options
from hyperjob_controller.training.reader import Reader
from hyperjob_controller.wall import Wall
from hyperjob_controller.watchdog import LONGEST, Place
from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.workqueue import WorkQueue
from hyperjob_engine.lifecycle.failures import CAUSE_TIME_LIMIT

if TYPE_CHECKING:
    from hyperjob_controller.splitting import Splitter


@dataclass(frozen=True, slots=True)
class Readers:
    """Makes the readers, with what all of them have in common."""

    options: Options
    queue: WorkQueue[str]
    now: Callable[[], datetime]
    wall: Wall

    def splitter(self) -> "Splitter | None":
        """Return the client of the external splitter; None without `--splitter-url`."""
        if self.options.splitter_url is None:
            return None
        from hyperjob_controller.splitting import Splitter  # aiohttp: a slow import

        return Splitter(
            self.options.splitter_url,
            time_limit=SPLITTER_SECONDS,
            answered=self.queue.add,
            now=self.now,
            faulty=partial(self.wall.failed, Place.SPLITTER),
            token_file=_path(self.options.splitter_token_file),
            ca_file=_path(self.options.splitter_ca_file),
        )

    def members(
        self,
        kube: Kube | None,
        clusters: Informer,
        *,
        freed: Callable[[str], None],
        shown: Callable[[Collection[str]], None],
        turned: Callable[[str], None],
    ) -> Members | None:
        """Return the reader of pods and nodes; None with `--members off`, without a client."""
        if kube is None:
            return None
        return Members(
            kube,
            clusters,
            nodes=self.options.members.includes(MemberAccess.NODES),
            now=self.now,
            freed=freed,
            shown=shown,
            turned=turned,
            wake=self.queue.add,
            faulty=partial(self.wall.failed, Place.MEMBERS),
            in_turn=partial(self.wall.watchdog.turn, Place.MEMBERS, most=LONGEST),
        )

    def causes(self, client: Kube, members: Members | None) -> CauseReader:
        """Return the reader of the failed pods of failed sub-jobs, which `client` reads."""
        return CauseReader(
            client,
            read_logs=self.options.members.includes(MemberAccess.LOGS),
            answered=self.queue.add,
            now=self.now,
            time_limit=CAUSE_TIME_LIMIT,
            faulty=partial(self.wall.failed, Place.CAUSES),
            watched=lambda *job: members.failure(*job) if members else None,
        )

    def logs(self, kube: Kube | None) -> Reader | None:
        """Return the reader of training progress; None unless `--members logs`."""
        if kube is None or not self.options.members.includes(MemberAccess.LOGS):
            return None
        return Reader(
            kube,
            qps=LOGS_PER_SECOND,
            interval=self.options.progress_interval,
            now=self.now,
            wake=self.queue.add_after,
            faulty=partial(self.wall.failed, Place.PROGRESS),
            in_turn=partial(self.wall.watchdog.turn, Place.PROGRESS, most=LONGEST),
        )


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
