r"""The regular expressions of HyperNodes, matched with all names at once, without backtracking.

Volcano matches them by Go's `regexp`; of its syntax this module reads what names need: signs, `.`,
`\d`, `\w`, `[a-z]`, `^`, `$`, groups, alternatives and repetitions. All names are one text. A set
of positions in it is a whole number with a bit for each of them: a part of an expression leads from
the positions where it begins to those where it may end. All work is charged to a `Work`.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from itertools import accumulate
from typing import Final, NoReturn, TypeAlias

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
    """The nodes of HyperNodes cannot be found; the text says why."""


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
