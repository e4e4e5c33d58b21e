"""The whole controller in virtual time: what it changes in the API server is what it decides.

A story has clusters, queues and acts, such as a user who changes a HyperJob. Rows are effects on
objects: neither the form of a request, nor UIDs, nor the order of requests of one moment counts.
"""

import asyncio
import contextlib
import copy
import logging
import random
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tests.decisions.draw import Draw
from tests.decisions.karmada import BINDING, Fate, Karmada, key_of, patched_by
from tests.decisions.rows import UID, Row, bare, changes
from tests.decisions.sites import Site

Object = dict[str, Any]
Act = Callable[["Stage"], str]
"""Does something to a stage, and says what."""

REFUSALS = {
    "quota": (403, "Forbidden", "exceeded quota: compute"),
    "changed": (409, "Conflict", "the object has been modified"),
    "invalid": (422, "Invalid", "spec.tasks: Invalid value"),
    "etcd": (500, "InternalError", "etcdserver: request timed out"),
    "gone": (404, "NotFound", "not found"),
    "there": (409, "AlreadyExists", "already exists"),
}
HYPERJOB = {"group": "training.volcano.sh", "version": "v1alpha1", "kind": "HyperJob"}
MEMBER = re.compile(r"^/apis/cluster\.karmada\.io/v1alpha1/clusters/([^/]+)/proxy(/.*)$")


@dataclass(frozen=True, kw_only=True)
class Story:
    """A case: `acts` at their seconds; without `fate` the members report nothing by themselves."""

    draw: Draw
    title: str
    sites: Sequence[Site]
    objects: Sequence[Object] = ()
    acts: Sequence[tuple[float, Act]] = ()
    seconds: float
    mode: str = "builtin"
    members: str = "off"
    refuses: float = 0.0
    away: float = 0.0
    """Seconds without a controller when it starts anew."""
    beats: bool = False
    fate: Callable[[str, int], Fate] | None = None


class Plane:
    """The transport of the controller: notes the effects of writes, and refuses some."""

    host = "simulation"

    def __init__(self, entry: Any, story: Story) -> None:
        self.entry, self.api = entry, entry.server()
        self.karmada = Karmada(
            entry,
            self.api,
            copy.deepcopy(story.sites),
            fate=story.fate,
            global_queue=story.mode == "volcano-global",
        )
        self.rows: list[Row] = []
        self.writes = 0
        """Requests of the controller that changed something."""
        self._draw, self._refuses = story.draw.at("refusals"), story.refuses
        self._asked: dict[str, int] = {}
        self._writing = False
        self._names: dict[str, str] = {}
        self.api.listen(self._changed)

    async def request(self, method: str, path: str, **more: Any) -> Any:
        if member := MEMBER.match(path):
            return await self._member(member[1]).request(method, member[2], **more)
        if method == "GET":
            return await self.api.request(method, path, **more)
        name = "/".join(path.split("/")[5:]) or path
        self._refuse(f"{method} {re.sub('events/.*', 'events', name)}")
        self._writing = True
        try:
            return await self.api.request(method, path, **more)
        finally:
            self._writing = False

    def stream(self, path: str, **more: Any) -> AsyncGenerator[bytes, None]:
        member = MEMBER.match(path)
        if member is None:
            return self.api.stream(path, **more)
        server = self._member(member[1])
        if member[2].endswith("/log"):
            return self.karmada.log(member[1], member[2].split("/")[-2], more["params"])
        return until(server.stream(member[2], **more), float(more["params"]["timeoutSeconds"]))

    async def close(self) -> None:
        pass

    def note(self, about: str, fact: str) -> None:
        fact = UID.sub(lambda found: self._names.get(found[0], found[0]), fact)
        self.rows.append((round(asyncio.get_running_loop().time(), 3), about, fact))

    def _member(self, name: str) -> Any:
        if name not in self.karmada.members or self.karmada.sites[name].down:
            raise self.entry.error(503, "ServiceUnavailable", "the cluster does not answer")
        return self.karmada.members[name]

    def _refuse(self, what: str) -> None:
        count = self._asked[what] = self._asked.get(what, 0) + 1
        if "events" not in what and self._draw.some(f"{what} {count}", self._refuses):
            code, reason, text = self._draw.named(f"why {what} {count}", REFUSALS)
            self.note("the API server", f"refuses {what}: {reason}")
            raise self.entry.error(code, reason, text)

    def _changed(self, kind: str, old: Object | None, new: Object | None) -> None:
        about = new or old or {}
        uid = about["metadata"].get("uid", "")
        if kind == "Event":
            text = f"{about['type']} {about['reason']} {about['action']}: {about['note']}"
            self.note(f"{about['regarding']['kind']} {about['regarding']['name']}", text)
            return
        name = f"{kind} {key_of(about).removeprefix('default/')}"
        if old is None:
            self._names[uid] = f"<{name}>"
        if not self._writing:
            return
        self.writes += 1
        if new is None:
            self.note(name, "is deleted")
        elif old is None:
            self.note(name, "is created")
            for fact in changes(self._model(kind, new), bare(new)):
                self.note(name, fact)
        else:
            for fact in changes(bare(old), bare(new)):
                self.note(name, fact)

    def _model(self, kind: str, new: Object) -> Object:
        """Return what a new object is compared with: a vcjob with the template of its group."""
        labels = new["metadata"].get("labels") or {}
        owner = f"{new['metadata'].get('namespace')}/{labels.get('volcano.sh/hyperjob-name')}"
        hyperjob = self.api.get(self.entry.KINDS["HyperJob"], owner)
        if kind != "Job" or hyperjob is None:
            return {}
        for group in hyperjob["spec"]["replicatedJobs"]:
            if group["name"] == labels.get("volcano.sh/replicatedjob-name"):
                return {"spec": group["templateSpec"]}
        return {}


