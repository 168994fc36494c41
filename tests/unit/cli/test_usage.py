"""What a mistake on the command line prints: the option, what it expects, what was typed."""

from pathlib import Path

import pytest

from tenfold.cli.main import main

FLEET = '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 4\ngpus_per_node = 8\n'


@pytest.fixture
def fleet(tmp_path: Path) -> str:
    path = tmp_path / "fleet.toml"
    path.write_text(FLEET)
    return str(path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(list(words)) == 2
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("line", "error", "hint"),
    [
        ("flet", "unknown command `tenfold flet`", "did you mean `fleet`?"),
        ("nonsense", "unknown command `tenfold nonsense`", "see `tenfold --help`"),
        (
            "smap",
            "unknown command `tenfold smap`",
            "use `tenfold top`; see docs/how-to/slurm-users.md",
        ),
        ("ls", "unknown command `tenfold ls`", "did you mean `tenfold job list`?"),
        ("stop", "unknown command `tenfold stop`", "did you mean `tenfold down`?"),
        ("up --port 80", "unknown option `--port`", "use --listen ADDRESS:PORT"),
        ("fleet chek", "unknown command `tenfold fleet chek`", "did you mean `check`?"),
        ("fleet --nope", "unknown option `--nope`", "see `tenfold fleet --help`"),
        ("fleet show", "missing argument `FILE`", "see `tenfold fleet show --help`"),
        ("sim run", "missing option `--fleet`", "see `tenfold sim run --help`"),
        ("fleet show f --svg", "`--svg` needs a value", "see `tenfold fleet show --help`"),
        ("fleet show f extra", "unexpected argument `extra`", "see `tenfold fleet show --help`"),
        ("fleet show f --rack 3", "unknown option `--rack`", "did you mean `--racks`?"),
        (
            "fleet show f --racks many",
            "`--racks` must be a whole number, got `many`",
            "see `tenfold fleet show --help`",
        ),
        (
            "fleet show f --racks -3",
            "`--racks` must be at least 1, got `-3`",
            "see `tenfold fleet show --help`",
        ),
        (
            "fleet domains f --kind nod",
            "`--kind` must be one of gpu, node, rack, leaf, pdu, cooling-zone, spine, hall, site, "
            "shelf, got `nod`",
            "did you mean `node`?",
        ),
        ("fleet show f --racks 3 --racks 4", "`--racks` is given more than once", "give it once"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(
    capsys: pytest.CaptureFixture[str], line: str, error: str, hint: str
):
    assert said(capsys, *line.split()) == [f"error: {error}", f"hint: {hint}"]


@pytest.mark.parametrize(
    ("line", "option", "needed"),
    [
        ("grow FLEET --load 0.5", "--load", "--mix NAME"),
        ("fleet domains FLEET --at-h 5", "--at-h", "--jobs FILE"),
        ("fleet domains FLEET --policy fifo", "--policy", "--jobs FILE"),
        ("fleet domains FLEET --checkpoint-every-s 60", "--checkpoint-every-s", "--jobs FILE"),
    ],
)
def test_an_option_without_effect_is_refused(
    capsys: pytest.CaptureFixture[str], fleet: str, line: str, option: str, needed: str
):
    words = [fleet if word == "FLEET" else word for word in line.split()]
    [error, hint] = said(capsys, *words)
    assert error == f"error: `{option}` has no effect without `{needed.split(maxsplit=1)[0]}`"
    assert hint == f"hint: add `{needed}`, or leave out `{option}`"


def test_a_misspelt_model_or_engine_is_refused(capsys: pytest.CaptureFixture[str], fleet: str):
    answers = ["--bound-by", "gpu", "--model-size", "gpu", "--bandwidth", "fast"]
    assert said(capsys, "advise", "--model", "nope", *answers)[0] == "error: unknown model `nope`"
    service = [
        "--qps",
        "1",
        "--input-tokens",
        "9",
        "--output-tokens",
        "9",
        "--ttft-s",
        "1",
        "--tpot-s",
        "1",
    ]
    words = ["plan", "serve", "--model", "llama-3-8b", "--fleet", fleet, *service]
    [error, hint] = said(capsys, *words, "--engine", "nope")
    assert error == "error: unknown serving engine `nope`"
    assert "`vllm`" in hint
    assert main([*words, "--engine", "generic"]) == 0


def test_an_unknown_preset_lists_those_that_exist(capsys: pytest.CaptureFixture[str], fleet: str):
    [error, hint] = said(capsys, "sim", "failures", "--fleet", fleet, "--failures", "nope")
    assert error == "error: unknown failure preset `nope`"
    assert hint.startswith("hint: known: `rsc-1`, ")


def test_a_policy_with_errors_is_still_compared_with_the_fleet(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, fleet: str
):
    policy = tmp_path / "policy.toml"
    policy.write_text('color = "red"\n[[teams]]\nid = "a"\nquota = { H100 = 800 }\nweight = "x"\n')
    assert main(["policy", "check", str(policy), "--fleet", fleet]) == 2
    out = capsys.readouterr().out
    for code in ("missing-key", "unknown-key", "wrong-value", "quota-over-fleet"):
        assert f"[{code}]" in out, out


def test_a_token_must_last_longer_than_no_time(capsys: pytest.CaptureFixture[str]):
    [error, _] = said(capsys, "token", "create", "ci", "--team", "ops", "--days", "0")
    assert error == "error: `--days` must be greater than 0, got `0`"
