"""`hyperjob splitter`: a server for `--splitter-url` that decides as the built-in splitter does.

The server is an example for external splitters, and keeps no state between requests.
"""

import asyncio
import hmac
import ssl
from pathlib import Path

import click
from aiohttp import web

from hyperjob.cli.files import file_option
from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob.cli.splitter.service import QuestionError, answer, read_question
from hyperjob_core.serving.addresses import parse_address

_MAX_BYTES = 8 * 1024 * 1024
_SHUTDOWN = 5.0


@click.command()
@click.option(
    "--address",
    default="127.0.0.1:8090",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on; port 0 is a free port.",
)
@file_option(
    "--tls-cert",
    text="Certificate for HTTPS; without it the command serves plain HTTP.",
)
@file_option(
    "--tls-key",
    text="Private key of that certificate.",
)
@file_option(
    "--token-file",
    text="Answer only requests with the bearer token in this file.",
)
def splitter(
    address: str, tls_cert: Path | None, tls_key: Path | None, token_file: Path | None
) -> None:
    """Answer the controller's requests for automatic splits over HTTP, until Ctrl-C.

    Example: hyperjob splitter --address 127.0.0.1:8090
    """
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("give --tls-cert and --tls-key together")
    try:
        host, port = parse_address(address) or ("127.0.0.1", 0)
        tls = None
        if tls_cert is not None and tls_key is not None:
            tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            tls.load_cert_chain(tls_cert, tls_key)
        token = token_file.read_text(encoding="ascii").strip() if token_file is not None else None
        asyncio.run(_serve(host, port, tls, token))
    except (OSError, ValueError) as error:
        raise FailureError(str(error), code=Code.USAGE) from None
    except KeyboardInterrupt:
        return


async def _serve(
    host: str | None, port: int, tls: ssl.SSLContext | None, token: str | None
) -> None:
    runner = web.AppRunner(application(token), access_log=None, shutdown_timeout=_SHUTDOWN)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=tls)
        await site.start()
        actual = runner.addresses[0][1]
        scheme = "http" if tls is None else "https"
        click.echo(f"listening on {scheme}://{host or '0.0.0.0'}:{actual}/")  # noqa: S104 - told
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def application(token: str | None = None) -> web.Application:
    """Return the aiohttp application, which answers POST on one path."""

    async def split(request: web.Request) -> web.Response:
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if token is not None and not hmac.compare_digest(given, f"Bearer {token}".encode()):
            return web.Response(status=401, text="a bearer token is needed")
        try:
            body = answer(read_question(await request.read()))
        except QuestionError as error:
            return web.Response(status=400, text=str(error))
        return web.Response(body=body, content_type="application/json")

    made = web.Application(client_max_size=_MAX_BYTES)
    made.router.add_post("/", split)
    return made
