"""The API server and the namespace of a command.

This module reads the kubeconfig, and the names that exist where a command names none of them.
"""

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hyperjob import __version__
from hyperjob.client.reading import with_hint
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound

_USER_AGENT: Final = f"kubectl-hyperjob/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The flags of access; `namespace` None is the namespace of the kubeconfig's context."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Kube]:
        """Open a client; raises ConfigError where no kubeconfig or service account is found.

        NotFound of the block leaves it with the name that is probably meant.
        """
        async with Kube.connect(
            kubeconfig=self.kubeconfig, context=self.context, user_agent=_USER_AGENT
        ) as kube:
            try:
                yield kube
            except NotFound as error:
                raise await with_hint(kube, error, self.home(kube)) from None

    def scope(self, kube: Kube) -> str | None:
        """Return the namespace to list; None for all namespaces."""
        return None if self.all_namespaces else self.home(kube)

    def home(self, kube: Kube) -> str:
        """Return the namespace of objects that the command line names."""
        return self.namespace or kube.namespace

    def command(self, words: str) -> str:
        """Return the command `words` with the flags for the same API server.

        A command that names its context, such as that of the host cluster, is returned unchanged.
        """
        program, _, rest = words.partition(" ")
        flags = [
            f"--{name} {shlex.quote(str(value))}"
            for name, value in (("kubeconfig", self.kubeconfig), ("context", self.context))
            if value
        ]
        if program != "kubectl" or not flags or " --context " in words:
            return words
        plugin, _, verb = rest.partition(" ")
        # kubectl accepts no flag before the name of a plugin
        if plugin == "hyperjob":
            return f"kubectl hyperjob {verb} {' '.join(flags)}"
        return f"kubectl {' '.join(flags)} {rest}"
