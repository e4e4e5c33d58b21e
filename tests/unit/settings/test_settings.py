"""Settings of a process: its flags, and how a mistake is told."""

from dataclasses import dataclass, fields
from typing import Any

import pytest

import hyperjob_controller.options
import hyperjob_webhook.options
from hyperjob_core.settings import Setting, read_options


@dataclass(frozen=True, kw_only=True)
class Options:
    name: str
    workers: int = 8
    level: str = "info"
    leader_elect: bool = True
    context: str | None = None

    def __post_init__(self) -> None:
        if self.workers > 100:
            raise ValueError("--workers must be at most 100")


SETTINGS = {
    "name": Setting("whose"),
    "workers": Setting("how many", int),
    "level": Setting("how much", choices=("info", "debug")),
    "leader_elect": Setting("whether to"),
    "context": Setting("where"),
}


def read(arguments: list[str]) -> Options:
    return read_options(Options, SETTINGS, prog="it", description="Do it.", arguments=arguments)


def test_a_setting_is_that_of_its_flag_else_the_default() -> None:
    assert read(["--name=a"]) == Options(name="a")
    options = read(["--name", "a", "--workers=2", "--level", "debug", "--no-leader-elect"])
    assert options == Options(name="a", workers=2, level="debug", leader_elect=False)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "the following arguments are required: --name"),
        (["--name=a", "--workers=many"], "--workers: invalid literal"),
        (["--name=a", "--workers=101"], "--workers must be at most 100"),
        (["--name=a", "--level=loud"], "--level: 'loud' is none of info, debug"),
        (["--name=a", "--lev=info"], "unrecognized arguments"),
        (["--nam", "a"], "unrecognized arguments: --nam a; did you mean '--name'?"),
        (["--name=a", "--zzz"], "unrecognized arguments: --zzz; --help lists them"),
    ],
)
def test_a_mistake_is_told_by_the_name_of_its_flag(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("module", [hyperjob_controller.options, hyperjob_webhook.options])
def test_help_shows_every_setting_with_its_default(
    module: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, options = module.SETTINGS, fields(module.Options)
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit):
        module.parse(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert set(settings) == {field.name for field in options}
    for field in options:
        setting = settings[field.name]
        rest = shown.partition(" ".join(setting.help.split()))[2]
        assert rest, field.name
        if field.default is not None:
            assert rest.startswith((" (default: ", " (required)")), field.name
    assert "lowest level in the log (default: info)" in shown
