"""Which connection is closed for a new one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.serving.table import Connection, ConnectionTable, Rank, peer_of

PEERS = {
    "IPv4": (("10.0.0.1", 5), "10.0.0.1"),
    "IPv4 in IPv6": (("::ffff:10.0.0.1", 5, 0, 0), "10.0.0.1"),
    "IPv6 by its network": (("2001:db8:1:2:3::4", 5, 0, 0), "2001:db8:1:2::/64"),
    "link-local with a zone": (("fe80::1%eth0", 5, 0, 2), "fe80::/64"),
    "a Unix socket": ("", "local"),
}


@pytest.mark.parametrize(("address", "name"), PEERS.values(), ids=PEERS.keys())
def test_a_peer_is_counted_by(address, name):
    assert peer_of(address) == name


def entered(table, *ranks, peer="a"):
    connections = [Connection(peer) for _ in ranks]
    for connection, rank in zip(connections, ranks, strict=True):
        assert table.enter(connection) is None
        table.move(connection, rank)
    return connections


@pytest.mark.parametrize(
    ("ranks", "victim"),
    [
        ([Rank.NEW, Rank.NEW], 0),
        ([Rank.KNOWN, Rank.NEW], 1),
        ([Rank.NEW_SENDING, Rank.NEW], 1),
        ([Rank.KNOWN, Rank.NEW_SENDING], 1),
        ([Rank.BUSY, Rank.KNOWN_SENDING], 1),
        ([Rank.BUSY, Rank.BUSY], None),
    ],
)
def test_the_least_and_then_the_oldest_goes_first(ranks, victim):
    table = ConnectionTable(limit=2, per_peer=10)
    connections = entered(table, *ranks)
    new = Connection("a")
    assert table.enter(new) is (new if victim is None else connections[victim])
    assert len(table) == 2


def test_what_was_used_last_goes_last():
    table = ConnectionTable(limit=2, per_peer=10)
    first, second = entered(table, Rank.KNOWN, Rank.KNOWN)
    table.move(first, Rank.KNOWN)
    assert table.enter(Connection("a")) is second


def test_a_peer_at_its_limit_displaces_only_itself():
    table = ConnectionTable(limit=10, per_peer=2)
    entered(table, Rank.NEW, peer="a")
    own, _ = entered(table, Rank.KNOWN, Rank.KNOWN, peer="b")
    assert table.enter(Connection("b")) is own


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["enter", "move", "leave"]),
            st.sampled_from(["a", "b", "c"]),
            st.integers(0, 20),
            st.sampled_from(list(Rank)),
        )
    )
)
def test_neither_limit_is_ever_exceeded_and_every_connection_is_counted_once(steps):
    table = ConnectionTable(limit=5, per_peer=3)
    inside = []
    for verb, peer, index, rank in steps:
        if verb == "enter":
            new = Connection(peer)
            victim = table.enter(new)
            inside = [one for one in [*inside, new] if one is not victim]
        elif inside and verb == "move":
            table.move(inside[index % len(inside)], rank)
        elif inside:
            gone = inside.pop(index % len(inside))
            table.leave(gone)
            table.leave(gone)
        assert len(table) == len(inside) <= 5
        for name in "abc":
            assert sum(one.peer == name for one in inside) <= 3
