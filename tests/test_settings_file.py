"""Settings from a file: which file, which value wins, what a stranger's may not set, a sentence for each mistake."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from semmem import files
from semmem.config import ANYWHERE, Settings, users_file
from semmem.model.errors import InvalidInput
from semmem.read.overrides import recipe_of

Write = Callable[[str], Path]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Work in an empty folder, with an empty home; return a function that writes semmem.toml there."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"SEMMEM_{name.upper()}", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    return lambda text: _write(work / "semmem.toml", text)


@pytest.fixture
def own(here: Write) -> Write:
    """Return a function that writes the user's own file."""
    return lambda text: _write(Path.home() / ".config" / "semmem" / "semmem.toml", text)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_environment_wins_over_a_file_and_an_argument_over_both(
    here: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = here("pool_size = 4\n")
    assert (Settings.load().pool_size, Settings.load().source("pool_size")) == (4, str(path))
    monkeypatch.setenv("SEMMEM_POOL_SIZE", "3")
    assert (Settings.load().pool_size, Settings.load().source("pool_size")) == (3, "environment")
    assert (Settings.load(pool_size=5).pool_size, Settings.load(pool_size=5).source("pool_size")) == (5, "argument")
    assert Settings.load().source("language") == "default"


def test_a_variable_counts_in_any_case_and_the_file_that_it_names_is_the_source(
    here: Write, own: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    own("pool_size = 6\n")
    other = _write(Path("other.toml"), "pool_size = 0\n")
    monkeypatch.setenv("semmem_config", "other.toml")
    with pytest.raises(InvalidInput, match=r"pool_size \(.*other\.toml, line 1\) must be at least 1, not 0"):
        Settings.load()
    other.write_text("pool_size = 5\n")
    found = Settings.load()
    assert (found.pool_size, found.source("pool_size")) == (5, str(other.absolute()))
    monkeypatch.setenv("semmem_config", "")
    assert (Settings.load().pool_size, Settings.load().files) == (8, ())


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("2000000", "must be at most 1,000,000, not '2000000'"),
        ("-1", "must be at least 0, not '-1'"),
    ],
)
def test_a_bound_is_written_as_people_write_it(
    here: Write, monkeypatch: pytest.MonkeyPatch, value: str, sentence: str
) -> None:
    monkeypatch.setenv("SEMMEM_RESIDENT_MB", value)
    with pytest.raises(InvalidInput, match=f"{sentence}\\.$"):
        Settings.load()


