"""How many tokens a request has: estimated from bytes, learned from what replicas report."""

BYTES_PER_TOKEN = 4.0
"""Assumed until replicas report `usage`; right for English prose."""
OUTPUT_TOKENS = 256.0
"""Assumed length of an answer until there was one."""
SMOOTHING = 0.05
BYTES_PER_TOKEN_MIN, BYTES_PER_TOKEN_MAX = 0.25, 64.0
"""A replica that reports nonsense moves the ratio no further."""
INPUT_TOKENS_LEARN = 16
"""Shorter prompts teach little: most of their tokens are the chat template's."""


class TokenEstimator:
    """The tokens of one service's requests."""

    __slots__ = ("bytes_per_token", "input_tokens", "output_tokens")

    def __init__(self) -> None:
        self.bytes_per_token = BYTES_PER_TOKEN
        self.input_tokens = 0.0
        """Of recent requests, mean."""
        self.output_tokens = OUTPUT_TOKENS
        """Of recent answers, mean."""

    def input_of(self, prompt_bytes: int) -> int:
        """Return the tokens expected in a prompt."""
        return int(prompt_bytes / self.bytes_per_token) + 1

    def output_of(self, tokens_max: int, answers: int = 1) -> int:
        """Return the tokens expected in an answer of at most `tokens_max`; 0 for no limit."""
        expected = int(self.output_tokens) + 1
        return answers * (min(tokens_max, expected) if tokens_max > 0 else expected)

    def learn(self, prompt_bytes: int, input_tokens: int | None, output_tokens: int) -> None:
        """Learn from an answer; `input_tokens` is None if the replica did not report it."""
        if input_tokens is not None and input_tokens >= INPUT_TOKENS_LEARN:
            ratio = prompt_bytes / input_tokens
            ratio = min(max(ratio, BYTES_PER_TOKEN_MIN), BYTES_PER_TOKEN_MAX)
            self.bytes_per_token += SMOOTHING * (ratio - self.bytes_per_token)
        seen = self.input_of(prompt_bytes) if input_tokens is None else input_tokens
        if not self.input_tokens:
            self.input_tokens = float(seen)
        self.input_tokens += SMOOTHING * (seen - self.input_tokens)
        self.output_tokens += SMOOTHING * (output_tokens - self.output_tokens)
