"""The model registry: versions never change, names move, and what is refused changes nothing."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold.live.inbox import Answer, MoveAlias, RegisterModel, RemoveVersion, StageVersion
from tenfold.live.models.registry import ModelRegistry, ModelRequest
from tenfold.model import registry
from tenfold.model.events import ModelAliasMoved, ModelEvent, ModelRegistered
from tenfold.model.ids import TeamId
from tenfold.model.registry import Artefact, Lineage, ModelVersion, version_id
from tenfold.model.units import Millis

RED, NOW = TeamId("red"), Millis(7)


def version(content: int = 0, model: str = "chat", team: TeamId = RED, by: str = "ann", **more):
    artefact = Artefact(location="/m", kind="folder", digest=f"{content:064x}")
    return ModelVersion(team=team, model=model, number=1, artefact=artefact, by=by, **more)


def ask(models: ModelRegistry, *requests: ModelRequest) -> tuple[Answer, Sequence[ModelEvent]]:
    told: tuple[Answer, Sequence[ModelEvent]] = (Answer(), ())
    for request in requests:
        told = models.change(request, NOW)
    return told


def refused(models: ModelRegistry, request: ModelRequest) -> str:
    answer, events = models.change(request, NOW)
    assert answer.refused is not None
    assert events == ()
    return answer.refused.code


def test_versions_are_numbered_in_order_and_a_removed_number_does_not_come_back():
    models = ModelRegistry()
    numbers = [ask(models, RegisterModel(version(one)))[0].number for one in range(3)]
    assert numbers == [1, 2, 3]
    assert ask(models, RemoveVersion(RED, "chat", 3, "ann"))[0].refused is None
    assert ask(models, RegisterModel(version(9)))[0].number == 4


def test_the_same_content_is_the_same_version_whoever_registers_it():
    models = ModelRegistry()
    ask(models, RegisterModel(version(1)), RegisterModel(version(2)))
    answer, events = ask(models, RegisterModel(version(1, by="bob")))
    assert (answer.number, answer.again, events) == (1, True, ())
    answer, events = ask(models, RegisterModel(version(1, metrics={"loss": 1.0})))
    assert (answer.number, answer.again, len(events)) == (3, False, 1)


def test_content_of_a_removed_version_may_be_registered_again():
    models = ModelRegistry()
    ask(models, RegisterModel(version(1)), RemoveVersion(RED, "chat", 1, "ann"))
    assert ask(models, RegisterModel(version(1)))[0].number == 2


def test_an_alias_moves_and_its_event_says_from_where():
    models = ModelRegistry()
    ask(models, RegisterModel(version(1)), RegisterModel(version(2)))
    ask(models, MoveAlias(RED, "chat", "prod", 1, "ann"))
    answer, events = ask(models, MoveAlias(RED, "chat", "prod", 2, "bob"))
    assert answer.number == 2
    assert events == (ModelAliasMoved(NOW, RED, "chat", "prod", 2, 1, "bob"),)
    answer, events = ask(models, MoveAlias(RED, "chat", "prod", 2, "bob"))
    assert (answer.again, events) == (True, ())


def test_a_version_with_an_alias_is_not_removed():
    models = ModelRegistry()
    ask(models, RegisterModel(version(1)), MoveAlias(RED, "chat", "prod", 1))
    assert refused(models, RemoveVersion(RED, "chat", 1)) == "version-has-alias"
    ask(models, MoveAlias(RED, "chat", "prod", 0))
    assert ask(models, RemoveVersion(RED, "chat", 1))[0].refused is None
    answer, events = ask(models, RemoveVersion(RED, "chat", 1))
    assert (answer.again, events) == (True, ())


def test_what_does_not_exist_is_refused():
    models = ModelRegistry()
    assert refused(models, MoveAlias(RED, "chat", "prod", 1)) == "no-such-model"
    ask(models, RegisterModel(version(1)))
    assert refused(models, MoveAlias(RED, "chat", "prod", 2)) == "no-such-version"
    assert refused(models, MoveAlias(RED, "chat", "prod", 0)) == "no-such-alias"
    assert refused(models, StageVersion(RED, "chat", 2, "staging")) == "no-such-version"
    assert refused(models, RemoveVersion(TeamId("blue"), "chat", 1)) == "no-such-model"
    ask(models, RemoveVersion(RED, "chat", 1))
    assert refused(models, MoveAlias(RED, "chat", "prod", 1)) == "no-such-version"
    assert refused(models, StageVersion(RED, "chat", 1, "staging")) == "no-such-version"


@pytest.mark.parametrize("parent", ["chat@2", "other@1", "chat@prod", "chat"])
def test_a_parent_is_a_version_of_the_same_team_by_number(parent: str):
    models = ModelRegistry()
    ask(models, RegisterModel(version(1)), RegisterModel(version(1, "other", TeamId("blue"))))
    child = version(2, lineage=Lineage(parent=parent))
    assert refused(models, RegisterModel(child)) == "no-such-parent"
    child = version(2, lineage=Lineage(parent="chat@1"))
    assert ask(models, RegisterModel(child))[0].number == 2


def test_limits_are_kept(monkeypatch: pytest.MonkeyPatch):
    for name in ("MODELS_MAX", "VERSIONS_MAX", "ALIASES_MAX"):
        monkeypatch.setattr(f"tenfold.live.models.registry.{name}", 2)
    models = ModelRegistry()
    ask(models, RegisterModel(version(1)), RegisterModel(version(2)))
    assert refused(models, RegisterModel(version(3))) == "too-many-versions"
    ask(models, RegisterModel(version(1, "b")))
    assert refused(models, RegisterModel(version(1, "c"))) == "too-many-models"
    assert ask(models, RegisterModel(version(1, "c", TeamId("blue"))))[0].number == 1
    ask(models, MoveAlias(RED, "chat", "x", 1), MoveAlias(RED, "chat", "y", 1))
    assert refused(models, MoveAlias(RED, "chat", "z", 1)) == "too-many-aliases"
    assert ask(models, MoveAlias(RED, "chat", "y", 2))[0].number == 2


NAMES = st.sampled_from(["a", "b"])
NUMBERS = st.integers(0, 4)
REQUESTS = st.one_of(
    st.builds(
        lambda content, model: RegisterModel(version(content, model)), st.integers(0, 5), NAMES
    ),
    st.builds(lambda model, alias, to: MoveAlias(RED, model, alias, to), NAMES, NAMES, NUMBERS),
    st.builds(
        lambda model, to, stage: StageVersion(RED, model, to, stage),
        *(NAMES, NUMBERS, st.sampled_from(registry.STAGES)),
    ),
    st.builds(lambda model, to: RemoveVersion(RED, model, to), NAMES, NUMBERS),
)


@given(st.lists(REQUESTS, max_size=40))
def test_whatever_is_asked_no_version_changes_and_no_alias_names_a_removed_one(
    requests: list[ModelRequest],
):
    models = ModelRegistry()
    registered: dict[str, ModelVersion] = {}
    for request in requests:
        for event in models.change(request, NOW)[1]:
            if isinstance(event, ModelRegistered):
                one = event.version
                key = version_id(one.team, one.model, one.number)
                assert key not in registered
                registered[key] = one
        for entry in models._models.values():
            for number in entry.aliases.values():
                assert not entry.versions[number].is_removed
            assert list(entry.versions) == list(range(1, len(entry.versions) + 1))
