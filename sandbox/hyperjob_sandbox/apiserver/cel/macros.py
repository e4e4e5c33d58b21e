"""The macros that loop over lists and maps.

Pure. Every item costs a step, so that no expression runs for ever.
"""

from collections.abc import Callable
from typing import Final

from hyperjob_sandbox.apiserver.cel.functions import CelError, Optional, overload
from hyperjob_sandbox.apiserver.cel.scope import Run, Scope, truth
from hyperjob_sandbox.apiserver.jsonvalue import Json


class Bound:
    """Gives names back what they meant before."""

    __slots__ = ("_names", "_saved", "_scope")

    def __init__(self, scope: Scope, names: tuple[str, ...]) -> None:
        self._scope = scope
        self._names = names
        self._saved = {name: scope[name] for name in names if name in scope}

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            self._scope.pop(name, None)
        self._scope.update(self._saved)


class Loop:
    """The range of a macro and the variables it binds."""

    __slots__ = ("names", "source")

    def __init__(self, source: Run, names: list[str]) -> None:
        self.source = source
        self.names = tuple(names)

    def each(self, scope: Scope, visit: Callable[[Json, Json], bool]) -> None:
        """Bind and visit each pair of key and item until the visitor has seen enough."""
        found = self.source(scope)
        if isinstance(found, Optional):
            found = found.value if found.present else []
        if type(found) is list:
            pairs = list(enumerate(found))
            one = 1
        elif type(found) is dict:
            pairs = list(found.items())
            one = 0
        else:
            raise overload()
        with Bound(scope, self.names):
            for pair in pairs:
                scope.step()
                if len(self.names) == 2:
                    scope[self.names[0]], scope[self.names[1]] = pair
                else:
                    scope[self.names[0]] = pair[one]
                if visit(*pair):
                    return


def _quantified(*, deciding: bool) -> Callable[[Loop, list[Run]], Run]:
    """Build all() or exists(): an item that decides outweighs the errors of others."""

    def build(loop: Loop, bodies: list[Run]) -> Run:
        (body,) = bodies

        def run(scope: Scope) -> Json:
            failures: list[CelError] = []
            decided = False

            def visit(key: Json, item: Json) -> bool:
                nonlocal decided
                del key, item
                try:
                    decided = truth(body, scope) is deciding
                except CelError as error:
                    failures.append(error)
                return decided

            loop.each(scope, visit)
            if decided:
                return deciding
            if failures:
                raise failures[0]
            return not deciding

        return run

    return build


def _exists_one(loop: Loop, bodies: list[Run]) -> Run:
    (body,) = bodies

    def run(scope: Scope) -> Json:
        count = 0

        def visit(key: Json, item: Json) -> bool:
            nonlocal count
            del key, item
            count += truth(body, scope)
            return False

        loop.each(scope, visit)
        return count == 1

    return run


def _mapped(loop: Loop, bodies: list[Run]) -> Run:
    condition = bodies[0] if len(bodies) == 2 else None
    body = bodies[-1]

    def run(scope: Scope) -> Json:
        result: list[Json] = []

        def visit(key: Json, item: Json) -> bool:
            del key, item
            if condition is None or truth(condition, scope):
                result.append(body(scope))
            return False

        loop.each(scope, visit)
        return result

    return run


def _filtered(loop: Loop, bodies: list[Run]) -> Run:
    (body,) = bodies

    def run(scope: Scope) -> Json:
        result: list[Json] = []

        def visit(key: Json, item: Json) -> bool:
            del key, item
            if truth(body, scope):
                result.append(scope[loop.names[-1]])
            return False

        loop.each(scope, visit)
        return result

    return run


def _mapped_entries(loop: Loop, bodies: list[Run]) -> Run:
    condition = bodies[0] if len(bodies) == 2 else None
    body = bodies[-1]

    def run(scope: Scope) -> Json:
        result: dict[Json, Json] = {}

        def visit(key: Json, item: Json) -> bool:
            del item
            if condition is None or truth(condition, scope):
                result[key] = body(scope)
            return False

        loop.each(scope, visit)
        return result

    return run


MACROS: Final[dict[str, Callable[[Loop, list[Run]], Run]]] = {
    "all": _quantified(deciding=False),
    "exists": _quantified(deciding=True),
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "map": _mapped,
    "filter": _filtered,
    "transformList": _mapped,
    "transformMap": _mapped_entries,
}
