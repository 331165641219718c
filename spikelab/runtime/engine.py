"""The container engine itself: whether it can be used, its CPUs, its images."""

import shutil
import subprocess

from spikelab.console import working
from spikelab.errors import LabError, UsageError
from spikelab.runtime.compose import has_image, pulled_images, succeeds
from spikelab.runtime.running_container import image_id

_PULL_PROBE_SECONDS = 30
_PULL_SECONDS = 600


def unusable() -> str | None:
    """Why docker can't be used here, in a clause; None when it can."""
    if shutil.which("docker") is None:
        return "there is no docker here"
    if not succeeds("docker", "info"):
        return "no container engine answers"
    if not succeeds("docker", "compose", "version"):
        return "docker has no compose plugin"
    try:
        images = pulled_images()
    except LabError as error:
        return str(error)
    missing = [image for image in images if not has_image(image)]
    if missing and not _pull(missing[0], _PULL_PROBE_SECONDS):
        return f"the image {missing[0]} is not here and cannot be pulled"
    return None


def cpus() -> frozenset[int]:
    """The CPUs that containers may be bound to."""
    said = subprocess.run(
        ["docker", "info", "--format", "{{.NCPU}}"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return frozenset(range(int(said) if said.isdigit() else 0))


def require_image(image: str) -> None:
    """Has it here. Raises UsageError where it cannot be pulled."""
    if image_id(image) is not None:
        return
    with working(f"pulling {image}"):
        pulled = _pull(image, _PULL_SECONDS)
    if not pulled:
        raise UsageError(
            f"image {image} is not here and cannot be pulled: build it, or load it with docker load"
        )


def _pull(image: str, seconds: float) -> bool:
    return succeeds("docker", "pull", "--quiet", image, seconds=seconds)
