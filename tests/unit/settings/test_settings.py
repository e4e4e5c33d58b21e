"""Settings of a process: which way wins, and how a mistake is told."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
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


def read(arguments: list[str], environment: dict[str, str] | None = None) -> Options:
    return read_options(
        Options,
        SETTINGS,
        prog="it",
        description="Do it.",
        arguments=arguments,
        environment=environment or {},
    )


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "it.yaml"
    file.write_text("name: file\nworkers: 1\nlevel: debug\nleader-elect: false\n")
    environment = {"HYPERJOB_WORKERS": "2", "HYPERJOB_NAME": "environment"}
    options = read(["--config", str(file), "--name=flag"], environment)
    assert options == Options(name="flag", workers=2, level="debug", leader_elect=False)
    assert read(["--config", str(file)]).workers == 1
    assert read([], {"HYPERJOB_CONFIG": str(file)}).name == "file"
    assert read(["--config", str(file), "--leader-elect"]).leader_elect


def test_an_empty_file_leaves_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "it.yaml"
    file.write_text("# nothing yet\n")
    assert read(["--name=a", "--config", str(file)]) == Options(name="a")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("worker: 3", "unknown setting 'worker'; did you mean 'workers'?"),
        ("zzz: 3", "unknown setting 'zzz'; --help lists them"),
        ("config: other.yaml", "unknown setting 'config'"),
        ("leader_elect: true", "did you mean 'leader-elect'?"),
        ("workers: many", "workers: invalid literal"),
        ("workers:", "workers: must have one value"),
        ("workers: [1]", "workers: must have one value"),
        ("workers: 1\nworkers: 2", "workers: is given twice"),
        ("level: loud", "level: 'loud' is none of info, debug"),
        ("leader-elect: maybe", "leader-elect: 'maybe' is neither true nor false"),
        ("- workers", "must have one `setting: value` on each line"),
        ("[a]: 1", "line 1: a setting has no name"),
        ("workers: 1: 2", "is no YAML document"),
        ("workers: 101", "--workers must be at most 100"),
        ("\x00", "is no YAML document"),
    ],
)
def test_a_mistake_in_the_file_is_told_by_name(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "it.yaml"
    file.write_text(text)
    with pytest.raises(SystemExit) as ended:
        read(["--name=a", "--config", str(file)])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert told in error
    assert "--workers must" in error or str(file) in error


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        ([], {}, "the following arguments are required: --name"),
        (["--config", "/nowhere/it.yaml", "--name=a"], {}, "cannot be read: No such file"),
        (["--name=a"], {"HYPERJOB_WORKERS": "x"}, "HYPERJOB_WORKERS: invalid literal"),
        (["--name=a", "--level=loud"], {}, "--level: 'loud' is none of info, debug"),
        (["--name=a", "--lev=info"], {}, "unrecognized arguments"),
        (["--nam", "a"], {}, "unrecognized arguments: --nam a; did you mean '--name'?"),
    ],
)
def test_other_mistakes_name_where_they_were_made(
    arguments: list[str],
    environment: dict[str, str],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        read(arguments, environment)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("parse", "kind", "settings"),
    [
        (
            hyperjob_controller.options.parse,
            hyperjob_controller.options.Options,
            hyperjob_controller.options.SETTINGS,
        ),
        (
            hyperjob_webhook.options.parse,
            hyperjob_webhook.options.Options,
            hyperjob_webhook.options.SETTINGS,
        ),
    ],
    ids=["controller", "webhook"],
)
def test_help_shows_every_setting_with_its_variable_and_its_default(
    parse: Callable[..., Any], kind: type, settings: dict[str, Setting], capsys: Any
) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"], {"HYPERJOB_LOG_LEVEL": "debug"})
    shown = " ".join(capsys.readouterr().out.split())
    assert "[HYPERJOB_CONFIG]" in shown
    assert set(settings) == {field.name for field in fields(kind)}
    for field in fields(kind):
        rest = shown.partition(f"[HYPERJOB_{field.name.upper()}]")[2]
        assert rest, field.name
        if field.default is not None:
            assert rest.startswith((" (default: ", " (required)")), field.name
    assert "[HYPERJOB_LOG_LEVEL] (default: info)" in shown
