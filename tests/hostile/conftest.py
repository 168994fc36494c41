"""One real control plane for all attacks that it must survive, and a watch over it.

`plane` is shared by the whole session: an attack that stops it fails the tests after it too, and
says so. `own_plane` is a fresh one for attacks that restart it, fill its disk or change its
options.
"""

from collections.abc import Callable, Generator

import pytest

from hostile.plane import Plane, Watch


@pytest.fixture(scope="session")
def plane() -> Generator[Plane, None, None]:
    made = Plane()
    made.start()
    yield made
    made.close()


@pytest.fixture
def watch(plane: Plane) -> Generator[Watch, None, None]:
    """A watch that begins now; when the test ends, everything must be as it should."""
    made = Watch(plane)
    yield made
    wrong = made.wrong()
    made.close()
    assert wrong == []


@pytest.fixture
def own_plane() -> Generator[Callable[..., Plane], None, None]:
    """Start a control plane of this test's own, with these options."""
    planes: list[Plane] = []

    def started(*options: str) -> Plane:
        planes.append(Plane(*options))
        planes[-1].start()
        return planes[-1]

    yield started
    for one in planes:
        one.close()