async def until(stream: AsyncGenerator[bytes, None], seconds: float) -> AsyncGenerator[bytes, None]:
    """End a watch when the client asked for: so the member confirms what it has told."""
    async with contextlib.aclosing(stream):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async for event in stream:
                    yield event


@dataclass
class Stage:
    """What acts work on."""

    story: Story
    entry: Any
    plane: Plane
    controller: asyncio.Task[None] | None = None
    count: int = 0

    @property
    def draw(self) -> Draw:
        """Return the place of the next value that an act draws."""
        self.count += 1
        return self.story.draw.at(f"act {self.count}")

    def items(self, kind: str) -> list[Object]:
        found: list[Object] = self.plane.api.items(self.entry.KINDS[kind])
        return sorted(found, key=key_of)

    def change(self, kind: str, key: str, patch: Object, *, status: bool = False) -> None:
        self.plane.api.change(self.entry.KINDS[kind], key, patch, status=status)

    def remove(self, kind: str, key: str) -> None:
        self.plane.api.remove(self.entry.KINDS[kind], key)

    def apply(self, new: Object) -> str:
        """Create or update a HyperJob as a user does, through admission."""
        kind = self.entry.KINDS["HyperJob"]
        old = self.plane.api.get(kind, key_of(new))
        answer = reviewed(self.entry, "default", new, old)
        new = patched_by(new, answer)
        answer = reviewed(self.entry, "validate", new, old)
        if not answer["allowed"]:
            return f"{new['metadata']['name']} is refused"
        if old is None:
            self.plane.api.create(kind, new)
        else:
            self.change("HyperJob", key_of(old), {"spec": new["spec"]})
        return f"{new['metadata']['name']} is applied"

    def start(self) -> None:
        story = self.story
        running = self.entry.control(self.plane, mode=story.mode, members=story.members)
        self.controller = asyncio.create_task(running)

    async def stop(self) -> None:
        if self.controller is None:
            return
        self.controller.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.controller
        self.controller = None


def envelope(route: str, new: Object, old: Object | None, *, user: str = "me") -> Object:
    """Return the AdmissionReview of an object that a user creates or changes."""
    request = {
        "uid": "u",
        "kind": BINDING if route == "stamp" else HYPERJOB,
        "name": "",
        "operation": "CREATE" if old is None else "UPDATE",
        "namespace": "default",
        "userInfo": {"username": user},
        "object": new,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def reviewed(
    entry: Any, route: str, new: Object, old: Object | None, around: Sequence[Object] = ()
) -> Object:
    """Return the response of admission to a HyperJob that a user creates or changes."""
    _, answer = entry.review(route, orjson.dumps(envelope(route, new, old)), around)
    response: Object = orjson.loads(answer)["response"]
    return response


def play(entry: Any, story: Story) -> Stage:
    """Play a story to its end."""
    with steady():
        stage: Stage = entry.run(_play(entry, story))
    return stage


async def _play(entry: Any, story: Story) -> Stage:
    plane = Plane(entry, story)
    for each in story.objects:
        plane.api.create(entry.KINDS[each["kind"]], each)
    for site in plane.karmada.sites.values():
        plane.karmada.use(site, site.held)
    if story.beats:
        plane.karmada.beat()
    stage = Stage(story, entry, plane)
    stage.start()
    for at, act in sorted(story.acts, key=lambda each: each[0]):
        await _until(stage, at)
        if act is RESTART:
            await stage.stop()
            await asyncio.sleep(story.away)
            stage.start()
        plane.note("a user", act(stage))
    await _until(stage, story.seconds)
    await stage.stop()
    return stage


async def _until(stage: Stage, moment: float) -> None:
    """Wait for a moment; raise what the controller raises meanwhile."""
    assert stage.controller is not None
    left = moment - asyncio.get_running_loop().time()
    done, _ = await asyncio.wait({stage.controller}, timeout=max(0.0, left))
    for task in done:
        task.result()


def RESTART(stage: Stage) -> str:  # noqa: N802 - an act
    """Kill the controller and start another one."""
    return "the controller starts anew"


@contextlib.contextmanager
def steady() -> Iterator[None]:
    """Let every random number be the middle of its range, and the log be silent."""
    kept = random.random, random.uniform, random.randint, logging.root.manager.disable
    random.random = lambda: 0.5
    random.uniform = lambda low, high: (low + high) / 2
    random.randint = lambda low, high: (low + high) // 2
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        random.random, random.uniform, random.randint = kept[:3]
        logging.disable(kept[3])


def rows_of(stage: Stage) -> list[Row]:
    """Return the rows of a story: those of one moment in the order of their objects."""
    return sorted(stage.plane.rows, key=lambda row: row[:2])
