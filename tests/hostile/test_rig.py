"""The watch over an attacked control plane sees what it must see."""

from collections.abc import Callable

from hostile.plane import API, Bounds, Plane, Watch


def test_a_control_plane_that_nobody_attacks_is_as_it_should_be(plane: Plane, watch: Watch):
    with plane.wire() as red:
        made = red.post(f"{API}/jobs", {"command": ["true"]})
    watch.count(sent_bytes=100, jobs=1)
    assert made.status == 201
    assert watch.wrong() == []


def test_memory_and_journal_beyond_their_bounds_are_found(plane: Plane):
    nothing = Bounds(rss_bytes=-1 << 40, journal_per_job=0, journal_per_byte=0, journal_bytes=0)
    watch = Watch(plane, nothing)
    wrong = watch.wrong()
    watch.close()
    assert [one for one in wrong if "more memory" in one]
    assert [one for one in wrong if "bytes of journal for 0 bytes in requests and 1 jobs" in one]


def test_a_traceback_in_the_log_is_found(own_plane: Callable[..., Plane]):
    watch = Watch(own := own_plane())
    with own.folder.log.open("a") as file:
        file.write('{"message": "planted", "trace": "Traceback: planted"}\n')
    assert watch.tracebacks() == ["a traceback in the log: Traceback: planted"]
    watch.close()
