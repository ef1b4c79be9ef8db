"""What becomes of a memory in which a credential seems to stand, by the setting. None of these was ever valid."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.model.types import MASK
from semmem.write.screening import CredentialWarning, noting, redacted
from tests.write.test_credentials import CLEAN, FOUND

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WIFI = "The wifi password is heron-blue-42."


@pytest.fixture
def opened() -> Iterator[Any]:
    """A function that opens an empty store with a setting."""
    stores: list[semmem.Semmem] = []

    def connect(credentials: Any = None) -> semmem.Semmem:
        given = {} if credentials is None else {"credentials": credentials}
        stores.append(semmem.connect("sqlite::memory:", embedder="none", **given))
        return stores[-1]

    yield connect
    for one in stores:
        one.close()


def test_by_default_it_is_stored_and_warned_of_by_kind_and_id(opened: Any) -> None:
    with pytest.warns(CredentialWarning) as told:
        opened().remember(WIFI, id="w")
    assert [str(one.message) for one in told] == [
        "A credential (password) seems to be in the memory 'w': store it with sensitive=True, or take it out."
    ]


def test_a_warning_of_many_names_five_and_counts_the_others(opened: Any) -> None:
    with noting() as noted:
        opened().remember_many([{"text": WIFI, "id": str(i)} for i in range(7)] + [{"text": TOKEN, "id": "t"}])
    assert noted == [
        "A credential (password, github token) seems to be in the memory '0', '1', '2', '3', '4' and 3 more: store "
        "it with sensitive=True, or take it out."
    ]


def test_what_was_stored_already_is_not_warned_of_again(opened: Any) -> None:
    mem = opened()
    with noting() as noted:
        mem.remember(WIFI, id="w")
        mem.remember(WIFI, id="w")
        mem.import_items([{"text": WIFI, "id": "w"}])
        mem.update("w", title="Wifi")
    assert len(noted) == 1


@pytest.mark.parametrize("text", [text for text, _ in FOUND])
def test_every_known_format_is_refused_where_the_setting_says_so(opened: Any, text: str) -> None:
    mem = opened("refuse")
    with pytest.raises(
        semmem.InvalidInput, match=r"seems to hold a credential .*, and the setting credentials is ref"
    ) as e:
        mem.remember(text)
    assert text not in str(e.value)
    report = mem.remember_many([{"text": text}, {"text": "Tea."}], on_error="skip")
    assert (report.remembered, [bad.position for bad in report.rejected]) == (1, [0])
    assert mem.remember(text, sensitive=True).text == MASK


@pytest.mark.parametrize("setting", ["warn", "refuse", "sensitive"])
def test_what_only_looks_like_one_is_stored_in_the_open(opened: Any, setting: str) -> None:
    mem = opened(setting)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mem.remember_many([{"text": text} for text in CLEAN])
    assert len(mem.list(filters={"sensitive": True})) == 0


def test_it_is_stored_as_sensitive_where_the_setting_says_so(opened: Any) -> None:
    mem = opened("sensitive")
    with noting() as noted:
        assert mem.remember(WIFI, id="w").text == MASK
        assert mem.remember(WIFI, id="w").version == 1
        mem.remember_many([{"text": TOKEN, "id": "t"}, {"text": "Tea.", "id": "tea"}])
        mem.remember_messages([{"role": "user", "content": WIFI}], session="s")
        mem.import_items([{"text": WIFI, "id": "b"}])
        mem.update("tea", text=TOKEN)
    assert noted == []
    assert {m.id for m in mem.list(filters={"sensitive": True})} >= {"w", "t", "b", "tea"}
    assert [m.text for m in mem.list()] == [MASK] * 5
    assert len(mem.recall("wifi password heron")) == 0
    assert mem.import_items([{"text": WIFI, "id": "b"}]).unchanged == 1


def test_it_is_removed_from_text_and_labels_at_every_write_where_the_setting_says_so(opened: Any) -> None:
    mem = opened("redact")
    with noting() as noted:
        kept = mem.remember(f"Use {TOKEN} here.", id="w", title=TOKEN, tags=["a", TOKEN], source=TOKEN,
                            metadata={"a": [{"password": "h3ron-blue"}], "n": 1})  # fmt: skip
        assert mem.remember(f"Use {TOKEN} here.", id="again").text == "Use ghp_…[removed] here."
        mem.remember_many([{"text": WIFI, "id": "many"}, {"text": "Tea.", "id": "tea"}])
        mem.remember_messages([{"role": "user", "content": WIFI}], session="s")
        mem.import_items([{"text": WIFI, "id": "b"}])
        mem.update("tea", text=f"Tea. {WIFI}", title=WIFI)
    assert (kept.text, kept.title, kept.source) == ("Use ghp_…[removed] here.", "ghp_…[removed]", "ghp_…[removed]")
    assert (kept.tags, kept.metadata) == (("a", "ghp_…[removed]"), {"a": [{"password": "[removed]"}], "n": 1})
    assert mem.get("tea").text == "Tea. The wifi password is [removed]."
    assert mem.get("tea").title == "The wifi password is [removed]."
    assert {m.text for m in mem.list() if m.id not in ("w", "again", "tea")} == {"The wifi password is [removed]."}
    assert noted[0] == "A credential (github token, password) was removed from the memory 'w' before it was stored."
    assert len(noted) == 6
    assert "heron" not in str([row.as_dict() for m in mem.list() for row in mem.history(m.id)])


def test_a_redacted_memory_that_is_remembered_again_is_the_same(opened: Any) -> None:
    mem = opened("redact")
    with noting():
        first = mem.remember(WIFI, id="w")
        assert mem.remember(WIFI, id="w").version == first.version == 1
    with noting() as noted:
        assert mem.remember(first.text, id="w").version == 1
        assert mem.update("w", importance=0.9).text == "The wifi password is [removed]."
    assert noted == []


def test_a_text_that_is_hidden_is_not_redacted_and_cannot_be_opened_as_it_is(opened: Any) -> None:
    mem = opened("redact")
    mem.remember(WIFI, id="w", sensitive=True)
    assert mem.get("w", reveal=True).text == WIFI
    with pytest.raises(semmem.InvalidInput, match="The text seems to hold a credential"):
        mem.update("w", sensitive=False)
    with noting():
        assert mem.update("w", text=f"{WIFI} Now.", sensitive=False).text == "The wifi password is [removed]. Now."


@pytest.mark.parametrize("text", [text for text, _ in FOUND])
def test_what_was_redacted_holds_no_credential(text: str) -> None:
    once, count = redacted(text)
    assert count == 1
    assert "[removed]" in once
    assert redacted(once) == (once, 0)


def test_text_without_a_credential_is_not_changed() -> None:
    assert [redacted(text) for text in CLEAN] == [(text, 0) for text in CLEAN]


@pytest.mark.parametrize("setting", ["refuse", "sensitive"])
@pytest.mark.parametrize(
    "label", [{"title": WIFI}, {"tags": [TOKEN]}, {"metadata": {"a": [{"password": "h3ron-blue"}]}}, {"source": TOKEN}]
)
def test_a_label_that_holds_one_is_refused_for_labels_are_always_shown(opened: Any, setting: str, label: Any) -> None:
    mem = opened(setting)
    for sensitive in (False, True):
        with pytest.raises(semmem.InvalidInput, match="A label of this memory"):
            mem.remember("Tea.", sensitive=sensitive, **label)
    mem.remember("Tea.", id="t")
    with pytest.raises(semmem.InvalidInput, match="A label of this memory"):
        mem.update("t", **label)


@pytest.mark.parametrize("setting", ["refuse", "sensitive"])
def test_a_hidden_credential_cannot_be_opened_against_the_setting(opened: Any, setting: str) -> None:
    mem = opened(setting)
    mem.remember(WIFI, id="w", sensitive=True)
    with pytest.raises(semmem.InvalidInput, match="The text seems to hold a credential"):
        mem.update("w", sensitive=False)
    mem.update("w", text=f"{WIFI} Now.")
    mem.update("w", text="It is on the note.", sensitive=False)
    assert mem.get("w").text == "It is on the note."


def test_who_changes_the_mark_instead_of_the_text_destroys_nothing(opened: Any) -> None:
    mem = opened()
    mem.remember("The safe is behind the radio.", id="w", sensitive=True)
    with pytest.raises(semmem.InvalidInput, match="The new text holds the placeholder of the old text"):
        mem.update("w", text=mem.get("w").text + " Since May.")
    assert mem.get("w", reveal=True).text == "The safe is behind the radio."
    assert mem.remember(f"The mark is {MASK}.", id="note").sensitive is False


def test_switched_off_nothing_is_looked_at(opened: Any) -> None:
    with noting() as noted:
        assert opened("off").remember(WIFI).sensitive is False
    assert noted == []


def test_another_setting_is_refused_in_one_sentence() -> None:
    with pytest.raises(semmem.InvalidInput) as told:
        semmem.connect("sqlite::memory:", embedder="none", credentials="never")  # type: ignore[arg-type]
    assert str(told.value) == "The setting credentials must be warn, redact, refuse, sensitive or off, not 'never'."


def test_a_file_of_the_working_folder_cannot_switch_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMMEM_CONFIG", raising=False)
    (tmp_path / "semmem.toml").write_text('credentials = "off"\n', encoding="utf-8")
    with pytest.raises(semmem.InvalidInput, match="credentials cannot be set by a settings file of the working folder"):
        semmem.connect("sqlite::memory:", embedder="none")


def test_a_credential_in_a_key_is_removed_and_no_value_is_lost(opened: Any) -> None:
    with noting() as noted:
        kept = opened("redact").remember("Tea.", id="t", metadata={TOKEN: "v", TOKEN[:-1] + "Z": 1, "n": {TOKEN: []}})
    assert kept.metadata == {"ghp_…[removed]": "v", "ghp_…[removed] 2": 1, "n": {"ghp_…[removed]": []}}
    assert noted == ["A credential (github token) was removed from the memory 't' before it was stored."]


HIDDEN_IN_JSON = [
    {TOKEN: 1},
    {"password": ["hunter2!x"]},
    {"password": {"value": "hunter2!x"}},
    {"login": {"password": {"values": [{"text": "hunter2!x"}]}}},
    {"pin": 4815},
]


@pytest.mark.parametrize("metadata", HIDDEN_IN_JSON)
def test_a_credential_is_seen_in_a_key_and_below_one_that_names_it(opened: Any, metadata: Any) -> None:
    with pytest.raises(semmem.InvalidInput, match="A label of this memory"):
        opened("refuse").remember("Tea.", metadata=metadata)
    with noting() as noted:
        kept = opened("redact").remember("Tea.", metadata=metadata)
    assert "[removed]" in str(kept.metadata)
    assert len(noted) == 1


def test_numbers_and_words_below_a_key_that_names_no_password_stay(opened: Any) -> None:
    given = {
        "tokens": 4815, "max_tokens": 4096, "n": [12345], "token": {"type": "bearer", "on": True, "input": 1234},
        "max_token": 4096, "pin": {"lat": 48.1372, "lon": 11.5756}, "access_token": {"scopes": ["read:user"]},
        "password": {"last_changed": "2024-01-01", "length": 1234}, "secret": {"name": "db-prod-1"},
    }  # fmt: skip
    with noting() as noted:
        assert opened("redact").remember("Tea.", metadata=given).metadata == given
    assert noted == []


def test_a_credential_that_cannot_be_removed_from_a_label_is_not_said_to_be(opened: Any) -> None:
    with pytest.raises(
        semmem.InvalidInput, match=r"hold a credential \(password option\) that cannot be removed; leave it out"
    ):
        opened("redact").remember("Tea.", metadata={"mysql --password prompt": "hunter2!x"})


@pytest.mark.parametrize("setting", ["redact", "refuse", "sensitive"])
def test_the_mark_of_an_import_holds_no_credential(opened: Any, setting: str) -> None:
    mem = opened(setting)
    with pytest.raises(semmem.InvalidInput, match="The mark of an import, which each of its memories gets"):
        mem.import_items([{"text": "Tea."}], mark={"k": TOKEN})
    assert not mem.list()


def test_a_credential_in_the_mark_of_an_import_is_warned_of_once(opened: Any) -> None:
    with noting() as noted:
        opened().import_items([{"text": "Tea."}, {"text": "Milk."}], mark={"k": TOKEN})
    assert noted == [
        "The mark of an import, which each of its memories gets, seems to hold a credential (github token): take it "
        "out."
    ]


@pytest.mark.parametrize("setting", ["refuse", "sensitive", "redact", "warn"])
def test_a_conflict_of_versions_shows_no_credential(opened: Any, setting: str) -> None:
    mem = opened(setting)
    mem.remember("Tea.", id="t")
    with pytest.raises(semmem.SemmemError) as told:
        mem.update("t", text=f"Use {TOKEN}.", expected_version=99)
    assert TOKEN not in str(told.value)
