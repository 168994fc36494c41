from tenfold.gateway.admit.tokens import TokenEstimator


def test_the_ratio_of_bytes_to_tokens_is_learned_from_what_replicas_report():
    estimator = TokenEstimator()
    assert estimator.input_of(4_000) == 1_001
    for _ in range(200):
        estimator.learn(3_000, 1_000, 50)
    assert abs(estimator.input_of(3_000) - 1_000) < 10
    assert abs(estimator.output_of(0) - 51) < 5
    assert estimator.output_of(10) == 10
    assert estimator.output_of(10, 3) == 30


def test_nonsense_moves_it_within_bounds_only():
    estimator = TokenEstimator()
    for _ in range(1_000):
        estimator.learn(10**9, 16, 0)
    assert estimator.input_of(6_400) == 101
    for _ in range(1_000):
        estimator.learn(0, 10**9, 0)
    assert estimator.input_of(100) >= 100
