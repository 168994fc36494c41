"""Nodes in a table kept by hand."""

import pytest

from tenfold.files.inventory.nodes_csv import read_nodes_csv
from tenfold.model.errors import InputError, InvalidFile

HEADER = "name,accelerator,gpus,cpus,memory_gib,rack,site\n"


def test_rows_become_nodes_and_extra_columns_labels():
    header = "Name,Accelerator,GPUs,Memory GiB,rack,site,owner"
    text = f"{header}\ng1,H100,8,2048,r1,eu,vision\n\nc1,,,,,,\n"
    gpu, cpu = read_nodes_csv(text, "nodes.csv").nodes
    assert (gpu.name, gpu.accelerator, gpu.gpus, gpu.memory_gib) == ("g1", "H100", 8, 2048)
    assert (gpu.rack, gpu.site, gpu.labels) == ("r1", "eu", {"owner": "vision"})
    assert (cpu.gpus, cpu.cpus, cpu.rack, cpu.labels) == (0, 1, None, {})


def test_a_host_list_describes_identical_nodes():
    nodes = read_nodes_csv(HEADER + '"g[01-03]",H100,8,64,,,\n', "nodes.csv").nodes
    assert [node.name for node in nodes] == ["g01", "g02", "g03"]


def test_every_bad_row_is_reported_with_its_line():
    rows = [
        "g1,H100,8,64,2048,r1,eu",
        "g1,H100,8,64,2048,r1,eu",
        "g2,H100,eight,64,2048,r1,eu",
        "g3,H100,8,0,2048,r1,eu",
        "g4,H100,8,64,2048GB,r1,eu",
        "g5,H100,0,64,,,",
        "g6,H100,,64,,,",
        "g[7,H100,8,64,,,",
        ",H100,8,64,,,",
        "g8,H100,8,64,,,eu,extra",
    ]
    with pytest.raises(InvalidFile) as caught:
        read_nodes_csv(HEADER + "\n".join(rows), "nodes.csv")
    found = [(fault.line, fault.code) for fault in caught.value.findings]
    assert found == [
        (3, "duplicate-name"),
        (4, "wrong-value"),
        (5, "wrong-value"),
        (6, "wrong-value"),
        (7, "accelerator-without-gpus"),
        (8, "accelerator-without-gpus"),
        (9, "bad-host-list"),
        (10, "bad-node"),
        (11, "too-many-cells"),
    ]
    assert all(fault.file == "nodes.csv" and fault.hint for fault in caught.value.findings)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no-nodes"),
        ("host,gpus\na,8\n", "csv-header"),
        ("name,name\na,b\n", "csv-header"),
        ("name,\na,b\n", "csv-header"),
        ("name,gpus\n", "no-nodes"),
        ('name,gpus\n"a"b,8\n', "syntax"),
        ("name\nn[1-1999999]\n", "too-many-nodes"),
    ],
)
def test_a_table_that_cannot_be_used_says_why(text: str, code: str):
    with pytest.raises(InputError) as caught:
        read_nodes_csv(text, "nodes.csv")
    assert caught.value.code == code
    assert caught.value.file == "nodes.csv"
