"""A service file and the model version that it serves."""

from pathlib import Path

import pytest

from tenfold.files.services.service import read_service
from tenfold.model.errors import InputError, InvalidFile

LINES = 'name = "chat"\ncommand = ["serve", "{model}", "{port}"]\n'


def written(folder: Path, more: str = "") -> Path:
    file = folder / "service.toml"
    file.write_text(LINES + more)
    return file


def test_a_version_that_is_named_with_the_command_replaces_that_of_the_file(tmp_path: Path):
    file = written(tmp_path, 'model = "chat@prod"\n')
    assert read_service(file)["model"] == "chat@prod"
    assert read_service(file, "chat@2")["model"] == "chat@2"
    assert read_service(written(tmp_path), "chat@2:int8")["model"] == "chat@2:int8"


def test_a_placeholder_without_a_version_is_an_error_of_the_file(tmp_path: Path):
    with pytest.raises(InvalidFile, match=r"is used, but `model` is missing") as error:
        read_service(written(tmp_path))
    assert error.value.hint == ('add `model = "NAME@ALIAS"`, or deploy with `--model NAME@ALIAS`')


@pytest.mark.parametrize("name", ["chat@", "@prod", "a b", "chat@1@2"])
def test_what_does_not_name_a_version_is_refused(tmp_path: Path, name: str):
    with pytest.raises(InputError, match="is not a model or version name"):
        read_service(written(tmp_path), name)
    with pytest.raises(InvalidFile, match="is not a model or version name") as error:
        read_service(written(tmp_path, f'model = "{name}"\n'))
    assert error.value.line == 3


RATES = "slots = 8\nprefill_tokens_per_s = 1000\ndecode_tokens_per_s = 40\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("ttft_objective_s = 5\nlatency_objective_s = 2\n", "below `ttft_objective_s` of 5"),
        (f"{RATES}tpot_objective_s = 0.02\n", "a token takes 0.025 s"),
        (
            f"{RATES}tpot_objective_s = 0.005\ndecode_tokens_per_s_alone = 100\n",
            "no number of replicas meets it",
        ),
        (
            f"{RATES}tpot_objective_s = 0.04\ndecode_tokens_per_s_alone = 30\n",
            "below `decode_tokens_per_s` of 40",
        ),
        (f"{RATES}decode_tokens_per_s_alone = 90\n", "`tpot_objective_s` is missing"),
        ("[canary]\nsteps = [10]\nis_blue_green = true\n", "which has no steps"),
        ("[canary]\nshadow_s = 10\n", "no requests are copied"),
    ],
)
def test_objectives_and_rollouts_that_contradict_themselves_are_refused(
    tmp_path: Path, lines: str, said: str
):
    with pytest.raises(InvalidFile, match=said) as error:
        read_service(written(tmp_path, f'model = "chat@1"\n{lines}'))
    assert error.value.hint
    assert error.value.line


def test_objectives_that_can_be_met_are_accepted(tmp_path: Path):
    lines = (
        f'model = "chat@1"\n{RATES}decode_tokens_per_s_alone = 100\ntpot_objective_s = 0.02\n'
        "ttft_objective_s = 1\nlatency_objective_s = 9\n"
        "[canary]\nis_blue_green = true\nshadow_percent = 20\nshadow_s = 60\n"
    )
    assert read_service(written(tmp_path, lines))["tpot_objective_s"] == 0.02
