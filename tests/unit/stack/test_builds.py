"""Builds of the target that a variant names: files are found and checked before any start."""

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from spikelab import paths
from spikelab.errors import UsageError
from spikelab.machine import Cores
from spikelab.plans.studies import Variant
from spikelab.stack.builds import TargetBuild, build_of, file_hash
from spikelab.stack.containers import TargetStart
from spikelab.stack.docker import DockerRuntime
from spikelab.stack.engine import compose_command
from spikelab.stack.host import HostRuntime

MANIFEST = (
    "Manifest-Version: 1.0\r\nMain-Class: a.B\r\n"
    "Class-Path: lib/one.jar lib/a-long-na\r\n me.jar\r\n"
)


CORES = Cores(driver=(0,), target=(1,))


REPLICAS = paths.COMPOSE_FILE.with_name("docker-compose.replicas.yml")


def make_jar(path: Path, manifest: str = MANIFEST) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", manifest)
    return path


def found(variant: Variant, folder: Path) -> TargetBuild | None:
    return build_of(variant, folder / "plan.yaml")


def test_files_are_found_beside_the_plan_or_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans, elsewhere = tmp_path / "plans", tmp_path / "elsewhere"
    plans.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    variant = Variant(name="b", jar="b.jar")
    jar = make_jar(elsewhere / "b.jar")
    assert found(variant, plans) == TargetBuild(jar=jar)
    beside = make_jar(plans / "b.jar")
    assert found(variant, plans) == TargetBuild(jar=beside)
    assert found(Variant(name="own"), plans) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "variant b: jar: there is no file 'b.jar' beside "),
        (b"", "variant b: jar b.jar: this is no jar"),
        (b"PK\x05\x06" + bytes(18), "variant b: jar b.jar: this is no jar"),
        ("Manifest-Version: 1.0\n", "its manifest names no Main-Class"),
    ],
)
def test_what_is_no_jar_is_one_line(
    tmp_path: Path, content: bytes | str | None, message: str
) -> None:
    if isinstance(content, str):
        make_jar(tmp_path / "b.jar", content)
    elif content is not None:
        (tmp_path / "b.jar").write_bytes(content)
    with pytest.raises(UsageError) as error:
        found(Variant(name="b", jar="b.jar"), tmp_path)
    assert message in str(error.value)


def test_a_jar_needs_its_libraries_beside_it(tmp_path: Path) -> None:
    build = TargetBuild(jar=make_jar(tmp_path / "b.jar"))
    with pytest.raises(UsageError, match=r"wants lib/one\.jar beside it and 1 more: keep"):
        HostRuntime().require_build(build)
    (tmp_path / "lib").mkdir()
    for name in ("one.jar", "a-long-name.jar"):
        (tmp_path / "lib" / name).touch()
    HostRuntime().require_build(build)


def test_plain_processes_start_no_image_and_say_what_does(tmp_path: Path) -> None:
    (tmp_path / "o.yml").write_text("services: {target: {}}\n")
    for variant in (Variant(name="b", image="b:1"), Variant(name="b", compose=["o.yml"])):
        build = found(variant, tmp_path)
        assert build
        with pytest.raises(UsageError, match=r"\./lab up --runtime docker"):
            HostRuntime().require_build(build)


@pytest.mark.parametrize("text", ["", "services:", "services: [", "- target", "a: 1", "\x00"])
def test_an_override_without_services_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "o.yml").write_text(text)
    with pytest.raises(UsageError, match="this is no Compose file with services"):
        found(Variant(name="b", compose=["o.yml"]), tmp_path)


def test_a_jar_that_the_container_may_not_read_is_refused(tmp_path: Path) -> None:
    jar = make_jar(tmp_path / "b.jar")
    jar.chmod(0o640)
    with pytest.raises(UsageError, match="chmod o\\+r"):
        DockerRuntime().require_build(TargetBuild(jar=jar))
    jar.chmod(0o644)
    DockerRuntime().require_build(TargetBuild(jar=jar))


def composed(files: tuple[Path, ...], env: dict[str, str]) -> dict[str, dict[str, object]]:
    """Services as Compose understands the files."""
    said = subprocess.run(
        compose_command("--profile", "k6", "config", "--format", "json", files=files),
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    services: dict[str, dict[str, object]] = json.loads(said.stdout)["services"]
    return services


@pytest.mark.skipif(shutil.which("docker") is None, reason="no docker")
def test_compose_takes_image_jar_override_and_cpus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "STATE", tmp_path)
    jar = make_jar(tmp_path / "b$1.jar")
    override = tmp_path / "o.yml"
    override.write_text(
        "services:\n  target: {mem_limit: 1g, ports: !reset []}\n  cache: {image: cache:1}\n"
    )
    build = TargetBuild(jar, "mine:2", (override,))
    start = TargetStart.of(build, CORES)
    start.write()
    services = composed(start.files, start.env)
    target = services["target"]
    assert (target["image"], target["mem_limit"], target["cpuset"]) == ("mine:2", "1073741824", "1")
    assert services["k6"]["cpuset"] == "0"
    mounts = target["volumes"]
    assert isinstance(mounts, list)
    # Printed as a file that Compose could read again: with each dollar sign doubled.
    source = str(jar).replace("$", "$$")
    assert (mounts[-1]["source"], mounts[-1]["target"]) == (source, "/app/spring-tomcat.jar")
    assert mounts[-1]["read_only"] is True
    labels = target["labels"]
    assert isinstance(labels, dict)
    assert json.loads(labels["spikelab.target"].replace("$$", "$")) == dict(start.label)
    assert start.label["jar"] == file_hash(jar)
    assert start.services == ["cache"]


@pytest.mark.skipif(shutil.which("docker") is None, reason="no docker")
def test_replicas_have_the_target_s_cpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paths, "STATE", tmp_path)
    start = TargetStart.of(TargetBuild(compose=(REPLICAS,)), CORES)
    start.write()
    services = composed(start.files, start.env)
    bound = {name: service.get("cpuset") for name, service in services.items()}
    assert [bound[name] for name in ("target", "target-2", "target-3")] == ["1"] * 3
    assert bound["sockets-exporter-2"] is None


def test_the_lab_s_own_build_on_all_cpus_needs_no_override() -> None:
    assert TargetStart.of(None, None).files == ()
