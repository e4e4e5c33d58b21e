"""The reader of kubeconfigs: one context with its cluster and its user, from one file or several.

Each key is read from the first file that sets it, as kubectl does. The loader of `kubernetes.aio`
does not serve here: its import takes 0.3 s of CPU beside the 0.25 s of aiohttp, more than a command
may take, and it writes private keys into temporary files. `credentials` leaves to that package what
needs a login: plugins and identity providers.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from hyperjob_core.kube.errors import ConfigError

Entry = Mapping[str, Any]

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PATHS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_TEXTS: Final = (
    *(_PATHS + tuple(f"{path}-data" for path in _PATHS[:3])),
    "server",
    "tls-server-name",
    "proxy-url",
    "token",
    "username",
    "password",
    "namespace",
    "cluster",
    "user",
)
_FIX_FILE: Final = "give a kubeconfig that exists with --kubeconfig or in KUBECONFIG"
_FIX_CONTENT: Final = "check it with `kubectl --kubeconfig {} version`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A context of a kubeconfig; the paths in `cluster` and `user` are absolute.

    Entries without a value are left out.
    """

    cluster_name: str
    cluster: Entry
    user: Entry
    namespace: str | None


def read(files: str, context: str | None = None) -> Context:
    """Return a context, by default the current one, of the files, which `os.pathsep` separates.

    Files that do not exist are left out. Raises ConfigError with the files and the next step.
    """
    found = [Path(each).expanduser() for each in files.split(os.pathsep) if each]
    readable = [path for path in found if path.is_file()]
    if not readable:
        raise ConfigError(f"kubeconfig {files}: no such file; {_FIX_FILE}")
    try:
        documents = [(path.parent.absolute(), _document(path)) for path in readable]
        return _context(documents, context)
    except (yaml.YAMLError, OSError, ValueError) as error:
        raise unusable(files, str(error)) from error
    except _AbsentError as error:
        raise ConfigError(f"kubeconfig {files}: {error}") from error
    except (TypeError, KeyError, AttributeError) as error:
        raise unusable(files, "it lacks a cluster, a user or a context that it names") from error


def unusable(files: str, why: str) -> ConfigError:
    """Return the error of a kubeconfig that exists but cannot be used."""
    return ConfigError(f"kubeconfig {files}: {why.rstrip('.')}; {_FIX_CONTENT.format(files)}")


class _AbsentError(Exception):
    """The kubeconfig has no context of the wanted name."""


def _document(path: Path) -> Entry:
    """Return the content of a kubeconfig; raises AttributeError for one without keys."""
    content = yaml.load(path.read_bytes(), _LOADER)  # noqa: S506 - it is a safe one
    content.keys()  # AttributeError: the file is empty, or a list
    return dict(content)


def _context(documents: Sequence[tuple[Path, Entry]], wanted: str | None) -> Context:
    """Return a context with its cluster and user; raises _AbsentError, or KeyError."""
    name = wanted or next(
        (text for _, each in documents if (text := each.get("current-context"))), None
    )
    contexts = _named(documents, "context")
    if name not in contexts:
        has = ", ".join(contexts) or "none"
        what = f"no context {name!r}" if name else "no current-context"
        raise _AbsentError(f"{what}; it has {has}")
    chosen = contexts[name]
    user = _named(documents, "user")[chosen["user"]] if "user" in chosen else {}
    return Context(
        cluster_name=chosen["cluster"],
        cluster=_named(documents, "cluster")[chosen["cluster"]],
        user=user,
        namespace=chosen.get("namespace"),
    )


def _named(documents: Sequence[tuple[Path, Entry]], kind: str) -> dict[str, Entry]:
    """Return the entries of a kind by name; of equal names the first one counts."""
    found: dict[str, Entry] = {}
    for folder, document in documents:
        for entry in document.get(f"{kind}s") or ():
            found.setdefault(str(entry["name"]), _absolute(entry.get(kind) or {}, folder))
    return found


def _absolute(entry: Entry, folder: Path) -> Entry:
    """Return an entry without empty values, its paths relative to the folder of its file."""
    given = {key: value for key, value in entry.items() if value not in (None, "")}
    for key in _TEXTS:
        if not isinstance(given.get(key, ""), str):
            raise ValueError(f"{key} is no text")  # noqa: TRY004 - it is about the file
    return {**given, **{key: str(folder / given[key]) for key in _PATHS if key in given}}
