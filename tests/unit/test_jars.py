"""The jar cache: where it is, when nothing is fetched, and what is said when fetching fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewkeeper import jars
from viewkeeper.errors import SetupError


def test_the_cache_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("VIEWKEEPER_CACHE", raising=False)
    assert jars.cache_folder() == tmp_path / "xdg" / "viewkeeper"
    monkeypatch.setenv("VIEWKEEPER_CACHE", str(tmp_path / "own"))
    assert jars.cache_folder() == tmp_path / "own"


def test_jars_that_are_there_are_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIEWKEEPER_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")  # nothing could be started
    for package in jars.PACKAGES:
        file = tmp_path / "jars" / jars.jar_name(package)
        file.parent.mkdir(exist_ok=True)
        file.touch()
    assert [jar.name for jar in jars.jar_files()] == [jars.jar_name(package) for package in jars.PACKAGES]


def test_without_java_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIEWKEEPER_CACHE", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="VK-SETUP-JAVA"):
        jars.jar_files()


def test_a_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("VIEWKEEPER_CACHE", str(tmp_path / "file"))
    with pytest.raises(SetupError, match="VK-SETUP-JARS"):
        jars.jar_files()


@pytest.mark.spark
def test_what_cannot_be_fetched_is_an_error_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As offline: no repository has the package. Nothing half-fetched is left behind."""
    monkeypatch.setenv("VIEWKEEPER_CACHE", str(tmp_path / "a cache"))
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", (tmp_path / "empty").as_uri() + "/")
    monkeypatch.setattr(jars, "PACKAGES", ("example.invalid:nothing:1.0",))
    with pytest.raises(SetupError, match="VK-SETUP-JARS") as caught:
        jars.jar_files()
    assert "DEFAULT_ARTIFACT_REPOSITORY" in str(caught.value.hint)
    assert [file.name for file in (tmp_path / "a cache" / "jars").iterdir()] == [".lock"]
