import pytest

from tenfold.gateway.admit.identity import Identities
from tenfold.gateway.admit.refusals import REFUSALS, RequestRefused
from tenfold.model.service.routing import RoutingState, Service, TokenDigest
from tests.rigs.gateway import digest_of, token_for

RED, BLUE, OLD = "tf_red-secret", "tf_blue-secret", "tf_old-secret"
STATE = RoutingState(
    tokens=(
        token_for(RED, "red"),
        token_for(BLUE, "blue", "chat"),
        TokenDigest(digest=digest_of(OLD), team="red", expires_ms=1_000),
    )
)


def test_a_token_is_its_teams_and_may_be_limited_to_services():
    identities = Identities(STATE)
    red, blue = identities.find(f"Bearer {RED}", 0), identities.find(f"bearer  {BLUE}", 0)
    chat, code = Service(name="chat"), Service(name="code", teams=("blue",))
    assert (red.team, blue.team) == ("red", "blue")
    assert [red.may_use(chat), red.may_use(code)] == [True, False]
    assert [blue.may_use(chat), blue.may_use(code)] == [True, False]


@pytest.mark.parametrize(
    ("header", "now_ms", "code"),
    [
        ("", 0, "no_api_key"),
        ("Bearer nobody", 0, "invalid_api_key"),
        (f"Basic {RED}", 0, "invalid_api_key"),
        (RED, 0, "invalid_api_key"),
        ("Bearer ", 0, "invalid_api_key"),
        (f"Bearer {'x' * 100_000}", 0, "invalid_api_key"),
        (f"Bearer {OLD}", 1_000, "invalid_api_key"),
        (f"Bearer {digest_of(RED)}", 0, "invalid_api_key"),
        ("Bearer \udcff\udcfe", 0, "invalid_api_key"),
    ],
)
def test_others_are_refused_alike(header: str, now_ms: int, code: str):
    with pytest.raises(RequestRefused) as refused:
        Identities(STATE).find(header, now_ms)
    assert refused.value.code == code
    assert refused.value.status == 401
    assert RED not in refused.value.message


def test_an_expiring_token_works_until_then():
    assert Identities(STATE).find(f"Bearer {OLD}", 999).team == "red"


def test_without_a_token_a_request_is_of_the_stated_team_and_a_wrong_one_is_still_refused():
    identities = Identities(RoutingState(team_without_token="anyone"))
    assert identities.find("", 0).team == "anyone"
    with pytest.raises(RequestRefused):
        identities.find("Bearer nobody", 0)


def test_every_code_has_a_status_and_a_meaning():
    for kind in REFUSALS.values():
        assert 400 <= kind.status < 600
        assert kind.type
        assert len(kind.meaning.split()) > 2