def test_a_recipe_of_the_environment_that_is_nested_too_deeply_is_no_recipe(
    here: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_RECIPE", "[" * 100_000)
    with pytest.raises(InvalidInput, match="There is no recipe named"):
        recipe_of(Settings.load())


def test_the_files_of_settings_show_no_key_and_no_password(own: Write) -> None:
    own('key = "hunter2"\nurl = "postgresql://me:hunter3@db/notes"\n')
    settings = Settings.load()
    assert settings.key is not None
    assert settings.key.get_secret_value() == "hunter2"
    assert repr(settings.files) == f"(SettingsFile(path={users_file()!r}),)"


def test_a_bad_value_is_blamed_on_the_place_that_won(here: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    here("pool_size = 0\n")
    with pytest.raises(InvalidInput, match=r"semmem.toml, line 1\) must be at least 1"):
        Settings.load()
    monkeypatch.setenv("SEMMEM_POOL_SIZE", "-1")
    with pytest.raises(InvalidInput, match=r"pool_size \(SEMMEM_POOL_SIZE\) must be at least 1"):
        Settings.load()


def test_settings_made_without_load_read_the_same_files(here: Write) -> None:
    here("pool_size = 4\n")
    assert Settings().pool_size == 4


def test_the_file_of_the_working_folder_wins_over_the_users_own_and_both_count(here: Write, own: Write) -> None:
    mine, theirs = own('pool_size = 6\nlanguage = "german"\n'), here("pool_size = 7\n")
    found = Settings.load()
    assert (found.pool_size, found.language) == (7, "german")
    assert (found.source("pool_size"), found.source("language")) == (str(theirs), str(mine))
    assert [file.path for file in found.files] == [mine, theirs]


def test_the_file_that_is_named_is_the_only_one_read(here: Write, own: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    own("pool_size = 6\n")
    here('language = "german"\n')
    other = _write(Path("other.toml"), 'url = "postgresql://there/db"\n')
    monkeypatch.setenv("SEMMEM_CONFIG", "other.toml")
    found = Settings.load()
    assert (found.url, found.pool_size, found.language) == ("postgresql://there/db", 8, "english")
    assert Settings.load(config=other).url == "postgresql://there/db"
    monkeypatch.setenv("SEMMEM_CONFIG", "")
    assert (Settings.load().files, Settings.load().pool_size, Settings.load().config) == ((), 8, None)


@pytest.mark.parametrize("name", sorted(set(Settings.model_fields) - ANYWHERE - {"config"}))
def test_a_file_of_the_working_folder_cannot_send_memories_or_keys_elsewhere(here: Write, name: str) -> None:
    path = here(f'# ours\n{name} = "x"\n')
    with pytest.raises(InvalidInput) as caught:
        Settings.load()
    assert str(caught.value) == (
        f"{path}, line 2: {name} cannot be set by a settings file of the working folder, because anyone "
        f"may have written that file; put it into "
        "your own settings file, or trust this one with SEMMEM_CONFIG=semmem.toml."
    )


def test_the_working_folder_may_choose_how_semmem_works(here: Write) -> None:
    assert set(Settings.model_fields) >= ANYWHERE
    elsewhere = {"url", "home", "llm_url", "llm_key", "embedder_url", "embedder_key", "model", "spacy_pipeline"}
    assert not ANYWHERE & (elsewhere | {"triples", "llm_cache", "reranker_url", "reranker_key", "reranker_model"})


def test_folders_in_a_file_are_taken_from_where_it_stands(own: Write) -> None:
    path = own('home = "data"\nurl = "embedded:store"\ntriples = "/abs/facts.json"\n')
    found = Settings.load()
    assert found.home == path.parent / "data"
    assert found.url == f"embedded://{path.parent}/store"
    assert found.triples == Path("/abs/facts.json")


@pytest.mark.parametrize("url", ["embedded:", "embedded:///abs/store", "sqlite::memory:", "postgresql://there/db"])
def test_a_url_that_is_no_relative_folder_is_taken_as_it_stands(own: Write, url: str) -> None:
    own(f'url = "{url}"\n')
    assert Settings.load().url == url


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("pool_size = 4\npool = 3\n", ", line 2: there is no setting 'pool'; choose one of url, home, embedder"),
        (
            "\n\npool_size = 'many'\n",
            r"The setting pool_size \(.*semmem.toml, line 3\) must be a whole number, not 'many'\.$",
        ),
        ("pool_size = 0\n", r"line 1\) must be at least 1, not 0\.$"),
        ("[pool_size]\nx = 1\n", r"line 1\) must be a whole number, not {'x': 1}"),
        ("pool_size = \n", r"semmem.toml is not TOML: Invalid value \(at line 1, column 13\)"),
        ("pool_size = 1\npool_size = 2\n", "semmem.toml is not TOML: Cannot overwrite a value"),
        ('config = "other.toml"\n', "line 1: config chooses the settings file, so it cannot be set inside one"),
        ("[server]\nurl = 1\n", "line 1: there is no setting 'server'"),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence_with_file_and_line(here: Write, text: str, sentence: str) -> None:
    path = here(text)
    with pytest.raises(InvalidInput, match=sentence) as caught:
        Settings.load()
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "config"))


def test_a_file_that_is_not_there_or_not_text_is_told(here: Write, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"The settings file .*absent.toml cannot be read: No such file"):
        Settings.load(config="absent.toml")
    (tmp_path / "latin.toml").write_bytes(b'language = "fran\xe7ais"\n')
    with pytest.raises(InvalidInput, match=r"latin.toml is not UTF-8 text \(byte 16\); convert it"):
        Settings.load(config=tmp_path / "latin.toml")


def test_a_recipe_may_be_chosen_and_changed_in_a_file(here: Write) -> None:
    here('[recipe]\nname = "seed"\ndepths = {dense = 20}\n[recipe.weights]\ngraph = 0.5\n[recipe.lexical]\nk1 = 0.9\n')
    plan = recipe_of(Settings.load())
    assert plan.name == "seed"
    assert plan.weights == {"lexical": 1.0, "dense": 1.0, "graph": 0.5}
    assert (plan.depths["dense"], plan.depths["lexical"]) == (20, 100)
    assert (plan.lexical.k1, plan.lexical.b) == (0.9, 0.5)


@pytest.mark.parametrize("value", ["hybrid", '{"name": "hybrid"}'])
def test_a_recipe_may_be_chosen_by_the_environment(here: Write, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SEMMEM_RECIPE", value)
    assert recipe_of(Settings.load()).name == "hybrid"
    here('recipe = "lexical"\n')
    assert recipe_of(Settings.load()).name == "hybrid"
    monkeypatch.delenv("SEMMEM_RECIPE")
    assert recipe_of(Settings.load()).name == "lexical"


def test_a_recipe_in_a_file_is_not_mixed_with_one_of_the_environment(
    here: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_RECIPE", '{"name": "seed", "weights": {"graph": 3}}')
    here("[recipe.weights]\ndense = 0.5\n")
    assert recipe_of(Settings.load()).weights == {"lexical": 1.0, "dense": 1.0, "graph": 3}
    monkeypatch.delenv("SEMMEM_RECIPE")
    assert recipe_of(Settings.load()).weights == {"lexical": 0.1, "dense": 0.5, "graph": 0.35}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[recipe]\nname = 'seeed'\n", "There is no recipe named 'seeed'; choose one of"),
        ("[recipe.weights]\ngraph = -1\n", "weights.graph must be a number from 0 to 100, not -1"),
        ("[recipe]\nwieghts = {}\n", "A recipe has no setting 'wieghts'"),
        ("[recipe.graph]\nseeders = 'dense'\n", "graph.seeders must be a list of names, not 'dense'"),
        ("[recipe]\nlexical = 3\n", "lexical must be a table of settings, not 3"),
        ("[recipe]\nprior = 1\n", "prior must be true or false, not 1"),
        (
            "[recipe]\nregime_weights = {named = 3}\n",
            "regime_weights.named must be a mapping from the name of a leg to a number from 0.001 to 100, not 3",
        ),
    ],
)
def test_a_mistake_in_the_recipe_of_a_file_is_told_with_the_file(here: Write, text: str, sentence: str) -> None:
    path = here(text)
    with pytest.raises(InvalidInput, match=sentence) as caught:
        recipe_of(Settings.load())
    assert str(caught.value).startswith(f"{path}, line 1: the recipe cannot be used: ")


def test_lists_and_switches_of_a_recipe_are_read_as_a_file_writes_them(here: Write) -> None:
    here('[recipe]\nconversation = false\n[recipe.graph]\nseeders = ["lexical"]\n')
    plan = recipe_of(Settings.load())
    assert (plan.conversation, plan.graph.seeders) == (None, ("lexical",))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('extractor = "llm"\n', 'extractor = "llm"'),
        ('embedder = "endpoint"\n', 'embedder = "endpoint"'),
        ('[recipe]\nname = "default"\nrerank = "cross_encoder:./model"\n', 'recipe = {rerank = "cross_encoder:…"}'),
        ('[recipe]\nrerank = "endpoint"\n', 'recipe = {rerank = "endpoint"}'),
    ],
)
def test_a_file_of_the_working_folder_sends_no_text_to_a_model_and_loads_none_by_its_path(
    here: Write, monkeypatch: pytest.MonkeyPatch, text: str, what: str
) -> None:
    path = here(text)
    with pytest.raises(InvalidInput) as caught:
        Settings.load()
    assert str(caught.value) == (
        f"{path}, line 1: {what} cannot be set by a settings file of the working folder, "
        "because anyone may have written that file; put it into your own settings file, "
        "or trust this one with SEMMEM_CONFIG=semmem.toml."
    )
    monkeypatch.setenv("SEMMEM_CONFIG", "semmem.toml")
    assert Settings.load().files[0].path == path


