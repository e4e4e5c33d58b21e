"""Values of generated cases: each comes from the name of its field alone.

A field more, or another order of fields, leaves all other fields as they are. Each option of a list
has a score of its own, and the highest one wins: an option more changes the cases that it wins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draw:
    """The place of a value in a case, such as `whole 3/job 1/spec`."""

    path: str

    def at(self, name: object) -> "Draw":
        """Return the place of a part."""
        return Draw(f"{self.path}/{name}")

    def share(self, name: object) -> float:
        """Return a number from 0 up to 1."""
        digest = blake2b(f"{self.path}/{name}".encode(), digest_size=6).digest()
        return int.from_bytes(digest) / 2**48

    def some(self, name: object, chance: float) -> bool:
        return self.share(name) < chance

    def pick(self, name: object, options: Sequence[T]) -> T:
        """Return one of the options; one that is there twice has two chances."""
        return self.sample(name, options, 1)[0]

    def named(self, name: object, options: Mapping[str, T]) -> T:
        """Return the value of one of the named options."""
        return options[self.pick(name, list(options))]

    def sample(self, name: object, options: Sequence[T], count: int) -> list[T]:
        """Return different options in any order."""
        tickets: dict[str, T] = {}
        for each in options:
            key = repr(each)
            while key in tickets:
                key += "+"
            tickets[key] = each
        first = sorted(tickets, key=lambda key: self.share(f"{name}={key}"), reverse=True)
        return [tickets[key] for key in first[:count]]

    def number(self, name: object, low: int, high: int) -> int:
        return self.pick(name, range(low, high + 1))

    def fields(self, **options: tuple[float, Sequence[Any]]) -> dict[str, Any]:
        """Return those fields that are there: each has its chance and its options."""
        return {
            name: self.pick(name, values)
            for name, (chance, values) in options.items()
            if self.some(f"has {name}", chance)
        }
