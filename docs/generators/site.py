"""The pages of the documentation as a site: `python -m docs.generators.site build` for mkdocs.

Pages keep their places in the tree, so that a link means the same on the site and in the tree. What
a page links to beside pages, such as an example, is copied too.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[2]
CONTENTS: Final = Path("docs/README.md")
_LINK: Final = re.compile(
    r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<path>[^)\s:#]+)(?P<anchor>#[^)\s]*)?\)"
)
_HEAD: Final = re.compile(r"^## (.+)$", re.MULTILINE)


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages of the site by their places in the tree."""
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), root / "e2e/README.md"]
    found += [root / "sandbox/README.md"]
    return sorted(path.relative_to(root) for path in found if path.exists())


def write(out: Path, root: Path = ROOT) -> None:
    """Write the pages, and all that they link to, into a folder."""
    shutil.rmtree(out, ignore_errors=True)
    for page in pages(root):

        def follow(found: re.Match[str], page: Path = page) -> str:
            source = (root / page.parent / found["path"]).resolve()
            if source.is_dir():
                return f"`{source.relative_to(root.resolve())}/`"
            if source.suffix != ".md":
                target = out / source.relative_to(root.resolve())
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
            return found[0]

        text = _LINK.sub(follow, (root / page).read_text(encoding="utf-8"))
        (out / page).parent.mkdir(parents=True, exist_ok=True)
        (out / page).write_text(text, encoding="utf-8")


def order(root: Path = ROOT) -> list[dict[str, Any]]:
    """Return the pages by reader, as the contents list them: a tab for each reader."""
    contents = (root / CONTENTS).read_text(encoding="utf-8")
    heads, parts = _HEAD.findall(contents), _HEAD.split(contents)[0::2]
    found: list[dict[str, Any]] = [{"HyperJob": ["README.md", str(CONTENTS), *_listed(parts[0])]}]
    for head, part in zip(heads, parts[1:], strict=True):
        groups: list[Any] = []
        for line in filter(None, part.splitlines()):
            title, colon, rest = line.partition(": ")
            named = bool(colon) and "[" not in title
            groups += [{title: _listed(rest)}] if named else _listed(line)
        found.append({head: groups})
    return found


def _listed(text: str) -> list[dict[str, str]]:
    return [
        {found["text"][:1].upper() + found["text"][1:]: _place(found["path"])}
        for found in _LINK.finditer(text)
    ]


def _place(path: str) -> str:
    return str((ROOT / CONTENTS.parent / path).resolve().relative_to(ROOT.resolve()))


def main(folder: Path) -> None:
    """Write pages and the configuration of mkdocs into a folder."""
    write(folder / "pages")
    config = yaml.safe_load((ROOT / "docs/mkdocs.yml").read_text(encoding="utf-8"))
    config |= {"docs_dir": "pages", "site_dir": "site", "nav": order()}
    text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    # The anchors of a page are those that a forge gives it; a function has no form in plain YAML.
    extensions = """markdown_extensions:
- tables
- pymdownx.highlight
- pymdownx.superfences
- toc:
    permalink: true
    slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}
"""
    (folder / "mkdocs.yml").write_text(text + extensions, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
