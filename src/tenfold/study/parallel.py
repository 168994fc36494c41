"""Map a function over tasks in local processes.

Processes are spawned, not forked, so the function must be importable and tasks must pickle.
A process that dies breaks its pool: the remaining tasks are then retried one by one, each in its
own pool, so that only the task that kills its process is lost.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

DIED = "its process was killed, possibly out of memory"


def usable_cpus() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def process_map(
    work: Callable[[T], R],
    tasks: Sequence[T],
    *,
    workers: int,
    lost: Callable[[T, str], R],
    done: Callable[[int], None],
) -> list[R]:
    """Return what `work` gives for each task, in order; `lost` answers for a dead process."""
    results: dict[int, R] = {}

    def keep(place: int, result: R) -> None:
        results[place] = result
        done(len(results))

    if workers <= 1 or len(tasks) <= 1:
        for place, task in enumerate(tasks):
            keep(place, work(task))
        return [results[place] for place in range(len(tasks))]
    for place, result in _pooled(work, dict(enumerate(tasks)), workers):
        keep(place, result)
    for place, task in enumerate(tasks):
        if place not in results:
            alone = dict(_pooled(work, {place: task}, 1))
            keep(place, alone[place] if alone else lost(task, DIED))
    return [results[place] for place in range(len(tasks))]


def _pooled(work: Callable[[T], R], tasks: dict[int, T], workers: int) -> Iterator[tuple[int, R]]:
    """Yield results as they come; those of a broken pool are missing."""
    pool = ProcessPoolExecutor(
        min(workers, len(tasks)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_end_on_interrupt,
    )
    try:
        places: dict[Future[R], int] = {
            pool.submit(work, task): place for place, task in tasks.items()
        }
        for future in as_completed(places):
            try:
                yield places[future], future.result()
            except BrokenProcessPool:
                continue
    except BrokenProcessPool:
        return  # It broke before all tasks were submitted.
    except BaseException:
        # Interrupted: do not wait for simulations that no one will read.
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_on_interrupt() -> None:
    """Let Ctrl-C end a worker without a word; the parent says what there is to say."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
