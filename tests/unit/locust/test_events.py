"""locust/lib/events.py: regions of phases, against a real HTTP server."""

import sys
import threading
import time
from dataclasses import replace

from spikelab import paths
from tests.support.http_server import Server

sys.path.insert(0, str(paths.ROOT / "locust"))
from lib.events import Region, Regions, line


def region(name: str, started_ms: int, planned_ms: int | None) -> Region:
    return Region("t1", name, "users", "5 users", started_ms, planned_ms)


def test_a_line_escapes_what_the_protocol_would_read() -> None:
    written = line(Region("a b", "p,1=x", "users", 'say "hi" \\', 1000, 2000), 1500)
    assert written == (
        r"events,testid=a\ b,driver=locust,phase=p\,1\=x "
        r'title="p,1=x",text="say \"hi\" \\",tags="locust,users",state="open",timeEnd=2000i 1000'
    )


def test_a_phase_opens_with_its_planned_end_and_closes_with_the_real_one(server: Server) -> None:
    regions = Regions(server.url, "myk6db")
    regions.begin(region("one", 1000, 11_000))
    assert regions.write(1000)
    assert 'state="open",timeEnd=11000i 1000' in server.points[0]
    regions.begin(region("two", 11_200, 21_000))
    assert regions.write(11_200)
    assert sorted(point.rpartition("state=")[2] for point in server.points[1:]) == [
        '"closed",timeEnd=11200i 1000',
        '"open",timeEnd=21000i 11200',
    ]
    regions.end(15_000)
    assert regions.write(15_000)
    assert 'state="aborted",timeEnd=15000i 11200' in server.points[-1]
    assert regions.pending == 0


def test_a_second_early_is_still_closed(server: Server) -> None:
    regions = Regions(server.url, "myk6db")
    regions.begin(region("one", 1000, 11_000))
    regions.end(10_000)
    regions.write(10_000)
    assert 'state="closed"' in server.points[-1]


def test_a_region_without_a_planned_end_grows_and_is_never_aborted(server: Server) -> None:
    regions = Regions(server.url, "myk6db")
    regions.begin(region("one", 1000, None))
    for now_ms in (1000, 2000):
        regions.write(now_ms)
    regions.end(2500)
    regions.write(2500)
    ends = [point.rpartition("state=")[2] for point in server.points]
    assert ends == [
        '"open",timeEnd=6000i 1000',
        '"open",timeEnd=7000i 1000',
        '"closed",timeEnd=2500i 1000',
    ]


def test_what_the_store_did_not_take_is_written_later(server: Server) -> None:
    regions = Regions(server.url, "myk6db")
    server.store_status = 503
    regions.begin(region("one", 1000, 2000))
    assert not regions.write(1000)
    assert "503" in str(regions.problem)
    regions.begin(region("two", 2000, 3000))
    server.store_status = 204
    assert regions.write(2000)
    assert len(server.points) == 2
    assert regions.problem is None


def test_a_phase_that_ends_while_its_begin_is_written_is_written_again(server: Server) -> None:
    regions = Regions(server.url, "myk6db")
    regions.begin(region("one", 1000, 2000))
    server.store_delay_seconds = 0.5
    writing = threading.Thread(target=regions.write, args=(1000,))
    writing.start()
    time.sleep(0.1)
    regions.end(1900)
    writing.join()
    assert regions.pending == 1
    regions.write(2000)
    assert 'state="closed",timeEnd=1900i 1000' in server.points[-1]


def test_a_store_that_hangs_costs_a_second_and_no_error(server: Server) -> None:
    regions = Regions(server.url, "myk6db")
    server.store_delay_seconds = 3
    regions.begin(region("one", 1000, 2000))
    began = time.monotonic()
    assert not regions.write(1000)
    assert time.monotonic() - began < 2
    assert regions.pending == 1


def test_two_runs_of_one_process_wait_side_by_side_for_the_store(server: Server) -> None:
    regions = Regions(server.url, "myk6db")
    server.store_status = 503
    regions.begin(region("one", 1000, 2000))
    regions.begin(replace(region("one", 1000, 2000), testid="t1-2"))
    regions.write(1000)
    assert regions.pending == 2
    server.store_status = 204
    assert regions.write(2000)
    assert [point[:19] for point in server.points] == ["events,testid=t1,dr", "events,testid=t1-2,"]


def test_nothing_is_written_where_there_is_no_store() -> None:
    regions = Regions("", "myk6db")
    regions.begin(region("one", 1000, 2000))
    assert regions.write(1000)
    assert regions.pending == 0
