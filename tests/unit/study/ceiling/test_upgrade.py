"""More fabric or more GPUs, for jobs bound by one or the other."""

from pathlib import Path

import pytest

from tenfold.compose.fleet import OpenFleet, open_fleet
from tenfold.model.reason import Misfit
from tenfold.report.reasons.render import render
from tenfold.study.ceiling.design import CeilingQuestion
from tenfold.study.ceiling.upgrade import FabricPrice, UpgradeAnswer, upgrade

FLEET = """
[[fabric]]
name = "net"
nodes_per_leaf = 8
oversubscription = {ratio}

[[pool]]
name = "h100"
accelerator = "H100"
nodes = 16
gpus_per_node = 8
nics_per_node = 8
nic_gbps = {gbps}
price = {{ kind = "reserved", usd_per_gpu_hour = 2 }}
"""


@pytest.fixture
def fleet(tmp_path: Path):
    def make(gbps: float, ratio: float = 1) -> OpenFleet:
        path = tmp_path / "fleet.toml"
        path.write_text(FLEET.format(gbps=gbps, ratio=ratio))
        return open_fleet(path)

    return make


def answered(fleet: OpenFleet, model: str, **price: float) -> UpgradeAnswer:
    answer = upgrade(fleet, CeilingQuestion(model=model), FabricPrice(**price))
    assert isinstance(answer, UpgradeAnswer)
    return answer


def test_a_job_bound_by_the_network_is_told_to_buy_fabric(fleet):
    answer = answered(fleet(gbps=5), "Llama 3.1 8B")
    assert answer.verdict == "fabric"
    assert answer.options[0].name == "nic-x2"
    assert answer.traffic_share > 0.3
    assert "spend on the network" in answer.sentence


def test_a_job_bound_by_compute_is_told_to_buy_gpus(fleet):
    answer = answered(fleet(gbps=400), "Llama 3.1 8B")
    assert answer.verdict == "gpus"
    assert answer.traffic_share < 0.1


def test_the_price_of_fabric_can_turn_the_verdict(fleet):
    cheap = answered(fleet(gbps=50), "Llama 3.1 8B", share_of_gpu_hour=0.001)
    dear = answered(fleet(gbps=50), "Llama 3.1 8B", share_of_gpu_hour=3.0)
    assert (cheap.verdict, dear.verdict) == ("fabric", "gpus")
    assert cheap.evidence == "supposed"
    assert answered(fleet(gbps=50), "Llama 3.1 8B").evidence == "assumption"


def test_options_cost_dollars_and_give_tokens_for_them(fleet):
    answer = answered(fleet(gbps=5), "Llama 3.1 8B", share_of_gpu_hour=0.1)
    option = next(one for one in answer.options if one.name == "nic-x2")
    assert option.usd_per_hour == pytest.approx(128 * 2 * 0.1)
    assert option.tokens_per_s_per_usd_hour == pytest.approx(
        option.gain_share * answer.tokens_per_s / option.usd_per_hour
    )
    gains = [one.gain_per_cost for one in answer.options]
    assert gains == sorted(gains, reverse=True)


def test_wide_uplinks_are_offered_where_they_are_narrow(fleet):
    assert "non-blocking" not in [o.name for o in answered(fleet(50), "Llama 3.1 8B").options]
    thin = answered(fleet(50, ratio=8), "Llama 3.1 70B")
    assert thin.options[0].name == "non-blocking"
    assert thin.verdict == "fabric"


def test_what_cannot_be_answered_is_a_misfit(fleet):
    assert isinstance(upgrade(fleet(400)), Misfit)
    large = upgrade(fleet(400), CeilingQuestion(model="Megatron 1008B"))
    assert isinstance(large, Misfit)
    assert "GPUs or fewer" in render(large.reasons[0])
