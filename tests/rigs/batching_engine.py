"""A continuous-batching engine, simulated step by step: the independent check of closed forms.

Each step carries one token of every running sequence and, within its budget of tokens, prompts in
the order in which they came, whole or in chunks. A prompt is taken in when a slot is free.
"""

import heapq
from collections import defaultdict, deque
from dataclasses import dataclass, field

import numpy as np

from tenfold.physics.arrays import Floats


@dataclass(frozen=True)
class AffineSteps:
    """Steps whose time is linear in what they carry, for a simulation and for closed forms."""

    step_s: Floats
    sequence_s: Floats
    prompt_token_s: Floats
    input_tokens: Floats
    output_tokens: Floats
    budget_tokens: Floats

    def decode_s(self, sequences: Floats) -> Floats:
        return self.step_s + self.sequence_s * sequences

    def steady_s(self, sequences: Floats) -> Floats:
        prompts = sequences * self.input_tokens / self.output_tokens
        return self.decode_s(sequences) + self.prompt_token_s * prompts

    def prompts_s(self, sequences: Floats, prompts: Floats) -> Floats:
        tokens = prompts * self.input_tokens
        turns = np.maximum(tokens / np.maximum(self.budget_tokens - sequences, 1.0), 1.0)
        return turns * self.decode_s(sequences) + self.prompt_token_s * tokens


@dataclass(slots=True)
class _Request:
    sent_s: float
    prompt: int
    answer: int
    left: int = 0
    first_s: float = 0.0
    done_s: float = 0.0


@dataclass(slots=True)
class Measured:
    """What a client would have measured, warm-up and end left out."""

    ttft_s: list[float] = field(default_factory=list[float])
    tpot_s: float = 0.0
    served_qps: float = 0.0
    in_system: float = 0.0
    """Mean number over time, by counting and not by Little's law."""
    response_s: float = 0.0

    @property
    def ttft_mean_s(self) -> float:
        return float(np.mean(self.ttft_s))


class Engine:
    """One replica under requests of about the given lengths."""

    def __init__(self, steps: AffineSteps, slots: int, spread: float, seed: int) -> None:
        self.step_s, self.sequence_s = float(steps.step_s[0]), float(steps.sequence_s[0])
        self.prompt_token_s = float(steps.prompt_token_s[0])
        self.budget, self.slots = int(steps.budget_tokens[0]), slots
        self.prompt, self.answer = float(steps.input_tokens[0]), float(steps.output_tokens[0])
        self.spread, self.random = spread, np.random.default_rng(seed)

    def open_loop(self, qps: float, requests: int) -> Measured:
        """Return what `requests` measure that arrive by chance."""
        times = np.cumsum(self.random.exponential(1.0 / qps, requests)).tolist()
        return self._run([self._request(at) for at in times], 0, 0.0)

    def closed_loop(self, clients: int, requests: int, turnaround_s: float) -> Measured:
        """Return what `clients` measure that start at once and send on every answer."""
        first = [self._request(0.0) for _ in range(clients)]
        return self._run(first, requests - clients, turnaround_s)

    def _request(self, at: float) -> _Request:
        low, high = 1.0 - self.spread, 1.0 + self.spread
        prompt = max(1, round(self.prompt * self.random.uniform(low, high)))
        answer = max(1, round(self.answer * self.random.uniform(low, high)))
        return _Request(at, prompt, answer, prompt)

    def _run(self, coming: list[_Request], later: int, turnaround_s: float) -> Measured:
        arrivals = [(one.sent_s, place, one) for place, one in enumerate(coming)]
        heapq.heapify(arrivals)
        waiting: deque[_Request] = deque()
        ends: defaultdict[int, list[_Request]] = defaultdict(list)
        finished: list[_Request] = []
        now, step, running, made = 0.0, 0, 0, len(coming)
        while arrivals or waiting or running:
            while arrivals and arrivals[0][0] <= now:
                waiting.append(heapq.heappop(arrivals)[2])
            if not waiting and not running:
                now = arrivals[0][0]
                continue
            room, taken, started = self.budget - running, 0, list[_Request]()
            while waiting and room > 0 and running + len(started) < self.slots:
                head = waiting[0]
                chunk = min(room, head.left)
                head.left -= chunk
                room, taken = room - chunk, taken + chunk
                if head.left == 0:
                    started.append(waiting.popleft())
            now += self.step_s + self.sequence_s * running + self.prompt_token_s * taken
            step += 1
            for one in started:
                one.first_s = now
                ends[step + one.answer - 1].append(one)
            running += len(started)
            for one in ends.pop(step, ()):
                one.done_s = now
                running -= 1
                finished.append(one)
                if later > 0:
                    later, made = later - 1, made + 1
                    following = self._request(now + turnaround_s)
                    heapq.heappush(arrivals, (following.sent_s, made, following))
        return _measured(finished)


def _measured(finished: list[_Request]) -> Measured:
    low, high = len(finished) // 3, len(finished) * 9 // 10
    start_s, end_s = finished[low].done_s, finished[high].done_s
    inside = [one for one in finished if start_s <= one.sent_s and one.done_s <= end_s]
    later = sum(one.answer - 1 for one in inside)
    present = sum(max(min(one.done_s, end_s) - max(one.sent_s, start_s), 0.0) for one in finished)
    return Measured(
        ttft_s=[one.first_s - one.sent_s for one in inside],
        tpot_s=sum(one.done_s - one.first_s for one in inside) / max(later, 1),
        served_qps=(high - low) / (end_s - start_s),
        in_system=present / (end_s - start_s),
        response_s=float(np.mean([one.done_s - one.sent_s for one in inside])),
    )
