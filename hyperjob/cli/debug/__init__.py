"""`hyperjob debug`: the objects of a HyperJob in the controller's caches, and its next plan.

The command reads the controller's debug address, which is off by default.
"""

from urllib.parse import quote

import aiohttp
import click

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import namespace_option
from hyperjob.cli.kubectl.exits import FailureError, run
from hyperjob.cli.kubectl.names import name_argument
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import decoded
from hyperjob_core.kube import config
from hyperjob_core.kube.bodies import read_body
from hyperjob_core.kube.http import why_not_connected

_SECONDS = 10.0
_MOST = 64 * 1024 * 1024
_SHOWN = 500
_REACH = (
    "start the controller with --debug-bind-address 127.0.0.1:6060 and lead its port here: kubectl"
    " --context host -n karmada-system port-forward deploy/hyperjob-controller 6060"
)


@click.command()
@name_argument()
@namespace_option()
@click.option(
    "--address",
    metavar="HOST:PORT",
    default="127.0.0.1:6060",
    show_default=True,
    help="Debug address of the controller that leads.",
)
@out.output(out.JSON, out.YAML)
def debug(name: str, namespace: str | None, address: str, form: str) -> None:
    """Print the controller's view of a HyperJob: cached objects, next actions, waits.

    The command makes no request to the API server; the controller answers from its caches. The
    controller's debug address must be reachable from this machine, for example by `kubectl
    port-forward`.

    Example: kubectl hyperjob debug llm-training --address 127.0.0.1:6060 -o json
    """

    async def ask() -> Object:
        home = namespace or (await config.load(None)).namespace
        url = f"http://{address}/debug/hyperjobs/{quote(home)}/{quote(name)}"
        return await _read(url)

    out.dump(run(ask()), form or out.YAML)


async def _read(url: str) -> Object:
    """Read the controller's answer; FailureError names the way to reach the controller."""
    limit = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=limit) as session, session.get(url) as answer:
            body = await read_body(answer, most=_MOST)
            code = answer.status
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
        late = isinstance(error, TimeoutError)
        why = f"no answer within {_SECONDS:g}s" if late else why_not_connected(error)
        raise FailureError(f"no controller answers at {url}: {why}; {_REACH}") from None
    if body is None:
        raise FailureError(f"{url} answers with more than {_MOST} bytes: read it with curl")
    text = body[:_SHOWN].decode(errors="replace").strip()
    if code != 200:
        raise FailureError(f"{url} answers {code}: {text}; is it the controller that leads?")
    try:
        found = decoded(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise FailureError(f"{url} is no debug address of a HyperJob controller; {_REACH}")
    return found
