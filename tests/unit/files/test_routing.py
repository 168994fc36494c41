from pathlib import Path

import msgspec
import pytest

from tenfold.files.routing import read_keys, read_routing
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.service.routing import Replica, Revision, RoutingState, Service, TokenDigest

EXAMPLE = Path(__file__).parents[3] / "examples" / "gateway" / "routing.toml"


def test_the_example_is_read_whole():
    state = read_routing(EXAMPLE)
    chat = state.services[0]
    assert [one.name for one in state.services] == ["chat", "ocr"]
    assert [len(one.replicas) for one in chat.revisions] == [2, 1]
    assert chat.overflow[0].usd_per_hour_max == 25
    assert chat.hold.requests_max == 500
    assert len(state.tokens) == 2


def test_the_answer_of_the_control_plane_is_a_routing_file(tmp_path: Path):
    replica = Replica(id="a", url="http://127.0.0.1:1")
    service = Service(name="chat", revisions=(Revision(name="v1", replicas=(replica,)),))
    token = TokenDigest(digest="0" * 64, team="red", expires_ms=7)
    state = RoutingState(version=3, services=(service,), tokens=(token,))
    path = tmp_path / "routing.yaml"
    path.write_bytes(msgspec.json.encode(state))
    assert read_routing(path) == state


BROKEN = """\
version = -1
other = 2

[[services]]
name = "a b"
slots = 4

[[services.revisions]]
name = "v1"
weight = "much"

[[services.revisions.replicas]]
url = "ftp://there"

[services.hold]
timeout_s = 0

[[tokens]]
digest = "secret"
team = "red"
"""


def test_all_errors_are_found_with_their_lines(tmp_path: Path):
    path = tmp_path / "routing.toml"
    path.write_text(BROKEN)
    with pytest.raises(InvalidFile) as error:
        read_routing(path)
    found = {(one.line, one.code) for one in error.value.findings}
    assert found == {
        (1, "wrong-value"),
        (2, "unknown-key"),
        (5, "wrong-value"),
        (6, "unknown-key"),
        (10, "wrong-value"),
        (12, "missing-key"),
        (13, "wrong-value"),
        (16, "wrong-value"),
        (19, "wrong-value"),
    }


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('[[services]]\nname = "a"\n[[services]]\nname = "a"\nmodels = ["b"]', "duplicate-name"),
        ('[[services]]\nname = "a"\n[[services]]\nname = "b"\nmodels = ["a"]', "duplicate-model"),
        ('[[services]]\nname = "a"\n[[services.revisions]]\nname = "v"\nweight = 0', "no-weight"),
        (f'[[tokens]]\nteam = "a"\ndigest = "{"0" * 64}"\nservices = ["x"]', "unknown-service"),
        ('[[teams]]\nname = "a"\n[[teams]]\nname = "a"', "duplicate-name"),
        ("services = 3", "wrong-value"),
        ("services = [3]", "wrong-value"),
    ],
)
def test_what_cannot_be_meant_is_an_error(tmp_path: Path, text: str, code: str):
    path = tmp_path / "routing.toml"
    path.write_text(text)
    with pytest.raises(InvalidFile) as error:
        read_routing(path)
    assert [one.code for one in error.value.findings] == [code]


def test_two_teams_may_have_a_model_of_the_same_name(tmp_path: Path):
    path = tmp_path / "routing.toml"
    path.write_text(
        '[[services]]\nname = "a"\nteams = ["red"]\nmodels = ["m"]\n'
        '[[services]]\nname = "b"\nteams = ["blue"]\nmodels = ["m"]\n'
    )
    assert len(read_routing(path).services) == 2


def test_keys_are_read_from_a_file_of_ones_own_and_never_shown(tmp_path: Path):
    path = tmp_path / "keys.toml"
    path.write_text('one = "sk-secret"\n')
    path.chmod(0o644)
    with pytest.raises(InputError) as error:
        read_keys(path)
    assert error.value.code == "keys-readable"
    path.chmod(0o600)
    assert read_keys(path) == {"one": "sk-secret"}
    path.write_text('one = "sk-secret\\nX-Evil: 1"\n')
    with pytest.raises(InvalidFile) as broken:
        read_keys(path)
    assert "secret" not in broken.value.message
