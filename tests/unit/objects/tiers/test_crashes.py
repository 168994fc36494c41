"""kill -9 before every step of a write, a move, a repair and a delete: nothing is lost."""

import asyncio
import subprocess
import sys
from pathlib import Path

from objects_builders import Namespace, noise
from rigs.object_stores import crashing_mover
from tenfold.objects.tiers.operations.rebuild import rebuild_catalog
from tenfold.objects.tiers.operations.scrub import remove_garbage, scrub


def test_every_acknowledged_object_survives_a_kill_at_any_step(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, crashing_mover.__file__, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    attempts = int(done.stdout)
    assert attempts > 60
    acknowledged = [int(one) for one in (tmp_path / "acknowledged").read_text().split()]
    assert acknowledged

    async def scenario():
        made = Namespace(tmp_path, crashing_mover.TIERS)
        await check(made, acknowledged)
        report = await scrub(made.mover())
        assert report.lost == []
        assert report.damaged == report.missing == 0
        await remove_garbage(made.mover(), report, made.clock_ms + 3_600_000)
        await check(made, acknowledged)
        made.catalog.close()
        for path in made.state.glob("catalog.db*"):
            path.unlink()
        again = Namespace.reopened(made)
        await rebuild_catalog(again.store, again.moves)
        await check(again, acknowledged)

    asyncio.run(scenario())


async def check(namespace: Namespace, acknowledged: list[int]) -> None:
    for number in acknowledged:
        assert await namespace.get(f"k{number}") == noise(5000 + number, number)
