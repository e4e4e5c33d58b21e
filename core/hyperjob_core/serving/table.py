"""Choose the connection to close when a server has too many connections.

Pure. As with idle connections of Go's net/http, the oldest connection goes first. Connections of
clients that the server has answered go last: connections without a request must not displace an
API server.
"""

import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum


class Rank(IntEnum):
    """The rank of a connection; the table closes the lowest rank first."""

    NEW = 0
    """The server has answered no request on it with success, and has no complete request."""
    NEW_SENDING = 1
    """As NEW, and the server is receiving the body of a request."""
    KNOWN = 2
    """The server has answered a request with success, and the connection is idle."""
    KNOWN_SENDING = 3
    """As KNOWN, and the server is receiving the body of a request."""
    BUSY = 4
    """The server is answering a request; the table never closes it for another connection."""


def _nothing() -> None:
    pass


@dataclass(slots=True, eq=False)
class Connection:
    """A connection of a server; `close` closes it at once."""

    peer: str
    rank: Rank = Rank.NEW
    close: Callable[[], object] = field(default=_nothing, repr=False)


class ConnectionTable:
    """The connections of a server: at most `limit`, and at most `per_peer` of a peer."""

    def __init__(self, *, limit: int, per_peer: int) -> None:
        self._limit = limit
        self._per_peer = per_peer
        self._peers: Counter[str] = Counter()
        self._lines: tuple[dict[Connection, None], ...] = tuple({} for _ in Rank)

    def __len__(self) -> int:
        return self._peers.total()

    def enter(self, connection: Connection) -> Connection | None:
        """Add a connection; return the connection to close: None, an older one, or itself.

        The table no longer contains the returned connection.
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
        """Set the rank of a connection, as the youngest of its rank; ignore absent connections."""
        line = self._lines[connection.rank]
        if connection in line:
            del line[connection]
            self._lines[rank][connection] = None
            connection.rank = rank

    def leave(self, connection: Connection) -> None:
        """Remove a connection; ignored for absent connections."""
        line = self._lines[connection.rank]
        if connection in line:
            del line[connection]
            self._peers[connection.peer] -= 1
            if not self._peers[connection.peer]:
                del self._peers[connection.peer]

    def _least(self, peer: str | None) -> Connection | None:
        """Return the oldest connection of the lowest rank below BUSY, of a peer or of all."""
        for line in self._lines[: Rank.BUSY]:
            for connection in line:
                if peer is None or connection.peer == peer:
                    return connection
        return None


def peer_of(address: object) -> str:
    """Return the key under which the table counts a peer.

    The key of an IPv4 peer is its address, of an IPv6 peer its /64, which usually belongs to one
    machine; peers of other address families have the key "local".
    """
    if not isinstance(address, tuple):
        return "local"
    found = ipaddress.ip_address(str(address[0]).partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return str(ipaddress.IPv6Network((found, 64), strict=False))
        found = found.ipv4_mapped
    return str(found)
