"""What is allocated on nodes now, from text and from JSON."""

from tenfold.files.slurm.node_use import read_node_use

TEXT = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=3 CPUEfctv=64 CPUTot=64 CPULoad=1.00
   AvailableFeatures=fast
   Gres=gpu:h100:8
   RealMemory=256000 AllocMem=2048 FreeMem=100
   State=MIXED+DRAIN ThreadsPerCore=1
   Partitions=normal,urgent
   AllocTRES=cpu=3,mem=2G,gres/gpu=3
   Reason=bad cable [root@2026-11-18T21:00:00]
NodeName=n2 Arch=x86_64
   CPUAlloc=0 CPUTot=64
   Gres=gpu:h100:8
   RealMemory=256000
   State=IDLE
   AllocTRES=
"""


def test_text_of_scontrol_says_what_is_allocated() -> None:
    first, second = read_node_use(TEXT, "nodes.txt")
    assert (first.gpus, first.gpus_used, first.cpus_used, first.memory_mib_used) == (8, 3, 3, 2048)
    assert first.partitions == ("normal", "urgent")
    assert first.features == ("fast",)
    assert "bad cable" in first.why_unusable
    assert not first.is_lost
    assert (second.gpus_used, second.why_unusable) == (0, "")


def test_json_says_the_same() -> None:
    text = """{"nodes": [{"name": "n1", "cpus": 64, "alloc_cpus": 3, "real_memory": 256000,
      "alloc_memory": 2048, "gres": "gpu:h100:8", "gres_used": "gpu:h100:3(IDX:0-2)",
      "state": ["DOWN"], "partitions": ["normal"]}]}"""
    (node,) = read_node_use(text, "nodes.json")
    assert (node.gpus, node.gpus_used, node.cpus_used) == (8, 3, 3)
    assert node.is_lost
