"""Cloud adapters against recorded answers: the contract, and what their APIs refuse."""

from collections.abc import Mapping

import pytest

from contract.provider.contract import ProviderContract
from contract.provider.recorded import RecordedLambda, RecordedRunPod
from tenfold.live.providers.http import JsonApi, Response, send
from tenfold.live.providers.lambda_cloud import BASE as LAMBDA_BASE
from tenfold.live.providers.lambda_cloud import LambdaCloud
from tenfold.live.providers.provider import NoCapacity, Provider
from tenfold.live.providers.runpod import BASE as RUNPOD_BASE
from tenfold.live.providers.runpod import RunPod
from tenfold.model.errors import Unreachable


class TestLambda(ProviderContract):
    @pytest.fixture
    def provider(self) -> Provider:
        api = JsonApi(LAMBDA_BASE, "key", RecordedLambda())
        return LambdaCloud(api, instance_type="gpu_8x_h100_sxm5", ssh_key="laptop")


class TestRunPod(ProviderContract):
    @pytest.fixture
    def provider(self) -> Provider:
        api = JsonApi(RUNPOD_BASE, "key", RecordedRunPod())
        return RunPod(api, gpu_type="NVIDIA H100 80GB HBM3", gpus=8, image="pytorch")


def test_instances_of_others_are_neither_listed_nor_terminated():
    recorded = RecordedLambda()
    cloud = LambdaCloud(JsonApi(LAMBDA_BASE, "key", recorded), instance_type="x", ssh_key="y")
    cloud.rent("zone-1", 1)
    cloud.release(["theirs"])
    assert "theirs" in recorded.running
    assert ("POST", "/instance-operations/terminate") not in recorded.sent


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, b'{"error": {"code": "global/invalid-api-key", "message": "API key was invalid."}}'),
        (500, b"<html>oops</html>"),
        (200, b'"text"'),
    ],
)
def test_an_answer_that_is_no_capacity_problem_is_not_tried_elsewhere(status: int, body: bytes):
    def transport(
        method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> Response:
        del method, url, headers, content
        return Response(status, body)

    cloud = LambdaCloud(JsonApi(LAMBDA_BASE, "key", transport), instance_type="x", ssh_key="y")
    with pytest.raises(Unreachable) as found:
        cloud.rent("zone-1", 1)
    assert not isinstance(found.value, NoCapacity)


def test_a_key_never_leaves_over_plain_http():
    with pytest.raises(Unreachable, match="not https"):
        JsonApi("http://127.0.0.1:1", "key", send).call("GET", "/instances")
