"""A ledger that cannot be used says why and what to do, and never shows a password."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from bin.lib.local.processes import free_port
from tests.servers.postgres import libpq_url
from tests.unit.ledger.bench import Bench, Clock
from tests.unit.permissions import without_rights
from twinstream import filesystems
from twinstream.errors import LedgerError, LedgerLocked, LedgerNewer, TwinstreamError
from twinstream.filesystems import filesystem_of
from twinstream.ledger import Ledger, database, hosts
from twinstream.ledger.database import open_unchecked, revision, upgrade
from twinstream.ledger.hosts import QUIET_MICROS

SECRET = "s3cr3t/of:mine"


def set_version(url: str, version: str) -> None:
    opened = open_unchecked(url)
    with opened.write("test") as connection:
        connection.execute(text("update alembic_version set version_num = :version"), {"version": version})
    opened.close()


def test_a_ledger_of_a_newer_version_is_left_alone(ledger_url: str) -> None:
    Ledger.open(ledger_url).close()
    set_version(ledger_url, "0999")
    with pytest.raises(LedgerNewer, match="version 0999; this Twinstream knows versions up to 0002") as error:
        Ledger.open(ledger_url)
    assert "Upgrade Twinstream" in error.value.next_step
    opened = open_unchecked(ledger_url)
    with pytest.raises(LedgerNewer):
        upgrade(opened)
    assert revision(opened) == "0999"
    opened.close()


def test_a_ledger_of_an_older_version_asks_for_the_upgrade(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger.open(ledger_url).close()
    monkeypatch.setattr(database, "REVISIONS", ("0001", "0002", "0003"))
    with pytest.raises(LedgerError, match="version 0002; this Twinstream needs 0003") as error:
        Ledger.open(ledger_url)
    assert not isinstance(error.value, LedgerNewer)
    assert "twinstream ledger upgrade" in error.value.next_step


def test_the_database_of_another_program_is_not_called_newer(ledger_url: str) -> None:
    opened = open_unchecked(ledger_url)
    with opened.write("test") as connection:
        connection.execute(text("create table alembic_version (version_num varchar(32) not null)"))
        connection.execute(text("insert into alembic_version values ('29ce7909c52b')"))
    opened.close()
    with pytest.raises(LedgerError, match="another program") as error:
        Ledger.open(ledger_url)
    assert not isinstance(error.value, LedgerNewer)


@pytest.mark.parametrize("create", [True, False])
def test_a_ledger_is_made_only_where_one_may_be_made(ledger_url: str, create: bool, tmp_path: Path) -> None:
    if create:
        Ledger.open(ledger_url, create=True).close()
        Ledger.open(ledger_url, create=False).close()
        return
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(ledger_url, create=False)
    assert list(tmp_path.iterdir()) == []


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Another program keeps a transaction open."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
            other.execute("begin immediate")
            yield
            other.execute("rollback")
    else:
        with psycopg.connect(libpq_url(url)) as connection:
            connection.execute("select * from generations for update")
            yield
            connection.rollback()


def test_a_locked_ledger_is_waited_for_and_then_named(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.3)
    ledger = Ledger.open(ledger_url)
    bench = Bench(ledger, Clock())
    with locked(ledger_url):
        with pytest.raises(LedgerLocked, match=r"stayed locked by another program for 0.3 seconds") as error:
            bench.plan("a.json")
        assert "Close the program" in error.value.next_step
        assert bench.generation.last_txid == 0, "reading goes on"
    assert bench.plan("a.json") == range(1, 2)
    ledger.close()


def test_a_short_lock_is_only_waited_for(ledger_url: str) -> None:
    ledger = Ledger.open(ledger_url)
    bench = Bench(ledger, Clock())
    planned = threading.Event()

    def plan() -> None:
        bench.plan("a.json")
        planned.set()

    with locked(ledger_url):
        thread = threading.Thread(target=plan)
        thread.start()
        assert not planned.wait(0.3)
    assert planned.wait(20)
    thread.join()
    ledger.close()


def test_a_word_in_an_error_does_not_make_it_a_lock(postgres_url: str) -> None:
    url = postgres_url.rsplit("/", 1)[0] + "/locked_and_busy"
    with pytest.raises(LedgerError, match="does not exist") as error:
        Ledger.open(url)
    assert not isinstance(error.value, LedgerLocked)


MOUNTS = """\
sysfs /sys sysfs rw,nosuid 0 0
/dev/sda1 / ext4 rw,relatime 0 0
server:/export /mnt/share nfs4 rw,vers=4.2 0 0
auto.home /home autofs rw 0 0
server:/home /home nfs rw 0 0
//nas/team\\040files /mnt/team\\040files cifs rw 0 0
bucket /mnt/share/bucket fuse.s3fs rw 0 0
/dev/sdb1 /mnt/share/local xfs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/ledger", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/a/b", "nfs4"),
        ("/mnt/shared", "ext4"),
        ("/home/me", "nfs"),
        ("/mnt/team files/x", "cifs"),
        ("/mnt/share/bucket/x", "fuse.s3fs"),
        ("/mnt/share/local/x", "xfs"),
    ],
)
def test_the_file_system_is_that_of_the_deepest_mount(path: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    assert filesystem_of(Path(path), str(tmp_path / "mounts")) == kind


def test_a_machine_without_a_list_of_mounts_is_not_refused(tmp_path: Path) -> None:
    assert filesystem_of(tmp_path, str(tmp_path / "nothing")) == ""


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_sqlite_on_a_network_file_system_is_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounts").write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/x {tmp_path / 'share'} {kind} rw 0 0\n")
    monkeypatch.setattr(filesystems, "MOUNTS", str(tmp_path / "mounts"))
    with pytest.raises(LedgerError, match=f"network file system \\({kind}\\)") as error:
        Ledger.open(f"sqlite:///{tmp_path / 'share' / 'ledger.db'}")
    assert "postgresql://" in error.value.next_step
    assert not (tmp_path / "share" / "ledger.db").exists()
    Ledger.open(f"sqlite:///{tmp_path / 'local' / 'ledger.db'}").close()


