"""The archive of the target's classes: made once, made again where needed, never in the way."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.stack import programs
from spikelab.stack.programs import Build, builds, ensure_built, target_archive, target_jar

START_TARGET = paths.ROOT / "host" / "start-target"


SOURCE = 'class Main { public static void main(String[] words) { System.out.println("ready"); } }\n'


def program(path: Path, *lines: str) -> Path:
    """A script in place of a Java, which says its version and then does these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    version = f'[ "$1" = --version ] && echo {path.parent} && exit'
    path.write_text("\n".join(["#!/bin/sh", version, *lines, ""]))
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It prints a line."""
    folder = tmp_path_factory.mktemp("jar")
    (folder / "Main.java").write_text(SOURCE)
    subprocess.run(["javac", "--release", "17", "Main.java"], cwd=folder, check=True)
    with zipfile.ZipFile(folder / "main.jar", "w") as made:
        made.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nMain-Class: Main\n")
        made.write(folder / "Main.class", "Main.class")
    return folder / "main.jar"


@pytest.fixture
def archive(jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """The build of the archive, the only one."""
    script = tmp_path / "host" / "make-archive.sh"
    script.parent.mkdir()
    shutil.copy(paths.ROOT / "host" / "make-archive.sh", script)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(paths, "LOGS", tmp_path / "log")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(programs, "builds", lambda: [archive_build()])
    target_jar().parent.mkdir(parents=True)
    shutil.copy(jar, target_jar())
    return archive_build()


def archive_build() -> Build:
    return builds()[-1]


def started(java_options: str = "") -> str:
    """What host/start-target prints of the jar, with the environment of this test."""
    state = paths.ROOT / "state"
    state.mkdir(exist_ok=True)
    (state / "target.env").write_text(f"TARGET_JAR='{target_jar()}'\n")
    env = {**os.environ, "LAB_STATE": str(state), "TARGET_JAVA_OPTIONS": java_options}
    return subprocess.run(
        [START_TARGET], env=env, capture_output=True, text=True, check=True
    ).stdout


def test_the_archive_is_made_once_and_used(
    archive: Build, capfd: pytest.CaptureFixture[str]
) -> None:
    ensure_built()
    assert "building the archive of the target's classes" in capfd.readouterr().err
    assert archive.current()
    assert sorted(target_jar().parent.iterdir()) == [target_jar(), target_archive()]
    ensure_built()
    assert capfd.readouterr().err == ""
    loaded = started("-Xlog:class+load").splitlines()
    assert any("Main source: shared objects file (top)" in line for line in loaded)
    assert started() == "ready\n"


def test_another_jar_and_another_java_make_the_archive_anew(
    archive: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ensure_built()
    with zipfile.ZipFile(target_jar(), "a") as jar:
        jar.comment = b"another build"
    assert not archive.current()
    # Until then, and of whatever it is, it is passed over without a word.
    assert started() == "ready\n"
    target_archive().unlink()
    target_archive().write_text("no archive\n")
    assert started() == "ready\n"
    ensure_built()
    assert archive.current()
    other = program(tmp_path / "other" / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(other.parent.parent))
    assert not archive_build().current()


@pytest.mark.parametrize("says", ["exit 1", "exit 0", 'echo half > "${2#*=}"; kill -9 $$'])
def test_a_java_that_makes_no_archive_starts_the_target_without(
    archive: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str
) -> None:
    making = f'case "$*" in *ArchiveClassesAtExit*) {says} ;; esac'
    java = program(tmp_path / "small" / "bin" / "java", making, 'echo "$@"')
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    ensure_built()
    assert archive_build().current()
    assert target_archive().read_text() == ""
    assert started("-Xint").endswith(f"-XX:-UsePerfData -Xint -jar {target_jar()}\n")
    target_archive().write_text("one of another Java\n")
    assert f"{target_archive()} -Xlog:cds*=off -Xint -jar" in started("-Xint")
