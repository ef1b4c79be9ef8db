"""The project that a folder belongs to, and the namespace of its memories; read from the files of git, without git."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["Project", "clone_of", "folder_of", "project_of", "remote_namespace"]

_LARGEST = 1_000_000
"""Bytes of a git file that are read; a larger one is no git file."""

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Project:
    """The namespace of a folder's project, and ``origin``: where it comes from, in a few words."""

    namespace: str
    origin: str


def project_of(folder: Path, *, repository_only: bool = False) -> Project | None:
    """Return the project of ``folder``, None where it has none.

    Inside a git repository it is the repository: its namespace is host and path of the remote ``origin``, so that every
    clone and every worktree has the same; without a remote it is the repository's folder. A folder outside of any
    repository is a project by itself, unless ``repository_only``; a home folder and a root of the disk are none.
    """
    folder = folder.absolute()
    for place in (folder, *folder.parents):
        git = _git_folder(place)
        if git is not None:
            common, top = git
            namespace = remote_namespace(_origin(common) or "")
            if namespace is not None:
                return Project(namespace, f"the remote of the git repository {top.name}")
            return Project(_named(top), f"the git repository {top.name}")
    if repository_only or folder == Path(folder.anchor) or folder == _home() or not folder.name:
        return None
    return Project(_named(folder), f"the folder {folder.name}")


def clone_of(folder: Path) -> Path:
    """Return the top of the clone or worktree that ``folder`` is in; outside of one, the folder itself."""
    folder = folder.absolute()
    return next((place for place in (folder, *folder.parents) if _git_folder(place) is not None), folder)


def folder_of(uri: str) -> Path | None:
    """Return the folder that a ``file:`` URI names, None for any other URI."""
    parts = urlsplit(uri)
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost") or "\0" in unquote(parts.path):
        return None
    path = unquote(parts.path)
    drive = re.match(r"/([A-Za-z]:.*)", path)
    return Path(drive[1] if drive else path) if path else None


def remote_namespace(url: str) -> str | None:
    """Return host and path of a git remote, such as ``github.com/ada/engine``; None for one on this machine's disk.

    A user, a password and a port are left out, as is ``.git`` at the end.
    """
    url = url.strip()
    if "://" in url:
        try:
            parts = urlsplit(url)
            host, path = parts.hostname, unquote(parts.path)
        except ValueError:
            return None
        if parts.scheme.lower() == "file":
            return None
    elif short := re.fullmatch(r"(?:[^@/:]*@)?([\w.-]{2,}):(?!\\)([^:]+)", url):  # a drive has one letter
        host, path = short[1].lower(), short[2]
    else:
        return None
    path = path.strip("/").removesuffix(".git").rstrip("/")
    name = f"{host}/{path}"
    if not host or not path or re.search(r"[\x00-\x1f\x7f]", name):
        return None
    return name if len(name) <= _LONGEST else f"{name[:180]}-{_hash(name)}"


def _git_folder(place: Path) -> tuple[Path, Path] | None:
    """Return git's folder with the configuration of ``place``, and the top of the repository; None outside of one."""
    path = place / ".git"
    if _is_file(path / "HEAD"):
        return path, place
    pointed = re.match(r"gitdir:\s*(.+)", _text(path))
    if pointed is None:
        return None
    git = (place / pointed[1].strip()).resolve()
    if not _is_file(git / "HEAD"):
        return None
    common = _text(git / "commondir").strip()
    if not common:  # a submodule, or a folder of git that lies elsewhere
        return git, place
    main = (git / common).resolve()
    return main, main.parent if main.name == ".git" else main


def _origin(git: Path) -> str | None:
    """Return the URL of the remote ``origin``, else of the only remote."""
    import configparser

    config = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    try:
        config.read_string(_text(git / "config"))
    except configparser.Error:
        return None
    remotes = {section: config[section].get("url") for section in config.sections() if section.startswith("remote ")}
    if 'remote "origin"' in remotes:
        return remotes['remote "origin"']
    return next(iter(remotes.values())) if len(remotes) == 1 else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False


def _text(path: Path) -> str:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _named(folder: Path) -> str:
    """Return the folder's name with a few digits of its whole path, for two folders may have one name."""
    name = re.sub(r"[^\w.-]+", "-", folder.name.encode("utf-8", "replace").decode()).strip("-") or "folder"
    return f"{name[:180]}-{_hash(str(folder.resolve()))}"


def _hash(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=3).hexdigest()


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None
