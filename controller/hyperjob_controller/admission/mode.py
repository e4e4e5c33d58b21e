"""The queue admission in use: that of `--queue-admission`, or the one installed.

With `auto` the mode follows Volcano Global's MutatingWebhookConfiguration, also while the
controller runs.
"""

import logging
from collections.abc import Callable
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.volcano_global import queues_bindings
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Informer
from hyperjob_engine.model.observed import QueueAdmission

log = logging.getLogger(__name__)

FOUND: Final = "Volcano Global's webhook for ResourceBindings is installed"
NOT_FOUND: Final = "Volcano Global's webhook for ResourceBindings is not installed"


class Mode:
    """The present queue admission; `current` counts once the informer is synced."""

    def __init__(
        self,
        wanted: QueueAdmission | None,
        webhooks: Informer,
        *,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`wanted` None follows the MutatingWebhookConfigurations that `webhooks` holds.

        `changed` is called after each change.
        """
        self._wanted = wanted
        self._found: set[str] = set()
        self._on_changed = changed
        if wanted is None:
            webhooks.add_handler(self._changed)

    @property
    def current(self) -> QueueAdmission:
        """Return the present queue admission."""
        if self._wanted is not None:
            return self._wanted
        return QueueAdmission.VOLCANO_GLOBAL if self._found else QueueAdmission.BUILTIN

    @property
    def decides_alone(self) -> bool:
        """Return whether Volcano Global is known not to be installed."""
        return self._wanted is None and not self._found

    @property
    def why(self) -> str:
        """Return why this mode is in use."""
        if self._wanted is not None:
            return f"--queue-admission {self._wanted}"
        return FOUND if self._found else NOT_FOUND

    def _changed(self, _kind: EventType, old: Object | None, new: Object | None) -> None:
        """Follow one MutatingWebhookConfiguration, whose rules may change under its name."""
        before = self.current
        for obj in (old, new):
            if obj is not None:
                self._found.discard(obj["metadata"]["name"])
        if new is not None and queues_bindings([new]):
            self._found.add(new["metadata"]["name"])
        if self.current is before:
            return
        log.info("Queue admission", extra={"mode": str(self.current), "because": self.why})
        self._on_changed()
