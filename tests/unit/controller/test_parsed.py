"""Objects of a HyperJob that are parsed once, and how many of them are held."""

from typing import Any

from hyperjob_controller.observe import Parsed

Object = dict[str, Any]


class Parser:
    """Counts what it parses."""

    def __init__(self) -> None:
        self.parsed: list[int] = []

    def __call__(self, raw: Object) -> int:
        self.parsed.append(raw["n"])
        return int(raw["n"])


def some(*numbers: int) -> list[Object]:
    return [{"n": number} for number in numbers]


def test_an_object_is_parsed_once_while_it_and_the_view_stay_the_same() -> None:
    parse, known, items = Parser(), Parsed[int](), some(1, 2)
    assert known.of("a", items, parse, view="v") == [1, 2]
    assert known.of("a", items, parse, view="v") == [1, 2]
    assert parse.parsed == [1, 2]
    assert known.of("a", [items[0], *some(3)], parse, view="v") == [1, 3]
    assert parse.parsed == [1, 2, 3]
    assert known.of("a", items[:1], parse, view="w") == [1]
    assert parse.parsed == [1, 2, 3, 1]


def test_a_hyperjob_without_objects_is_not_held() -> None:
    parse, known = Parser(), Parsed[int]()
    assert known.of("a", some(), parse, view="v") == []
    assert known._known == {}


def test_the_hyperjob_that_was_looked_at_longest_ago_is_dropped_first() -> None:
    parse, known = Parser(), Parsed[int](most=3)
    first, second, third = some(1), some(2), some(3, 4)
    for key, items in (("a", first), ("b", second), ("a", first), ("c", third)):
        known.of(key, items, parse, view="v")
    assert parse.parsed == [1, 2, 3, 4]
    known.of("a", first, parse, view="v")
    assert parse.parsed == [1, 2, 3, 4]
    known.of("b", second, parse, view="v")
    assert parse.parsed == [1, 2, 3, 4, 2]


def test_a_hyperjob_that_has_more_than_may_be_held_is_held_alone() -> None:
    parse, known = Parser(), Parsed[int](most=2)
    small, large = some(9), some(1, 2, 3)
    known.of("small", small, parse, view="v")
    for _ in range(2):
        known.of("large", large, parse, view="v")
    assert parse.parsed == [9, 1, 2, 3]
    known.of("small", small, parse, view="v")
    known.of("large", large, parse, view="v")
    assert parse.parsed == [9, 1, 2, 3, 9, 1, 2, 3]


def test_a_replaced_object_is_not_held() -> None:
    parse, known, items = Parser(), Parsed[int](), some(1)
    known.of("a", items, parse, view="v")
    known.keep("a", items)
    known.of("a", items, parse, view="v")
    assert parse.parsed == [1]
    known.keep("a", some(1))
    assert known._known == {}
