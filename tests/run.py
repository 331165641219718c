"""./lab test: linters, then the tests of every part; installs and builds what they need.

`python -m tests.run [--fast] [--] [PYTEST…]` does the same.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spikelab import paths
from spikelab.console import err, say
from spikelab.errors import EXIT_FAILED, EXIT_INTERRUPTED, LabError, stop_on_end_signals
from spikelab.stack.programs import ensure_built, ensure_packages, locust_program

_LOCK = paths.REQUIREMENTS / "dev.lock"
# The phases of the tests: what is marked, and how many processes share it. Most tests wait most of
# their time.
_PHASES = (
    ("not timed and not crowded and not alone", 4),
    ("timed", 3),
    ("crowded", 3),
    ("alone", 1),
)
# A file at a time and in their order, in which the quick ones come last.
_SHARED = ("--dist", "loadfile", "--no-loadscope-reorder")
_SOME_FAILED = 1
# What runs beside tests takes the CPU that they leave, unless it has limits of time itself: beside
# four busy processes a target starts in 55 s instead of 6 (two cores).
_NICE = ("nice", "-n", "10")
_SCRIPTS = (
    "lab",
    "host/start-target",
    "host/start-grafana",
    "host/start-proxy",
    "host/start-redis",
    ".ci/run",
    ".ci/engine",
)


def run(fast: bool, pytest_arguments: Sequence[str]) -> int:
    """Runs everything and returns the exit code: 0 when all passed.

    With arguments for pytest only pytest runs.
    """
    ensure_packages(_LOCK, paths.VENV, "the packages of the tests")
    ensure_built()
    if pytest_arguments:
        return _pytest("not slow" if fast else "", pytest_arguments)
    quick = "not slow and " if fast else ""
    codes: list[int] = []
    with ThreadPoolExecutor() as beside:
        locust = beside.submit(locust_program)
        for check in CHECKS:
            check()
        slow = [beside.submit(check) for check in SLOW_CHECKS]
        locust.result()
        for marked, processes in _PHASES:
            codes.append(_phase(f"{quick}({marked})", processes))
            # At the latest before anything is timed.
            for check_beside in slow:
                check_beside.result()
    # A pytest that was killed has a number below 0.
    return next(filter(None, codes), 0)


def _phase(marked: str, processes: int) -> int:
    code = _pytest(marked, ["-n", str(processes), *_SHARED] if processes > 1 else [])
    if code != _SOME_FAILED:
        return code
    say("what failed runs once more by itself: a busy machine can spoil what is timed")
    return _pytest(marked, ["--last-failed", "--last-failed-no-failures=none"])


def _pytest(marked: str, arguments: Sequence[str]) -> int:
    environment = {**os.environ, "LAB_RUNTIME": "host"}
    # Every ./lab command would compile its modules again.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-m", marked, *arguments],
        cwd=paths.ROOT,
        env=environment,
        check=False,
    ).returncode


def _lint() -> None:
    tool = paths.VENV / "bin"
    tracked = _tracked()
    _call("ruff", [str(tool / "ruff"), "check", "."])
    _call("ruff format", [str(tool / "ruff"), "format", "--check", "."])
    _call("import-linter", [str(tool / "lint-imports"), "--no-logo", "--no-cache"])
    scripts = [*_SCRIPTS, *_ending(tracked, ".sh")]
    _call("shellcheck", [str(tool / "shellcheck"), *scripts])
    _call("hadolint", [str(tool / "hadolint"), *_ending(tracked, "Dockerfile")])
    _call("yamllint", [str(tool / "yamllint"), "--strict", *_ending(tracked, ".yml", ".yaml")])


def _types() -> None:
    _call("mypy", [*_NICE, sys.executable, "-m", "mypy"])
    _types_of_locust()


def _types_of_locust() -> None:
    """Locust's scripts see Locust's own packages, and each other as they do when they run."""
    locust = locust_program()
    scripts = [str(path) for path in sorted(paths.LOCUST.glob("*.py"))]
    _call(
        "mypy of locust/",
        [
            *_NICE,
            sys.executable,
            "-m",
            "mypy",
            "--allow-untyped-calls",
            "--python-executable",
            str(locust.with_name("python")),
            *scripts,
            str(paths.LOCUST / "lib"),
        ],
        env={"MYPYPATH": str(paths.LOCUST)},
    )


def _target_tests() -> None:
    _call(
        "target tests",
        [
            "mvn",
            "--batch-mode",
            "--quiet",
            "test",
            # Short tests: what the second compiler costs does not come back.
            "-DargLine=-XX:TieredStopAtLevel=1",
            # As pytest's: a busy machine can spoil what is timed, and a fault comes back.
            "-Dsurefire.rerunFailingTestsCount=1",
            f"-DbuildDirectory={paths.BUILD / 'spring-tomcat-test'}",
        ],
        paths.TARGET,
    )


def _go_tests() -> None:
    for name, folder in (
        ("sockets exporter", paths.SOCKETS_EXPORTER),
        ("secrets", paths.SECRETS_PROGRAM),
    ):
        _call(f"{name}: vet", [*_NICE, "go", "vet", "./..."], folder)
        _call(f"{name}: tests", ["go", "test", "./..."], folder)


def _rule_tests() -> None:
    promtool = str(paths.BIN / "promtool")
    rules = sorted((paths.ROOT / "prometheus" / "rules").glob("*.yml"))
    tests = sorted((paths.ROOT / "prometheus" / "tests").glob("*.yml"))
    _call("promtool check", [promtool, "check", "rules", *map(str, rules)])
    _call("promtool test", [*_NICE, promtool, "test", "rules", *map(str, tests)])


def _dashboards() -> None:
    generator = [sys.executable, "-m", "grafana.src.generate"]
    _call("dashboards are as generated", [*generator, "--check"])


def _call(
    name: str,
    command: Sequence[str],
    folder: Path = paths.ROOT,
    env: Mapping[str, str] | None = None,
) -> None:
    """Runs a check; its output is shown only when it fails, which ends the tests."""
    result = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        print(result.stdout + result.stderr)
        raise LabError(f"{name} failed")
    say(f"{name}: passed")


def _tracked() -> list[str]:
    said = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in said.stdout.splitlines() if (paths.ROOT / name).is_file()]


def _ending(names: Sequence[str], *suffixes: str) -> list[str]:
    return [name for name in names if name.endswith(suffixes)]


# What takes seconds, before any test, and what takes longer, beside the tests that are not timed.
CHECKS: list[Callable[[], None]] = [_lint, _dashboards]
SLOW_CHECKS: list[Callable[[], None]] = [_target_tests, _types, _rule_tests, _go_tests]


def main() -> int:
    """The exit code; what cannot be installed, and a check that fails, is one line."""
    stop_on_end_signals()
    fast, arguments = sys.argv[1:2] == ["--fast"], sys.argv[1:]
    arguments = arguments[fast:]
    try:
        return run(fast, arguments[arguments[:1] == ["--"] :])
    except LabError as error:
        message, code = str(error), error.exit_code
    except OSError as error:
        message, code = f"{error.filename or 'test'}: {error.strerror}", EXIT_FAILED
    except KeyboardInterrupt:
        message, code = "interrupted", EXIT_INTERRUPTED
    err.print(f"lab: {message}")
    return code


if __name__ == "__main__":
    sys.exit(main())
