"""Backends change by the commands of an operator while another process reads and writes."""

import asyncio
import itertools
import sys
from collections import Counter
from pathlib import Path

from objects_builders import Namespace, noise

REPLICAS = {"layout": "replicas = 2", "backends": {name: name for name in "abc"}}
CODED = {"layout": 'erasure = "2+1"', "backends": {f"w{n}": f"d{n}" for n in range(4)}}
OBJECTS = 40


class Load:
    """Readers and a writer that go on until they are stopped; every failure is kept."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.contents = {f"k{number}": noise(3000 * number, number) for number in range(OBJECTS)}
        self.failures: list[str] = []
        self.done: Counter[str] = Counter()
        self._stopped = False

    async def fill(self, tier: str) -> None:
        for key, data in self.contents.items():
            await self.namespace.put(key, data, tier)

    async def run(self, tier: str) -> None:
        await asyncio.gather(*(self._read(at) for at in range(3)), self._write(tier))

    def stop(self) -> None:
        self._stopped = True

    async def _read(self, at: int) -> None:
        for number in itertools.count(at):
            if self._stopped:
                return
            key = f"k{number % OBJECTS}"
            try:
                if await self.namespace.get(key) != self.contents[key]:
                    self.failures.append(f"{key} has other bytes")
            except Exception as error:
                self.failures.append(f"{key}: {error!r}")
            self.done["reads"] += 1
            await asyncio.sleep(0)

    async def _write(self, tier: str) -> None:
        for number in itertools.count():
            if self._stopped:
                return
            data = noise(20_000, number)
            try:
                await self.namespace.put(f"new{number}", data, tier)
                self.contents[f"new{number}"] = data
            except Exception as error:
                self.failures.append(f"write {number}: {error!r}")
            self.done["writes"] += 1
            await asyncio.sleep(0.02)


async def command(namespace: Namespace, *words: str) -> None:
    """Run a command of an operator in a process of its own."""
    folder = namespace.state
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tenfold", "objects", *words),
        *("--dir", str(folder), "--tiers", str(namespace.tier_file)),
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 0, errors.decode()


def test_growing_replacing_and_draining_fail_no_request(tmp_path: Path):
    made = Namespace(tmp_path, {"hot": REPLICAS, "warm": CODED})
    load = Load(made)

    async def change() -> None:
        more = {**REPLICAS, "backends": {**REPLICAS["backends"], "d": "d"}}
        made.write_tiers({"hot": more, "warm": CODED})
        await command(made, "expand", "hot")
        assert made.files("d")
        await command(made, "replace", "a", "c")
        await command(made, "drain", "hot", "--to", "warm")
        load.stop()

    async def scenario() -> None:
        await load.fill("hot")
        await asyncio.gather(load.run("hot"), change())
        assert load.failures == []
        assert load.done["reads"] > OBJECTS
        assert load.done["writes"] > 5
        refs = made.refs()
        assert {ref.tier for ref in refs.values()} == {"warm"}
        for key, data in load.contents.items():
            assert await made.get(key) == data
            states = await made.store.verify(refs[key])
            assert {one.state for one in states} == {"good"}

    asyncio.run(scenario())
