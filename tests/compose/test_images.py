"""What the tests' stand-ins of images may not do: take an official name, keep what is private."""

import subprocess

import pytest

from spikelab.stack.engine import compose, has_image
from tests.compose.images.stand_ins import Images


def test_the_lab_does_not_take_stand_ins_for_images(images: Images) -> None:
    """By itself it must not take the docker runtime for what the tests have built."""
    if not images.stand_ins:
        pytest.skip("every image is the official one")
    assert [name for name in images.stand_ins if has_image(name)] == []


def test_no_service_takes_a_stand_in_unless_it_is_told(images: Images) -> None:
    named = compose("config", "--images").split()
    assert not {*named} & {*images.stand_ins}
    assert {*images.settings.values()} <= {*images.stand_ins}


def test_maven_holds_what_was_downloaded_and_no_settings(images: Images) -> None:
    names = [name for name in images.stand_ins if name.startswith("maven:")]
    if not names:
        pytest.skip("Maven's image is the official one")
    look = "cd; ls -A .m2 /usr/share/maven/conf"
    said = subprocess.run(
        ["docker", "run", "--rm", "--network=none", names[0], "sh", "-c", look],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert said == [".m2:", "repository", "/usr/share/maven/conf:", "logging"]
