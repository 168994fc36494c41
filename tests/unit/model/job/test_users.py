"""Which user a name means."""

import pytest

from tenfold.model.job.users import is_user


@pytest.mark.parametrize(
    ("wanted", "user", "is_same"),
    [
        ("ann", "ann", True),
        ("ann", "ann@login1", True),
        ("ann@login1", "ann@login1", True),
        ("ann@login2", "ann@login1", False),
        ("ann@login1", "ann", False),
        ("an", "ann@login1", False),
        ("ann", "", False),
        ("ann", None, False),
    ],
)
def test_a_name_without_a_machine_means_the_user_on_any(
    wanted: str, user: str | None, is_same: bool
):
    assert is_user(wanted, user) is is_same
