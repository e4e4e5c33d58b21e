"""The flags of `hyperjob ui`: who may reach the page, and what cannot be together."""

from collections.abc import AsyncIterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hyperjob.cli import main
from hyperjob.cli.kubectl.exits import FailureError
from hyperjob.cli.ui import VisitorOptions
from hyperjob_core.telemetry.endpoints import ListenError
from hyperjob_page.serve import metrics_served
from tests.support.peer import misbehaving


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--require-login"], "--require-login needs --allowed-host"),
        (["--allowed-host", "a"], "--allowed-host needs --require-login"),
        (["--session-key-file", "k"], "--session-key-file needs --require-login"),
        (["--listen", "0.0.0.0:8000"], "other machines can reach --listen 0.0.0.0"),
        (["--listen", "x:y"], "give HOST:PORT or a port"),
    ],
)
def test_flags_that_cannot_be_are_usage_errors(words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["ui", "--no-open", *words])
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())


async def test_an_address_of_the_metrics_that_is_in_use_is_named_with_its_flag(
    tmp_path: Path,
) -> None:
    async def nothing(_: str) -> AsyncIterator[bytes]:
        yield b""

    async with misbehaving(nothing, tmp_path) as peer:
        taken = peer.url.removeprefix("http://")
        with pytest.raises(ListenError, match=rf"{taken}: .* in use; .* --metrics-bind-address"):
            async with metrics_served(taken, None):
                pass
    with pytest.raises(OSError, match="--metrics-cert-dir: "):
        async with metrics_served("127.0.0.1:0", tmp_path):
            pass
    async with metrics_served("0", tmp_path) as addresses:
        assert addresses.metrics is None


def options(key: Path | None) -> VisitorOptions:
    return VisitorOptions(
        require_login=True,
        session_key_file=key,
        hosts=("a",),
        read_only=False,
    )


def test_a_page_has_the_key_of_its_file_and_without_a_file_one_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(bytes(range(32)))
    assert options(file).key == bytes(range(32))
    assert len({options(None).key for _ in range(2)}) == 2
    options(None).check("0.0.0.0")


def test_a_key_that_is_missing_or_short_is_named_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(FailureError, match=r"cannot read .*/none: No such file.*credentials renew"):
        _ = options(tmp_path / "none").key
    file = tmp_path / "short"
    file.write_bytes(b"short")
    with pytest.raises(FailureError, match=r"short has 5 bytes, and a key at least 32"):
        _ = options(file).key


def test_a_page_without_login_is_for_this_machine_alone() -> None:
    open_ = VisitorOptions(
        require_login=False,
        session_key_file=None,
        hosts=(),
        read_only=False,
    )
    open_.check("127.0.0.1")
    with pytest.raises(click.UsageError, match="every visitor would have your rights"):
        open_.check("192.0.2.1")
