"""Arrays as text."""

import pytest

from tenfold.model.job.array_spec import ArraySpec, fold_indexes, read_array


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("20", ArraySpec(20)),
        ("20%4", ArraySpec(20, (), 4)),
        ("0-19%4", ArraySpec(20, (), 4)),
        ("1-5", ArraySpec(5, (1, 2, 3, 4, 5))),
        ("1-9:2", ArraySpec(5, (1, 3, 5, 7, 9))),
        ("1,3,7", ArraySpec(3, (1, 3, 7))),
        ("7-7", ArraySpec(1, (7,))),
        ("4,0-2,1", ArraySpec(4, (0, 1, 2, 4))),
    ],
)
def test_the_forms_of_slurm_are_read(text: str, found: ArraySpec):
    assert read_array(text, 100) == found


@pytest.mark.parametrize("text", ["", "0", "101", "5-1", "1-9:0", "1-5%0", "1-5%x", "a", "0-100"])
def test_others_are_refused(text: str):
    with pytest.raises(ValueError, match=r"\S"):
        read_array(text, 100)


def test_indexes_are_folded_into_ranges():
    assert fold_indexes([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10"
