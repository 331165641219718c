"""How the target of the host runtime starts."""

from spikelab.stack.programs import target_archive
from tests.stack.processes import process_of
from tests.support.lab import Lab


def test_the_target_s_classes_come_from_their_archive(lab: Lab) -> None:
    mapped = {each.path for each in process_of(lab, "java").memory_maps()}
    assert str(target_archive()) in mapped
