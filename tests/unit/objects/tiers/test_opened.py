import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from objects_builders import get, noise, put
from tenfold.model.errors import InputError, Refused, Unreachable
from tenfold.objects.blobs.layout import parse_layout
from tenfold.objects.blobs.store import BlobStore
from tenfold.objects.tiers.backend_states import BackendStates
from tenfold.objects.tiers.opened import open_blob_store


def write_tiers(folder: Path, backends: Mapping[str, str], replicas: int = 1) -> Path:
    """Write a tier file with one tier, `hot`, and backends by name and further lines."""
    lines = ["[tiers.hot]", f"replicas = {replicas}"]
    for name, more in backends.items():
        lines += ["[[tiers.hot.backends]]", f'name = "{name}"']
        lines += [more or f'directory = "disks/{name}"']
    path = folder / "tiers.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def opened(folder: Path, backends: Mapping[str, str], replicas: int = 1) -> BlobStore:
    return open_blob_store(write_tiers(folder, backends, replicas), folder / "state")


def test_a_tier_opens_again_with_what_it_holds(tmp_path: Path):
    async def scenario():
        store = opened(tmp_path, {"a": "", "b": ""}, 2)
        ref = await put(store, "hot", noise(5000))
        again = opened(tmp_path, {"a": "", "b": ""}, 2)
        assert await get(again, ref) == noise(5000)

    asyncio.run(scenario())


def test_a_disk_that_is_not_mounted_is_not_taken_for_an_empty_one(tmp_path: Path):
    async def scenario():
        store = opened(tmp_path, {"a": "", "b": "", "c": ""}, 2)
        refs = [await put(store, "hot", noise(5000, seed)) for seed in range(9)]
        (tmp_path / "disks" / "a").rename(tmp_path / "unplugged")
        (tmp_path / "disks" / "a").mkdir()
        again = opened(tmp_path, {"a": "", "b": "", "c": ""}, 2)
        for seed, ref in enumerate(refs):
            assert await get(again, ref) == noise(5000, seed)
            states = {one.backend: one.state for one in await again.verify(ref)}
            assert states.get("a", "unreachable") == "unreachable"
            written = parse_layout((await put(again, "hot", b"x")).layout)
            assert "a" not in [one.backend for one in written.at if one]
        assert list((tmp_path / "disks" / "a").iterdir()) == []

    asyncio.run(scenario())


def test_a_backend_that_was_not_drained_may_not_leave_the_file(tmp_path: Path):
    opened(tmp_path, {"a": "", "b": ""})
    with pytest.raises(Refused, match="backend `b` of tier `hot` is not in the file") as caught:
        opened(tmp_path, {"a": ""})
    assert "tenfold objects drain b" in caught.value.hint


def test_two_names_for_one_place_are_refused(tmp_path: Path):
    opened(tmp_path, {"a": ""})
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(Refused, match="backend `b` is marked as `a`"):
        opened(other, {"b": f'directory = "{tmp_path / "disks" / "a"}"'})


def test_without_its_state_a_backend_is_known_by_its_mark(tmp_path: Path):
    opened(tmp_path, {"a": ""})
    states = BackendStates(tmp_path / "state")
    before = states.read()
    (tmp_path / "state" / "backends.json").unlink()
    opened(tmp_path, {"a": ""})
    assert states.read() == before


def test_a_running_store_uses_a_new_backend_and_leaves_a_draining_one(tmp_path: Path):
    async def scenario():
        store = opened(tmp_path, {"a": ""})
        write_tiers(tmp_path, {"a": "", "b": ""})
        with BackendStates(tmp_path / "state").changing() as states:
            states["a"] = type(states["a"])(states["a"].identity, "hot", "draining")
        store.look_for_changes(at_once=True)
        ref = await put(store, "hot", b"x")
        assert ref.layout.endswith("at=b")

    asyncio.run(scenario())


def test_a_file_with_an_error_changes_nothing(tmp_path: Path):
    async def scenario():
        store = opened(tmp_path, {"a": ""})
        (tmp_path / "tiers.toml").write_text("[tiers")
        store.look_for_changes(at_once=True)
        await put(store, "hot", b"x")

    asyncio.run(scenario())


def test_a_variable_that_is_not_set_is_named(tmp_path: Path):
    line = 'url = "s3://bucket"\noptions = { access_key_id = "$TENFOLD_NO_SUCH" }'
    with pytest.raises(InputError, match="option `access_key_id` of backend `a`"):
        opened(tmp_path, {"a": line})


def test_a_store_that_does_not_answer_is_named(tmp_path: Path):
    line = (
        'url = "s3://bucket"\noptions = { endpoint = "http://127.0.0.1:9", region = "x",'
        ' access_key_id = "a", secret_access_key = "b" }'
    )
    with pytest.raises(Unreachable, match="backend `a` cannot be used"):
        opened(tmp_path, {"a": line})
