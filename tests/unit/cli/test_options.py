"""Options that are made from the question a command answers."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import pytest
from cyclopts import App, Parameter
from cyclopts.exceptions import CycloptsError
from msgspec import Meta, Struct

from tenfold.cli.options import Option, options_from
from tenfold.cli.quantities import parse_duration

Ask = Callable[..., tuple["Question", bool]]


class Question(Struct, frozen=True, kw_only=True):
    """One field of each kind."""

    wait_s: Annotated[float | None, Meta(description="How long.")] = None
    model: Annotated[str, Meta(description="Which model.")]
    gpus: Annotated[int, Meta(ge=1, lt=100, description="How many.")] | None = None
    kind: Literal["a", "b"] = "a"
    names: tuple[str, ...] = ("x",)
    sizes: Mapping[str, float] = {}
    bursty: bool = False
    file: Path | None = None


def _sizes(texts: tuple[str, ...], option: str) -> dict[str, float]:
    return {f"{option} {text}": 1.0 for text in texts}


@pytest.fixture
def ask() -> Ask:
    found: list[tuple[Question, bool]] = []
    app = App(result_action="return_value")

    @app.default
    @options_from(
        Question,
        {
            "wait_s": Option(name="--wait", typed=str | None, read=parse_duration),
            "names": Option(name="--name"),
            "sizes": Option(name="--size", typed=tuple[str, ...], read=_sizes),
        },
    )
    def command(
        question: Question,
        *,
        as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    ) -> None:
        found.append((question, as_json))

    def run(*words: str) -> tuple[Question, bool]:
        app(list(words), exit_on_error=False, print_error=False)
        return found[-1]

    return run


def test_an_option_that_is_not_given_keeps_the_default_of_its_field(ask: Ask):
    assert ask("--model", "m") == (Question(model="m"), False)


def test_every_option_fills_its_field_and_the_rest_goes_to_the_command(ask: Ask):
    words = "--model m --wait 2m --gpus 8 --kind b --name x --name y --size s --bursty --json"
    question, as_json = ask(*words.split(), "--file", "f")
    assert as_json
    assert question == Question(
        model="m",
        wait_s=120.0,
        gpus=8,
        kind="b",
        names=("x", "y"),
        sizes={"--size s": 1.0},
        bursty=True,
        file=Path("f"),
    )


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--model m --gpus 0",
        "--model m --gpus 100",
        "--model m --kind c",
        "--model m --no-bursty",
    ],
)
def test_values_outside_the_bounds_of_a_field_are_rejected(ask: Ask, words: str):
    with pytest.raises(CycloptsError):
        ask(*words.split())
