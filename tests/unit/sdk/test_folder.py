"""What of a script's folder goes into a HyperJob, which every reader of it can see."""

import base64
import io
import random
import zipfile
from pathlib import Path

import pytest

from hyperjob.sdk import SourceError
from hyperjob.sdk import folder as folders
from hyperjob.sdk.folder import LONGEST_BYTES, Folder

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n"
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: []
users:
- name: me
  user: {token: secret}
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {"train.py": "import helper\n", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "train.py"


def folder_of(script: Path) -> tuple[str, str]:
    return Folder.of(script.parent, needed=script).text(), script.name


def sent(script: Path) -> set[str]:
    text, name = folder_of(script)
    names = zipfile.ZipFile(io.BytesIO(base64.b64decode(text))).namelist()
    assert name in names
    return set(names) - {name}


def test_a_script_travels_with_its_folder(tmp_path: Path) -> None:
    script = write(
        tmp_path, {"helper.py": "x = 1\n", "data/a.txt": "", "__pycache__/helper.pyc": ""}
    )
    assert sent(script) == {"helper.py", "data/a.txt"}
    assert folder_of(script) == folder_of(script), "equal folders, equal HyperJobs"


@pytest.mark.parametrize(
    "name", [".env", ".ssh/id_ed25519", ".aws/credentials", ".kube/config", "data/.netrc"]
)
def test_what_begins_with_a_dot_stays(tmp_path: Path, name: str) -> None:
    assert sent(write(tmp_path, {name: "secret", "helper.py": ""})) == {"helper.py"}


CREDENTIALS = {
    "a kubeconfig": ("karmada.yaml", KUBECONFIG, "it is a kubeconfig"),
    "a kubeconfig in JSON": (
        "admin.conf",
        '{"kind": "Config", "current-context": "c", "users": []}',
        "it is a kubeconfig",
    ),
    "a private key": ("deploy", KEY, "it has a private key"),
    "a service account": (
        "account.json",
        '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMII"}',
        "it has a private key",
    ),
    "a key store": ("client.p12", "", "a file *.p12 usually has a private key"),
    "a key store of Windows": ("CLIENT.PFX", "", "a file *.PFX usually has a private key"),
}


@pytest.mark.parametrize(("name", "text", "why"), CREDENTIALS.values(), ids=CREDENTIALS)
def test_files_with_credentials_stay_and_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, why: str
) -> None:
    # An ignore file cannot bring them back.
    script = write(tmp_path, {name: text, "helper.py": "", ".hyperjobignore": f"!{name}\n"})
    assert sent(script) == {"helper.py"}
    assert f"hyperjob: {name} stays here: {why}\n" in capsys.readouterr().err


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


def test_other_yaml_and_certificates_travel(tmp_path: Path) -> None:
    files = {
        "config.yaml": "kind: Config\nsteps: 3\n",
        "ca.pem": "-----BEGIN CERTIFICATE-----\n",
        "makes_kubeconfigs.py": f"TEXT = '''{KUBECONFIG}'''\n",
    }
    assert sent(write(tmp_path, files)) == files.keys()


def test_a_script_with_a_private_key_is_refused(tmp_path: Path) -> None:
    script = write(tmp_path, {"train.py": f"KEY = '''{KEY}'''\n"})
    with pytest.raises(SourceError, match="it has a private key, and every reader of the HyperJob"):
        folder_of(script)


IGNORING = {
    "a pattern": ({".gitignore": "*.log\n"}, {"helper.py", "data/b.txt"}),
    "a comment and an exception": (
        {".gitignore": "# no logs\n*.log\n!a.log\n"},
        {"helper.py", "a.log", "data/b.txt"},
    ),
    "a folder": ({".gitignore": "data/\n"}, {"helper.py", "a.log"}),
    "the script, which is sent all the same": (
        {".gitignore": "*.py\n"},
        {"a.log", "data/b.txt", "data/c.log"},
    ),
    "of a folder inside": ({"data/.gitignore": "*\n"}, {"helper.py", "a.log"}),
    "of an inner folder against the outer": (
        {".gitignore": "*.log\n", "data/.gitignore": "!c.log\n"},
        {"helper.py", "data/b.txt", "data/c.log"},
    ),
    ".hyperjobignore beside .gitignore": (
        {".gitignore": "*.log\n", ".hyperjobignore": "!a.log\ndata\n"},
        {"helper.py", "a.log"},
    ),
    "an anchored pattern": (
        {".gitignore": "/b.txt\n/a.log\n"},
        {"helper.py", "data/b.txt", "data/c.log"},
    ),
}


@pytest.mark.parametrize(("ignoring", "expected"), IGNORING.values(), ids=IGNORING)
def test_ignored_files_stay(tmp_path: Path, ignoring: dict[str, str], expected: set[str]) -> None:
    files = {"helper.py": "", "a.log": "", "data/b.txt": "", "data/c.log": ""}
    assert sent(write(tmp_path, files | ignoring)) == expected


@pytest.mark.parametrize("is_repository", [True, False])
def test_the_rules_of_the_repository_above_hold(tmp_path: Path, is_repository: bool) -> None:
    (tmp_path / ".gitignore").write_text("/jobs/secret.txt\n")
    if is_repository:
        (tmp_path / ".git").mkdir()
    found = sent(write(tmp_path / "jobs", {"secret.txt": "", "helper.py": ""}))
    assert found == {"helper.py"} | (set() if is_repository else {"secret.txt"})


def test_what_is_sent_is_listed_with_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {f"part{number:02d}.txt": "x" * 1500 for number in range(12)}
    folder_of(write(tmp_path, files))
    said = capsys.readouterr().err
    assert f"{tmp_path} goes into the HyperJob (18 KiB): part00.txt 2 KiB, part01.txt 2 KiB" in said
    assert said.endswith(" and 3 more\n")


def test_a_folder_that_is_too_large_names_the_largest_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = write(tmp_path, {"small.txt": "x"})
    (tmp_path / "data.bin").write_bytes(random.Random(7).randbytes(3 * LONGEST_BYTES))
    message = (
        "contain at most 96 KiB: data.bin 288 KiB, train.py 14 B, small.txt 1 B.*hyperjobignore"
    )
    with pytest.raises(SourceError, match=message):
        folder_of(script)
    monkeypatch.setattr(folders, "_PACKED_BYTES", LONGEST_BYTES)
    with pytest.raises(SourceError, match=r"takes more than 64 MiB, .*: data.bin 288 KiB"):
        folder_of(script)
    monkeypatch.setattr(folders, "_MOST_FILES", 2)
    with pytest.raises(SourceError, match="more than 2 files: put the script into a folder"):
        folder_of(script)


def test_a_virtual_environment_of_any_name_stays_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "env311" / "lib").mkdir(parents=True)
    (tmp_path / "env311" / "pyvenv.cfg").touch()
    (tmp_path / "env311" / "lib" / "big.py").touch()
    assert [path.name for path in Folder.of(tmp_path).sent] == ["train.py"]


def test_an_archive_has_a_bound_and_equal_folders_have_equal_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, {"text.txt": "x" * 5000})
        (tmp_path / f"to-{name}").mkdir()
    first, second = (
        Folder.of(tmp_path / name).archive(tmp_path / f"to-{name}") for name in ("a", "b")
    )
    assert first.name == second.name
    monkeypatch.setattr(folders, "_MOST_BYTES", 4000)
    with pytest.raises(SourceError, match=r"leave data out by a \.hyperjobignore"):
        Folder.of(tmp_path / "a").archive(tmp_path)
