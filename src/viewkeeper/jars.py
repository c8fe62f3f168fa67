"""The jars that embedded Spark needs: resolved once into a cache, then handed over as files.

Handing files to ``spark.jars`` saves the seconds that ``spark.jars.packages`` costs at every start, and
works offline. ``python -m viewkeeper.jars`` fetches them ahead of time.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from viewkeeper.errors import SetupError
from viewkeeper.java import java_problem

PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.xerial:sqlite-jdbc:3.49.1.0",
    "org.postgresql:postgresql:42.7.7",  # copies tables of PostgreSQL sources
    "io.delta:delta-spark_4.1_2.13:4.3.1",  # Delta tables as sources, and what it needs of its own
    "io.delta:delta-storage:4.3.1",
    "io.delta:delta-kernel-api:4.3.1",
    "io.delta:delta-kernel-defaults:4.3.1",
    "io.delta:delta-kernel-unitycatalog:4.3.1",
    "org.apache.spark:spark-avro_2.13:4.1.1",  # Avro files as sources; the last of its line
    "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0",  # local files without a process for each of them
)

_RESOLVE_SECONDS = 900

# Starting pyspark's gateway makes spark-submit resolve the packages; no Spark context is needed for it.
_RESOLVE = "from pyspark.java_gateway import launch_gateway; launch_gateway().shutdown()"


def cache_folder() -> Path:
    """Where things are kept that can be fetched again: ``$VIEWKEEPER_CACHE``, else the user's cache."""
    own = os.environ.get("VIEWKEEPER_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    users = os.environ.get("XDG_CACHE_HOME")
    return (Path(users) if users else Path.home() / ".cache") / "viewkeeper"


def jar_name(package: str) -> str:
    """The file name under which Spark's Ivy retrieves a package.

    >>> jar_name("org.xerial:sqlite-jdbc:3.49.1.0")
    'org.xerial_sqlite-jdbc-3.49.1.0.jar'
    """
    group, artifact, version = package.split(":")
    return f"{group}_{artifact}-{version}.jar"


def jar_files() -> tuple[Path, ...]:
    """The jars, fetched on first use; raises ``VK-SETUP-JARS`` when they cannot be had."""
    folder = cache_folder() / "jars"
    wanted = tuple(folder / jar_name(package) for package in PACKAGES)
    if all(jar.is_file() for jar in wanted):
        return wanted
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _only_one(folder / ".lock"):
            missing = [p for p, jar in zip(PACKAGES, wanted, strict=True) if not jar.is_file()]
            if missing:
                _fetch(missing, folder)
    except OSError as error:
        raise SetupError(
            f"the jar cache {folder} cannot be written: {error}",
            code="VK-SETUP-JARS",
            hint="Set VIEWKEEPER_CACHE to a folder that can be written.",
        ) from error
    return wanted


def _fetch(packages: list[str], folder: Path) -> None:
    problem = java_problem()
    if problem:
        raise SetupError(problem, code="VK-SETUP-JAVA")
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        _resolve(packages, Path(scratch))
        for package in packages:
            # Same file system, so the rename is atomic: a reader finds a whole jar or none.
            (Path(scratch) / "ivy" / "jars" / jar_name(package)).replace(folder / jar_name(package))


def _resolve(packages: list[str], scratch: Path) -> None:
    """Let Spark's own Ivy fetch the packages into ``scratch/ivy/jars``.

    A half-filled ~/.m2 breaks Ivy (it takes the pom from there and then misses the jar), hence the
    private home and Ivy folder. Proxies and ``DEFAULT_ARTIFACT_REPOSITORY`` work as in spark-submit.
    """
    own_folders = [
        f"spark.jars.ivy={scratch / 'ivy'}",
        f'spark.driver.extraJavaOptions="-Duser.home={scratch / "home"}"',
    ]
    confs = [part for conf in own_folders for part in ("--conf", conf)]
    submit = shlex.join(["--packages", ",".join(packages), *confs, "pyspark-shell"])
    try:
        done = subprocess.run(
            [sys.executable, "-c", _RESOLVE],
            env=os.environ | {"PYSPARK_SUBMIT_ARGS": submit},
            capture_output=True,
            text=True,
            timeout=_RESOLVE_SECONDS,
            check=False,
        )
        failed = done.returncode != 0 or not all(
            (scratch / "ivy" / "jars" / jar_name(package)).is_file() for package in packages
        )
        said = done.stderr
    except subprocess.TimeoutExpired:
        failed, said = True, f"no answer within {_RESOLVE_SECONDS} seconds"
    if failed:
        raise SetupError(
            f"Spark's Ivy could not fetch {', '.join(packages)}: {_last_complaint(said)}",
            code="VK-SETUP-JARS",
            hint="Connect to the network once and run `python -m viewkeeper.jars`, point "
            "DEFAULT_ARTIFACT_REPOSITORY at a Maven mirror, or put "
            f"{', '.join(jar_name(package) for package in packages)} into {cache_folder() / 'jars'}.",
        )


def _last_complaint(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "rror" in line or "xception" in line or "not found" in line]
    return (telling or lines or ["it gave no reason"])[0][:300]


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Hold the lock file while the block runs; a second process waits. Freed by the system on a crash."""
    with lock.open("a+") as handle:
        if sys.platform == "win32":
            import msvcrt

            handle.seek(0)
            msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Fetch the jars and say where they are."""
    try:
        for jar in jar_files():
            print(jar)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
