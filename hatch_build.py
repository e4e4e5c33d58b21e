"""Where a wheel comes from: the addresses and the README that a release gives to its package page.

A release names its repository in `HYPERJOB_REPOSITORY` (an https address) and its tag in
`HYPERJOB_TAG`. Without them, as in a clone, a wheel has no addresses and the README as it is.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_TARGET = re.compile(
    r"(?P<image>!?)(?P<text>\[[^\]]*\])\((?P<path>[^)\s:#]+)(?P<anchor>#[^)\s]*)?\)"
)


def absolute(text: str, repository: str, tag: str, folder: str = "") -> str:
    """Return Markdown whose relative links and pictures lead to a tag of a repository."""

    def there(found: re.Match[str]) -> str:
        kind = "raw" if found["image"] else "blob"
        path = os.path.normpath(f"{folder}/{found['path']}").lstrip("/")
        target = f"{repository}/{kind}/{tag}/{path}{found['anchor'] or ''}"
        return f"{found['image']}{found['text']}({target})"

    return _TARGET.sub(there, text)


class Origin(MetadataHookInterface):
    """Set `readme` and `urls` of the distribution in whose folder the build runs."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Write both fields into the metadata."""
        root = Path(self.root)
        text = (root / "README.md").read_text(encoding="utf-8")
        repository, tag = os.environ.get("HYPERJOB_REPOSITORY"), os.environ.get("HYPERJOB_TAG")
        if repository and tag:
            text = absolute(text, repository, tag, str(self.config.get("folder", "")))
            metadata["urls"] = {
                "Source": repository,
                "Documentation": f"{repository}/blob/{tag}/docs/README.md",
                "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
                "Releases": f"{repository}/releases",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
