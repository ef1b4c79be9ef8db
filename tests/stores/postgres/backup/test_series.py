"""A series of backups in a folder or a bucket: dated names, the newest stay, and one can be restored on trial."""

from __future__ import annotations

import os
import tempfile
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import semmem
from semmem.client import backup_series as series
from semmem.client.memory import Semmem
from semmem.config import Settings
from semmem.model.errors import InvalidInput, NotFound, StoreUnavailable

NIGHT = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """Run a server that speaks S3; return its URL."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a bucket; return the URL of a prefix in it. Its credentials stand in the environment."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3, "AWS_ALLOW_HTTP": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    name = f"bucket-{os.urandom(4).hex()}"
    urllib.request.urlopen(urllib.request.Request(f"{s3}/{name}", method="PUT")).close()
    return f"s3://{name}/semmem/nightly"


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> series.Place:
    if request.param == "bucket":
        found = series.place_of(request.getfixturevalue("bucket"))
    else:
        (tmp_path / "backups").mkdir()
        found = series.place_of(str(tmp_path / "backups"))
    assert found is not None
    return found


def test_of_five_nights_the_last_two_stay_and_the_newest_restores(
    filled: Semmem, empty: Semmem, place: series.Place
) -> None:
    steps = [series.add(filled, place, keep=2, now=NIGHT + timedelta(days=day)) for day in range(5)]
    names = [step.name for step in steps]
    assert [len(step.removed) for step in steps] == [0, 0, 1, 1, 1]
    assert sorted(place.names()) == names[3:]
    assert [name[-23:] for name in names[3:]] == ["20260304T023000Z.semmem", "20260305T023000Z.semmem"]
    assert series.newest(place, "there") == [names[4]]
    with place.fetched(names[4]) as file:
        assert file.stat().st_size == steps[4].backup.bytes
        assert empty.restore(file).memories == 88
    assert empty.hashes() == filled.hashes()


def test_the_backups_of_another_store_and_other_files_stay(filled: Semmem, empty: Semmem, place: series.Place) -> None:
    other = series.add(empty, place, keep=1, now=NIGHT).name
    with place.new("semmem-notes.semmem") as file:
        file.write_bytes(b"of somebody")
    first = series.add(filled, place, keep=1, now=NIGHT + timedelta(days=1)).name
    second = series.add(filled, place, keep=1, now=NIGHT + timedelta(days=2))
    assert second.removed == (first,)
    assert sorted(place.names()) == sorted([other, second.name, "semmem-notes.semmem"])


def test_where_two_stores_have_backups_the_one_to_restore_is_named(
    filled: Semmem, empty: Semmem, tmp_path: Path
) -> None:
    place = series.Folder(tmp_path)
    for day in range(2):
        one = series.add(filled, place, keep=2, now=NIGHT + timedelta(days=day)).name
        other = series.add(empty, place, keep=2, now=NIGHT + timedelta(days=day, hours=1)).name
    with pytest.raises(InvalidInput) as raised:
        series.chosen(str(tmp_path))
    assert raised.value.message == (
        f"Backups of 2 stores are at {tmp_path}; name the one to restore: {tmp_path}/{one} or {tmp_path}/{other}."
    )
    assert series.chosen(str(tmp_path), every=True) == (place, [one, other])
    assert series.chosen(str(tmp_path / one)) is None  # a file


def test_a_backup_in_a_bucket_can_be_named(filled: Semmem, bucket: str) -> None:
    place = series.place_of(bucket)
    assert place is not None
    first, second = (series.add(filled, place, keep=2, now=NIGHT + timedelta(days=d)).name for d in range(2))
    for asked, names in ((bucket, [second]), (f"{bucket}/{first}", [first])):
        found = series.chosen(asked)
        assert found is not None
        assert found[1] == names
        with found[0].fetched(names[0]) as file:
            assert file.stat().st_size > 0


def test_a_backup_that_fails_removes_nothing(filled: Semmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = series.Folder(tmp_path)
    kept = series.add(filled, place, keep=1, now=NIGHT).name

    def fails(done: int) -> None:
        raise InvalidInput("The disk is full.")

    with pytest.raises(InvalidInput, match="disk is full"):
        series.add(filled, place, keep=1, now=NIGHT + timedelta(days=1), progress=fails)
    assert place.names() == [kept]


def test_what_a_killed_backup_left_a_day_ago_is_removed_and_nothing_else(filled: Semmem, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    old, new, mine, link = (tmp_path / f".{name}.part" for name in ("0123456789abcdef", "f" * 16, "notes", "0" * 16))
    for file in (old, new, mine):
        file.write_text("half")
    link.symlink_to(tmp_path / "elsewhere")
    for file in (old, mine, link):
        os.utime(file, (0, 0), follow_symlinks=False)
    step = series.add(filled, series.Folder(tmp_path), keep=1, now=NIGHT)
    assert sorted(file.name for file in tmp_path.iterdir()) == [new.name, mine.name, "elsewhere", step.name]


def test_a_clock_that_was_set_back_does_not_remove_the_backup_just_written(filled: Semmem, tmp_path: Path) -> None:
    place = series.Folder(tmp_path)
    series.add(filled, place, keep=1, now=NIGHT)
    early = series.add(filled, place, keep=1, now=NIGHT - timedelta(days=1))
    assert early.name in place.names()


def test_a_backup_dated_ahead_takes_no_place_and_is_not_the_newest(filled: Semmem, tmp_path: Path) -> None:
    place = series.Folder(tmp_path)
    ahead = series.add(filled, place, keep=2, now=NIGHT + timedelta(days=400)).name
    steps = [series.add(filled, place, keep=2, now=NIGHT + timedelta(days=n)) for n in range(3)]
    assert [step.removed for step in steps] == [(), (), (steps[0].name,)]
    assert sorted(place.names()) == sorted([steps[1].name, steps[2].name, ahead])
    assert series.newest(place, "here", NIGHT + timedelta(days=2)) == [steps[2].name]
    for step in steps[1:]:
        place.remove(step.name)
    assert series.newest(place, "here", NIGHT + timedelta(days=2)) == [ahead]


def test_two_backups_of_one_second_are_both_there(filled: Semmem, tmp_path: Path) -> None:
    place = series.Folder(tmp_path)
    moment = datetime(2026, 11, 20, 2, 0, 59, 400, tzinfo=UTC)
    one, two = (series.add(filled, place, keep=5, now=moment).name for _ in range(2))
    assert (one[-23:], two[-23:]) == ("20261120T020059Z.semmem", "20261120T020100Z.semmem")
    assert sorted(place.names()) == [one, two]


@pytest.mark.slow
def test_a_drill_restores_into_a_store_that_is_gone_afterwards(
    filled: Semmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tempfile.mkdtemp()  # short, as the path of a socket has to be
    monkeypatch.setattr("tempfile.tempdir", temporary)
    file = tmp_path / series.add(filled, series.Folder(tmp_path), keep=1, now=NIGHT).name
    tried = series.drill(file, Settings.load())
    assert (tried.file, tried.memories, tried.namespaces, tried.bytes) == (
        file.name, 88, len(filled.hashes()), file.stat().st_size
    )  # fmt: skip
    assert list(Path(temporary).iterdir()) == []
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    with pytest.raises(InvalidInput, match="damaged"):
        series.drill(file, Settings.load())
    Path(temporary).rmdir()


@pytest.mark.parametrize("text", ["s3://", "http://host/backups", "ftp://host/x", "S3:///"])
def test_a_url_of_no_bucket_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no place for backups; name a folder, or a bucket as s3://BUCKET/PREFIX"):
        series.place_of(text)


def test_a_bucket_that_is_not_there_is_told_in_one_sentence(bucket: str, filled: Semmem) -> None:
    place = series.place_of("s3://nobody-has-this/x")
    assert place is not None
    with pytest.raises(
        StoreUnavailable, match=r"The bucket of s3://nobody-has-this/x could not be used: .*404"
    ) as raised:
        series.add(filled, place, keep=1)
    assert "\n" not in raised.value.message
    assert filled.store.backlog().backup_s is None  # so the alert tells
    assert "Debug source" not in raised.value.message
    assert raised.value.message.endswith(
        " …. Check its name, and the credentials, region and endpoint in the environment, such as AWS_ACCESS_KEY_ID."
    )


def test_an_endpoint_without_tls_says_which_variable_allows_it(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    place = series.place_of(bucket)
    assert place is not None
    with pytest.raises(StoreUnavailable, match=r"An endpoint with http:// needs AWS_ALLOW_HTTP=true in the environ"):
        place.names()


def test_a_backup_that_a_bucket_does_not_hold_is_told_as_one(bucket: str) -> None:
    with pytest.raises(NotFound, match=r"^There is no backup semmem-00000000-20260301T023000Z\.semmem at s3://"):
        series.chosen(f"{bucket}/semmem-00000000-20260301T023000Z.semmem")


def test_a_backup_of_a_series_is_in_the_audit(filled_url: str, tmp_path: Path) -> None:
    with semmem.connect(filled_url, embedder="hashing", audit=True) as mem:
        series.add(mem, series.Folder(tmp_path), keep=1)
        assert [(one.verb, one.outcome) for one in mem.audit()] == [("backup", "done")]


def test_a_place_without_a_backup_says_how_to_write_one(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(NotFound, match="no backup of a series at there; `semmem backup there` writes one"):
        series.newest(series.Folder(tmp_path), "there")


@pytest.mark.parametrize("keep", [0, -1, 10_001, 1.5, True])
def test_a_series_keeps_one_backup_at_least(filled: Semmem, tmp_path: Path, keep: int) -> None:
    with pytest.raises(InvalidInput, match="keep must be a whole number from 1 to 10,000"):
        series.add(filled, series.Folder(tmp_path), keep=keep)
    assert list(tmp_path.iterdir()) == []


def test_a_sqlite_file_has_no_backups(tmp_path: Path) -> None:
    with (
        semmem.connect(f"sqlite:{tmp_path / 'a.db'}", embedder="none") as mem,
        pytest.raises(InvalidInput, match="backup is for stores on PostgreSQL"),
    ):
        series.add(mem, series.Folder(tmp_path), keep=1)
