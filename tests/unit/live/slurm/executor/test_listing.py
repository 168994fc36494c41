"""What `squeue` and `sinfo` print is read line by line, whoever's jobs it lists."""

from tenfold.live.external.engine import Mark
from tenfold.live.slurm.executor.listing import comment_of, mark_of, read_jobs, read_nodes
from tenfold.model.ids import JobId

MARK = Mark(JobId("sweep-3[2]"), 4)


def test_a_mark_survives_its_comment():
    comment = comment_of("ab12", 7, MARK)
    assert comment == "tenfold:ab12:7:4:sweep-3%5B2%5D"
    assert mark_of(comment, "ab12") == MARK


def test_comments_of_others_are_no_marks():
    comment = comment_of("ab12", 7, MARK)
    others = ("", "(null)", "tenfold:ab12:7:x:job", "tenfold:ab12:7", "note: tenfold:ab12:7:4:a")
    assert [mark_of(other, "ab12") for other in others] == [None] * len(others)
    assert mark_of(comment, "cd34") is None


def test_our_jobs_are_told_from_those_of_others():
    comment = comment_of("ab12", 0, MARK)
    text = "\n".join(
        [
            f"11|R|root|n1|{comment}",
            f"12|PD|root||{comment}",
            f"13|CG|root|n1|{comment}",
            f"14|NF|root|n1|{comment}",
            "15|R|ann|n[1-2]|(null)",
            "16|PD|ann||with | in it",
            "slurm_load_jobs error: Unexpected message received",
        ]
    )
    jobs, foreign = read_jobs(text, "ab12")
    assert [(job.handle, job.phase, job.cause, job.state) for job in jobs] == [
        ("11", "running", "", "R"),
        ("12", "waiting", "", "PD"),
        ("13", "running", "", "ending"),
        ("14", "over", "node-lost", "NF"),
    ]
    assert foreign == {"n1": ("15 of ann",), "n2": ("15 of ann",)}


def test_a_state_that_is_not_known_is_no_end():
    jobs, _ = read_jobs(f"1|XX|root|n1|{comment_of('a', 0, MARK)}", "a")
    assert jobs[0].phase == "running"


def test_nodes_are_up_closed_or_down_by_their_state():
    text = "n1|idle|10.0.0.1\nn2|down*|n2\nn3|drained|n3\nn4|unknown*|n4\nn1|idle|10.0.0.1\n"
    nodes, addresses = read_nodes(text + "n5|future|n5\nn6|mixed-|\n", {"n1": ("15 of ann",)})
    assert [(node.id, node.is_up, node.closed) for node in nodes] == [
        ("n1", True, ""),
        ("n2", False, ""),
        ("n3", True, "drained"),
        ("n4", True, ""),
        ("n6", True, ""),
    ]
    assert nodes[0].foreign == ("15 of ann",)
    assert addresses["n1"] == "10.0.0.1"
    assert addresses["n6"] == "n6"
