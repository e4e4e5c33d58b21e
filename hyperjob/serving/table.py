"""Which connection is closed when a server has too many of them.

Pure: knows connections as values, closes nothing and reads no clock. The order follows net/http's
idle connections (the oldest goes first), and a client that was answered before goes last, so that
connections which only occupy a place never displace an API server.
"""

import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum


class Rank(IntEnum):
    """How much a connection is worth, least first."""

    NEW = 0
    """No request on it was ever answered with success, and none is complete now."""
    NEW_SENDING = 1
    """As NEW, and the body of its request is on its way."""
    KNOWN = 2
    """A request was answered with success; it is idle."""
    KNOWN_SENDING = 3
    """As KNOWN, and the body of its request is on its way."""
    BUSY = 4
    """Its request is being answered: it is never closed for another connection."""


def _nothing() -> None:
    pass


@dataclass(slots=True, eq=False)
class Connection:
    """One connection of a server; `close` ends it at once."""

    peer: str
    rank: Rank = Rank.NEW
    close: Callable[[], object] = field(default=_nothing, repr=False)


class ConnectionTable:
    """The connections of one server, at most `limit` and at most `per_peer` of one peer."""

    def __init__(self, *, limit: int, per_peer: int) -> None:
        self._limit = limit
        self._per_peer = per_peer
        self._peers: Counter[str] = Counter()
        self._lines: tuple[dict[Connection, None], ...] = tuple({} for _ in Rank)

    def __len__(self) -> int:
        return self._peers.total()

    def enter(self, connection: Connection) -> Connection | None:
        """Add a connection, and return the one to close for it: None, an older one, or itself.

        A connection that is to be closed is no longer in the table.
        """
        victim = None
        if self._peers[connection.peer] >= self._per_peer:
            victim = self._least(connection.peer) or connection
        elif len(self) >= self._limit:
            victim = self._least(None) or connection
        if victim is not connection:
            self._peers[connection.peer] += 1
            self._lines[connection.rank][connection] = None
        if victim is not None:
            self.leave(victim)
        return victim

    def move(self, connection: Connection, rank: Rank) -> None:
        """Give a connection a rank, as the youngest of that rank; without effect once it left."""
        line = self._lines[connection.rank]
        if connection in line:
            del line[connection]
            self._lines[rank][connection] = None
            connection.rank = rank

    def leave(self, connection: Connection) -> None:
        """Take a connection out; without effect when it is out already."""
        line = self._lines[connection.rank]
        if connection in line:
            del line[connection]
            self._peers[connection.peer] -= 1
            if not self._peers[connection.peer]:
                del self._peers[connection.peer]

    def _least(self, peer: str | None) -> Connection | None:
        for line in self._lines[: Rank.BUSY]:
            for connection in line:
                if peer is None or connection.peer == peer:
                    return connection
        return None


def peer_of(address: object) -> str:
    """Return the name under which a socket's peer is counted.

    An IPv4 address counts by itself, an IPv6 address by its /64, which one machine usually has
    for itself; an address of another family counts as "local".
    """
    if not isinstance(address, tuple):
        return "local"
    found = ipaddress.ip_address(str(address[0]).partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return str(ipaddress.IPv6Network((found, 64), strict=False))
        found = found.ipv4_mapped
    return str(found)
