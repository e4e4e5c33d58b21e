import pytest

from hyperjob_controller.options import Options, annotations_of, parse, published
from hyperjob_core.api.names import CONTROLLER_SETTINGS, QUEUE_ADMISSION
from hyperjob_core.settings import read_gates, show_gates
from hyperjob_engine.model.observed import QueueAdmission


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--queue-admission later", "later"),
        ("--log-format xml", "'xml' is none of text, json"),
        ("--workers 0", "--workers must be between 1 and 1000"),
        ("--cluster-status-lag -1", "--cluster-status-lag must be"),
        ("--leader-elect-lease-duration 4", "--leader-elect-lease-duration must be"),
        ("--metrics-bind-address here", "--metrics-bind-address: 'here' is not an address"),
        ("--debug-bind-address here", "--debug-bind-address: 'here' is not an address"),
        ("--workers many", "--workers: expected a whole number, got 'many'"),
        ("--gang-timeout inf", "expected a number of seconds, got 'inf'"),
        (
            "--metrics-cert-dir /tls --metrics-bind-address :8081",
            "--metrics-cert-dir needs a --metrics-bind-address of its own",
        ),
        ("--splitter-url ftp://x", "--splitter-url: 'ftp://x' is no http or https URL"),
        ("--splitter-url https://x", "--splitter-url needs --feature-gates=ExternalSplitter=true"),
        ("--feature-gates TrainJob=true", "no feature gate 'TrainJob'; did you mean 'TrainJobs'?"),
        ("--feature-gates TrainJobs", "expected TrainJobs=true or TrainJobs=false"),
        ("--work 3", "unrecognized arguments"),
    ],
)
def test_wrong_usage_is_told(arguments: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        parse(arguments.split())
    assert error.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://splitter", "https://splitter:8443/split"])
def test_the_splitter_has_a_web_address(url: str) -> None:
    gate = ["--feature-gates", "ExternalSplitter=true"]
    assert parse(["--splitter-url", url, *gate]).splitter_url == url


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("", {"TrainJobs"}),
        ("ExternalSplitter=true", {"TrainJobs", "ExternalSplitter"}),
        ("TrainJobs=false,ExternalSplitter=true", {"ExternalSplitter"}),
        ("TrainJobs=false,TrainJobs=true", {"TrainJobs"}),
    ],
)
def test_a_feature_gate_switches_a_feature_whose_default_its_stage_says(
    text: str, on: set[str]
) -> None:
    found = parse(["--feature-gates", text]).feature_gates
    assert found == on
    assert read_gates(show_gates(found)) == on


@pytest.mark.parametrize(
    ("flag", "least", "most"),
    [
        ("--workers", "1", "1000"),
        ("--cluster-status-lag", "0", "3600"),
        ("--cluster-lost-timeout", "0", "86400"),
        ("--gang-timeout", "1", "86400"),
        ("--usage-half-life-time", "0", "31536000"),
        ("--unschedulable-timeout", "0", "604800"),
        ("--start-timeout", "0", "604800"),
        ("--leader-elect-lease-duration", "5", "3600"),
        ("--progress-interval", "0.1", "3600"),
    ],
)
def test_a_number_may_be_the_least_and_the_most_that_is_named(
    flag: str, least: str, most: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in (least, most):
        found = getattr(parse([flag, value]), flag.removeprefix("--").replace("-", "_"))
        assert found == float(value)
    for value in (f"{int(float(least)) - 1}", f"{int(most) + 1}"):
        with pytest.raises(SystemExit):
            parse([f"{flag}={value}"])
        assert f"{flag} must be between {least} and {most}" in capsys.readouterr().err


def test_the_lease_publishes_the_settings_on_which_decisions_depend() -> None:
    options = parse(["--cluster-status-lag=5", "--tenant-messages=counts", "--workers=3"])
    annotations = annotations_of(options, admission=QueueAdmission.NONE)
    assert published(annotations) == Options(
        cluster_status_lag=5.0, tenant_messages="counts", queue_admission=QueueAdmission.NONE
    )


def test_a_value_of_another_release_leaves_the_other_settings_as_published() -> None:
    settings = '{"members": "everything", "cluster_status_lag": 5, "gang_timeout": -1}'
    annotations = {CONTROLLER_SETTINGS: settings, QUEUE_ADMISSION: "none"}
    assert published(annotations) == Options(
        cluster_status_lag=5, queue_admission=QueueAdmission.NONE
    )


@pytest.mark.parametrize(
    "annotations",
    [
        None,
        {},
        {CONTROLLER_SETTINGS: "no JSON"},
        {CONTROLLER_SETTINGS: "[]"},
        {CONTROLLER_SETTINGS: '{"cluster_status_lag": "a", "later": 1}'},
        {QUEUE_ADMISSION: "later"},
    ],
)
def test_settings_that_a_lease_does_not_publish_have_their_defaults(annotations: object) -> None:
    assert published(annotations) == Options()
