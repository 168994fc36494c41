"""One rank of an all-reduce by gloo: rank 0 prints the seconds of every repeat, a line a size.

    reduce_rank.py REPEATS BYTES...

The rendezvous is in the environment, as torch has it.
"""

import os
import sys
from time import perf_counter

import torch
from torch import distributed


def main(repeats: int, sizes: list[int]) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    for size in sizes:
        tensor = torch.zeros(size // 4)
        distributed.all_reduce(tensor)
        distributed.barrier()
        took: list[float] = []
        for _ in range(repeats):
            began = perf_counter()
            distributed.all_reduce(tensor)
            took.append(perf_counter() - began)
        if os.environ["RANK"] == "0":
            print(size, *took, flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(word) for word in sys.argv[2:]])
