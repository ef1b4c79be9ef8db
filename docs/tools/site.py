"""Hooks of the documentation: files of the repository that the site shows without a copy in docs/.

The words, the decisions, the changes and the harness's README stay where they are. A link from docs/ leads to them as
it does in the repository (``../adr/0003-….md``), and the site has a page for each. A link to any other file of the
repository becomes plain text, since the site does not hold it.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)]*)?\)")


def borrowed() -> list[str]:
    """Return the paths of the files that the site shows from elsewhere in the repository."""
    records = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "adr").glob("*.md"))
    return ["CONTEXT.md", "CHANGELOG.md", "eval/README.md", *records]


def on_files(files: Files, *, config: Any) -> Files:
    """Add the borrowed files to the site."""
    for path in borrowed():
        files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Rewrite links between docs/ and the rest of the repository to the pages of the site."""
    own = page.file.src_uri
    home = PurePosixPath(own if own in borrowed() else f"docs/{own}").parent

    def rewritten(link: re.Match[str]) -> str:
        target = normpath(str(home / link["target"]))
        inside = target.removeprefix("docs/")
        if target in borrowed() or (target != inside and files.get_file_from_path(inside) is not None):
            up = "../" * (len(PurePosixPath(own).parts) - 1)
            return f"[{link['text']}]({up}{inside}{link['anchor'] or ''})"
        if target == "README.md":
            return f"[{link['text']}]({'../' * (len(PurePosixPath(own).parts) - 1)}index.md)"
        return link["text"] if (ROOT / target).exists() else link[0]

    return _LINK.sub(rewritten, markdown)
