r"""The nodes of a member's HyperNodes, found in bounded work.

A member writes its HyperNodes itself. Where they would take too much work or room, or have a
pattern that cannot be read, none of them is known: placement counts the nodes without them.

Volcano matches patterns by Go's `regexp`. Here they are matched with all names at once, without
backtracking; of the syntax this module reads what names need: signs, `.`, `\d`, `\w`, `[a-z]`, `^`,
`$`, groups, alternatives and repetitions. All names are one text. A set of positions in it is a
whole number with a bit for each of them: a part of an expression leads from the positions where it
begins to those where it may end. All work is charged to a `Work`.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import accumulate
from typing import Final, NoReturn, TypeAlias

from hyperjob_engine.members.facts import HyperNodeFact, NodeFact
from hyperjob_engine.model.members import HyperNode, Labels

_NAME: Final = re.compile(r"[-.0-9a-z]{1,253}")
_SIGNS: Final = frozenset("-.0123456789abcdefghijklmnopqrstuvwxyz")
_CLASSES: Final = {"d": frozenset("0123456789"), "w": _SIGNS - {"-", "."}}
_END: Final = "\n"  # of each name in the text; no expression has a sign that takes it
_REPEATED: Final = re.compile(r"(?:[*+?]|\{([0-9]{1,3})(?:(,)([0-9]{1,3})?)?\})\??")
_LONGEST: Final = 256
_DEEPEST: Final = 20
_AT_ONCE: Final = 2000
"""The positions of a set that take as long as one call of a function."""

_Part: TypeAlias = Callable[[int], int]
"""A part of an expression: from the positions where it begins to those where it may end."""


class NotKnownError(Exception):
    r"""The nodes of HyperNodes cannot be found; the text says why."""


class Work:
    """The work that may still be done, in calls of functions."""

    def __init__(self, most: int) -> None:
        self._left = most

    def spend(self, units: int) -> None:
        """Charge some units; raises NotKnownError where too few are left."""
        self._left -= units
        if self._left < 0:
            raise NotKnownError("the patterns and members of its HyperNodes take too much work")


class Names:
    """Names that Kubernetes gives to an object, as the text in which expressions are searched."""

    def __init__(self, names: Iterable[str], work: Work) -> None:
        self._names = [name for name in names if _NAME.fullmatch(name)]
        self._firsts = [0, *accumulate(len(name) + 1 for name in self._names)]
        self._work = work
        work.spend(5 * len(self._names))
        # A number has its lowest bit at its end.
        self._reversed = "".join(name + _END for name in self._names)[::-1]
        self._masks: dict[frozenset[str], int] = {}
        self.all = (1 << len(self._reversed)) - 1
        self.ends = self.where(_END)
        self.begins = (self.ends << 1 | 1) & self.all

    def where(self, signs: Collection[str]) -> int:
        """Return the positions of some signs."""
        key = frozenset(signs)
        if key not in self._masks:
            self.spend(3 + len(key))
            table = {ord(sign): "1" if sign in key else "0" for sign in (*_SIGNS, _END)}
            self._masks[key] = int(self._reversed.translate(table) or "0", 2)
        return self._masks[key]

    def spend(self, steps: int) -> None:
        """Charge some steps, each with the set of all positions."""
        self._work.spend(steps * (2 + len(self._reversed) // _AT_ONCE))

    def matching(self, text: str) -> set[str]:
        """Return the names that contain a match of an expression.

        Raises NotKnownError if the expression is too long or of another syntax.
        """
        reached = _Parser(text, self).expression()(self.all)
        self.spend(2)
        bits, found = f"{reached:b}"[::-1], set[str]()
        position = bits.find("1")
        while position >= 0:
            self._work.spend(5)
            number = bisect_right(self._firsts, position)
            found.add(self._names[number - 1])
            position = bits.find("1", self._firsts[number])
        return found


class _Parser:
    """Reads an expression about the names of a text."""

    def __init__(self, text: str, names: Names) -> None:
        if not 0 < len(text) <= _LONGEST:
            raise NotKnownError(f"a pattern has {len(text)} signs, and not 1 to {_LONGEST}")
        self._text, self._names = text, names
        self._at = self._depth = 0

    def expression(self) -> _Part:
        """Read the whole text."""
        part = self._alternatives()
        return part if self._at == len(self._text) else self._unread()

    def _alternatives(self) -> _Part:
        parts = [self._sequence()]
        while self._takes("|"):
            parts.append(self._sequence())

        def any_of(begins: int) -> int:
            ends = 0
            for part in parts:
                ends |= part(begins)
            return ends

        return any_of

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self._sign() not in ("", "|", ")"):
            parts.append(self._repeated())

        def all_of(positions: int) -> int:
            for part in parts:
                positions = part(positions)
            return positions

        return all_of

    def _repeated(self) -> _Part:
        """Read an atom and how often it is repeated."""
        part = self._atom()
        found = _REPEATED.match(self._text, self._at)
        if found is None:
            return part
        least, most = _counts(found)
        self._at = found.end()
        if _REPEATED.match(self._text, self._at) or (most is not None and most < least):
            self._unread()
        names = self._names

        def repeated(positions: int) -> int:
            for _ in range(least):
                names.spend(2)
                positions = part(positions)
            ends, times = positions, least
            while positions and times != most:
                names.spend(2)
                positions = part(positions) & ~ends  # what is reached earlier has more times left
                ends, times = ends | positions, times + 1
            return ends

        return repeated

    def _atom(self) -> _Part:
        """Read a sign, a class, an anchor or a group."""
        self._names.spend(5)
        sign = self._sign()
        self._at += 1
        match sign:
            case "(":
                return self._group()
            case "*" | "+" | "?":
                self._unread()
            case "^" | "$":
                anchors = self._names.begins if sign == "^" else self._names.ends
                return lambda positions: positions & anchors
            case ".":
                return self._one_of(_SIGNS)
            case "[":
                return self._one_of(self._between_brackets())
            case "\\":
                return self._one_of(self._escaped())
        return self._one_of(sign)

    def _one_of(self, signs: Collection[str]) -> _Part:
        names, mask = self._names, self._names.where(signs)

        def one_of(positions: int) -> int:
            names.spend(1)
            return (positions & mask) << 1

        return one_of

    def _group(self) -> _Part:
        self._depth += 1
        is_odd = not self._takes("?:") and self._sign() == "?"
        if is_odd or self._depth > _DEEPEST:
            self._unread()
        part = self._alternatives()
        self._depth -= 1
        return part if self._takes(")") else self._unread()

    def _escaped(self) -> Collection[str]:
        """Return the signs that follow a backslash."""
        sign = self._sign()
        self._at += 1
        if not sign or (sign.isalnum() and sign not in _CLASSES):
            self._unread()
        return _CLASSES.get(sign, sign)

    def _between_brackets(self) -> Collection[str]:
        """Return the signs of a class."""
        is_negated = self._takes("^")
        found: set[str] = set()
        while not found or not self._takes("]"):
            low = high = self._of_class()
            if self._sign() == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                high = self._of_class()
                if len(low) * len(high) > 1 or min(low) > max(high):
                    self._unread()
                found |= {each for each in _SIGNS if min(low) <= each <= max(high)}
            found.update(low, high)
        return _SIGNS - found if is_negated else found

    def _of_class(self) -> Collection[str]:
        self._names.spend(10)
        sign = self._sign()
        if not sign or self._text.startswith("[:", self._at):
            self._unread()
        self._at += 1
        return self._escaped() if sign == "\\" else sign

    def _sign(self) -> str:
        return self._text[self._at : self._at + 1]

    def _takes(self, text: str) -> bool:
        is_next = self._text.startswith(text, self._at)
        self._at += len(text) if is_next else 0
        return is_next

    def _unread(self) -> NoReturn:
        raise NotKnownError(f"the pattern {self._text!r} cannot be read at sign {self._at + 1}")


def _counts(found: re.Match[str]) -> tuple[int, int | None]:
    """Return the least and the most repetitions; None is without a bound."""
    if found[1] is None:
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[found[0][0]]
    least = int(found[1])
    return least, int(found[3]) if found[3] else None if found[2] else least


_MOST: Final = 1_000
"""HyperNodes of a member: placement compares each of them with each other."""
_MOST_NODES: Final = 250_000
r"""The nodes of all HyperNodes together."""
_MOST_WORK: Final = 4_000_000


def resolved(
    hypernodes: Mapping[str, HyperNodeFact],
    nodes: Mapping[str, NodeFact],
    *,
    most: int = _MOST_WORK,
) -> tuple[HyperNode, ...]:
    """Return the HyperNodes by name, each with its known nodes; a higher tier includes lower ones.

    `most` is the work, in calls of functions. Raises NotKnownError with the reason.
    """
    if len(hypernodes) > _MOST:
        raise NotKnownError(f"it has {len(hypernodes)} HyperNodes, and {_MOST} are the most")
    work, room = Work(most), _MOST_NODES
    found: dict[str, HyperNode] = {}
    lookup = _Lookup(hypernodes, nodes, work)
    for each in sorted(hypernodes.values(), key=lambda each: (each.tier, each.key)):
        own = lookup.nodes_of(each, found)
        room -= len(own)
        if room < 0:
            raise NotKnownError(f"its HyperNodes have more than {_MOST_NODES} nodes together")
        found[each.key] = HyperNode(each.key, each.tier, own, each.tier_name)
    return tuple(found[name] for name in sorted(found))


class _Lookup:
    """Finds nodes and HyperNodes by what a HyperNode says of its members."""

    def __init__(
        self,
        hypernodes: Mapping[str, HyperNodeFact],
        nodes: Mapping[str, NodeFact],
        work: Work,
    ) -> None:
        self._hypernodes = hypernodes
        self._nodes = nodes
        self._work = work
        self._texts: dict[bool, Names] = {}
        self._found: dict[tuple[str, bool], set[str]] = {}  # by pattern, of nodes or HyperNodes
        self._by_label: dict[tuple[str, str], set[str]] = defaultdict(set)
        if any(each.node_labels for each in hypernodes.values()):
            for node in nodes.values():
                work.spend(5 * len(node.labels))
                for label in node.labels:
                    self._by_label[label].add(node.key)

    def nodes_of(self, hypernode: HyperNodeFact, lower: Mapping[str, HyperNode]) -> frozenset[str]:
        """Return the known nodes of a HyperNode; `lower` are those found before, by name."""
        self._work.spend(len(hypernode.nodes) + len(hypernode.hypernodes))
        found = set(hypernode.nodes & self._nodes.keys())
        found |= self._matching(hypernode.node_patterns, self._nodes)
        for wanted in hypernode.node_labels:
            found |= self._labelled(wanted)
        below = hypernode.hypernodes | self._matching(
            hypernode.hypernode_patterns, self._hypernodes
        )
        for name in below & lower.keys():
            if lower[name].tier < hypernode.tier:
                self._work.spend(len(lower[name].nodes))
                found |= lower[name].nodes
        return frozenset(found)

    def _matching(self, patterns: Iterable[str], names: Collection[str]) -> set[str]:
        found: set[str] = set()
        of_nodes = names is self._nodes
        for pattern in patterns:
            known = self._found.get((pattern, of_nodes))
            if known is None:
                text = self._texts.get(of_nodes)
                if text is None:
                    text = self._texts[of_nodes] = Names(names, self._work)
                known = self._found[pattern, of_nodes] = text.matching(pattern)
            self._work.spend(1 + len(known))
            found |= known
        return found

    def _labelled(self, wanted: Labels) -> set[str]:
        """Return the nodes that have all of these labels."""
        having = sorted((self._by_label.get(label, set()) for label in wanted), key=len)
        self._work.spend(len(wanted) * (10 + len(having[0])))
        return set.intersection(*having)
