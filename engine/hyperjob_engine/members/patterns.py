r"""The regular expressions of HyperNodes, matched with the names of nodes without backtracking.

Volcano matches them by Go's `regexp`; of its syntax this module reads what names need: signs, `.`,
`\d`, `\w`, `[a-z]`, `^`, `$`, groups, alternatives and repetitions. The parts of an expression
become positions with those that may follow each (Glushkov's automaton), and a set of positions is
what is left of the expression after some signs of a name. All work is charged to a `Work`.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple, NoReturn

_NAME: Final = re.compile(r"[-.0-9a-z]{1,253}")
_SIGNS: Final = frozenset("-.0123456789abcdefghijklmnopqrstuvwxyz")
_CLASSES: Final = {"d": frozenset("0123456789"), "w": _SIGNS - {"-", "."}}
_BEGIN, _END = "begin", "end"  # of a name; no sign of an expression equals them
_REPEATED: Final = re.compile(r"(?:[*+?]|\{([0-9]{1,3})(?:(,)([0-9]{1,3})?)?\})\??")
_LONGEST: Final = 256
_POSITIONS: Final = 512
_DEEPEST: Final = 20
_MATCHED: Final = -1


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


class Pattern:
    """An expression, which `matching` searches for in names."""

    def __init__(self, text: str, work: Work) -> None:
        """Read an expression; raises NotKnownError if it is too long or of another syntax."""
        parsed = _Parser(text, work)
        self._work = work
        self._whole = parsed.expression()
        self._literal = parsed.literal
        self._follow, self._of_sign = parsed.follow, parsed.of_sign
        # Each anchor takes a sign of its own: as many of them are around each name.
        self._begins = [_BEGIN] * max(1, self._of_sign[_BEGIN].bit_count())
        self._ends = [_END] * self._of_sign[_END].bit_count()
        self._is_anchored = not self._whole.first & ~self._of_sign[_BEGIN]
        self._steps: dict[tuple[int, str], int] = {}

    def matching(self, names: Collection[str]) -> set[str]:
        """Return the names that contain a match, of those that Kubernetes gives to an object."""
        self._work.spend(1 + (len(names) // 4 if self._literal else len(names)))
        found: set[str] = set()
        for name in names:
            if self._literal in name and _NAME.fullmatch(name) and self._is_in(name):
                found.add(name)
        return found

    def _is_in(self, name: str) -> bool:
        if self._whole.empty:
            self._work.spend(10)
            return True
        state, read = 0, 0
        for sign in (*self._begins, *name, *self._ends):
            state, read = self._next(state, sign), read + 1
            if state == _MATCHED or (not state and self._is_anchored):
                break
        self._work.spend(10 + 2 * read)
        return state == _MATCHED

    def _next(self, state: int, sign: str) -> int:
        """Return the positions after one more sign; a match may begin anywhere."""
        found = self._steps.get((state, sign))
        if found is None:
            self._work.spend(10 + 3 * state.bit_count())
            reached = self._whole.first
            for position in _bits(state):
                reached |= self._follow[position]
            found = reached & self._of_sign[sign]
            if found & self._whole.last:
                found = _MATCHED
            self._steps[state, sign] = found
        return found


class _Part(NamedTuple):
    """A part of an expression: whether it matches nothing, its first and its last positions."""

    empty: bool
    first: int
    last: int


_NOTHING: Final = _Part(empty=True, first=0, last=0)


class _Parser:
    """Reads an expression into positions: `follow` has the next ones, `of_sign` those of a sign.

    `literal` is in each name that matches.
    """

    def __init__(self, text: str, work: Work) -> None:
        if not 0 < len(text) <= _LONGEST:
            raise NotKnownError(f"a pattern has {len(text)} signs, and not 1 to {_LONGEST}")
        work.spend(60)
        self._text, self._work = text, work
        self._at = self._depth = 0
        self._has_choice = False
        self.literal = ""
        self.follow: list[int] = []
        self.of_sign = dict.fromkeys((*_SIGNS, _BEGIN, _END), 0)

    def expression(self) -> _Part:
        """Read the whole text."""
        part = self._alternatives()
        if self._has_choice:
            self.literal = ""
        return part if self._at == len(self._text) else self._unread()

    def _alternatives(self) -> _Part:
        part = self._sequence()
        while self._takes("|"):
            self._has_choice = self._has_choice or not self._depth
            other = self._sequence()
            empty, first, last = part.empty or other.empty, part.first, part.last
            part = _Part(empty, first | other.first, last | other.last)
        return part

    def _sequence(self) -> _Part:
        part, literal = _NOTHING, ""
        while (sign := self._sign()) and sign not in "|)":
            begin = self._at
            part = self._joined(part, self._repeated())
            is_plain = self._at == begin + 1 and sign not in ".^$"
            literal = literal + sign if is_plain else ""
            if not self._depth and len(literal) > len(self.literal):
                self.literal = literal
        return part

    def _repeated(self) -> _Part:
        """Read an atom and how often it is repeated."""
        begin = self._at
        part = self._atom()
        found = _REPEATED.match(self._text, self._at)
        if found is None:
            return part
        end = found.end()
        least, most = _counts(found)
        if _REPEATED.match(self._text, end) or (most is not None and most < least):
            self._unread()
        whole = _NOTHING
        for number in range(max(1, least if most is None else most)):
            if number:
                self._at = begin
                part = self._atom()
            if most is None and number >= least - 1:
                self._link(part.last, part.first)
            whole = self._joined(whole, part._replace(empty=part.empty or number >= least))
        self._at = end
        return _NOTHING if most == 0 else whole

    def _atom(self) -> _Part:
        """Read a sign, a class, an anchor or a group."""
        self._work.spend(30)
        sign = self._sign()
        self._at += 1
        match sign:
            case "(":
                return self._group()
            case "*" | "+" | "?":
                self._unread()
            case "^" | "$":
                return self._position([_BEGIN if sign == "^" else _END])
            case ".":
                return self._position(_SIGNS)
            case "[":
                return self._position(self._between_brackets())
            case "\\":
                return self._position(self._escaped())
        return self._position(sign)

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
                self._work.spend(60)
                self._at += 1
                high = self._of_class()
                if len(low) * len(high) > 1 or min(low) > max(high):
                    self._unread()
                found |= {each for each in _SIGNS if min(low) <= each <= max(high)}
            found.update(low, high)
        return _SIGNS - found if is_negated else found

    def _of_class(self) -> Collection[str]:
        sign = self._sign()
        if not sign or self._text.startswith("[:", self._at):
            self._unread()
        self._at += 1
        return self._escaped() if sign == "\\" else sign

    def _position(self, signs: Collection[str]) -> _Part:
        """Add a position that takes some signs; no name has other signs."""
        self._work.spend(len(signs))
        bit = 1 << len(self.follow)
        if len(self.follow) == _POSITIONS:
            raise NotKnownError(f"the pattern {self._text!r} has too many parts")
        self.follow.append(0)
        for sign in signs:
            if sign in self.of_sign:
                self.of_sign[sign] |= bit
        return _Part(empty=False, first=bit, last=bit)

    def _joined(self, one: _Part, other: _Part) -> _Part:
        self._link(one.last, other.first)
        return _Part(
            one.empty and other.empty,
            one.first | (other.first if one.empty else 0),
            other.last | (one.last if other.empty else 0),
        )

    def _link(self, last: int, first: int) -> None:
        """Let the first positions of a part follow the last ones of the part before it."""
        self._work.spend(3 * last.bit_count())
        for position in _bits(last):
            self.follow[position] |= first

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


def _bits(number: int) -> Iterator[int]:
    """Yield the positions of the bits that are set."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low
