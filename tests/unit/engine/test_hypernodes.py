"""The nodes of HyperNodes: by patterns as Go reads them, and in bounded work whatever they are."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import HYPERNODES, NODES
from hyperjob_engine.members.facts import HyperNodeFact, NodeFact, hypernode_fact, node_fact
from hyperjob_engine.members.fold import view_of
from hyperjob_engine.members.hypernodes import NotKnownError, resolved
from hyperjob_engine.model.members import MemberView
from tests.support.calls import calls

NAMES = (
    *("n1", "n2", "m12", "gpu-7", "gpu-70", "gpu-700.east", "rack-1-node-3", "rack-12-node-34"),
    *("a", "b", "ab", "abab", "a.b", "a-b", "z" * 20, "ip-10-0-1-23.internal"),
)


def view(members: Sequence[Iterable[Object]], names: Iterable[str] = NAMES) -> MemberView:
    """Return a member with these nodes, and a HyperNode for each list of members."""
    nodes = [{"metadata": {"name": name}} for name in names]
    hypernodes = [
        {"metadata": {"name": f"h{number}"}, "spec": {"tier": 1, "members": list(each)}}
        for number, each in enumerate(members)
    ]
    facts = map(hypernode_fact, hypernodes)
    return view_of({NODES: map(node_fact, nodes), HYPERNODES: facts})


def regex(pattern: str) -> Object:
    return {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}


def matched(pattern: str) -> set[str]:
    found = view([[regex(pattern)]])
    assert not found.unresolved
    return set(found.hypernodes[0].nodes)


@pytest.mark.parametrize(
    "pattern",
    [
        *("^gpu-[0-9]+$", "^gpu-", "node", "0", "^(rack-1-|m)", r"^m\d{2}$", r"a\.b", "a.b"),
        *("^z{20}$", "^z{21}$", "z{5,}$", "^z{1,19}$", "^(?:ab){2}$", "(^|-)n", "n(1|$)", "a{0}b"),
        *("^a?b?$", "a*", "[^a-z]", "^[^a-z]", "[a-]", "[]a]", r"[\d.]", r"^[\w]+$", r"^\w+$"),
        *("(a*)*b$", "a||b", "^$", "()a", "(|a)b$", "^^n1$$", "x?$", "A", "_", "^ip-10-0-(1|2)-"),
        *("rack-(1|12)-node", "^(a|b)+$", r"\.internal$", r"\-1", r"\$", r"\^a", "[$a]"),
        *("(a|b)$|7", "(a|b$)$", "(^a|^b)*1", "(^|n)1", ".?.?.?.?.?.?.?.?z$"),
    ],
)  # fmt: skip
def test_a_pattern_matches_the_nodes_that_go_matches(pattern: str) -> None:
    assert matched(pattern) == {name for name in NAMES if re.search(pattern, name)}


ATOMS = st.sampled_from(
    ["a", "b", "n", "1", "-", ".", "[ab]", "[^a]", "[a-n]", r"\d", r"\w", r"\."]
)
COUNTS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "{2}", "{0,2}", "{1,}"])
EXPRESSIONS = st.recursive(
    st.builds(str.__add__, ATOMS, COUNTS),
    lambda inner: st.one_of(
        st.builds("".join, st.lists(inner, min_size=1, max_size=4)),
        st.builds("({}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, COUNTS),
        st.builds("(^{}|{}$)".format, inner, inner),
    ),
    max_leaves=8,
)


@given(
    st.builds("{}{}{}".format, st.sampled_from(["", "^"]), EXPRESSIONS, st.sampled_from(["", "$"])),
    st.lists(st.text("abn1-.", min_size=1, max_size=9), max_size=8),
)
def test_any_pattern_matches_as_an_engine_with_backtracking_does(
    pattern: str, names: list[str]
) -> None:
    found = view([[regex(pattern)]], names)
    assert not found.unresolved
    assert found.hypernodes[0].nodes == {name for name in names if re.search(pattern, name)}


UNREADABLE = (
    *("(", ")", "a**", "a{2}{3}", "[", "[z-a]", r"[\d-z]", "\\", r"\b", r"\pL", r"\Qa", "(?i)a"),
    *("(?P<x>a)", "(?!a)", r"(a)\1", "a{3,2}", "*a", "[[:alpha:]]", "x" * 257, "(" * 21 + ")" * 21),
)


@pytest.mark.parametrize("pattern", UNREADABLE)
def test_with_a_pattern_that_cannot_be_read_no_hypernode_is_known(pattern: str) -> None:
    found = view([[regex("n1")], [regex(pattern)]])
    assert found.hypernodes == ()
    assert "a pattern has" in found.unresolved or repr(pattern) in found.unresolved
    assert [each.name for each in found.nodes] == sorted(NAMES)


def test_names_that_no_api_server_gives_are_in_no_pattern() -> None:
    odd = ["N1", "ä", "n\n", "n" * 254, "n 1", ""]
    found = view([[regex(".*")]], [*odd, "n1"])
    assert found.hypernodes[0].nodes == {"n1"}


def exact(name: str) -> Object:
    return {"type": "Node", "selector": {"exactMatch": {"name": name}}}


def labelled(**labels: str) -> Object:
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": labels}}}


def nodes(count: int) -> list[str]:
    return [f"gpu-node-rack{number // 58}-{number}.dc1.internal" for number in range(count)]


RACKS = nodes(5_000)
HARD = [f"{number:063b}".replace("0", "a").replace("1", "b") for number in range(5_000)]
LARGE: dict[str, tuple[list[list[Any]], list[str], bool]] = {
    "racks by their begin": ([[regex(f"^gpu-node-rack{n}-.*")] for n in range(87)], RACKS, True),
    "all names of a thousand": ([[exact(name)] for name in RACKS[:1000]], RACKS, True),
    "labels": ([[labelled(rack=str(n))] for n in range(900)], RACKS, True),
    "a thousand patterns": ([[regex(".*.*N!")] for _ in range(1000)], nodes(500), True),
    "too many HyperNodes": ([[exact("n")]] * 1001, nodes(5), False),
    "all nodes for each": ([[regex("^gpu")] for _ in range(1000)], RACKS, False),
    "many positions": ([[regex(f"((a?b?){{20}}c?){{6}}!{n}")] for n in range(1000)], HARD, False),
    "many classes": ([[regex(f"[a-z0-9.-]{{100}}{n}")] for n in range(1000)], HARD, False),
    "nothing": ([[regex(f"|{n}")] for n in range(1000)], HARD, False),
    "a repetition of nothing": ([[regex("((){999}){999}a")]], HARD, False),
    "alternatives": ([[regex(f"(a|b|c|d)*x{{0,200}}!{n}")] for n in range(1000)], HARD, False),
    "many labels": ([[labelled(**{f"k{n}": "v" for n in range(100)})] * 500], RACKS, False),
}


@pytest.mark.parametrize("case", LARGE)
def test_the_work_for_all_hypernodes_is_bounded(case: str) -> None:
    """The calls of functions are counted, so that the test does not depend on the machine."""
    members, names, is_known = LARGE[case]
    labels = {f"k{n}": "v" for n in range(100)} if "many labels" in case else {"rack": "1"}
    raw = [{"metadata": {"name": name, "labels": labels}} for name in names]
    facts = [node_fact(each) for each in raw]
    hypernodes = [
        hypernode_fact({"metadata": {"name": f"h{n}"}, "spec": {"tier": 1, "members": each}})
        for n, each in enumerate(members)
    ]
    found = view_of({NODES: facts, HYPERNODES: hypernodes})
    assert bool(found.unresolved) is not is_known
    assert len(found.hypernodes) == (len(members) if is_known else 0)
    assert calls_of(hypernodes, facts, most=800_000) < 1_000_000


def calls_of(hypernodes: list[HyperNodeFact], nodes: list[NodeFact], *, most: int) -> int:
    by_name = {each.key: each for each in hypernodes}, {each.key: each for each in nodes}

    def work() -> None:
        with suppress(NotKnownError):
            resolved(*by_name, most=most)

    return calls(work)
