"""The shipped facts, and a user's own laid over them."""

from pathlib import Path

import pytest

from tenfold.facts.loader import load_catalogue, read_catalogue
from tenfold.model.errors import InputError, InvalidFile

SHARED = Path(__file__).parents[4] / "shared"
CATALOGUE = load_catalogue()
OWN = """
[[accelerator]]
name = "acme-x1"
vendor = "Acme"
runtime = "acme"
memory_gib = 64
memory_tb_per_s = 2.5
bf16_tflops = 500
source = "Acme price list"
date = "2026-10"
evidence = "assumption"
"""


def folder(tmp_path: Path, text: str) -> Path:
    (tmp_path / "own.toml").write_text(text)
    return tmp_path


def test_the_shipped_facts_are_without_fault():
    _, findings = read_catalogue()
    assert findings == []


def test_every_fact_carries_source_date_and_evidence():
    for fact_table in CATALOGUE.tables:
        assert len(fact_table) > 0, fact_table.kind
        for fact in fact_table:
            assert fact.source
            assert fact.date[:2] == "20"
            assert fact.evidence in ("measured", "datasheet", "published", "assumption")


@pytest.mark.skipif(
    not SHARED.is_dir(), reason="the shared measurements are not beside the project"
)
def test_the_accelerators_agree_with_the_published_table():
    import polars as pl  # noqa: PLC0415

    table = pl.read_csv(SHARED / "published" / "accelerators.csv")
    columns = {
        "bf16_dense_tflops": "bf16_tflops",
        "fp16_dense_tflops": "fp16_tflops",
        "fp8_dense_tflops": "fp8_tflops",
        "fp4_dense_tflops": "fp4_tflops",
        "hbm_gb": "memory_gib",
        "hbm_tb_s": "memory_tb_per_s",
        "scaleup_gb_s_per_dir": "scaleup_gb_per_s",
        "tdp_w": "tdp_w",
        "mamf_bf16_tflops_measured": "bf16_matmul_tflops",
        "mamf_fp8_tflops_measured": "fp8_matmul_tflops",
    }
    assert table.height >= 35
    for row in table.iter_rows(named=True):
        part = CATALOGUE.accelerators.get(row["name"])
        assert part.name == row["name"]
        for column, field in columns.items():
            if row[column] is not None:
                assert getattr(part, field) == pytest.approx(float(row[column])), (part.name, field)


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("H100", "H100-80G-SXM"),
        ("h100_sxm", "H100-80G-SXM"),
        ("H100-SXM5-80GB", "H100-80G-SXM"),
        ("NVIDIA H100 80GB HBM3", "H100-80G-SXM"),
        ("A100-SXM", "A100-80G-SXM"),
        ("B300", "B300-SXM"),
        ("V100-32G-SXM", "V100-32G-SXM3"),
        ("h200", "H200-141G-SXM"),
        ("mi300x", "MI300X"),
    ],
)
def test_usual_spellings_resolve(spelled: str, name: str):
    assert CATALOGUE.accelerators.get(spelled).name == name


def test_an_unknown_name_says_what_is_near():
    with pytest.raises(InputError) as caught:
        CATALOGUE.accelerators.get("H1000")
    assert caught.value.code == "unknown-accelerator"
    assert "did you mean" in caught.value.hint


def test_a_new_accelerator_is_data(tmp_path: Path):
    catalogue = load_catalogue(folder(tmp_path, OWN))
    assert catalogue.accelerators.get("Acme X1").bf16_tflops == 500
    assert len(catalogue.accelerators) == len(CATALOGUE.accelerators) + 1


def test_a_known_name_changes_only_what_is_stated(tmp_path: Path):
    text = (
        '[[accelerator]]\nname = "h100"\ntdp_w = 500\n'
        'source = "our power cap"\ndate = "2026"\nevidence = "measured"\n'
    )
    # The shipped row is found by its own name, so an alias is a new row and lacks keys.
    with pytest.raises(InvalidFile):
        load_catalogue(folder(tmp_path, text))
    catalogue = load_catalogue(folder(tmp_path, text.replace('"h100"', '"h100-80g-sxm"')))
    part = catalogue.accelerators.get("H100")
    assert (part.tdp_w, part.bf16_tflops) == (500, 989)
    assert part.changed["tdp_w"].source == "our power cap"
    assert part.evidence_of("tdp_w") == "measured"
    assert part.evidence_of("bf16_tflops") == "published"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (OWN.replace('source = "Acme price list"\n', ""), "missing-key", 2),
        (OWN.replace('"2026-10"', '"last week"'), "bad-date", 10),
        (OWN.replace("memory_gib = 64", "memory_gib = 'lots'"), "wrong-value", 6),
        (OWN.replace("memory_gib = 64", "memory_gb = 64"), "unknown-key", 6),
        (OWN + 'aliases = ["H100"]\n', "alias-taken", 12),
        (OWN + 'scaleup_link = "AcmeLink"\n', "unknown-link", 12),
        (OWN + 'assumed = ["colour"]\n', "unknown-field", 12),
        (OWN + OWN, "duplicate-name", 13),
        ("[[gpu]]\nname = 'x'\n", "unknown-key", 1),
        ("[[accelerator]]\nvendor = 'x'\n", "missing-key", 1),
        ("accelerator = 3\n", "wrong-value", 1),
    ],
)
def test_a_fault_in_a_users_facts_is_named_with_its_line(
    tmp_path: Path, text: str, code: str, line: int
):
    _, findings = read_catalogue(folder(tmp_path, text))
    assert (line, code) in [(found.line, found.code) for found in findings]


def test_a_missing_or_empty_facts_folder_is_an_error(tmp_path: Path):
    with pytest.raises(InputError, match="does not exist"):
        load_catalogue(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no TOML"):
        load_catalogue(tmp_path / "empty")


def test_prices_of_many_providers_are_there():
    rows = CATALOGUE.prices_of("H100-80G-SXM", "on-demand")
    assert len(rows) >= 10
    assert 1.0 < rows[0].usd_per_gpu_hour <= rows[-1].usd_per_gpu_hour < 20
    spot = CATALOGUE.prices_of("H100-80G-SXM", "spot")
    assert spot[0].usd_per_gpu_hour < rows[len(rows) // 2].usd_per_gpu_hour
