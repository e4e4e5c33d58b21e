"""The client layer over a scripted network in virtual time: calls, retries, watches."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import orjson

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.client import Kube, PatchType, Propagation
from hyperjob_core.kube.config import Connection
from hyperjob_core.kube.errors import KubeError, from_status, make_status
from hyperjob_core.kube.exchange import Exchange
from hyperjob_core.kube.informer import Informer
from hyperjob_core.kube.resources import CLUSTERS, HYPERJOBS, VCJOBS
from hyperjob_core.kube.transport import Params, Response
from hyperjob_core.virtualtime import run
from tests.unit.recorded.generated import some
from tests.unit.recorded.recording import Case, line

RESOURCES: Final = (HYPERJOBS, VCJOBS, CLUSTERS)
STATUSES: Final = (
    (404, "NotFound", 0), (409, "Conflict", 0), (409, "AlreadyExists", 0), (410, "Expired", 0),
    (422, "Invalid", 0), (429, "TooManyRequests", 1), (429, "TooManyRequests", 0),
    (429, "TooManyRequests", 40), (500, "InternalError", 0), (500, "InternalError", 2),
    (503, "ServiceUnavailable", 0), (503, "ServiceUnavailable", 5), (504, "Timeout", 0),
    (401, "Unauthorized", 0), (403, "Forbidden", 0), (418, "", 0), (400, "BadRequest", 3),
)  # fmt: skip


class Counting:
    """Counts what instruments are told, as text."""

    def __init__(self, rows: list[str]) -> None:
        self._rows = rows

    def __getattr__(self, name: str) -> Callable[..., None]:
        def note(*words: object, **more: object) -> None:
            told = [word for word in words if isinstance(word, str | int | float)]
            self._rows.append(f"  counts {name} {line(told)} {line(more) if more else ''}".rstrip())

        return note


class Logging(logging.Handler):
    """Keeps what is logged, with its fields, as text."""

    def __init__(self, rows: list[str]) -> None:
        super().__init__()
        self._rows = rows

    def emit(self, record: logging.LogRecord) -> None:
        more = {key: each for key, each in vars(record).items() if key not in _USUAL}
        words = f"  logs {record.levelname} {record.getMessage()} {line(more) if more else ''}"
        self._rows.append(words.rstrip())


@contextmanager
def logged(rows: list[str]) -> Iterator[None]:
    """Add what the client layer logs while inside, debug messages too."""
    log, handler = logging.getLogger("hyperjob_core.kube"), Logging(rows)
    level, disabled = log.level, logging.root.manager.disable
    logging.disable(logging.NOTSET)
    log.setLevel(logging.DEBUG)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        logging.disable(disabled)


_USUAL: Final = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


class Network(Exchange):
    """Gives the next answer of a script: a Response, an error that breaks the line, or silence."""

    def __init__(self, rows: list[str]) -> None:
        connection = Connection(server="https://api.example:6443", authorize=self._token)
        super().__init__(connection, metrics=Counting(rows))
        self.rows = rows
        self.script: list[Any] = []

    @staticmethod
    async def _token() -> str:
        return "Bearer secret"

    async def _once(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: bytes | None,
        headers: dict[str, str],
    ) -> Response:
        await self._authorize(headers, f"{method} {path}")
        text = body.decode() if body else ""
        moment = asyncio.get_running_loop().time()
        self.rows.append(f"  {moment:.4g} {method} {self._target(path, params)} {text}")
        self.rows.append(f"    {line(headers)}")
        match self.script.pop(0) if self.script else "hang":
            case Response() as answer:
                warnings = ["299 - unknown field"] if answer.headers.get("Warning") else []
                return self._answer(method, path, answer, warnings)
            case "hang":
                await asyncio.sleep(1000.0)
        self._count("<error>", method)
        raise self._unreachable(f"{method} {path}", "connection reset")

    async def stream(
        self,
        path: str,
        *,
        params: Params,
        idle_limit: float | None,
        time_limit: float | None,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        moment = asyncio.get_running_loop().time()
        limits = f"idle {idle_limit}, in all {time_limit}"
        self.rows.append(f"  {moment:.5g} GET {self._target(path, params)} {limits}")
        for each in self.script.pop(0) if self.script else (["open"], 1000.0):
            match each:
                case "open":
                    if opened is not None:
                        opened()
                case float():
                    await asyncio.sleep(each)
                case KubeError():
                    raise each
                case dict():
                    yield orjson.dumps(each) + b"\n"
                case bytes():
                    yield each + b"\n"

    async def close(self) -> None:
        pass


def _status(rng: random.Random) -> Response:
    code, reason, after = rng.choice(STATUSES)
    headers = {"Retry-After": str(after)} if after else {}
    if some(rng, 0.1):
        headers["Retry-After"] = "Wed, 21 Oct 2026 07:28:00 GMT"
    body: bytes = orjson.dumps(make_status(code, "no", reason=reason))
    if some(rng, 0.15):
        body = b"<html>" + b"x" * rng.choice((10, 3000))
    return Response(code, headers, body)


def _answers(rng: random.Random) -> list[Any]:
    found: list[Any] = []
    for _ in range(4):
        kind = rng.random()
        if kind < 0.45:
            found.append(_status(rng))
        elif kind < 0.6:
            found.append("reset")
        elif kind < 0.65:
            found.append("hang")
        else:
            body = rng.choice((b'{"kind": "Answer"}', b"[]", b"not json", b"{}"))
            found.append(Response(rng.choice((200, 201)), {}, body))
    return found


def _call(rng: random.Random, kube: Kube) -> tuple[str, Coroutine[Any, Any, Any]]:
    resource = rng.choice(RESOURCES)
    space = "team" if resource.namespaced else None
    obj: Object = {"metadata": {"name": "x", **({"namespace": space} if space else {})}}
    part, dry = rng.choice((None, "status")), some(rng, 0.3)
    match rng.randrange(8):
        case 0:
            return "get", kube.get(resource, "x", namespace=space, subresource=part)
        case 1:
            return "create", kube.create(resource, obj, dry_run=dry)
        case 2:
            return "replace", kube.replace(resource, obj, subresource=part, dry_run=dry)
        case 3:
            force = some(rng, 0.5)
            return "apply", kube.apply(
                resource, obj, field_manager="me", force=force, subresource=part, dry_run=dry
            )
        case 4:
            kind = rng.choice(list(PatchType))
            body: Any = [{"op": "remove", "path": "/x"}] if kind is PatchType.JSON else {"a": 1}
            manager = rng.choice((None, "me"))
            return f"patch {kind.name}", kube.patch(
                resource, "x", body, kind=kind, namespace=space, subresource=part,
                field_manager=manager, dry_run=dry,
            )  # fmt: skip
        case 5:
            uid, spread = rng.choice((None, "u")), rng.choice((None, *Propagation.__args__))
            return "delete", kube.delete(
                resource, "x", namespace=space, uid=uid, propagation=spread, dry_run=dry
            )
        case 6:
            content = rng.choice((None, {"a": 1}, b"bytes"))
            return "raw", kube.raw("POST", "/raw", params={"q": "a b"}, body=content)
    return "list", kube.list(
        resource, namespace=space, label_selector=rng.choice((None, "a=b")), limit=2,
        field_selector=rng.choice((None, "spec.x=y")),
    )  # fmt: skip


def _outcome(result: Any) -> str:
    match result:
        case KubeError():
            more = {"after": result.retry_after, "answered": getattr(result, "answered", None)}
            return f"{type(result).__name__} {str(result)[:300]} {line(more)}"
        case Response():
            return f"{result.status} {result.body.decode()}"
    return line(result)


def call_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        with seeded(seed):
            yield f"calls {seed}", run(_calls(random.Random(f"calls {seed}")))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Have what draws jitter without a seed of its own draw the same each time."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


async def _calls(rng: random.Random) -> list[str]:
    rows: list[str] = []
    network = Network(rows)
    with logged(rows):
        await _called(rng, network, rows)
    return rows


async def _called(rng: random.Random, network: "Network", rows: list[str]) -> None:
    async with Kube(network, time_limit=rng.choice((5.0, 30.0))) as kube:
        for _ in range(6):
            network.script = _answers(rng)
            name, call = _call(rng, kube)
            if name == "list":
                network.script = _pages(rng)
            rows.append(name)
            try:
                rows.append(f"  = {_outcome(await call)}")
            except KubeError as error:
                rows.append(f"  = {_outcome(error)}")


def _pages(rng: random.Random) -> list[Any]:
    found: list[Any] = []
    for number in range(3):
        metadata: Object = {"resourceVersion": str(10 + number)}
        if number < 2 and some(rng, 0.7):
            metadata["continue"] = f"token {number}"
        items = [{"metadata": {"name": f"n{number}"}}, {"kind": "Own", "metadata": {"name": "o"}}]
        body = {"metadata": metadata, "items": rng.choice((items, items, [], None))}
        found.append(Response(200, {}, orjson.dumps(body)))
        if some(rng, 0.3):
            found.insert(rng.randrange(len(found) + 1), _status(rng))
    return found


def watch_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        with seeded(seed):
            rows: list[str] = []
            with logged(rows):
                run(_watched(random.Random(f"watch {seed}"), rows))
            yield f"informer {seed}", rows[:120]


def _object(rng: random.Random, version: int) -> Object:
    metadata = {
        "name": rng.choice("abc"),
        "uid": rng.choice(("u", "u", "u", "v")),
        "resourceVersion": str(version),
        "managedFields": [{}],
    }
    return {"metadata": metadata, "spec": {"x": rng.randrange(3)}}


def _stream(rng: random.Random, version: int) -> list[Any]:
    found: list[Any] = []
    if some(rng, 0.15):
        code, reason, _ = rng.choice(STATUSES)
        return [from_status(make_status(code, "no", reason=reason), "WATCH")]
    found.append("open")
    for _ in range(rng.randint(0, 4)):
        version += 1
        kind = rng.choice(("ADDED", "MODIFIED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"))
        obj: Any = _object(rng, version)
        if kind == "ERROR":
            obj = make_status(rng.choice((410, 500)), "too old", reason="Expired")
        if kind == "BOOKMARK":
            obj = {"metadata": {"resourceVersion": str(version)}}
        found.append(rng.choice((1.0, 9.0, 10.0, 11.0, 400.0)))
        found.append({"type": kind, "object": obj})
        if some(rng, 0.05):
            found.append(rng.choice((b"garbage", b'{"type": "ODD", "object": {"metadata": {}}}')))
    found.append(rng.choice((0.0, 5.0, 9.9, 10.0, 300.0)))
    if some(rng, 0.3):
        found.append(from_status(make_status(503, "broken"), "WATCH"))
    return found


class Watched(Network):
    """A list answers the next page of its own script, a watch the next stream."""

    async def _once(self, method: str, path: str, *rest: Any) -> Response:
        streams, self.script = self.script, [self.listed(path)]
        try:
            return await super()._once(method, path, *rest)
        finally:
            self.script = streams

    listed: Callable[[str], Any]


async def _watched(rng: random.Random, rows: list[str]) -> None:
    network = Watched(rows)
    version = 100

    def listed(_path: str) -> Any:
        nonlocal version
        version += 10
        if some(rng, 0.2):
            return rng.choice((_status(rng), "reset"))
        items = {each["metadata"]["name"]: each for each in (_object(rng, version),) * 1}
        body = {"metadata": {"resourceVersion": str(version)}, "items": list(items.values())}
        return Response(200, {}, orjson.dumps(body))

    network.listed = listed
    network.script = [_stream(rng, version + 10 * number) for number in range(14)]
    kube = Kube(network)
    informer = Informer(
        kube,
        HYPERJOBS,
        label_selector=rng.choice((None, "a")),
        namespace=rng.choice((None, "team")),
        indexers={"x": lambda obj: [str(obj["spec"]["x"])]},
        metrics=Counting(rows),
    )

    def told(kind: Any, old: Object | None, new: Object | None) -> None:
        rows.append(f"  {kind} {line([old, new])}")

    informer.add_handler(told)
    task = asyncio.create_task(informer.run())
    for _ in range(12):
        await asyncio.sleep(rng.choice((1.0, 30.0, 200.0)))
        state = [len(informer), informer.seen_version, informer.synced.is_set()]
        known = {number: len(informer.by_index("x", number)) for number in "012"}
        error = type(informer.last_error).__name__ if informer.last_error else None
        rows.append(f"{asyncio.get_running_loop().time():.5g} has {line([*state, known, error])}")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
