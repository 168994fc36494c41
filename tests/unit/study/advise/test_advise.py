"""Golden cases of advice, each trigger alone, and what the command asks."""

import io
import json
from pathlib import Path

import pytest

from tenfold.cli import advise as command
from tenfold.compose.fleet import OpenFleet, open_fleet
from tenfold.decide.layout.serve import ServeAnswer
from tenfold.model.errors import InputError
from tenfold.study.advise.advise import Advice, AdviseQuestion, advise, answers_to
from tenfold.study.advise.answers import served

EXAMPLES = Path(__file__).parents[4] / "examples"
FLEET = '[[pool]]\nname = "h100"\nshape = "DGX-H100"\nnodes = 4\n'


@pytest.fixture
def rack(tmp_path: Path) -> OpenFleet:
    path = tmp_path / "fleet.toml"
    path.write_text(FLEET)
    return open_fleet(path)


def fired(advice: Advice) -> list[str]:
    return [one.code for one in advice.triggers if one.fired]


def steps(advice: Advice) -> list[str]:
    return [one.step for one in advice.steps]


def test_fraud_inference_scales_horizontally_and_elastically_when_bursty():
    said = {"bound_by": "gpu", "real_time": True, "model_size": "gpu", "bandwidth": "ordinary"}
    assert advise(AdviseQuestion(kind="inference", **said)).choice == "horizontal"
    assert advise(AdviseQuestion(kind="inference", bursty=True, **said)).choice == "elastic"


def test_fraud_inference_from_a_spec_says_how_many_replicas(rack):
    question = AdviseQuestion(
        kind="inference",
        model="BERT large",
        qps=30_000,
        ttft_s=0.1,
        input_tokens=128,
        output_tokens=1,
    )
    advice = advise(question, rack)
    assert advice.choice == "horizontal"
    assert advice.answers.real_time is True
    assert advice.answers.model_size == "gpu"
    assert fired(advice) == ["concurrency-over-replica"]
    assert "replicas" in advice.steps[0].sentence


def test_a_multimodal_lab_scales_vertically_with_fabric():
    question = AdviseQuestion(
        kind="training",
        bound_by="memory",
        real_time=False,
        model_size="larger",
        bandwidth="fast",
    )
    assert steps(advise(question))[:2] == ["vertical", "fabric"]
    lab = open_fleet(EXAMPLES / "research-256" / "fleet.toml")
    advice = advise(AdviseQuestion(kind="training", model="Llama 3.1 405B"), lab)
    assert steps(advice) == ["vertical", "fabric", "horizontal"]
    assert advice.answers.worked_out == ("bound_by", "real_time", "model_size", "bandwidth")
    assert advice.upgrade is not None


def test_a_fine_tune_that_fits_one_node_stays_on_it(rack):
    advice = advise(AdviseQuestion(kind="training", model="Llama 2 7B", dataset_tb=1), rack)
    assert steps(advice) == ["vertical"]
    assert advice.answers.model_size == "node"
    assert fired(advice) == []


def test_sites_joined_by_thin_lines_work_apart():
    edge = open_fleet(EXAMPLES / "edge-sites" / "fleet.toml")
    assert advise(AdviseQuestion(kind="training", model="Gemma 3 1B"), edge).choice == "distributed"
    assert advise(AdviseQuestion(kind="inference", model="Gemma 3 1B"), edge).choice == (
        "distributed"
    )


def test_cpu_bound_work_scales_out():
    said = {"real_time": False, "model_size": "gpu", "bandwidth": "ordinary"}
    assert advise(AdviseQuestion(kind="training", bound_by="cpu", **said)).choice == "horizontal"


def test_each_trigger_fires_alone(rack):
    large = advise(AdviseQuestion(kind="training", model="Llama 3.1 70B", dataset_tb=1), rack)
    assert fired(large) == ["model-over-node"]
    heavy = advise(AdviseQuestion(kind="training", model="Llama 3.1 8B", dataset_tb=500), rack)
    assert fired(heavy) == ["dataset-over-local-storage"]
    assert steps(heavy) == ["vertical", "horizontal"]
    question = AdviseQuestion(kind="inference", model="Llama 3.1 8B", qps=100, dataset_tb=1)
    assert fired(advise(question, rack)) == ["concurrency-over-replica"]


def test_one_replica_that_is_enough_scales_up_first(rack):
    question = AdviseQuestion(kind="inference", model="Llama 3.1 8B", qps=0.5)
    advice = advise(question, rack)
    assert advice.choice == "vertical"
    assert fired(advice) == []


