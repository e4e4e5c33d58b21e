"""The API server as one value: start it, get a kubeconfig, stop it.

Several may run in one process. State lives as long as the object, also while it does not listen.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.core import Core, Metrics
from hyperjob_sandbox.apiserver.frontend import Frontend
from hyperjob_sandbox.apiserver.kinds import definitions
from hyperjob_sandbox.apiserver.kinds.bootstrap import install
from hyperjob_sandbox.apiserver.kinds.builtin import builtin_resources
from hyperjob_sandbox.apiserver.state.store import Store
from hyperjob_sandbox.apiserver.transport.authn import ADMIN_GROUP
from hyperjob_sandbox.apiserver.transport.authorization import Audit
from hyperjob_sandbox.apiserver.transport.call import Call, Connector, Reply, Stream
from hyperjob_sandbox.apiserver.transport.pki import Authority, write_kubeconfig
from hyperjob_sandbox.apiserver.transport.requestinfo import parse
from hyperjob_sandbox.apiserver.upkeep.housekeeping import Housekeeper
from hyperjob_sandbox.apiserver.verbs import admitting
from hyperjob_sandbox.apiserver.verbs.dispatch import Dispatcher

ADMIN = "kubernetes-admin"


class ApiServer:
    """An embedded Kubernetes API server on 127.0.0.1, an async context manager.

    `crds` are served from the start; `history` is how many changes of each resource a watch can go
    back; `bookmark_seconds` is how often a quiet watch gets the newest resourceVersion. With
    `rbac`, Roles say who may do what, else every known user may do everything; `audit` is called
    with every request and whether it is allowed. `connectors` answer subresources, by (group,
    resource, subresource), as an aggregated API server would.
    """

    def __init__(
        self,
        *,
        name: str = "karmada",
        port: int = 0,
        host: str = "127.0.0.1",
        crds: Sequence[Object] = (),
        history: int = 4096,
        bookmark_seconds: float = 60.0,
        rbac: bool = False,
        audit: Audit | None = None,
        connectors: Mapping[tuple[str, str, str], Connector] | None = None,
    ) -> None:
        self.name = name
        self._host = host
        self._crds = crds
        self._core = Core(
            history_limit=history, bookmark_seconds=bookmark_seconds, rbac=rbac, audit=audit
        )
        self._bootstrap = ("always", "rbac") if rbac else ("always",)
        self._authority = Authority(name, hosts=(host,))
        self._stack = AsyncExitStack()
        self._dispatcher = Dispatcher(
            self._core, closing=lambda: self._frontend.closing, connectors=connectors or {}
        )
        self._frontend = Frontend(
            self._dispatcher,
            self._authority.server_context(),
            host=host,
            port=port,
            on_stop=self._core.store.wake,
        )

    @property
    def url(self) -> str:
        """Give the address of the server; it is known once it has listened."""
        return f"https://{self._host}:{self._frontend.port}"

    @property
    def ca_pem(self) -> bytes:
        """Give the certificate of the authority that signed the server's."""
        return self._authority.ca.certificate

    @property
    def metrics(self) -> Metrics:
        """Give the counts of the requests so far."""
        return self._core.metrics

    @property
    def store(self) -> Store:
        """Give the store, for tests that look behind the API."""
        return self._core.store

    def kubeconfig(
        self,
        path: Path,
        *,
        user: str = ADMIN,
        groups: tuple[str, ...] = (ADMIN_GROUP,),
    ) -> Path:
        """Write a kubeconfig with a client certificate for a user, by default an administrator."""
        pair = self._authority.client_pair(user, groups)
        return write_kubeconfig(
            path, name=self.name, server=self.url, ca=self.ca_pem, user=user, pair=pair
        )

    async def start_listening(self) -> None:
        """Open the port again, the same one as before."""
        await self._frontend.start()

    async def stop_listening(self) -> None:
        """Close the port and all connections; the state is kept."""
        await self._frontend.stop()

    async def relay(self, call: Call) -> Reply | Stream:
        """Answer what another API server hands on: an administrator's request for `rest`."""
        if self._frontend.closing:
            message = f"error trying to reach service: {self.url} does not listen"
            raise errors.failed(503, "ServiceUnavailable", message)
        info = call.info
        return await self._dispatcher.handle(
            parse(info.method, f"/{quote(info.rest)}?{urlencode(info.pairs)}"),
            certificate={"subject": ((("commonName", ADMIN), ("organizationName", ADMIN_GROUP)),)},
            headers={
                "Content-Type": call.content_type,
                "Accept": call.accept,
                "User-Agent": call.user_agent,
            },
            body=call.body,
            address=self.url.removeprefix("https://"),
            warnings=call.warnings,
        )

    async def __aenter__(self) -> Self:
        for resource in builtin_resources():
            self._core.registry.add(resource)
        definitions.follow(self._core)
        admitting.follow(self._core)
        housekeeper = Housekeeper(self._core)
        install(self._core, self._bootstrap, self._crds)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._core.admission.close)
            work = asyncio.create_task(housekeeper.run(), name=f"{self.name}-gc")
            stack.push_async_callback(_end, work)
            stack.push_async_callback(self._frontend.stop)
            await self._frontend.start()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()


async def _end(work: "asyncio.Task[None]") -> None:
    work.cancel()
    await asyncio.wait([work])
