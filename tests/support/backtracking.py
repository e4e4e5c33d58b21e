"""A backtracking matcher that counts its steps, and texts that make a pattern backtrack.

The matcher reads the syntax tree of Python's parser and tries the alternatives in the order of
`re`: the number of steps grows like the time of `re`, on any machine.
"""

import random
import re
from collections.abc import Callable, Iterator
from re import _constants as c  # type: ignore[attr-defined] # typeshed does not know the module
from re import _parser
from typing import Any, NamedTuple

Next = Callable[[int], bool]
OUTSIDE = "\x01"
"""A character that no pattern asks for by name."""
_REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
_SINGLE = (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN)


class TooManyStepsError(Exception):
    """The matcher has used its maximum number of steps."""


class Attack(NamedTuple):
    """A text with a repeated part."""

    prefix: str
    pump: str
    suffix: str

    def text(self, count: int) -> str:
        """Return the text with about `count` characters of the repeated part."""
        return self.prefix + self.pump * (count // len(self.pump)) + self.suffix


class Matcher:
    """A pattern; `steps` counts the steps of the last call."""

    def __init__(self, pattern: str, flags: int = 0, *, limit: int = 10**6) -> None:
        self.tree = list(_parser.parse(pattern, flags))
        self._ignore_case = bool(flags & re.IGNORECASE) or pattern.startswith("(?i)")
        self._dot_all = bool(flags & re.DOTALL)
        self._limit = limit
        self._groups: dict[int, tuple[int, int]] = {}
        self.steps = 0

    def run(self, text: str, method: str) -> bool:
        """Return whether the pattern matches, as the method of `re` with this name does."""
        self.steps, self._text = 0, text
        starts = range(len(text) + 1) if method in {"search", "findall", "sub"} else (0,)
        whole = method == "fullmatch"
        for start in starts:
            self._groups = {}
            if self._seq(self.tree, 0, start, lambda end: not whole or end == len(text)):
                return True
        return False

    def _seq(self, ops: list[Any], index: int, i: int, k: Next) -> bool:
        if index == len(ops):
            return k(i)
        self.steps += 1
        if self.steps > self._limit:
            raise TooManyStepsError
        op, value = ops[index]

        def then(j: int) -> bool:
            return self._seq(ops, index + 1, j, k)

        if op in _SINGLE:
            return i < len(self._text) and self._takes(op, value, self._text[i]) and then(i + 1)
        if op in _REPEATS:
            return self._repeat(op, value, i, then)
        match op:
            case c.AT:
                return self._is_at(value, i) and then(i)
            case c.BRANCH:
                return any(self._seq(list(each), 0, i, then) for each in value[1])
            case c.SUBPATTERN:
                group, body = value[0], list(value[3])

                def close(j: int) -> bool:
                    if group is not None:
                        self._groups[group] = (i, j)
                    return then(j)

                return self._seq(body, 0, i, close)
            case c.ATOMIC_GROUP:
                ends: list[int] = []
                return self._seq(list(value), 0, i, lambda j: not ends.append(j)) and then(ends[0])
            case c.ASSERT if value[0] > 0:
                return self._seq(list(value[1]), 0, i, lambda _: True) and then(i)
            case c.ASSERT_NOT if value[0] > 0:
                return not self._seq(list(value[1]), 0, i, lambda _: True) and then(i)
        raise NotImplementedError(f"{op}")

    def _repeat(self, op: Any, value: Any, i: int, then: Next) -> bool:
        low, high, body = value[0], value[1], list(value[2])
        if len(body) == 1 and body[0][0] in _SINGLE:
            return self._repeat_single(op, (low, high, *body[0]), i, then)
        if op is c.POSSESSIVE_REPEAT:
            count, at = 0, i
            while count < high:
                ends: list[int] = []
                if not self._seq(body, 0, at, lambda j, e=ends: not e.append(j)) or ends[0] == at:
                    break
                count, at = count + 1, ends[0]
            return count >= low and then(at)

        def more(count: int, at: int) -> bool:
            return count < high and self._seq(
                body, 0, at, lambda j: (j != at or count < low) and again(count + 1, j)
            )

        def again(count: int, at: int) -> bool:
            if op is c.MIN_REPEAT and count >= low:
                return then(at) or more(count, at)
            return more(count, at) or (count >= low and then(at))

        return again(0, i)

    def _repeat_single(self, op: Any, value: Any, i: int, then: Next) -> bool:
        low, high, kind, chars = value
        most = i
        while most < len(self._text) and most - i < high:
            self.steps += 1
            if not self._takes(kind, chars, self._text[most]):
                break
            most += 1
        if most - i < low:
            return False
        if op is c.POSSESSIVE_REPEAT:
            return then(most)
        ends = range(i + low, most + 1)
        return any(then(end) for end in (ends if op is c.MIN_REPEAT else reversed(ends)))

    def _takes(self, op: Any, value: Any, char: str) -> bool:
        both = {char, char.lower(), char.upper()} if self._ignore_case else {char}
        return any(_takes(op, value, each, dot_all=self._dot_all) for each in both)

    def _is_at(self, where: Any, i: int) -> bool:
        text = self._text
        match where:
            case c.AT_BEGINNING | c.AT_BEGINNING_STRING:
                return i == 0
            case c.AT_END:
                return i == len(text) or (i == len(text) - 1 and text[i] == "\n")
            case c.AT_END_STRING:
                return i == len(text)
            case c.AT_BOUNDARY:
                word = [bool(re.match(r"\w", each)) for each in (text[i - 1 : i], text[i : i + 1])]
                return word[0] != word[1]
        raise NotImplementedError(f"{where}")


def _takes(op: Any, value: Any, char: str, *, dot_all: bool) -> bool:
    match op:
        case c.LITERAL:
            return ord(char) == value
        case c.NOT_LITERAL:
            return ord(char) != value
        case c.ANY:
            return dot_all or char != "\n"
        case c.IN:
            negated = value[0][0] is c.NEGATE
            return negated != any(_in(item, char) for item in value[negated:])
    raise NotImplementedError(f"{op}")


_CATEGORIES = {
    c.CATEGORY_DIGIT: r"\d", c.CATEGORY_NOT_DIGIT: r"\D", c.CATEGORY_SPACE: r"\s",
    c.CATEGORY_NOT_SPACE: r"\S", c.CATEGORY_WORD: r"\w", c.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


def _in(item: tuple[Any, Any], char: str) -> bool:
    kind, value = item
    match kind:
        case c.LITERAL:
            return ord(char) == value
        case c.RANGE:
            return bool(value[0] <= ord(char) <= value[1])
        case c.CATEGORY:
            return bool(re.match(_CATEGORIES[value], char))
    raise NotImplementedError(f"{kind}")


def attacks(tree: list[Any], rng: random.Random) -> Iterator[Attack]:
    """Yield texts that match the pattern except at their end, each with another repeated part."""
    seen: set[Attack] = set()
    for _ in range(8):
        text = _example(tree, rng)
        spans = {(i, j) for i in range(len(text)) for j in (i + 1, i + 2, i + 3) if j <= len(text)}
        for i, j in sorted(spans | ({(0, len(text))} if text else set())):
            for suffix in ("", OUTSIDE, text[j:], text[j:] + OUTSIDE):
                attack = Attack(text[:i], text[i:j], suffix)
                if attack not in seen:
                    seen.add(attack)
                    yield attack


def _example(tree: list[Any], rng: random.Random) -> str:
    return "".join(_example_of(op, value, rng) for op, value in tree)


def _example_of(op: Any, value: Any, rng: random.Random) -> str:
    if op in _REPEATS:
        count = rng.randint(value[0], min(value[1], value[0] + 2))
        return "".join(_example(list(value[2]), rng) for _ in range(count))
    match op:
        case c.LITERAL:
            return chr(value)
        case c.NOT_LITERAL | c.ANY:
            return rng.choice("a0 ")
        case c.IN:
            known = [
                char for char in map(chr, range(32, 127)) if _takes(op, value, char, dot_all=True)
            ]
            # With few characters, neighbouring parts of the pattern match the same text.
            few = [char for char in "0a1- ._" if char in known]
            return rng.choice(few or known or [OUTSIDE])
        case c.BRANCH:
            return _example(list(rng.choice(value[1])), rng)
        case c.SUBPATTERN:
            return _example(list(value[3]), rng)
        case c.ATOMIC_GROUP:
            return _example(list(value), rng)
    return ""
