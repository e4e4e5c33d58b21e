"""Addresses and names of pods that are processes: each pod has its own loopback address.

An address belongs to cluster, namespace and name of a pod: a recreated pod keeps it. Within its
cluster a pod has the names of Services and of Volcano's plugin svc, and in all clusters the names
of the Multi-Cluster Services API for pods behind an exported Service.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FIRST_NETWORK: Final = 64
_POD_LIMIT: Final = 65_000
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)+")
_LOCAL: Final = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"


class AddressesExhaustedError(Exception):
    """A cluster has had more pods than its range has addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A pod in the network; `service` is its subdomain, empty without one."""

    cluster: str
    namespace: str
    name: str
    service: str = ""

    def names(self, *, seen_from: str) -> Iterator[str]:
        """Yield the names of this pod for pods of the cluster `seen_from`."""
        zone = f"{self.service}.{self.namespace}.svc"
        if seen_from == self.cluster:
            yield self.name
            if self.service:
                yield f"{self.name}.{self.service}"
                yield f"{self.name}.{self.service}.{self.namespace}"
                yield f"{self.name}.{zone}"
                yield f"{self.name}.{zone}.cluster.local"
                yield self.service
                yield zone
                yield f"{zone}.cluster.local"
        if self.service:
            yield f"{self.name}.{self.cluster}.{zone}.clusterset.local"
            yield f"{self.name}.{zone}.clusterset.local"
            yield f"{zone}.clusterset.local"


class Network:
    """The pods of all clusters; writes a hosts file for each cluster and namespace."""

    def __init__(self, folder: Path, clusters: tuple[str, ...]) -> None:
        self._folder = folder
        self._networks = {name: _FIRST_NETWORK + index for index, name in enumerate(clusters)}
        self._numbers: dict[str, dict[tuple[str, str], int]] = {name: {} for name in clusters}
        self._hosts: dict[Host, str] = {}
        self._namespaces: set[str] = set()

    def address(self, cluster: str, namespace: str, name: str) -> str:
        """Return the address of a pod, the same for the same pod; raise AddressesExhaustedError."""
        numbers = self._numbers[cluster]
        number = numbers.setdefault((namespace, name), len(numbers) + 1)
        if number > _POD_LIMIT:
            raise AddressesExhaustedError(f"cluster {cluster} has had {_POD_LIMIT} pods")
        high, low = divmod(number, 250)
        return f"127.{self._networks[cluster]}.{high}.{low + 1}"

    def join(self, host: Host) -> str:
        """Add a pod, write the hosts files, and return the pod's address."""
        address = self.address(host.cluster, host.namespace, host.name)
        if host not in self._hosts:
            self._hosts[host] = address
            self._write(host.namespace)
        return address

    def leave(self, host: Host) -> None:
        """Remove a pod from the hosts files."""
        if self._hosts.pop(host, None) is not None:
            self._write(host.namespace)

    def hosts_file(self, cluster: str, namespace: str) -> Path:
        """Return the file to mount as /etc/hosts, which changes with the pods."""
        path = self._folder / f"{cluster}.{namespace}.hosts"
        if not path.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            _overwrite(path, self._text(cluster, namespace))
        return path

    def addressed(self, text: str, host: Host) -> str:
        """Return a text with addresses for names of pods, for a process without a hosts file."""

        def replaced(match: re.Match[str]) -> str:
            found = self._identified(match[0], host)
            return match[0] if found is None else self.address(*found)

        return _NAME.sub(replaced, text)

    def _identified(self, name: str, seen_from: Host) -> tuple[str, str, str] | None:
        """Return cluster, namespace and pod of a name, also before the pod runs."""
        parts = name.split(".")
        if name.endswith(".svc.clusterset.local") and len(parts) == 7 and parts[1] in self._numbers:
            return parts[1], parts[3], parts[0]
        inner = parts[1:] == [seen_from.service] or parts[1:3] == [
            seen_from.service,
            seen_from.namespace,
        ]
        if seen_from.service and inner and not name.endswith(".clusterset.local"):
            return seen_from.cluster, seen_from.namespace, parts[0]
        return None

    def _write(self, namespace: str) -> None:
        for cluster in self._numbers:
            path = self._folder / f"{cluster}.{namespace}.hosts"
            if path.exists():
                _overwrite(path, self._text(cluster, namespace))

    def _text(self, cluster: str, namespace: str) -> str:
        lines = (
            f"{address} {' '.join(names)}\n"
            for host, address in self._hosts.items()
            if host.namespace == namespace and (names := list(host.names(seen_from=cluster)))
        )
        return _LOCAL + "".join(lines)


def _overwrite(path: Path, text: str) -> None:
    """Write in place: a bind mount shows the inode, not a new file of the same name."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(text.encode())
        file.truncate()
