"""`hyperjob-certs` on a directory, and what it says when it cannot."""

import stat
from datetime import UTC, datetime, timedelta

import pytest

from hyperjob_certs.__main__ import main
from hyperjob_certs.x509 import Pair, check_pair, facts, is_signed_by, split_bundle


def run(*arguments):
    return main([str(argument) for argument in arguments])


def test_issue_makes_a_pair_and_its_authority_once(tmp_path, capsys):
    place = ("--directory", tmp_path / "tls")
    assert run("issue", *place, "--name", "localhost", "--name", "127.0.0.1") == 0
    files = {
        name: (tmp_path / "tls" / name).read_bytes() for name in ("tls.crt", "tls.key", "ca.crt")
    }
    pair = Pair(files["tls.crt"], files["tls.key"])
    assert check_pair(pair, now=datetime.now(UTC)).names == {"localhost", "127.0.0.1"}
    assert is_signed_by(files["tls.crt"], files["ca.crt"])
    assert run("issue", *place, "--name", "other") == 0
    assert (tmp_path / "tls/tls.crt").read_bytes() == files["tls.crt"]
    said = capsys.readouterr().out
    assert "new-ca: there is no authority" in said
    assert "`rotate` renews them" in said


def test_keys_are_for_the_owner_alone(tmp_path):
    run("issue", "--directory", tmp_path / "tls", "--name", "x")
    for name in ("tls.key", "ca.key"):
        mode = (tmp_path / "tls" / name).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE((tmp_path / "tls").stat().st_mode) == 0o700


def test_rotate_renews_in_place_and_leaves_nothing_behind(tmp_path):
    place = ("--directory", tmp_path / "tls")
    run("issue", *place, "--name", "a")
    for name in ("b", "c"):
        assert run("rotate", *place, "--name", name) == 0
    assert facts((tmp_path / "tls/tls.crt").read_bytes()).names == {"c"}
    assert len(split_bundle((tmp_path / "tls/ca.crt").read_bytes())) == 1
    names = sorted(path.name for path in (tmp_path / "tls").iterdir())
    assert [name for name in names if not name.startswith("..")] == [
        *("ca.crt", "ca.key", "tls.crt", "tls.key")
    ]
    assert len(names) == 4 + 2, "one version and the link to it"


def test_files_of_an_earlier_tool_are_replaced_by_links(tmp_path):
    (tmp_path / "tls.crt").write_text("old")
    assert run("issue", "--directory", tmp_path, "--name", "a") == 0
    assert (tmp_path / "tls.crt").is_symlink()


ISSUE = ("issue", "--directory", "d", "--name")
SECRET = ("issue", "--name", "x", "--secret")
CLIENT = ("client", "--directory", "d")
NO_NAME = "neither a DNS name nor an IP"
WRONG = {
    "no command": ((), "command"),
    "no place": (("issue", "--name", "x"), "--directory --secret"),
    "two places": ((*ISSUE, "x", "--secret", "a/b"), "not allowed"),
    "no name": (("issue", "--directory", "d"), "--name"),
    "a secret of two slashes": ((*SECRET, "a/b/c"), "NAMESPACE/NAME"),
    "a secret of an empty namespace": ((*SECRET, "/b"), "NAMESPACE"),
    "a secret of an empty name": ((*SECRET, "b/"), "NAMESPACE/NAME"),
    "a secret without a namespace": ((*SECRET, "b"), "NAMESPACE/NAME"),
    "a leaf that outlives its authority": ((*ISSUE, "x", "--days", "9999"), "must live shorter"),
    "a leaf that has ended": ((*ISSUE, "x", "--days", "0"), "more than 0"),
    "a lifetime of no number": ((*ISSUE, "x", "--days", "long"), "must be a number, got 'long'"),
    "a leaf that outlives the calendar": ((*ISSUE, "x", "--days", "1e9"), "and at most 36500"),
    "a client that has ended": ((*CLIENT, "--days", "-1"), "more than 0"),
    "a client without a name": ((*CLIENT, "--name", ""), "1 to 64 characters"),
    "a client whose user would be cut": ((*CLIENT, "--name", "x" * 65), "1 to 64 characters"),
    "no name at all": ((*ISSUE, ""), NO_NAME),
    "a name with a letter that no DNS name has": ((*ISSUE, "b\u00fccher"), NO_NAME),
    "an address of one interface": ((*ISSUE, "fe80::1%eth0"), NO_NAME),
}


