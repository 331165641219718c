"""What the lab reads of a run of k6."""

from pathlib import Path

from spikelab.drivers.k6 import read_bodies


def test_bodies_are_read_from_a_log_of_k6_and_nonsense_in_it_is_passed_over(
    tmp_path: Path,
) -> None:
    log = tmp_path / "k6.log"
    sample = r'time="x" level=info msg="spikelab-body {\"phase\":\"p\",\"status\":503,\"body\":%s}" source=console'  # noqa: E501
    lines = [sample % rf"\"busy \\\"{n}\\\"\"" for n in (1, 1, 2, 3, 4, 5, 6)]
    cut = 'level=info msg="spikelab-body {\\"phase\\":\\"p\\",\\"sta" source=console'
    log.write_text("\n".join([cut, "unrelated", *lines]))
    assert read_bodies(log) == {"p": [f'503: busy "{n}"' for n in (1, 2, 3, 4, 5)]}
