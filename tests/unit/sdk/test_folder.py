"""What of a script's folder goes into a HyperJob, which every reader of it can see."""

import base64
import io
import random
import re
import zipfile
from pathlib import Path

import pytest

from hyperjob.sdk import SourceError
from hyperjob.sdk import folder as folders
from hyperjob.sdk.folder import LONGEST_BYTES, Folder

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {"train.py": "import helper\n", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "train.py"


def folder_of(script: Path, *include: str) -> tuple[str, str]:
    return Folder.of(script.parent, script, include).text(), script.name


def sent(script: Path, *include: str) -> set[str]:
    text, name = folder_of(script, *include)
    names = zipfile.ZipFile(io.BytesIO(base64.b64decode(text))).namelist()
    assert name in names
    return set(names) - {name}


def test_a_script_travels_with_the_python_files_of_its_folder(tmp_path: Path) -> None:
    files = {"helper.py": "x = 1\n", "data/parts.py": "", "__pycache__/helper.py": ""}
    script = write(tmp_path, files)
    assert sent(script) == {"helper.py", "data/parts.py"}
    assert folder_of(script) == folder_of(script), "equal folders, equal HyperJobs"


SECRETS = [
    *("credentials", "netrc", "config.json", "token", "secret.yaml", "prod.env", "id_rsa"),
    *("karmada.config", "client.p12", "deploy.key", "account.json", "requirements.txt"),
    *(".env", ".ssh/id_ed25519", ".aws/credentials", ".docker/config.json", "data/.netrc"),
    *(".secret.py", ".venv/secret.py", "node_modules/secret.py", "train.py~", "a.py.bak", "a.PY"),
]


@pytest.mark.parametrize("name", SECRETS)
def test_every_other_file_stays_on_this_machine(tmp_path: Path, name: str) -> None:
    assert sent(write(tmp_path, {name: "secret", "helper.py": ""})) == {"helper.py"}


INCLUDED = {
    "a file": (["config.yaml"], {"config.yaml"}),
    "a file in a folder": (["data/b.txt"], {"data/b.txt"}),
    "a hidden file": ([".tokenizer/vocab"], {".tokenizer/vocab"}),
    "an ignored file": (["data/ignored.txt"], {"data/ignored.txt"}),
    "files of a pattern, without hidden and ignored ones": (
        ["*.txt"],
        {"a.txt", "data/b.txt"},
    ),
    "a folder": (["data"], {"data/b.txt", "data/c.bin"}),
    "an anchored pattern": (["/*.txt"], {"a.txt"}),
    "several": (["config.yaml", "data/*.bin"], {"config.yaml", "data/c.bin"}),
}


@pytest.mark.parametrize(("include", "expected"), INCLUDED.values(), ids=INCLUDED)
def test_files_that_the_author_names_travel_too(
    tmp_path: Path, include: list[str], expected: set[str]
) -> None:
    names = ["config.yaml", "a.txt", "data/b.txt", "data/c.bin", "data/ignored.txt", "secret.yaml"]
    files = dict.fromkeys([*names, ".tokenizer/vocab", ".tokenizer/x.txt"], "x")
    script = write(tmp_path, {**files, ".gitignore": "ignored.*\n"})
    assert sent(script, *include) == expected


NOT_INCLUDED = {
    "no file": ("config.yml", "no file of .* has this path or matches it"),
    "a pattern of hidden files": (".*", ".* a pattern names neither hidden files nor"),
    "a file above": ("../secret.txt", "the file is not in"),
    "a file elsewhere": ("/etc/passwd", "the file is not in"),
    "a link to a file elsewhere": ("link", "the file is not in"),
    "a pattern above": ("../*.txt", "no file of"),
    "an exception": ("!*.txt", "no file of"),
    "no pattern": ("a[", "no file of"),
}


@pytest.mark.parametrize(("wanted", "message"), NOT_INCLUDED.values(), ids=NOT_INCLUDED)
def test_what_names_no_file_of_the_folder_is_refused(
    tmp_path: Path, wanted: str, message: str
) -> None:
    (tmp_path / "secret.txt").touch()
    script = write(tmp_path / "project", {"a.txt": "", ".env": ""})
    (script.parent / "link").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(SourceError, match=rf"include={re.escape(repr(wanted))}: {message}"):
        folder_of(script, wanted)


@pytest.mark.parametrize("name", ["train.py", "helper.py", "deploy"])
def test_a_file_with_a_private_key_is_refused(tmp_path: Path, name: str) -> None:
    script = write(tmp_path, {"deploy": "", name: f"KEY = '''{KEY}'''\n"})
    with pytest.raises(SourceError, match=f"{name}: it has a private key, and every reader of the"):
        folder_of(script, "deploy")


def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write(tmp_path, {"helper.py": ""})
    read = Path.read_bytes

    def denied(path: Path) -> bytes:
        if path.name == "helper.py":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(SourceError, match=r"helper\.py: Permission denied"):
        folder_of(script)


IGNORING = {
    "a pattern": ({".gitignore": "*_log.py\n"}, {"helper.py", "data/b.py"}),
    "a comment and an exception": (
        {".gitignore": "# no logs\n*_log.py\n!a_log.py\n"},
        {"helper.py", "a_log.py", "data/b.py"},
    ),
    "a folder": ({".gitignore": "data/\n"}, {"helper.py", "a_log.py"}),
    "the script, which is sent all the same": ({".gitignore": "*.py\n"}, set()),
    "of a folder inside": ({"data/.gitignore": "*\n"}, {"helper.py", "a_log.py"}),
    "of an inner folder against the outer": (
        {".gitignore": "*_log.py\n", "data/.gitignore": "!c_log.py\n"},
        {"helper.py", "data/b.py", "data/c_log.py"},
    ),
    ".hyperjobignore beside .gitignore": (
        {".gitignore": "*_log.py\n", ".hyperjobignore": "!a_log.py\ndata\n"},
        {"helper.py", "a_log.py"},
    ),
    "an anchored pattern": (
        {".gitignore": "/b.py\n/a_log.py\n"},
        {"helper.py", "data/b.py", "data/c_log.py"},
    ),
}


@pytest.mark.parametrize(("ignoring", "expected"), IGNORING.values(), ids=IGNORING)
def test_ignored_files_stay(tmp_path: Path, ignoring: dict[str, str], expected: set[str]) -> None:
    files = {"helper.py": "", "a_log.py": "", "data/b.py": "", "data/c_log.py": ""}
    assert sent(write(tmp_path, files | ignoring)) == expected


@pytest.mark.parametrize("is_repository", [True, False])
def test_the_rules_of_the_repository_above_hold(tmp_path: Path, is_repository: bool) -> None:
    (tmp_path / ".gitignore").write_text("/jobs/secret.py\n")
    if is_repository:
        (tmp_path / ".git").mkdir()
    found = sent(write(tmp_path / "jobs", {"secret.py": "", "helper.py": ""}))
    assert found == {"helper.py"} | (set() if is_repository else {"secret.py"})


def test_what_is_sent_and_what_stays_is_listed_before_it_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {f"part{number:02d}.py": "x" * 1500 for number in range(32)}
    more = {"vocab.json": "{}", "notes.md": "", "prod.env": ""}
    folder_of(write(tmp_path, {**files, **more}), "vocab.json")
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(
        f"hyperjob: 34 files of {tmp_path} (47 KiB) go into the HyperJob, whose readers can read"
        " them: vocab.json 2 B, part00.py 2 KiB, part01.py 2 KiB, "
    )
    assert first.endswith(" and 4 more")
    assert second == (
        "hyperjob: 2 files of other kinds stay here: notes.md, prod.env; include=['notes.md'], or"
        " --include of `hyperjob run`, sends one"
    )


def test_names_cannot_write_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("a\x1b[2Jb.py", "c\nhyperjob: 0 files.py", "d\u202ee", "f\rg")
    script = write(tmp_path, dict.fromkeys(names, "x"))
    folder_of(script)
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 2
    assert not any(sign in said for sign in "\x1b\r\u202e")
    assert "a\\u001b[2Jb.py 1 B" in said
    assert "c\\nhyperjob: 0 files.py 1 B" in said
    (tmp_path / names[0]).write_text(KEY)
    with pytest.raises(SourceError, match=r"a\\u001b\[2Jb\.py: it has a private key"):
        folder_of(script)


def test_a_folder_that_is_too_large_names_the_largest_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write(tmp_path, {"small.py": "x"})
    (tmp_path / "data.bin").write_bytes(random.Random(7).randbytes(3 * LONGEST_BYTES))
    message = (
        "contain at most 96 KiB: data.bin 288 KiB, train.py 14 B, small.py 1 B.*hyperjobignore"
    )
    with pytest.raises(SourceError, match=message):
        folder_of(script, "data.bin")
    monkeypatch.setattr(folders, "_PACKED_BYTES", LONGEST_BYTES)
    with pytest.raises(SourceError, match=r"takes more than 64 MiB, .*: data.bin 288 KiB"):
        folder_of(script, "data.bin")
    monkeypatch.setattr(folders, "_MOST_FILES", 2)
    with pytest.raises(SourceError, match="more than 2 files: put the script into a folder"):
        folder_of(script, "data.bin")


def test_a_virtual_environment_of_any_name_stays_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "env311" / "lib").mkdir(parents=True)
    (tmp_path / "env311" / "pyvenv.cfg").touch()
    (tmp_path / "env311" / "lib" / "big.py").touch()
    assert [path.name for path in Folder.of(tmp_path).sent] == ["train.py"]
