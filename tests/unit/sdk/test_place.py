"""A folder that is larger than a HyperJob goes through the place of an administrator."""

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from hyperjob.sdk import AsyncClient, SourceError
from hyperjob.sdk.place import CONFIG_MAP, Place, place_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.microtime import utc_now
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.memory import MemoryServer
from hyperjob_core.kube.resources import CONFIG_MAPS, SECRETS
from tests.unit.sdk.test_start import project, run

TOKEN = "Bearer s3cr3t"


@dataclass
class Store:
    """An HTTP server that keeps what is sent by PUT; `answers` are for the next requests."""

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    url: str = ""
    open: bool = False

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append((request.method, request.headers.get("Authorization", "")))
        if self.answers:
            return web.Response(status=self.answers.pop(0))
        if not self.open and request.headers.get("Authorization") != TOKEN:
            return web.Response(status=401)
        if request.method == "PUT":
            self.files[request.path] = await request.read()
            return web.Response(status=201)
        found = self.files.get(request.path)
        return web.Response(status=404) if found is None else web.Response(body=found)


@asynccontextmanager
async def serving() -> AsyncIterator[Store]:
    store = Store()
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", store.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    store.url = f"http://127.0.0.1:{runner.addresses[0][1]}/code"
    try:
        yield store
    finally:
        await runner.cleanup()


def large(folder: Path) -> Path:
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "tables.py").write_text(f"X = '{os.urandom(150_000).hex()}'\n")
    return project(folder)


class Client(AsyncClient):
    """A client of an API server in memory, which returns what it would submit."""

    def __init__(self, **data: str) -> None:
        super().__init__(namespace="team")
        server = MemoryServer(now=utc_now)
        self._kube = Kube(server)
        if data:
            server.create(CONFIG_MAPS, named(CONFIG_MAP, data))
        encoded = base64.b64encode(TOKEN.encode()).decode()
        server.create(SECRETS, named("store", {"authorization": encoded}))
        server.create(SECRETS, named("empty", {}))

    async def submit(self, hyperjob: Object) -> Object:  # type: ignore[override]
        return hyperjob


def named(name: str, data: dict[str, str]) -> Object:
    return {"metadata": {"namespace": "team", "name": name}, "data": data}


def container_of(hyperjob: Object) -> Object:
    (group,) = hyperjob["spec"]["replicatedJobs"]
    return group["templateSpec"]["tasks"][0]["template"]["spec"]["containers"][0]


def with_secret(hyperjob: Object) -> Object:
    """Set the variable of a Secret to its value, as a kubelet does."""
    for each in container_of(hyperjob)["env"]:
        if "secretKeyRef" in each.get("valueFrom", {}):
            assert each.pop("valueFrom") == {
                "secretKeyRef": {"name": "store", "key": "authorization"}
            }
            each["value"] = TOKEN
    return hyperjob


async def test_pods_read_a_large_folder_from_a_store_and_it_is_sent_once(tmp_path: Path) -> None:
    folder = large(tmp_path / "project")
    async with serving() as store:
        client = Client(url=store.url, secret="store")
        made = await client.train("-m package.train", args=["--lr", 1], workdir=folder)
        assert TOKEN not in str(made), "every reader of the HyperJob could read it"
        again = await client.train("-m package.train", workdir=folder)
        assert [method for method, _ in store.asked] == ["HEAD", "PUT", "HEAD"]
        store.answers += [503]  # a pod tries again
        done = await asyncio.to_thread(run, with_secret(made), tmp_path)
        assert (done.stdout, done.stderr) == ("from a relative import --lr 1\n", "")
        (path,) = store.files
        store.files[path] += b"x"
        changed = await asyncio.to_thread(run, with_secret(again), tmp_path)
        assert changed.returncode == 1
        assert "has other content than was sent: submit it again" in changed.stderr


async def test_a_script_of_a_large_folder_starts_in_it(tmp_path: Path) -> None:
    folder = large(tmp_path / "project")
    async with serving() as store:
        client = Client(url=store.url, secret="store")
        made = await client.train(folder / "tools" / "script.py", workdir=folder)
        done = await asyncio.to_thread(run, with_secret(made), tmp_path)
        assert done.stdout == "['package', 'tools']\n"


async def test_pods_read_a_large_folder_from_a_volume(tmp_path: Path) -> None:
    folder, volume = large(tmp_path / "project"), tmp_path / "volume"
    volume.mkdir()
    client = Client(claim="code", directory=str(volume))
    made = await client.train("-m package.train", workdir=folder)
    (archive,) = volume.iterdir()
    pod = made["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"]["spec"]
    (mount,) = pod["containers"][0]["volumeMounts"]
    assert pod["volumes"] == [
        {"name": mount["name"], "persistentVolumeClaim": {"claimName": "code"}}
    ]
    for each in pod["containers"][0]["env"]:  # the kubelet mounts the volume there
        each["value"] = each.get("value", "").replace(mount["mountPath"], str(volume))
    done = await asyncio.to_thread(run, made, tmp_path)
    assert done.stdout == "from a relative import\n"
    await client.train("-m package.train", workdir=folder)
    assert list(volume.iterdir()) == [archive], "an equal folder is the same archive"


