"""`tenfold assess trace`: one screen, one page, JSON, and refusals."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main

SAVED = Path(__file__).parents[4] / "examples" / "clusters" / "slurm-saved"


def test_one_screen_and_one_page_say_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html = tmp_path / "page.html"
    assert main(["assess", "trace", str(SAVED), "--html", str(html), "--anonymize"]) == 0
    screen, page = capsys.readouterr().out, html.read_text()
    assert len(screen.splitlines()) < 50, "more than one screen"
    for text in ("of the GPU-hours were allocated", "GPU time, all GPUs", "add 1 node"):
        assert text in screen
        assert text in page
    assert "user-" in page
    for name in (">ann<", ">ben<", ">nlp<", ">vision<"):
        assert name not in page


def test_an_existing_page_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    html = tmp_path / "page.html"
    html.write_text("mine")
    assert main(["assess", "trace", str(tmp_path / "absent"), "--html", str(html)]) == 2
    assert html.read_text() == "mine"


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", "trace", str(SAVED / "sacct.txt"), "--no-html", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["use"]["gpus"] == 32
    assert {"use", "waits", "causes", "outlook", "changes", "unseen"} <= answer.keys()


def test_one_of_several_traces_in_a_file_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "jobs.csv"
    rows = [f"{name},{n},{n * 60},600,{n % 3}x" for name in ("one", "two") for n in range(50)]
    rows = [row.replace("x", "" if "one" in row else "1") for row in rows]
    table.write_text("\n".join(["trace,job_id,submit_s,duration_s,gpus", *rows, ""]))
    command = ["assess", "trace", str(table), "--no-html", "--json"]
    assert main(command) == 2
    assert "`--trace` of `tenfold assess trace`" in capsys.readouterr().err
    assert main([*command, "--trace", "one"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["cluster"], first["use"]["jobs"]) == ("one", 50)
    assert main([*command, "--trace", "three"]) == 2
    assert "use one of one, two" in capsys.readouterr().err
    assert main(["assess", "trace", str(SAVED), "--no-html", "--trace", "one"]) == 2
    assert "output of Slurm" in capsys.readouterr().err
