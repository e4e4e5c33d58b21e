"""The Lease of the leader: who leads, with which settings, and what it leaves for the next leader.

Annotations of the Lease have what must outlive the process and no other object shows: the pods of
stopped sub-jobs, which still hold shares of queues, and until when accelerator seconds are counted.
They are written with each renewal. An exception
while it is read or written ends no process: the leader goes on without it.
"""

import logging
import os
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import hyperjob_core
from hyperjob_controller.admission.engine import Admission
from hyperjob_controller.options import Options, annotations_of
from hyperjob_controller.wall import Wall
from hyperjob_controller.watchdog import Place
from hyperjob_core.api.leader import user_annotation
from hyperjob_core.api.names import (
    CONTROLLER_USER,
    CONTROLLER_VERSION,
    ENDING_PODS,
    FIELD_MANAGER,
    USAGE_COUNTED,
    lease_name,
)
from hyperjob_core.kube.accessreviews import own_user
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.leaderelection import LeaderElector
from hyperjob_core.kube.resources import NAMESPACES
from hyperjob_engine.model.observed import QueueAdmission

log = logging.getLogger(__name__)

_RENEWED: Final = 2 / 3  # of the Lease's duration: a leader that cannot renew it then stops


class Heir(Protocol):
    """What a leader leaves for the next one, as a text."""

    def restore(self, left: str, /) -> None:
        """Go on with what the last leader left; empty: nothing."""

    def record(self) -> str:
        """Return what to leave."""


class Leadership:
    """Runs the work of the controller while this process holds the Lease."""

    def __init__(
        self,
        kube: Kube,
        options: Options,
        admission: Admission,
        *,
        wall: Wall,
        namespace: str,
        identity: str,
        mode: Callable[[], QueueAdmission],
        usage: Heir | None = None,
    ) -> None:
        """`namespace` is that of the Lease, `mode` returns the present queue admission."""
        self._usage = usage
        self._kube = kube
        self._options = options
        self._admission = admission
        self._wall = wall
        self._namespace = namespace
        self._identity = identity
        self._mode = mode
        self._user = ""
        self._leads = False

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` while this process holds the Lease."""
        await self._look_for_namespace()
        await self._look_for_user()
        elector = self._elector()

        async def lead() -> None:
            left = elector.annotations
            with self._wall.around((), Place.LEASE):
                self._admission.restore(left.get(ENDING_PODS, ""))
                if self._usage is not None:
                    self._usage.restore(left.get(USAGE_COUNTED, ""))
            self._leads = True
            await work()

        await elector.run(lead)

    def _elector(self) -> LeaderElector:
        seconds = self._options.leader_elect_lease_duration
        return LeaderElector(
            self._kube,
            self._namespace,
            lease_name(self._options.namespace),
            self._identity,
            overdue=lambda: os._exit(1),
            lease_seconds=seconds,
            renew_seconds=seconds * _RENEWED,
            noted=self._annotations,
            manager=FIELD_MANAGER,
        )

    def _annotations(self) -> dict[str, str]:
        """Return the annotations that each renewal of the Lease writes."""
        found = {
            CONTROLLER_VERSION: hyperjob_core.__version__,
            **annotations_of(self._options, admission=self._mode()),
        }
        if self._user:
            found[CONTROLLER_USER] = self._user
        if self._leads:  # before, the Lease has what the last leader left
            with self._wall.around((), Place.LEASE):
                found[ENDING_PODS] = self._admission.record()
                if self._usage is not None and (counted := self._usage.record()):
                    found[USAGE_COUNTED] = counted
        return found

    async def _look_for_namespace(self) -> None:
        """Log if the namespace of the Lease does not exist: leader election then waits for it."""
        try:
            await self._kube.get(NAMESPACES, self._namespace)
        except NotFound:
            log.error(  # noqa: TRY400 - the operator's error
                "The namespace of the Lease does not exist; `hyperjob install` creates it",
                extra={"lease_namespace": self._namespace},
            )
        except KubeError as error:
            log.info("Cannot look for the namespace of the Lease", extra={"error": str(error)})

    async def _look_for_user(self) -> None:
        """Ask for the controller's own user, whose rights `hyperjob preflight` reviews."""
        try:
            user = await own_user(self._kube)
        except KubeError as error:
            log.info("Cannot ask for the controller's own user", extra={"error": str(error)})
            return
        if user is not None:
            self._user = user_annotation(user.name, user.groups)
