"""One function over many tasks in processes, some of which die."""

from functools import partial

import pytest

from dying_work import say_dead, square_or_die
from tenfold.study.parallel import process_map, usable_cpus

spread = partial(process_map, square_or_die, lost=say_dead)


def test_results_come_in_the_order_of_the_tasks():
    seen: list[int] = []
    assert spread([5, 1, 4], workers=2, done=seen.append) == [25, 1, 16]
    assert seen == [1, 2, 3]


def test_a_process_that_dies_costs_only_its_own_task():
    seen: list[int] = []
    assert spread([1, 2, 3, 4, 5], workers=2, done=seen.append) == [1, 4, -3, 16, 25]
    assert seen[-1] == 5


def test_one_worker_needs_no_process():
    tasks = [2, 6]
    places: list[int] = []

    def work(task: int) -> int:
        places.append(task)
        return task

    assert process_map(work, tasks, workers=1, lost=say_dead, done=lambda _: None) == tasks
    assert places == tasks


def test_nothing_to_do_is_done():
    assert spread([], workers=2, done=pytest.fail) == []
    assert usable_cpus() >= 1