def test_other_extractors_and_rerankers_may_stand_in_any_file(here: Write) -> None:
    here('extractor = "spacy"\n[recipe]\nrerank = "composite"\n')
    assert (Settings.load().extractor, recipe_of(Settings.load()).rerank) == ("spacy", "composite")


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS keeps settings beside data")
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS keeps settings beside data")
def test_settings_and_data_are_where_the_platform_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert users_file() == Path("/home/ada/.config/semmem/semmem.toml")
    assert files.data_folder() == Path("/home/ada/.local/share/semmem")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/xdg")
    monkeypatch.setenv("XDG_DATA_HOME", "/var/xdg")
    assert users_file() == Path("/etc/xdg/semmem/semmem.toml")
    assert files.data_folder() == Path("/var/xdg/semmem")


def test_no_folder_is_made_and_no_warning_given_by_asking_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert files.data_folder().is_relative_to(tmp_path)
    assert users_file() is not None
    assert list(tmp_path.iterdir()) == []


NAMELESS = """
import os, pwd, sys, platformdirs
from semmem import files
from semmem.config import Settings
from semmem.model.errors import InvalidInput
from semmem.stores import open_store
from semmem.stores.sqlite.store import SqliteStore
from semmem.stores.embedded.server import EmbeddedServer
os.environ.pop("HOME", None)
def getpwuid(uid):
    raise KeyError(uid)
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(54321), os.setuid(54321)
else:
    pwd.getpwuid = getpwuid
settings = Settings.load()
open_store("sqlite:///" + sys.argv[1] + "/notes.db").close()
open_store("sqlite::memory:").close()
for url in (None, "embedded:~/notes", "sqlite:~/notes.db"):
    try:
        open_store(url, home=settings.home)
    except InvalidInput as error:
        print(error)
"""


def test_a_user_without_a_home_has_sqlite_by_its_path_and_one_sentence_for_the_rest(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents:
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o001)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SEMMEM_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-c", NAMELESS, str(tmp_path)], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "This user has no home folder for memories; set SEMMEM_HOME to a folder, or name the store, such as "
        "embedded:///FOLDER or sqlite:///FILE.",
        "The folder ~ in the embedded: URL belongs to no user of this machine.",
        "The folder ~ in the sqlite: URL belongs to no user of this machine.",
    ]
    assert (tmp_path / "notes.db").exists()
