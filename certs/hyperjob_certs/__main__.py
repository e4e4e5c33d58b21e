"""The command `hyperjob-certs issue | rotate | inject | client`.

It keeps the webhook's certificates in a directory or in a Secret. With cert-manager, or with
certificates of another issuer, only `inject` is useful: the webhook reads any certificate files.
"""

import argparse
import asyncio
import os
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from hyperjob_certs.store import (
    Bundle,
    DirectoryStore,
    RotationPolicy,
    SecretStore,
    Store,
    advance,
    trusted_pem,
)
from hyperjob_certs.x509 import (
    MAX_COMMON_NAME,
    InvalidPair,
    facts,
    issue_ca,
    issue_client,
    served_name,
    split_bundle,
)
from hyperjob_core.api.meta import Object
from hyperjob_core.api.ownership import INSTALLER, ForeignObjectError, manager_of, named
from hyperjob_core.kube.client import Kube, again_on_conflict
from hyperjob_core.kube.errors import ConfigError, KubeError, NotFound
from hyperjob_core.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME

TARGETS: Final = ((MUTATING_WEBHOOKS, MUTATING_NAME), (VALIDATING_WEBHOOKS, VALIDATING_NAME))

INJECT_ATTEMPTS: Final = 5


class NothingToInject(Exception):  # noqa: N818 - the state of the server, not a fault
    """A webhook configuration does not exist; the text has the next step."""


async def inject(kube: Kube, *, ca_bundle: bytes) -> list[str]:
    """Set the bundle (PEM) in both configurations; return the names of those that changed.

    Raises `NothingToInject` if a configuration is missing, after the update of the others, and
    ForeignObjectError for a configuration that another program created.
    """
    changed, missing = [], []
    for resource, name in TARGETS:
        try:
            write = partial(_inject_one, kube, resource, name, ca_bundle=ca_bundle)
            if await again_on_conflict(write, tries=INJECT_ATTEMPTS):
                changed.append(name)
        except NotFound:
            missing.append(f"{resource.kind} {name}")
    if missing:
        raise NothingToInject(f"not found: {', '.join(missing)}; apply the configurations first")
    return changed


def with_bundle(configuration: Object, *, ca_bundle: bytes) -> Object:
    """Return the configuration with the bundle in every webhook; the same object if it has it."""
    encoded = b64encode(ca_bundle).decode("ascii")
    webhooks = configuration.get("webhooks") or []
    if all(hook["clientConfig"].get("caBundle") == encoded for hook in webhooks):
        return configuration
    return {
        **configuration,
        "webhooks": [
            {**hook, "clientConfig": {**hook["clientConfig"], "caBundle": encoded}}
            for hook in webhooks
        ],
    }


async def _inject_one(kube: Kube, resource: Resource, name: str, *, ca_bundle: bytes) -> bool:
    """Write the bundle into one configuration; return whether it lacked the bundle."""
    live = await kube.get(resource, name)
    if manager_of(live) != INSTALLER:
        raise ForeignObjectError(
            f"{named(resource.kind, live)} exists, and hyperjob install did not create it:"
            " delete it and run `hyperjob install`"
        )
    wanted = with_bundle(live, ca_bundle=ca_bundle)
    if wanted is not live:
        await kube.replace(resource, wanted)
    return wanted is not live


