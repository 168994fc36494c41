"""Documented commands are those of the installed wheel."""

import os
import sys
import warnings
from pathlib import Path

import pytest

from docs.installed import NotInstalled, installed


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> Path:
    """The folder in which `tenfold` is: of an environment that has no tools of development.

    Where it cannot be made, as without a network, it is that of the tests themselves.
    """
    cache = request.config.cache
    assert cache is not None, "tests run with pytest's cache"
    try:
        return installed(cache.mkdir("installed-wheel"))
    except NotInstalled as error:
        if os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1":
            raise
        warnings.warn(f"commands run from the sources; no wheel: {error}", stacklevel=1)
        return Path(sys.executable).parent
