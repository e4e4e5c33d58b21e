"""Serving from files: pairs are swapped whole, and a bad one changes nothing."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta

import pytest

from hyperjob_certs.source import FileSource
from hyperjob_certs.store import Bundle, DirectoryStore, RotationPolicy, Stored, advance
from hyperjob_certs.x509 import InvalidPair, facts, issue_ca, issue_client, issue_serving
from tests.support.counts import Counts

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)


NAME = "certwatcher_read_certificate"


def reads(counts):
    """Return how often a pair was read since then, and how many of them could not be served."""
    return counts(f"{NAME}_total"), counts(f"{NAME}_errors_total")


class Files:
    """A certificate and a key in plain files, with an authority to make more."""

    def __init__(self, directory):
        self.certificate, self.key = directory / "tls.crt", directory / "tls.key"
        self.ca = issue_ca(common_name="ca", lifetime=100 * DAY, now=NOW)
        self.now = NOW
        self.counts = Counts()
        self.write(self.pair())

    def pair(self, lifetime=DAY):
        return issue_serving(
            self.ca, names=["localhost", "127.0.0.1"], lifetime=lifetime, now=self.now
        )

    def write(self, pair):
        self.certificate.write_bytes(pair.certificate)
        self.key.write_bytes(pair.key)

    def source(self):
        return FileSource(self.certificate, self.key, poll_seconds=0.01, clock=lambda: self.now)

    def loaded(self):
        source = self.source()
        source.load()
        return source


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


async def served_by(source, ca, *, server_hostname="localhost"):
    """Shake hands with a listener of this source and return the serial it shows."""

    async def hang_up(_reader, writer):
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=source.server_context())
    async with server:
        port = server.sockets[0].getsockname()[1]
        context = ssl.create_default_context(cadata=ca.certificate.decode())
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=server_hostname
        )
        tls = writer.get_extra_info("ssl_object")
        certificate = ssl.DER_cert_to_PEM_cert(tls.getpeercert(binary_form=True))
        writer.close()
        await writer.wait_closed()
    return facts(certificate.encode()).serial, tls


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
async def test_the_pair_is_served_with_and_without_a_server_name(files, name):
    source = files.loaded()
    serial, tls = await served_by(source, files.ca, server_hostname=name)
    assert serial == source.facts.serial
    assert tls.version() == "TLSv1.3"


async def test_tls_below_1_2_is_refused(files):
    source = files.loaded()
    assert source.server_context().minimum_version == ssl.TLSVersion.TLSv1_2


async def test_a_new_pair_is_served_to_new_connections(files):
    source = files.loaded()
    old = source.facts.serial
    files.write(files.pair())
    assert source.refresh()
    serial, _ = await served_by(source, files.ca)
    assert serial == source.facts.serial != old


BAD = {
    "of two different pairs": (
        lambda files: files.certificate.write_bytes(files.pair().certificate),
        "does not belong",
    ),
    "half written": (
        lambda files: files.certificate.write_bytes(files.pair().certificate[:100]),
        "no PEM certificate",
    ),
    "empty": (lambda files: files.key.write_bytes(b""), "is empty"),
    "gone": (lambda files: files.key.unlink(), "No such file"),
    "expired": (
        lambda files: files.write(files.pair(lifetime=-timedelta(seconds=1))),
        "expired at",
    ),
    "no certificate at all": (
        lambda files: files.certificate.write_bytes(b"x" * (2 << 20)),
        "larger than",
    ),
    "a directory": (lambda files: (files.key.unlink(), files.key.mkdir()), "Is a directory"),
}


@pytest.mark.parametrize(("spoil", "text"), BAD.values(), ids=BAD.keys())
async def test_the_old_pair_is_served_on_when_the_new_one_is(spoil, text, files, caplog):
    source = files.loaded()
    serial = source.facts.serial
    spoil(files)
    assert not source.refresh()
    assert not source.refresh()
    assert text in source.problem
    assert (await served_by(source, files.ca))[0] == serial
    assert reads(files.counts) == (3, 2)
    complaints = [record for record in caplog.records if "cannot be served" in record.message]
    assert len(complaints) == 1, "said once, not at every look"


@pytest.mark.parametrize(("spoil", "text"), BAD.values(), ids=BAD.keys())
def test_a_first_pair_cannot_be_loaded_when_it_is(spoil, text, files):
    spoil(files)
    with pytest.raises(InvalidPair, match=text):
        files.source().load()


def test_a_pair_from_the_future_is_taken_once_its_time_has_come(files):
    source = files.loaded()
    files.now += timedelta(hours=1)
    future = files.pair()
    files.now -= timedelta(hours=1)
    files.write(future)
    assert not source.refresh()
    files.now += timedelta(hours=1)
    assert source.refresh()


async def test_run_follows_the_files_until_it_is_cancelled(files):
    source = files.loaded()
    old = source.facts.serial
    following = asyncio.create_task(source.run())
    files.write(files.pair())
    async with asyncio.timeout(20):
        while source.facts.serial == old:  # noqa: ASYNC110 - swapped by a thread, without an event
            await asyncio.sleep(0.01)
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following


async def test_both_files_come_from_one_version_of_a_secret_volume(tmp_path):
    """Links of a mounted Secret are resolved once, whatever is swapped between the two reads."""
    store = DirectoryStore(tmp_path / "secret")
    policy = RotationPolicy(names=("localhost",))
    bundle, _ = advance(Bundle(), policy=policy, now=NOW)
    await store.save(bundle, over=Stored(Bundle()))
    source = FileSource(tmp_path / "secret/tls.crt", tmp_path / "secret/tls.key")
    source.load()
    stop = asyncio.Event()

    async def rotate():
        current = bundle
        for _ in range(40):
            current, _ = advance(
                Bundle(ca=current.ca, trusted=current.trusted), policy=policy, now=NOW
            )
            await store.save(current, over=Stored(Bundle()))
        stop.set()

    rotating = asyncio.create_task(rotate())
    while not stop.is_set():
        await asyncio.to_thread(source.refresh)
        assert source.problem is None or "No such file" in source.problem
        await asyncio.sleep(0)
    await rotating
    source.refresh()
    assert source.problem is None


class Clients:
    """An authority of client certificates, and clients of it and of another one."""

    def __init__(self, directory):
        self.directory = directory
        self.file = directory / "client-ca.crt"
        self.ca = issue_ca(common_name="clients", lifetime=DAY, now=NOW)
        self.file.write_bytes(self.ca.certificate)

    def served_by(self, files):
        """Return the source of a server that asks its clients for a certificate."""
        source = FileSource(files.certificate, files.key, client_ca_file=self.file)
        source.load()
        return source

    def context(self, files, ca=None):
        context = ssl.create_default_context(cadata=files.ca.certificate.decode())
        if ca is not None:
            pair = issue_client(ca, name="karmada-apiserver", lifetime=DAY, now=NOW)
            path = self.directory / "client.pem"
            path.write_bytes(pair.key + pair.certificate)
            context.load_cert_chain(path)
        return context


async def is_answered(source, context):
    """Tell whether a client gets through the handshake: it reads what is said to it after."""

    async def greet(_reader, writer):
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=source.server_context())
    async with server:
        port = server.sockets[0].getsockname()[1]
        try:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname="localhost"
            )
            said = await reader.read()
            writer.close()
        except (ssl.SSLError, ConnectionError):
            return False
        return said == b"hello"


async def test_with_an_authority_of_clients_only_theirs_are_answered(files):
    clients = Clients(files.certificate.parent)
    other = issue_ca(common_name="others", lifetime=DAY, now=NOW)
    source = clients.served_by(files)
    assert await is_answered(source, clients.context(files, clients.ca))
    assert not await is_answered(source, clients.context(files))
    assert not await is_answered(source, clients.context(files, other))


async def test_a_serving_certificate_is_no_client_certificate(files):
    clients = Clients(files.certificate.parent)
    clients.file.write_bytes(files.ca.certificate)
    source = clients.served_by(files)
    context = clients.context(files)
    stolen = clients.directory / "stolen.pem"
    stolen.write_bytes(files.key.read_bytes() + files.certificate.read_bytes())
    context.load_cert_chain(stolen)
    assert not await is_answered(source, context)


async def test_a_new_authority_of_clients_is_followed_and_a_bad_one_is_not(files):
    clients = Clients(files.certificate.parent)
    source = clients.served_by(files)
    old = clients.context(files, clients.ca)
    later = issue_ca(common_name="later", lifetime=DAY, now=NOW)
    clients.file.write_bytes(later.certificate)
    assert source.refresh()
    assert not await is_answered(source, old)
    assert await is_answered(source, clients.context(files, later))
    clients.file.write_text("nothing")
    assert not source.refresh()
    assert "client-ca.crt holds no PEM certificates of authorities" in source.problem
    assert await is_answered(source, clients.context(files, later))


def test_an_authority_of_clients_that_is_missing_is_refused_at_start(files):
    source = FileSource(files.certificate, files.key, client_ca_file=files.key.parent / "none")
    with pytest.raises(InvalidPair, match="none cannot be read"):
        source.load()