ATTEMPTS: Final = 3
MAX_DAYS: Final = 36500
_EXPECTED: Final = (
    NothingToInject,
    ForeignObjectError,
    ConfigError,
    KubeError,
    InvalidPair,
    OSError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 on success, 1 on an error, 2 for wrong usage."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command in ("issue", "rotate"):
        try:
            options.policy = RotationPolicy(tuple(options.name), leaf_lifetime=options.days)
        except ValueError as problem:
            parser.error(str(problem))
    try:
        asyncio.run(_run(options))
    except _EXPECTED as problem:
        sys.stderr.write(f"error: {problem}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


async def _run(options: argparse.Namespace) -> None:
    if options.command == "client":
        _issue_client(options)
        return
    if options.command == "inject":
        await _inject(options, await _given_authorities(options))
        return
    async with _store(options) as store:
        await again_on_conflict(partial(_renew, options, store), tries=ATTEMPTS)


def _issue_client(options: argparse.Namespace) -> None:
    """Write a new authority and one client certificate of it, without the authority's key."""
    directory: Path = options.directory
    now = datetime.now(UTC)
    ca = issue_ca(common_name="hyperjob-webhook-clients", lifetime=options.days, now=now)
    client = issue_client(ca, name=options.name, lifetime=options.days, now=now)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content, mode in (
        ("client-ca.crt", ca.certificate, 0o644),
        ("client.crt", client.certificate, 0o644),
        ("client.key", client.key, 0o600),
    ):
        descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    until = facts(client.certificate).not_after.isoformat()
    _say(f"client certificate for {options.name}, valid until {until}, in {directory}")


async def _renew(options: argparse.Namespace, store: Store) -> None:
    """Take the steps that are due; the write fails if the stored state has changed meanwhile."""
    stored = await store.load()
    bundle = stored.bundle
    complete = bundle.ca is not None and bundle.serving is not None
    if options.inject and complete:
        # First of all: the serving certificate may only move to an authority in the caBundle,
        # which an interrupted earlier run may not have written.
        await _inject(options, trusted_pem(bundle))
    if options.command == "issue" and complete:
        _say("certificates exist already: nothing to issue; `rotate` renews them")
        return
    bundle, steps = advance(bundle, policy=options.policy, now=datetime.now(UTC))
    if not steps:
        _say("nothing is due")
        return
    await store.save(bundle, over=stored)
    for step in steps:
        _say(step)
    _report(bundle)
    if options.inject:
        await _inject(options, trusted_pem(bundle))


async def _inject(options: argparse.Namespace, authorities: bytes) -> None:
    where = options.karmada_kubeconfig or options.kubeconfig
    async with Kube.connect(kubeconfig=where, context=options.karmada_context) as kube:
        changed = await inject(kube, ca_bundle=authorities)
    _say(f"caBundle set in {', '.join(changed)}" if changed else "caBundle is up to date")


async def _given_authorities(options: argparse.Namespace) -> bytes:
    """Return the authorities of `--ca-file` or of the store; they must be certificates."""
    if options.ca_file is not None:
        pem: bytes = await asyncio.to_thread(options.ca_file.read_bytes)
        if not split_bundle(pem):
            raise InvalidPair(f"{options.ca_file} holds no certificate")
        return pem
    async with _store(options) as store:
        authorities = trusted_pem((await store.load()).bundle)
    if not authorities:
        raise InvalidPair("there is no authority to inject; run `hyperjob-certs issue` first")
    return authorities


@asynccontextmanager
async def _store(options: argparse.Namespace) -> AsyncIterator[Store]:
    if options.directory is not None:
        yield DirectoryStore(options.directory)
        return
    namespace, name = options.secret
    async with Kube.connect(kubeconfig=options.kubeconfig) as kube:
        yield SecretStore(kube, namespace=namespace, name=name)


def _report(bundle: Bundle) -> None:
    if bundle.serving is not None:
        found = facts(bundle.serving.certificate)
        names = ", ".join(sorted(found.names))
        _say(f"serving certificate for {names}, valid until {found.not_after.isoformat()}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hyperjob-certs", description="Issue and rotate the webhook's certificates."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("issue", "create an authority and a serving certificate if there are none"),
        ("rotate", "renew certificates that are due; the old authority stays trusted while needed"),
        ("inject", "write the trusted authorities into the webhook configurations"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.formatter_class = argparse.ArgumentDefaultsHelpFormatter
        _add_place(command, given_file=name == "inject")
        if name != "inject":
            _add_policy(command)
    text = "create a client certificate for an API server, with an authority of its own"
    command = commands.add_parser("client", help=text, description=text)
    command.formatter_class = argparse.ArgumentDefaultsHelpFormatter
    command.add_argument("--directory", type=Path, required=True, help="directory of the files")
    command.add_argument(
        "--name", type=_user_name, default="karmada-apiserver", help="common name of the client"
    )
    command.add_argument("--days", type=_days, default="365", help="lifetime of both certificates")
    return parser


def _add_place(command: argparse.ArgumentParser, *, given_file: bool) -> None:
    place = command.add_mutually_exclusive_group(required=True)
    place.add_argument("--directory", type=Path, help="keep the files in this directory")
    place.add_argument(
        "--secret",
        type=_namespaced_name,
        metavar="NAMESPACE/NAME",
        help="keep them in this Secret, which is created if it does not exist",
    )
    if given_file:
        place.add_argument("--ca-file", type=Path, help="PEM authorities of another issuer")
    command.add_argument(
        "--kubeconfig", type=Path, help="cluster of the Secret; default in a pod: its own cluster"
    )
    command.add_argument(
        "--karmada-kubeconfig",
        type=Path,
        help="API server of the webhook configurations, if it is not that of the Secret",
    )
    command.add_argument(
        "--karmada-context",
        metavar="NAME",
        help="context of that API server in its kubeconfig",
    )


def _add_policy(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--name",
        type=_served_name,
        action="append",
        required=True,
        metavar="NAME",
        help="DNS name or IP address under which the API server calls the webhook; repeatable",
    )
    command.add_argument(
        "--days", type=_days, default="90", help="lifetime of a serving certificate"
    )
    command.add_argument(
        "--inject", action="store_true", help="also set caBundle in the webhook configurations"
    )


def _days(text: str) -> timedelta:
    """Return a lifetime: more than 0 days, and at most a century."""
    try:
        days = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None
    if not 0 < days <= MAX_DAYS:
        raise argparse.ArgumentTypeError(f"must be more than 0 and at most {MAX_DAYS}, got {text}")
    return timedelta(days=days)


def _served_name(text: str) -> str:
    try:
        return served_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _user_name(text: str) -> str:
    if not 0 < len(text) <= MAX_COMMON_NAME:
        raise argparse.ArgumentTypeError(f"must have 1 to {MAX_COMMON_NAME} characters: {text!r}")
    return text


def _namespaced_name(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not slash or not namespace or not name or "/" in name:
        raise argparse.ArgumentTypeError(f"expected NAMESPACE/NAME, got {text!r}")
    return namespace, name


if __name__ == "__main__":
    sys.exit(main())