def test_a_second_host_is_refused_until_the_first_was_quiet_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, clock = f"sqlite:///{tmp_path / 'ledger.db'}", Clock()
    monkeypatch.setenv("TWINSTREAM_HOST_ID", "one")
    Ledger.open(url, clock=clock).close()
    monkeypatch.setenv("TWINSTREAM_HOST_ID", "two")
    clock.passes(500)
    with pytest.raises(LedgerError, match=r"in use by another host \(one\)") as error:
        Ledger.open(url, clock=clock)
    assert "postgresql://" in error.value.next_step
    clock.now += QUIET_MICROS
    Ledger.open(url, clock=clock).close()
    monkeypatch.setenv("TWINSTREAM_HOST_ID", "one")
    with pytest.raises(LedgerError, match=r"in use by another host \(two\)"):
        Ledger.open(url, clock=clock)


def test_a_host_that_keeps_working_keeps_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner opens the ledger once and works for hours."""
    monkeypatch.setattr(hosts, "REFRESH_SECONDS", 0.0)
    url, clock = f"sqlite:///{tmp_path / 'ledger.db'}", Clock()
    monkeypatch.setenv("TWINSTREAM_HOST_ID", "one")
    runner = Ledger.open(url, clock=clock)
    bench = Bench(runner, clock)
    lease = bench.lease()
    for _ in range(5):
        clock.passes(300)
        runner.leases.renew(lease)
    monkeypatch.setenv("TWINSTREAM_HOST_ID", "two")
    with pytest.raises(LedgerError, match=r"another host \(one\)"):
        Ledger.open(url, clock=clock)
    runner.close()


def test_a_host_that_slept_while_another_took_the_ledger_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "REFRESH_SECONDS", 0.0)
    url, clock = f"sqlite:///{tmp_path / 'ledger.db'}", Clock()
    monkeypatch.setenv("TWINSTREAM_HOST_ID", "one")
    asleep = Ledger.open(url, clock=clock)
    bench = Bench(asleep, clock)
    clock.now += QUIET_MICROS
    monkeypatch.setenv("TWINSTREAM_HOST_ID", "two")
    Ledger.open(url, clock=clock).close()
    monkeypatch.setenv("TWINSTREAM_HOST_ID", "one")
    with pytest.raises(LedgerError, match=r"another host \(two\)"):
        bench.plan("a.json")
    assert bench.generation.last_txid == 0
    asleep.close()


def test_postgresql_serves_many_hosts(postgres_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("one", "two"):
        monkeypatch.setenv("TWINSTREAM_HOST_ID", host)
        Ledger.open(postgres_database).close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=r"file/inside, cannot be used: Not a directory") as error:
        Ledger.open(f"sqlite:///{tmp_path / 'file' / 'inside' / 'ledger.db'}")
    assert "TWINSTREAM_HOME" in error.value.next_step


def test_a_folder_in_the_place_of_the_ledger_is_named(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").mkdir()
    with pytest.raises(LedgerError, match=r"ledger\.db cannot be used: unable to open database file"):
        Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}")


@pytest.mark.parametrize("closed", ["folder", "file"])
def test_a_place_without_permission_is_named(tmp_path: Path, closed: str) -> None:
    file = tmp_path / "home" / "ledger.db"
    Ledger.open(f"sqlite:///{file}").close()
    with without_rights(file.parent if closed == "folder" else file), pytest.raises(LedgerError) as error:
        Ledger.open(f"sqlite:///{file}")
    assert str(file.parent) in error.value.what
    assert "TWINSTREAM_LEDGER_URL" in error.value.next_step
    Ledger.open(f"sqlite:///{file}").close()


def test_a_folder_without_permission_to_make_one_in_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    with without_rights(tmp_path / "closed"), pytest.raises(LedgerError, match="Permission denied") as error:
        Ledger.open(f"sqlite:///{tmp_path / 'closed' / 'home' / 'ledger.db'}")
    assert str(tmp_path / "closed" / "home") in error.value.what


@pytest.mark.parametrize("content", [b"this is no database " * 100, b"PK\x03\x04" + bytes(5000)])
def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "ledger.db"
    file.write_bytes(content)
    with pytest.raises(
        LedgerError, match=r"ledger\.db is no ledger, or it is damaged: file is not a database"
    ) as error:
        Ledger.open(f"sqlite:///{file}")
    assert "restore a backup" in error.value.next_step
    assert file.read_bytes() == content


def test_a_damaged_ledger_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    ledger = Ledger.open(f"sqlite:///{file}")
    Bench(ledger, Clock()).plan_many(200)
    ledger.close()
    whole = file.read_bytes()
    file.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    with pytest.raises(LedgerError, match="damaged"):
        Bench(Ledger.open(f"sqlite:///{file}"), Clock()).plan_many(1)


BAD_URLS = [
    "",
    "ledger.db",
    "sqlite://",
    "sqlite:///:memory:",
    "sqlite:////tmp/ledger.db?mode=ro",
    f"mysql://me:{SECRET}@host/db",
    f"mysql+pymysql://me:{SECRET}@host/db",
    f"oracle://me:{SECRET}@host/db",
    f"nonsense://me:{SECRET}@host/db",
    f"postgresql://me:{SECRET}@host:port/db",
    f"postgresql://me:{SECRET}@",
    f"postgresql//me:{SECRET}@host/db",
    f"postgresql://me:{SECRET}@127.0.0.1:1@more/db",
]


@pytest.mark.parametrize("url", BAD_URLS)
def test_an_address_that_is_none_is_a_clear_error_without_the_password(url: str) -> None:
    with pytest.raises(LedgerError) as error:
        Ledger.open(url)
    assert_silent(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cr3t%2Fof%3Amine@127.0.0.1:{port}/ledger",
        "postgres://me:s3cr3t%2Fof%3Amine@127.0.0.1:{port}/ledger",
        "postgresql+psycopg2://me:s3cr3t%2Fof%3Amine@127.0.0.1:{port}/ledger",
        "postgresql+asyncpg://me:s3cr3t%2Fof%3Amine@127.0.0.1:{port}/ledger",
        "postgresql://me@127.0.0.1:{port}/ledger?password=s3cr3t/of:mine",
    ],
)
def test_a_server_that_is_down_is_named_without_the_password(url: str) -> None:
    port = free_port()
    with pytest.raises(LedgerError, match=f"ledger on 127.0.0.1:{port} cannot be used.*refused") as error:
        Ledger.open(url.format(port=port))
    assert "is up" in error.value.next_step
    assert_silent(error.value)


def test_a_wrong_password_is_not_shown(postgres_url: str) -> None:
    place = postgres_url.rpartition("@")[2]
    with pytest.raises(LedgerError, match="password authentication failed") as error:
        Ledger.open(f"postgresql://me:s3cr3t%2Fof%3Amine@{place}")
    assert_silent(error.value)


def test_a_password_with_an_unescaped_at_sign_is_not_taken_for_the_host() -> None:
    with pytest.raises(LedgerError) as error:
        Ledger.open(f"postgresql://me:s3cr3t@of:mine@127.0.0.1:{free_port()}/ledger")
    assert_silent(error.value)


def assert_silent(error: TwinstreamError) -> None:
    """No part of the password is in what a user or a log gets to see, causes included."""
    shown: BaseException | None = error
    while shown is not None:
        for part in ("s3cr3t", "of:mine", "of%3Amine"):
            assert part not in str(shown)
            assert part not in repr(shown)
        shown = shown.__cause__ or shown.__context__
