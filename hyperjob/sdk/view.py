"""What the clients with and without asyncio share: an address, and a HyperJob as last read."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit, urlunsplit

from hyperjob.client.summary import Summary, read
from hyperjob.client.training import Goodput, goodput_of
from hyperjob.sdk import render
from hyperjob.sdk.errors import HyperJobError
from hyperjob_core.api.meta import Object
from hyperjob_core.api.status import ExpectedStart
from hyperjob_core.api.training import TrainingStatus
from hyperjob_core.kube.client import Kube


class Connection(Protocol):
    """What a HyperJob needs of its client."""

    page: str

    @property
    def kube(self) -> Kube:
        """Return the Kubernetes client."""
        ...


class Access:
    """The address of an API server."""

    def __init__(
        self,
        *,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        namespace: str | None = None,
        page: str | None = None,
    ) -> None:
        """Find the API server as kubectl does.

        The order is `kubeconfig`, KUBECONFIG, ~/.kube/config, the service account of the pod. The
        default of `namespace`, for names without one, is the namespace of the kubeconfig's context.
        `page` is the address of the web page, such as `hyperjob ui` prints; the default is the
        variable HYPERJOB_PAGE.
        """
        self.kubeconfig = kubeconfig
        self.namespace = namespace or ""
        self.page = page or os.environ.get("HYPERJOB_PAGE", "")
        self._context = context
        self._begin()

    def __repr__(self) -> str:
        where = self.kubeconfig or "the kubeconfig of kubectl"
        return f"<{type(self).__name__} of {where}, namespace {self.namespace or 'default'}>"

    def _begin(self) -> None:
        """Prepare or open the connection."""
        raise NotImplementedError


@dataclass(slots=True)
class LastRead:
    """The object of a HyperJob that was last read; an AsyncJob and its Job share it."""

    raw: Object
    page: str = ""


class JobView:
    """A HyperJob as it was last read."""

    def __init__(self, reading: LastRead) -> None:
        self.reading = reading
        self.name = str(reading.raw["metadata"]["name"])
        self.namespace = str(reading.raw["metadata"]["namespace"])

    @property
    def raw(self) -> Object:
        """Return the object that was last read."""
        return self.reading.raw

    @property
    def status(self) -> Summary:
        """Return the status that was last read: phase, reason, message, clusters, sub-jobs."""
        return read(self.raw)

    @property
    def url(self) -> str:
        """Return the address of the HyperJob on the web page; raise HyperJobError without one."""
        if not self.reading.page:
            raise HyperJobError(
                "the client knows no web page: give page=, or the variable HYPERJOB_PAGE, with the"
                " address that `hyperjob ui` prints"
            )
        page = urlsplit(self.reading.page)
        path = f"{page.path.rstrip('/')}/hyperjobs/{quote(self.namespace)}/{quote(self.name)}"
        return urlunsplit(page._replace(path=path))

    @property
    def phase(self) -> str:
        """Return the phase that was last read."""
        return self.status.phase

    @property
    def training(self) -> TrainingStatus | None:
        """Return `status.training` when last read; None where the program reports none."""
        return self.status.training

    @property
    def goodput(self) -> Goodput | None:
        """Return the HyperJob's time by use, and its goodput, as of the status last read."""
        status = self.status
        return goodput_of(status.goodput, status.training, datetime.now(UTC))

    @property
    def expected_start(self) -> ExpectedStart | None:
        """Return the expected start when last read; None without an estimate."""
        return self.status.expected_start

    def __repr__(self) -> str:
        return f"<HyperJob {self.namespace}/{self.name} {self.phase}>"

    def _repr_html_(self) -> str:
        return render.html_of(self.status)

    def __rich__(self) -> object:
        return render.rich_of(self.status)
