"""`hyperjob usage`: the accelerator hours of queues, namespaces and clusters, from Prometheus."""

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import click
from rich.text import Text

from hyperjob import __version__
from hyperjob.cli.files import file_option
from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, Parsed, access
from hyperjob.cli.kubectl.exits import FailureError, run
from hyperjob.client.durations import parse_duration
from hyperjob.client.prometheus import LABELS, METRIC, RECORD, Prometheus, Used
from hyperjob.table import table
from hyperjob_core.api.duration import utc_now
from hyperjob_core.api.wire import rfc3339, timestamp
from hyperjob_core.kube import config

_LONGEST = timedelta(days=3660)
_NAME = "[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
_SERVICE = re.compile(f"({_NAME})/({_NAME}:{_NAME})")


def _labels(value: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(value.split(",")))
    if not set(words) <= set(LABELS):
        raise ValueError(f"{value!r} is not of {', '.join(LABELS)}, joined by commas")
    return words


def _moment(value: str) -> datetime:
    """Return the time of a date, a time, or a duration before now such as 30d or 12h."""
    days, mark, rest = value.rpartition("d")
    try:
        before = parse_duration(rest) if rest or not mark else 0.0
        return utc_now() - timedelta(days=int(days or 0), seconds=before)
    except (ValueError, OverflowError):
        moment = timestamp(value)
    if moment is None:
        raise ValueError(f"{value!r} is neither a duration (30d, 12h) nor a date")
    return moment


def _proxy(value: str) -> str:
    found = _SERVICE.fullmatch(value)
    if found is None:
        raise ValueError("give NAMESPACE/NAME:PORT")
    return f"/api/v1/namespaces/{found[1]}/services/{found[3]}/proxy"


@click.command()
@access(namespaced=False)
@click.option(
    "--since",
    type=Parsed("time", _moment),
    metavar="TIME",
    default="30d",
    show_default=True,
    help="Begin: 30d, or 2026-11-01.",
)
@click.option(
    "--until",
    type=Parsed("time", _moment),
    metavar="TIME",
    default="0d",
    help="End, the same.  [default: now]",
)
@click.option(
    "--by",
    type=Parsed("labels", _labels),
    metavar="LABELS",
    default="queue,use",
    show_default=True,
    help=", ".join(LABELS),
)
@click.option("--queue", metavar="NAME", default="", help="Only this queue.")
@click.option(
    "--recorded", is_flag=True, help="Add up the record of the chart's PrometheusRule: faster."
)
@click.option(
    "--prometheus-url",
    "url",
    envvar="HYPERJOB_PROMETHEUS_URL",
    show_envvar=True,
    metavar="URL",
    help="Address of Prometheus, or of what has its API.",
)
@click.option(
    "--service",
    metavar="NAMESPACE/NAME:PORT",
    type=Parsed("service", _proxy),
    help="Service of Prometheus, through the API server of --kubeconfig and --context.",
)
@file_option("--token-file", text="Bearer token for --prometheus-url, an https address.")
@file_option("--ca-file", text="Certificate authorities of --prometheus-url.")
@out.output(out.JSON)
def usage(
    access: Access,
    since: datetime,
    until: datetime,
    by: Sequence[str],
    queue: str,
    recorded: bool,
    url: str | None,
    service: str | None,
    token_file: Path | None,
    ca_file: Path | None,
    form: str,
) -> None:
    """Show the accelerator hours that HyperJobs used, and for what.

    Prometheus has them, also of deleted HyperJobs. SHARE is that of a use in its queue, or of a row
    in all rows. Kinds of accelerators are never added: there is a column where there are several. A
    date is midnight in UTC.

    Exit code 1: Prometheus does not answer, refuses, or has no metrics of HyperJob in this time.

    Example: hyperjob usage --since 30d --by queue,use --prometheus-url http://prometheus:9090

    Example: hyperjob usage --context host --service monitoring/prometheus-operated:9090
    """
    seconds = round((until - since).total_seconds())
    if not 1 <= seconds <= _LONGEST.total_seconds():
        raise click.UsageError("--since must be before --until, by at most ten years")
    if bool(url) == bool(service):
        raise click.UsageError(
            "name one Prometheus: --prometheus-url, or --service in the cluster of the kubeconfig"
        )
    if token_file and not (url or "").startswith("https://"):
        raise click.UsageError("--token-file needs a --prometheus-url with https")

    async def ask() -> tuple[list[Used], datetime | None]:
        from hyperjob_core.kube.http import HttpTransport  # a slow import: not for --help

        if url:
            connection = await config.direct(url, token_file=token_file, ca_file=ca_file)
        else:
            connection = await config.load(access.kubeconfig, context=access.context)
        agent = f"kubectl-hyperjob/{__version__}"
        async with HttpTransport(connection, user_agent=agent) as transport:
            prometheus = Prometheus(transport, path=service or "", until=until, seconds=seconds)
            labels = tuple(dict.fromkeys((*by, "accelerator")))
            return await prometheus.used(
                labels, queue=queue, recorded=recorded
            ), await prometheus.first()

    found, first = run(ask())
    if first is None:
        raise FailureError(
            "Prometheus has no metrics of HyperJob in this time: let it scrape the controller"
            " (metrics.serviceMonitor.enabled of the chart), and look at its targets"
        )
    if first > since:
        out.remark(f"The metrics of HyperJob begin at {rfc3339(first)}: use before is not counted.")
    if not found:
        lack = f"the controller counts none: {METRIC} needs --members nodes or logs"
        if recorded:
            lack = f"Prometheus has no {RECORD}: set metrics.prometheusRule.enabled of the chart"
        out.remark(f"No pod of a HyperJob held an accelerator, or {lack}.")
    if form:
        rows = [{**each.labels, "acceleratorHours": round(each.hours, 3)} for each in found]
        out.dump({"since": rfc3339(since), "until": rfc3339(until), "usage": rows}, form)
    else:
        out.say(_lines(found, by))


def _lines(found: Sequence[Used], by: Sequence[str]) -> list[Text]:
    """Return the table; the share of a use is in what has the same other labels."""
    several = len({each.labels["accelerator"] for each in found}) > 1
    columns = (*by, "accelerator") if several and "accelerator" not in by else tuple(by)
    groups = [name for name in by if "use" in by and name not in {"use", "accelerator"}]

    def group(each: Used) -> tuple[str, ...]:
        return tuple(each.labels[name] for name in (*groups, "accelerator"))

    totals: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for each in found:
        totals[group(each)] += each.hours
    rows = [
        (
            *(each.labels[name] or "-" for name in columns),
            f"{each.hours:,.1f}",
            f"{each.hours / totals[group(each)]:.1%}",
        )
        for each in found
    ]
    return table([*map(str.upper, columns), "HOURS", "SHARE"], rows)