def test_a_replica_larger_than_a_node_widens_the_domain_first(rack):
    advice = advise(AdviseQuestion(kind="inference", model="Llama 3.1 405B"), rack)
    assert steps(advice)[:2] == ["vertical", "fabric"]


def test_scaling_up_shows_its_blast_radius_and_its_racks(rack):
    advice = advise(AdviseQuestion(kind="training", model="Llama 3.1 8B"), rack)
    assert advice.blast is not None
    assert (advice.blast.gpus, advice.blast.gpu_share) == (8, 0.25)
    assert advice.blast.gang_gpus_left == 24
    assert "DGX-H200" in [one.shape for one in advice.vertical_options]
    wide = next(one for one in advice.vertical_options if one.gpus == 72)
    assert wide.blast_share == 1.0
    assert wide.fits_rack is False


def test_a_domain_of_many_nodes_is_lost_as_one():
    advice = advise(
        AdviseQuestion(kind="training", model="Llama 3.1 70B"),
        open_fleet(EXAMPLES / "nvl72" / "fleet.toml"),
    )
    assert advice.blast is not None
    assert advice.blast.gpus == 72
    assert advice.answers.model_size == "node"


def test_what_is_given_wins_over_what_is_worked_out(rack):
    question = AdviseQuestion(kind="training", model="Llama 3.1 8B", bandwidth="thin")
    assert answers_to(question, rack).bandwidth == "thin"
    assert advise(question, rack).choice == "distributed"


def test_open_questions_are_listed():
    answers = answers_to(AdviseQuestion(kind="training"), None)
    assert answers.missing == ("bound_by", "model_size", "bandwidth")


def test_the_command_asks_at_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("what\ngpu\nnode\nordinary\n"))
    command.advise_command(as_json=True)
    captured = capsys.readouterr()
    assert json.loads(captured.out)["choice"] == "vertical"
    assert captured.err.count("What is the bottleneck?") == 2


def test_the_command_does_not_wait_for_a_program(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(InputError, match="missing input: ") as caught:
        command.advise_command()
    assert "--model-size" in caught.value.hint


def test_the_command_prints_the_advice(tmp_path: Path, capsys):
    path = tmp_path / "fleet.toml"
    path.write_text(FLEET)
    command.advise_command(fleet=path, model="Llama 3.1 70B")
    out = capsys.readouterr().out
    assert out.startswith("recommended: vertical + fabric + horizontal\n")
    assert "blast radius" in out
    assert "assumed network cost: " in out


def test_whether_users_wait_decides_how_many_replicas_are_needed(rack):
    def advised(real_time: bool) -> Advice:
        question = AdviseQuestion(
            kind="inference", model="Llama 3.1 8B", qps=60, real_time=real_time, ttft_s=0.2,
            tpot_s=0.01,
        )  # fmt: skip
        return advise(question, rack)

    waiting, queued = advised(real_time=True), advised(real_time=False)
    assert fired(waiting) == ["concurrency-over-replica"]
    assert [one.sentence for one in waiting.steps] != [one.sentence for one in queued.steps]


def test_a_link_between_sites_is_judged_by_what_the_model_sends_in_a_step(tmp_path):
    path = tmp_path / "fleet.toml"
    sites = "".join(
        f'[[site]]\nname = "{name}"\n[[pool]]\nname = "{name}"\nshape = "DGX-H100"\n'
        f'site = "{name}"\nnodes = 4\n'
        for name in ("a", "b")
    )
    path.write_text(sites + '[[link]]\nbetween = ["a", "b"]\ngbps = 400\nlatency_ms = 10\n')
    fleet = open_fleet(path)

    def bandwidth(model: str) -> str | None:
        return answers_to(AdviseQuestion(kind="training", model=model), fleet).bandwidth

    assert bandwidth("Llama 3.1 70B") != "thin"
    # Ten times as many parameters as it computes with.
    assert bandwidth("Qwen3 30B-A3B") == "thin"


def test_replicas_that_no_user_waits_for_run_full_even_if_latency_is_no_limit(rack):
    def needed(*, real_time: bool) -> float:
        asked = AdviseQuestion(kind="inference", model="Llama 3.1 8B", qps=400, real_time=real_time)
        answer = served(asked, rack)
        assert isinstance(answer, ServeAnswer)
        return answer.plans[0].replicas

    assert needed(real_time=False) < needed(real_time=True)