async def test_a_volume_needs_no_secret_that_the_place_names_too(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    client = Client(claim="code", directory=str(volume), secret="store")
    await client.train("-m package.train", workdir=large(tmp_path / "project"))
    assert len(list(volume.iterdir())) == 1


async def test_pods_read_a_large_folder_by_the_signed_address_of_an_object_store(
    tmp_path: Path,
) -> None:
    fsspec = pytest.importorskip("fsspec")
    local = pytest.importorskip("fsspec.implementations.local").LocalFileSystem

    async with serving() as store:

        class Signing(local):  # type: ignore[misc]  # of a library that may be missing
            """A folder of this machine whose files the server has, as S3 has them."""

            protocol = "signing"

            def sign(self, path: str, expiration: int = 0) -> str:
                assert expiration == 7 * 24 * 3600
                name = Path(path).name
                store.files[f"/code/{name}"] = Path(path).read_bytes()
                return f"{store.url}/{name}?signature=s3cr3t"

        fsspec.register_implementation("signing", Signing, clobber=True)
        (tmp_path / "bucket").mkdir()
        client = Client(url=f"signing://{tmp_path}/bucket")
        made = await client.train("-m package.train", workdir=large(tmp_path / "project"))
        (archive,) = (tmp_path / "bucket").iterdir()
        assert archive.suffix == ".zip"
        done = await asyncio.to_thread(run, made, tmp_path)
        assert (done.returncode, "s3cr3t" in done.stderr) == (1, False)
        assert f"cannot read {store.url}/{archive.name}: HTTP Error 401" in done.stderr
        store.open = True
        done = await asyncio.to_thread(run, made, tmp_path)
        assert done.stdout == "from a relative import\n"


async def test_a_store_of_an_unknown_kind_is_named(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(SourceError, match="none://x: ValueError: Protocol not known: none"):
        await Client(url="none://x").train("-m package.train", workdir=large(tmp_path / "project"))


async def test_a_small_folder_needs_no_place(tmp_path: Path) -> None:
    made = await Client().train("-m package.train", workdir=project(tmp_path / "project"))
    assert "HYPERJOB_SDK_FOLDER" in {each["name"] for each in container_of(made)["env"]}


async def test_without_a_place_the_error_names_the_page_about_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"ask an administrator .* \(docs/tasks/data.md\)"):
        await Client().train("-m package.train", workdir=large(tmp_path / "project"))


WRONG: dict[str, tuple[Callable[[str], dict[str, str]], str]] = {
    "no key": (lambda _: {"link": "x"}, "ConfigMap team/hyperjob-code: expected the key url, or"),
    "both": (lambda url: {"url": url, "claim": "c", "directory": "/d"}, "expected the key url, or"),
    "half": (lambda _: {"claim": "c"}, "the keys claim and directory; it has claim"),
    "no volume": (lambda _: {"claim": "c", "directory": "/none"}, "/none: no such directory: the"),
    "no right": (lambda url: {"url": url}, r"PUT http://.*zip: 401 Unauthorized: the ConfigMap"),
    "no header": (lambda url: {"url": url, "secret": "empty"}, "Secret team/empty: it has no text"),
    "no Secret": (lambda url: {"url": url, "secret": "none"}, "secrets team/none not found"),
    "no server": (lambda _: {"url": "http://127.0.0.1:1/"}, "PUT http://127.0.0.1:1/.*Cannot conn"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_place_that_cannot_be_used_says_why(name: str, tmp_path: Path) -> None:
    data, message = WRONG[name]
    async with serving() as store:
        client = Client(**data(store.url))
        with pytest.raises(Exception, match=message) as raised:
            await client.train("-m package.train", workdir=large(tmp_path / "project"))
    assert type(raised.value).__module__ == "hyperjob.sdk.errors"


async def test_pods_say_which_archive_they_cannot_read(tmp_path: Path) -> None:
    folder = large(tmp_path / "project")
    volume = tmp_path / "volume"
    volume.mkdir()
    made = await Client(claim="code", directory=str(volume)).train(
        "-m package.train", workdir=folder
    )
    done = await asyncio.to_thread(run, made, tmp_path)
    assert done.returncode == 1
    assert "hyperjob: cannot read /hyperjob-code/" in done.stderr
    assert "No such file or directory" in done.stderr


async def test_the_header_of_a_place_is_in_no_text() -> None:
    place = await place_of(Client(url="https://x", secret="store").kube, "team")
    assert place == Place(url="https://x", secret="store", header=TOKEN)
    assert TOKEN not in repr(place)
