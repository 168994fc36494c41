"""Send requests at a rate, and say what became of them: the load generator of the example.

OPENAI_BASE_URL and OPENAI_API_KEY say where and with which token. Requests are sent at their
times whether or not earlier ones were answered, as many users would.
"""

import argparse
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections import Counter


class Load:
    """Requests, and what became of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.outcomes: Counter[str] = Counter()
        self.first_token_s: list[float] = []
        self._lock = threading.Lock()
        self._url = os.environ["OPENAI_BASE_URL"].rstrip("/") + "/chat/completions"
        self._headers = {
            "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}",
            "Content-Type": "application/json",
        }

    def run(self) -> None:
        """Send all requests, and wait for their answers."""
        began_s, threads = time.monotonic(), list[threading.Thread]()
        for number in range(round(self.options.requests_per_s * self.options.seconds)):
            wait_s = began_s + number / self.options.requests_per_s - time.monotonic()
            time.sleep(max(0.0, wait_s))
            threads.append(threading.Thread(target=self._ask, args=(number,)))
            threads[-1].start()
        for one in threads:
            one.join()

    def _ask(self, number: int) -> None:
        body = {
            "model": self.options.model,
            "messages": [{"role": "user", "content": f"Request {number}: "}],
            "max_tokens": self.options.tokens,
            "stream": True,
        }
        request = urllib.request.Request(self._url, json.dumps(body).encode(), self._headers)
        began_s, first_s, outcome = time.monotonic(), None, "broken off"
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                for line in answer:
                    if line.startswith(b"data: {") and first_s is None:
                        first_s = time.monotonic() - began_s
                    if line.startswith(b"data: [DONE]"):
                        outcome = "answered"
        except urllib.error.HTTPError as error:
            outcome = f"status {error.code}"
        except OSError as error:
            outcome = type(error).__name__
        with self._lock:
            self.outcomes[outcome] += 1
            if outcome == "answered" and first_s is not None:
                self.first_token_s.append(first_s)


def main() -> int:
    """Send requests; the status is 1 if one was not answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="chars")
    parser.add_argument("--requests-per-s", type=float, default=2)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--tokens", type=int, default=60)
    load = Load(parser.parse_args())
    load.run()
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(load.outcomes.items())))
    if load.first_token_s:
        ordered = sorted(load.first_token_s)
        middle, late = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99))
        print(
            f"first token after {middle:.2f} s at the median, {late:.2f} s at the 99th percentile"
        )
    return 0 if set(load.outcomes) == {"answered"} else 1


if __name__ == "__main__":
    raise SystemExit(main())
