"""The model commands against a real control plane, through a restart."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from tenfold.cli.main import main
from unit.up_process import Up, commands_find, running

Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Generator[Up, None, None]:
    with running(tmp_path_factory.mktemp("up") / "home", "--virtual-nodes", "1") as made:
        yield made


@pytest.fixture(autouse=True)
def asked_here(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    commands_find(up, monkeypatch)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    made = tmp_path / "weights"
    made.mkdir()
    (made / "w").write_bytes(b"w")
    return made


def said(printed: Printed, *words: str, status: int = 0) -> str:
    assert main(["model", *words]) == status
    return printed.readouterr().out


def fault(printed: Printed, *words: str, status: int = 2) -> str:
    assert main(["model", *words, "--json"]) == status
    error = json.loads(printed.readouterr().err)["error"]
    assert error["hint"]
    return error["code"]


def test_a_version_lives_from_registration_to_removal_through_a_kill(
    up: Up, weights: Path, capsys: Printed
):
    register = ("register", "chat", str(weights), "--metric", "loss=1.5", "--alias", "prod")
    text = said(capsys, *register)
    assert "registered `chat@1`" in text
    assert "alias `prod` points to version 1" in text
    assert "already registered, with the same content: `chat@1`" in said(capsys, *register)
    up.kill()
    up.start("--virtual-nodes", "1")
    shown = json.loads(said(capsys, "show", "chat@prod", "--json"))
    assert (shown["version"], shown["metrics"]) == (1, {"loss": 1.5})
    assert "is intact" in said(capsys, "verify", "chat@prod")
    (weights / "w").write_bytes(b"v")
    assert "its SHA-256 is" in said(capsys, "verify", "chat@prod", status=1)
    said(capsys, "register", "chat", str(weights), "--parent", "chat@1")
    assert fault(capsys, "remove", "chat@1", status=3) == "version-has-alias"
    assert "points to version 2" in said(capsys, "alias", "chat@latest", "prod")
    assert "is in stage production" in said(capsys, "stage", "chat@prod", "production")
    assert "removed `chat@1`" in said(capsys, "remove", "chat@1")
    text = said(capsys, "show", "chat")
    assert "alias prod from version 1 to version 2" in text
    assert "version 2 from development to production" in text
    assert json.loads(said(capsys, "list", "--json"))[0]["latest"] == 2
    assert "deleted alias" in said(capsys, "alias", "chat", "prod", "--delete")


def test_a_variant_is_verified_on_its_own(tmp_path: Path, weights: Path, capsys: Printed):
    small = tmp_path / "small"
    small.write_bytes(b"8")
    said(capsys, "register", "quantised", str(weights), "--variant", f"int8={small}")
    (weights / "w").unlink()
    assert "is intact" in said(capsys, "verify", "quantised:int8")
    told = json.loads(said(capsys, "verify", "quantised", "--json", status=1))
    assert [bool(one["problem"]) for one in told] == [True, False]
    assert fault(capsys, "verify", "quantised:fp8") == "no-such-variant"


def test_a_uri_needs_a_digest_and_its_copy_is_verified(weights: Path, capsys: Printed):
    said(capsys, "register", "local", str(weights / "w"))
    digest = json.loads(said(capsys, "show", "local@1", "--json"))["artefact"]["digest"]
    assert fault(capsys, "register", "far", "s3://bucket/w") == "no-digest"
    said(capsys, "register", "far", "s3://bucket/w", "--digest", f"sha256:{digest}")
    assert fault(capsys, "verify", "far") == "artefact-is-uri"
    assert "is intact" in said(capsys, "verify", "far", "--path", str(weights / "w"))


def test_a_version_that_a_job_made_names_the_job(
    weights: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
):
    assert main(["job", "submit", "--name", "train", "--json", "--", "true"]) == 0
    job = json.loads(capsys.readouterr().out)["id"]
    monkeypatch.setenv("TENFOLD_JOB", job)
    said(capsys, "register", "trained", str(weights))
    lineage = json.loads(said(capsys, "show", "trained@1", "--json"))["lineage"]
    assert lineage["job"] == job


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("register", "a b", "."), "bad-model-reference"),
        (("register", "chat@1", "."), "bad-model-reference"),
        (("register", "ch at", "."), "bad-model-reference"),
        (("register", "far", "s3://bucket/w", "--digest", "abc"), "wrong-value"),
        (("register", "far", "s3://bucket/w", "--digest", "g" * 64), "wrong-value"),
        (("register", "chat", "/dev/null"), "artefact-unusable"),
        (("register", "chat", "/no/such"), "artefact-unreadable"),
        (("register", "chat", "/etc/hostname", "--metric", "loss"), "wrong-value"),
        (("register", "chat", "/etc/hostname", "--metric", "loss=nan"), "wrong-value"),
        (("register", "chat", "/etc/hostname", "--variant", "int8"), "wrong-value"),
        (("register", "chat", "/etc/hostname", "--alias", "3"), "bad-alias"),
        (("register", "chat", "/etc/hostname", "--digest", "0" * 64), "digest-differs"),
        (("alias", "chat", "prod"), "no-version"),
        (("alias", "chat@1", "latest"), "bad-alias"),
        (("remove", "chat"), "no-version"),
        (("stage", "chat@1:int8", "staging"), "bad-model-reference"),
        (("show", "../../etc/passwd"), "bad-model-reference"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_hint(
    words: tuple[str, ...], code: str, capsys: Printed
):
    assert fault(capsys, *words) == code
