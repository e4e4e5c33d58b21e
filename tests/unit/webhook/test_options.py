"""What the webhook can be told."""

import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from hyperjob_webhook.options import parse
from hyperjob_webhook.server import Limits

FILES = ["--tls-cert-file", "tls.crt", "--tls-private-key-file", "tls.key"]


def test_defaults():
    options = parse(FILES)
    assert options.tls_cert_file == Path("tls.crt")
    assert options.secure_port == 9443
    assert options.tls_min_version is ssl.TLSVersion.TLSv1_2
    assert Limits().request_timeout < 5, "below the timeoutSeconds of our configurations"
    assert options.metrics_address == options.health_probe_bind_address == ":8081"


BOUNDS = {
    "max_grace_period": (1, 604800, [0, -1, 604801]),
    "secure_port": (0, 65535, [-1, 65536]),
    "shutdown_delay": (0.0, 3600.0, [-0.1, 3600.1]),
}


@pytest.mark.parametrize(("name", "bounds"), BOUNDS.items(), ids=BOUNDS.keys())
def test_numbers_are_taken_within_their_bounds(name, bounds):
    least, most, wrong = bounds
    options = parse(FILES)
    for value in (least, most):
        assert getattr(replace(options, **{name: value}), name) == value
    for value in wrong:
        with pytest.raises(ValueError, match=f"--{name.replace('_', '-')} must be"):
            replace(options, **{name: value})


def test_a_version_of_tls_is_given_as_kubernetes_writes_it():
    options = parse([*FILES, "--tls-min-version", "VersionTLS13"])
    assert options.tls_min_version is ssl.TLSVersion.TLSv1_3


def test_addresses_of_the_side_door():
    apart = ["--health-probe-bind-address", "127.0.0.1:1", "--metrics-bind-address", "[::1]:2"]
    assert parse([*FILES, *apart]).metrics_address == "[::1]:2"
    assert parse([*FILES, "--metrics-bind-address", "0"]).metrics_address == "0"


WRONG = {
    "protected metrics on the port of the probes": (
        [*FILES, "--metrics-cert-dir", "/tls"],
        "--metrics-bind-address of its own",
    ),
    "no files": (["--secure-port", "1"], "--tls-cert-file, --tls-private-key-file"),
    "a port that is no number": ([*FILES, "--secure-port", "x"], "a whole number, got 'x'"),
    "a port of digits that are not ASCII": ([*FILES, "--secure-port", "٣"], "a whole number"),
    "a number below zero": ([*FILES, "--secure-port", "-1"], "a whole number, got '-1'"),
    "a time that is no number": (
        [*FILES, "--shutdown-delay", "1s"],
        "expected a number of seconds, got '1s'",
    ),
    "a port out of range": ([*FILES, "--secure-port", "65536"], "between 0 and 65535"),
    "a bad address": ([*FILES, "--health-probe-bind-address", "8081"], "'8081' is not an address"),
    "an endless time": ([*FILES, "--shutdown-delay", "inf"], "a number of seconds"),
    "a time limit too long": ([*FILES, "--shutdown-delay", "3601"], "--shutdown-delay must be"),
    "an old TLS": ([*FILES, "--tls-min-version", "VersionTLS11"], "VersionTLS12, VersionTLS13"),
    "a bad format": ([*FILES, "--log-format", "xml"], "--log-format: 'xml' is none of"),
    "an abbreviated flag": ([*FILES, "--secure", "1"], "unrecognized arguments"),
}


@pytest.mark.parametrize(("arguments", "text"), WRONG.values(), ids=WRONG.keys())
def test_what_makes_no_sense_is_a_usage_error(arguments, text, capsys):
    with pytest.raises(SystemExit) as exit_:
        parse(arguments)
    assert exit_.value.code == 2
    assert text in capsys.readouterr().err
