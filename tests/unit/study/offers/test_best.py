"""Offers are ranked for a model or a job file, with speeds from physics and terms of providers."""

from pathlib import Path

import pytest

from price_builders import ROOT, SHARED_PRICES
from tenfold.model.errors import InputError
from tenfold.study.offers.best import BestAnswer, BestQuestion, CatalogueQuestion, best_offers

EXAMPLES = ROOT / "examples" / "offers"
JANUARY, FEBRUARY = EXAMPLES / "january.csv", EXAMPLES / "february.csv"


def providers(answer: BestAnswer) -> list[str]:
    return list(dict.fromkeys(one.offer.provider for one in answer.quotes))


def test_the_same_catalogue_before_and_after_a_price_change_has_another_pick():
    question = BestQuestion(
        catalogue=(FEBRUARY,),
        model="llama-3.1-8b",
        tokens=2e10,
        kind=("on-demand",),
        trust="standard",
    )
    answer = best_offers(question, [JANUARY])
    assert providers(answer) == ["dune", "northern"]
    assert answer.moved == {"northern": (1, 2), "dune": (2, 1)}


def test_data_that_may_not_leave_a_country_excludes_offers_elsewhere():
    question = BestQuestion(catalogue=(FEBRUARY,), model="llama-3.1-8b", residency=("DE",))
    answer = best_offers(question)
    assert {one.offer.country for one in answer.quotes} == {"DE"}
    assert answer.excluded["residency"] == 6


def test_a_service_is_offered_whole_replicas():
    question = BestQuestion(catalogue=(FEBRUARY,), model="llama-3.1-8b", qps=4.0)
    answer = best_offers(question)
    assert answer.unit == "million output tokens"
    assert {one.offer.accelerator for one in answer.quotes} >= {"H100-80G-SXM"}


def test_a_job_file_is_ranked_on_the_accelerators_that_it_names(tmp_path: Path):
    job = tmp_path / "job.toml"
    job.write_text(
        'command = ["python", "train.py"]\nname = "tune"\nnodes = 1\ngpus_per_node = 8\n'
        'accelerator = "H100"\ntime_limit = "20h"\n'
    )
    answer = best_offers(BestQuestion(catalogue=(FEBRUARY,), job=job))
    assert {one.offer.accelerator for one in answer.quotes} == {"H100-80G-SXM"}
    assert answer.excluded == {"other-accelerator": 2}
    assert "8 GPUs for 20 h" in answer.notes[0]
    with_model = best_offers(BestQuestion(catalogue=(FEBRUARY,), job=job, model="llama-3.1-8b"))
    assert len({one.offer.accelerator for one in with_model.quotes}) > 1


def test_without_a_workload_one_is_assumed_and_named():
    answer = best_offers(BestQuestion(catalogue=(FEBRUARY,)))
    assert answer.quotes
    assert answer.notes[0].startswith("training Llama 3.1 8B on 8 GPUs (assumed: no `--model`")


def test_an_unknown_country_is_refused():
    with pytest.raises(InputError) as found:
        best_offers(BestQuestion(catalogue=(FEBRUARY,), model="llama-3.1-8b", residency=("Mars",)))
    assert found.value.code == "unknown-country"


def test_over_20_providers_are_ranked_from_the_price_facts():
    answer = best_offers(BestQuestion(model="llama-3.1-8b", tokens=1e10))
    assert answer.providers >= 20
    costs = [one.usd_per_unit for one in answer.quotes]
    assert costs == sorted(costs)


def test_terms_that_a_provider_does_not_state_are_named_as_assumed():
    answer = best_offers(BestQuestion(catalogue=(FEBRUARY,), model="llama-3.1-8b"))
    assert any("assumed where a provider does not state it" in note for note in answer.notes)
    assert "egress price" not in " ".join(answer.notes)


def test_the_question_of_a_listing_has_no_workload():
    assert "model" not in CatalogueQuestion.__struct_fields__


def test_the_public_catalogue_ranks_at_least_20_providers_for_a_service():
    path = SHARED_PRICES / "accelerator_prices_2026-08-22.parquet"
    if not path.exists():
        pytest.skip("no shared data")
    hosts = SHARED_PRICES / "gcp_accelerator_host_vms_2026-08-22.csv"
    question = BestQuestion(
        catalogue=(path,), hosts=hosts, model="llama-3.1-8b", qps=5.0, kind=("on-demand",)
    )
    assert best_offers(question).providers >= 20
