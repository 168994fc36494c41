"""`measured.csv`: what is read of it, and what is said of each faulty line."""

from pathlib import Path

import pytest

from tenfold.files.measured.rows import read_measured
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.growth.measured import UsagePoint

HEADER = "layer,resource,queue,factor,usage,limit,unit\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "measured.csv"
    path.write_text(text)
    return path


def test_rows_are_read_in_their_order(tmp_path: Path):
    path = written(
        tmp_path,
        HEADER + "admission,kueue,deep,1,9.6,9.5,1/min\nmonitoring,cpu,,0.25,0,0.25,core\n",
    )
    first, second = read_measured(path)
    assert first == UsagePoint(
        layer="admission",
        resource="kueue",
        queue="deep",
        factor=1.0,
        usage=9.6,
        limit=9.5,
        unit="1/min",
    )
    assert (second.queue, second.usage) == ("", 0.0)


def test_columns_stand_in_any_order_and_what_is_not_known_may_be_left_out(tmp_path: Path):
    path = written(tmp_path, "usage,factor,resource,layer\n0.5,2,cpu,monitoring\n")
    [point] = read_measured(path)
    assert (point.layer, point.factor, point.limit) == ("monitoring", 2.0, None)
    assert (point.queue, point.unit) == ("", "")


def test_a_row_may_say_what_grew_and_holds_along_that_axis_and_all(tmp_path: Path):
    text = "layer,resource,factor,usage,axis\na,b,1,1,data\na,c,1,1,\n"
    stated, any_axis = read_measured(written(tmp_path, text))
    assert [stated.along("data"), stated.along("all"), stated.along("jobs")] == [True, True, False]
    assert any_axis.axis is None
    assert any_axis.along("jobs")
    with pytest.raises(InvalidFile, match="`axis` expects one of"):
        read_measured(written(tmp_path, "layer,resource,factor,usage,axis\na,b,1,1,weather\n"))


def test_an_empty_limit_was_not_measured(tmp_path: Path):
    [point] = read_measured(written(tmp_path, HEADER + "a,b,,1,1,,u\n"))
    assert point.limit is None


def test_blank_lines_are_passed_over(tmp_path: Path):
    path = written(tmp_path, HEADER + "\na,b,,1,1,1,u\n,,,,,,\n")
    assert len(read_measured(path)) == 1


@pytest.mark.parametrize(
    ("row", "line", "field", "says"),
    [
        ("a,b,,none,1,1,u", 2, "factor", "`factor` expects a number above 0, got `none`"),
        ("a,b,,0,1,1,u", 2, "factor", "`factor` expects a number above 0, got `0`"),
        ("a,b,,1,-1,1,u", 2, "usage", "`usage` expects a number of 0 or more, got `-1`"),
        ("a,b,,,1,1,u", 2, "factor", "`factor` expects a number above 0, got nothing"),
        ("a,b,,1,1,0,u", 2, "limit", "`limit` expects a number above 0, got `0`"),
        ("a,b,,1,1,nan,u", 2, "limit", "`limit` expects a number above 0, got `nan`"),
        ("a,,,1,1,1,u", 2, "resource", "`resource` expects a string of 1 to 200 characters"),
        ("a,b,,1,1,1,u\na,b,,2,2,1,v", 3, "unit", "`b` has two units: `u` and `v`"),
    ],
)
def test_a_faulty_cell_is_named_with_file_line_and_field(tmp_path: Path, row, line, field, says):
    path = written(tmp_path, HEADER + row + "\n")
    with pytest.raises(InvalidFile) as raised:
        read_measured(path)
    [found] = raised.value.findings
    assert (found.code, found.file, found.line) == ("wrong-value", str(path), line)
    assert found.field == field
    assert says in found.message


def test_every_faulty_row_is_told_and_not_only_the_first(tmp_path: Path):
    path = written(tmp_path, HEADER + "a,b,,x,y,1,u\na,b,,1,1,1,u,more\n")
    with pytest.raises(InvalidFile) as raised:
        read_measured(path)
    assert [found.line for found in raised.value.findings] == [2, 2, 3]
    assert raised.value.findings[-1].code == "too-many-cells"


@pytest.mark.parametrize(
    ("header", "code", "field"),
    [
        ("layer,resource,factor,limit,unit", "missing-column", "usage"),
        ("layer,layer,resource,factor,usage,limit,unit", "csv-header", "layer"),
        ("layer,resource,factor,usage,limit,unit,colour", "csv-header", "colour"),
        ("", "missing-column", "layer"),
    ],
)
def test_a_header_that_cannot_be_used_is_refused(tmp_path: Path, header, code, field):
    path = written(tmp_path, header + "\n")
    with pytest.raises(InputError) as raised:
        read_measured(path)
    assert (raised.value.code, raised.value.field) == (code, field)
    assert raised.value.file == str(path)


def test_a_file_without_rows_measures_nothing(tmp_path: Path):
    with pytest.raises(InputError) as raised:
        read_measured(written(tmp_path, HEADER))
    assert raised.value.code == "no-measurements"


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path):
    with pytest.raises(InputError) as raised:
        read_measured(tmp_path / "none.csv")
    assert raised.value.code == "no-such-file"
