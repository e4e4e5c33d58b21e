"""Read the files that a command line names, or end the command."""

from hyperjob.cli.kubectl.exits import Code, FailureError
from hyperjob.cli.lint.documents import ManifestFile, UnreadableError, read


def manifest_of(name: str) -> ManifestFile:
    """Read a file of objects, or standard input for `-`; FailureError where that is impossible."""
    try:
        return read(name)
    except UnreadableError as error:
        raise FailureError(f"{name}: {error}", code=Code.USAGE) from None