@pytest.mark.parametrize(("arguments", "text"), WRONG.values(), ids=WRONG.keys())
def test_usage_errors(arguments, text, capsys):
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


def test_names_are_served_as_a_certificate_shows_them_and_are_not_issued_again(tmp_path, capsys):
    place = ("--directory", tmp_path / "tls")
    names = ("--name", "0:0:0:0:0:0:0:1", "--name", "Hooks.example", "--name", "*.hooks.example")
    assert run("issue", *place, *names) == 0
    issued = (tmp_path / "tls/tls.crt").read_bytes()
    assert facts(issued).names == {"::1", "hooks.example", "*.hooks.example"}
    assert run("rotate", *place, *names) == 0
    assert (tmp_path / "tls/tls.crt").read_bytes() == issued
    assert "nothing is due" in capsys.readouterr().out


def test_a_directory_that_cannot_be_written_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run("issue", "--directory", tmp_path / "file/tls", "--name", "x") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")


def test_injecting_what_is_no_authority_is_refused_before_any_call(tmp_path, capsys):
    (tmp_path / "ca.crt").write_text("hello")
    assert run("inject", "--ca-file", tmp_path / "ca.crt", "--kubeconfig", tmp_path / "none") == 1
    assert "no PEM certificate" in capsys.readouterr().err
    assert run("inject", "--directory", tmp_path / "empty") == 1
    assert "run `hyperjob-certs issue` first" in capsys.readouterr().err


def test_client_makes_a_client_certificate_once_and_keeps_no_key_that_signs(tmp_path, capsys):
    assert run("client", "--directory", tmp_path / "client", "--name", "karmada-apiserver") == 0
    files = {path.name: path.read_bytes() for path in (tmp_path / "client").iterdir()}
    assert set(files) == {"client-ca.crt", "client.crt", "client.key"}
    pair = Pair(files["client.crt"], files["client.key"])
    assert check_pair(pair, now=datetime.now(UTC)).subject == "CN=karmada-apiserver"
    assert is_signed_by(files["client.crt"], files["client-ca.crt"])
    assert stat.S_IMODE((tmp_path / "client/client.key").stat().st_mode) == 0o600
    assert run("client", "--directory", tmp_path / "client") == 1
    assert (tmp_path / "client/client.key").read_bytes() == files["client.key"]
    assert "File exists" in capsys.readouterr().err


def test_an_interrupted_rotation_of_a_directory_goes_on_with_what_can_be_read(tmp_path, capsys):
    place = ("--directory", tmp_path / "tls")
    run("issue", *place, "--name", "a")
    authority = (tmp_path / "tls/ca.crt").read_bytes()
    (tmp_path / "tls/tls.key").unlink()
    assert run("rotate", *place, "--name", "a") == 0
    assert (tmp_path / "tls/ca.crt").read_bytes() == authority
    assert "reissue-leaf: there is no serving certificate" in capsys.readouterr().out
    (tmp_path / "tls/ca.key").unlink()
    assert run("rotate", *place, "--name", "a") == 0
    assert "new-ca: there is no authority" in capsys.readouterr().out
    assert len(split_bundle((tmp_path / "tls/ca.crt").read_bytes())) == 2, "the old one is trusted"


def test_a_directory_that_is_a_link_elsewhere_loses_no_foreign_file(tmp_path):
    kept = tmp_path / "elsewhere" / "kept"
    kept.parent.mkdir()
    kept.write_text("x")
    (tmp_path / "tls").mkdir()
    (tmp_path / "tls/..data").symlink_to(kept.parent)
    assert run("issue", "--directory", tmp_path / "tls", "--name", "a") == 0
    assert kept.read_text() == "x"
    assert (tmp_path / "tls/..data").resolve().parent == tmp_path / "tls"


def test_issue_reports_each_step_and_the_certificate(tmp_path, capsys):
    assert run("issue", "--directory", tmp_path, "--name", "b", "--name", "a", "--days", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    found = facts((tmp_path / "tls.crt").read_bytes())
    assert lines == [
        "new-ca: there is no authority",
        "reissue-leaf: there is no serving certificate",
        f"serving certificate for a, b, valid until {found.not_after.isoformat()}",
    ]
    life = found.not_after - datetime.now(UTC)
    assert timedelta(days=1.9) < life <= timedelta(days=2)
    ends = facts((tmp_path / "ca.crt").read_bytes()).not_after - datetime.now(UTC)
    assert timedelta(days=3649) < ends <= timedelta(days=3650)
