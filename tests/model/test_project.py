"""Which project a folder belongs to, from the files of git alone, and which namespace that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from semmem.model.process.project import folder_of, project_of, remote_namespace


def repository(folder: Path, remotes: dict[str, str] | None = None) -> Path:
    git = folder / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    lines = ["[core]", "\tbare = false"]
    for name, url in (remotes or {}).items():
        lines += [f'[remote "{name}"]', f"\turl = {url}", "\tfetch = +refs/heads/*:refs/remotes/origin/*"]
    (git / "config").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(
    ("url", "namespace"),
    [
        ("https://github.com/ada/engine.git", "github.com/ada/engine"),
        ("https://ada:secret@GitHub.com:443/ada/engine/", "github.com/ada/engine"),
        ("git@github.com:ada/engine.git", "github.com/ada/engine"),
        ("git@GitHub.com:ada/engine.git", "github.com/ada/engine"),
        ("ssh://git@example.org:2222/team/sub/engine", "example.org/team/sub/engine"),
        ("github.com:ada/engine", "github.com/ada/engine"),
        ("/srv/git/engine.git", None),
        ("file:///srv/git/engine.git", None),
        ("C:\\git\\engine", None),
        ("../engine", None),
        ("https://[broken/engine", None),
        ("https://github.com/", None),
        ("", None),
    ],
)
def test_a_remote_is_known_by_host_and_path_without_user_password_or_port(url: str, namespace: str | None) -> None:
    assert remote_namespace(url) == namespace


def test_a_remote_of_any_length_gives_a_namespace_that_a_store_takes() -> None:
    long = remote_namespace(f"https://example.org/{'a' * 500}")
    other = remote_namespace(f"https://example.org/{'a' * 499}b")
    assert long is not None
    assert len(long) <= 200
    assert long != other


def test_every_folder_of_a_repository_has_the_namespace_of_its_remote(tmp_path: Path) -> None:
    top = repository(tmp_path / "work", {"fork": "git@example.org:eve/x.git", "origin": "git@example.org:ada/x.git"})
    deep = top / "src" / "deep"
    deep.mkdir(parents=True)
    for folder in (top, deep):
        found = project_of(folder)
        assert found is not None
        assert found.namespace == "example.org/ada/x"
        assert found.origin == "the remote of the git repository work"


def test_the_only_remote_counts_whatever_its_name(tmp_path: Path) -> None:
    found = project_of(repository(tmp_path / "work", {"upstream": "https://example.org/ada/y"}))
    assert found is not None
    assert found.namespace == "example.org/ada/y"


def test_of_several_remotes_none_counts_where_none_is_the_origin(tmp_path: Path) -> None:
    remotes = {"ada": "https://example.org/ada/y", "eve": "https://example.org/eve/y"}
    found = project_of(repository(tmp_path / "work", remotes))
    assert found is not None
    assert found.namespace.startswith("work-")


def test_two_repositories_without_a_remote_have_two_namespaces_also_where_the_folders_have_one_name(
    tmp_path: Path,
) -> None:
    one, two = (project_of(repository(tmp_path / side / "app")) for side in ("left", "right"))
    assert one is not None
    assert two is not None
    assert one.namespace.startswith("app-")
    assert two.namespace.startswith("app-")
    assert one.namespace != two.namespace


def test_a_worktree_has_the_namespace_of_its_repository(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    linked = main / ".git" / "worktrees" / "side"
    linked.mkdir(parents=True)
    (linked / "HEAD").write_text("ref: refs/heads/side\n")
    (linked / "commondir").write_text("../..\n")
    side = tmp_path / "side"
    side.mkdir()
    (side / ".git").write_text(f"gitdir: {linked}\n")
    assert project_of(side) == project_of(main)


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", {"origin": "https://example.org/ada/main"})
    inner = repository(tmp_path / "elsewhere", {"origin": "https://example.org/ada/part"})
    (main / ".git" / "modules").mkdir()
    (inner / ".git").rename(main / ".git" / "modules" / "part")
    (main / "part").mkdir()
    (main / "part" / ".git").write_text("gitdir: ../.git/modules/part\n")
    found = project_of(main / "part")
    assert found is not None
    assert found.namespace == "example.org/ada/part"


@pytest.mark.parametrize("config", ["", "[remote\n", '[remote "origin"]\n\turl\n', "\0\0", '[remote "origin"]\n'])
def test_a_configuration_that_names_no_remote_leaves_the_folder(tmp_path: Path, config: str) -> None:
    top = repository(tmp_path / "work")
    (top / ".git" / "config").write_text(config)
    found = project_of(top)
    assert found is not None
    assert found.namespace.startswith("work-")


@pytest.mark.parametrize("pointer", ["", "gitdir: /nowhere/at/all\n", "not a pointer\n", "gitdir:\n"])
def test_a_file_that_points_to_no_repository_is_passed_over(tmp_path: Path, pointer: str) -> None:
    (tmp_path / ".git").write_text(pointer)
    assert project_of(tmp_path, repository_only=True) is None


def test_a_folder_without_a_repository_is_a_project_only_where_the_client_names_it(tmp_path: Path) -> None:
    found = project_of(tmp_path)
    assert found is not None
    assert found.origin == f"the folder {tmp_path.name}"
    assert project_of(tmp_path, repository_only=True) is None


def test_a_home_folder_and_a_root_of_the_disk_are_no_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert project_of(tmp_path) is None
    assert project_of(Path(tmp_path.anchor)) is None


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("file:///srv/my%20project", Path("/srv/my project")),
        ("file://localhost/srv/x", Path("/srv/x")),
        ("FILE:///srv/x", Path("/srv/x")),
        ("file://elsewhere/srv/x", None),
        ("https://example.org/x", None),
        ("file:///srv/%00x", None),
        ("file:", None),
        ("", None),
    ],
)
def test_only_a_file_uri_of_this_machine_names_a_folder(uri: str, folder: Path | None) -> None:
    assert folder_of(uri) == folder
