"""From requesting a replica to its first token: image, process, weights, compile, capture,
first pass.

Weights pass through stages (tier, host copy, link to the device). Plain loaders run them one
after the other, so their times add; streaming loaders overlap them, so the slowest counts. On the
measured H200 the plain sum explains 1.85 GB/s cold and 5.5 GB/s warm, far below any single stage.
"""

from dataclasses import dataclass

import numpy as np

from tenfold.physics.arrays import Floats


@dataclass(frozen=True, slots=True)
class Loader:
    """The path of weights into one node, rates per process (one per accelerator)."""

    tier_bytes_per_s: Floats
    """What one node gets from the tier with all of its readers together."""
    tier_process_bytes_per_s: Floats
    """What one reader gets: page faults and file system bound it long before the device does."""
    host_bytes_per_s: Floats
    """Copy from page cache through deserialising, per process."""
    link_bytes_per_s: Floats
    """Host to device, per accelerator: pinned about 55e9 on PCIe 5, pageable about 8.4e9."""
    overlap: Floats
    """0 when stages follow each other, 1 when they stream."""


@dataclass(frozen=True, slots=True)
class Software:
    """Start-up work that does not depend on the bytes."""

    provision_s: Floats
    """Node and scheduler; 0 where a warm node waits."""
    image_bytes: Floats
    image_bytes_per_s: Floats
    process_s: Floats
    """Interpreter, imports and accelerator context."""
    compile_block_s: Floats
    """Compile time per distinct or repeated block, 0 with a warm compile cache."""
    graphs: Floats
    graph_capture_s: Floats
    first_pass_s: Floats
    allocate_s: Floats
    """Reserving the cache and profiling the largest batch."""


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Seconds by cause; `total_s` is what an autoscaler has to look ahead."""

    provision_s: Floats
    image_s: Floats
    process_s: Floats
    weights_s: Floats
    compile_s: Floats
    warm_up_s: Floats

    @property
    def total_s(self) -> Floats:
        """Sum over all causes; they depend on each other, so none overlaps another."""
        return (
            self.provision_s
            + self.image_s
            + self.process_s
            + self.weights_s
            + self.compile_s
            + self.warm_up_s
        )


@dataclass(frozen=True, slots=True)
class Warm:
    """What an earlier start on the same node left behind."""

    image: bool = True
    page_cache: bool = False
    compiled: bool = False


COLD = Warm()

# One H200, torch 2.11, local NVMe, November 2026 (measured/h200_coldstart.json): warm cache 5.51
# GB/s is pageable link 8.43 and host 15.9 in turn; the cold 1.85 GB/s adds a reader at 2.79.
MEASURED_LOADER = Loader(
    tier_bytes_per_s=np.array(7.0e9),
    tier_process_bytes_per_s=np.array(2.79e9),
    host_bytes_per_s=np.array(15.9e9),
    link_bytes_per_s=np.array(8.43e9),
    overlap=np.array(0.0),
)
MEASURED_SOFTWARE = Software(
    provision_s=np.array(0.0),
    image_bytes=np.array(0.0),
    image_bytes_per_s=np.array(44e6),
    process_s=np.array(4.38 + 0.34),
    compile_block_s=np.array(13.108 / 16.0),
    graphs=np.array(1.0),
    graph_capture_s=np.array(0.03),
    first_pass_s=np.array(0.37),
    allocate_s=np.array(1.0),
)


def weights_s(
    loader: Loader, bytes_per_gpu: Floats, gpus_per_node: Floats, *, page_cache: bool = False
) -> Floats:
    """Return the time to bring `bytes_per_gpu` to every accelerator of a node at once."""
    reader = np.minimum(loader.tier_process_bytes_per_s, loader.tier_bytes_per_s / gpus_per_node)
    stages = [bytes_per_gpu / loader.host_bytes_per_s, bytes_per_gpu / loader.link_bytes_per_s]
    if not page_cache:
        stages.append(bytes_per_gpu / reader)
    in_turn = sum(stages[1:], stages[0])
    streamed = np.maximum.reduce([np.broadcast_to(stage, np.shape(in_turn)) for stage in stages])
    return (1.0 - loader.overlap) * in_turn + loader.overlap * streamed


def cold_start(
    loader: Loader,
    software: Software,
    bytes_per_gpu: Floats,
    gpus_per_node: Floats,
    blocks: Floats,
    warm: Warm = COLD,
) -> ColdStart:
    """Return the cold start of one replica, with all of its accelerators loading in parallel."""
    nothing = np.zeros_like(np.asarray(bytes_per_gpu, dtype=np.float64))
    image_s = software.image_bytes / software.image_bytes_per_s
    warm_up_s = (
        software.first_pass_s + software.allocate_s + software.graphs * software.graph_capture_s
    )
    return ColdStart(
        provision_s=nothing + software.provision_s,
        image_s=nothing if warm.image else nothing + image_s,
        process_s=nothing + software.process_s,
        weights_s=weights_s(loader, bytes_per_gpu, gpus_per_node, page_cache=warm.page_cache),
        compile_s=nothing if warm.compiled else nothing + software.compile_block_s * blocks,
        warm_up_s=nothing + warm_up_s,
    )
