"""Names of stacks and accelerators: one spelling, and the family each belongs to.

A stack is a framework and its version in kebab case (`Megatron-Bridge 26.04` becomes
`megatron-bridge-26.04`). Stacks of one family share how they launch, overlap and fuse.
"""

import re

# First match wins; the second column is the family on accelerators older than Hopper.
FAMILIES: tuple[tuple[str, str, str], ...] = (
    ("megatron-deepspeed", "megatron-deepspeed", "megatron-deepspeed"),
    ("bloom", "megatron-deepspeed", "megatron-deepspeed"),
    ("megatron-bridge", "megatron-core", "megatron-core"),
    ("megatron-core", "megatron-core", "megatron-core"),
    ("mcore", "megatron-core", "megatron-core"),
    ("nemo", "megatron-core", "megatron-core"),
    ("megascale", "megatron-core", "megatron-core"),
    ("megatron", "megatron-core", "megatron"),
    ("llm-foundry", "llm-foundry", "llm-foundry"),
    ("mosaicml", "llm-foundry", "llm-foundry"),
    ("composer", "llm-foundry", "llm-foundry"),
    ("torchtitan", "torchtitan", "torchtitan"),
    ("pytorch-compile", "pytorch-compile", "pytorch-compile"),
    ("torch-compile", "pytorch-compile", "pytorch-compile"),
    ("pytorch-masters", "pytorch-compile", "pytorch-compile"),
    ("maxtext", "maxtext", "maxtext"),
    ("metaseq", "metaseq", "metaseq"),
    ("meta", "meta", "meta"),
    ("llama", "meta", "meta"),
)
GENERATIONS: tuple[tuple[str, str], ...] = (
    ("V100", "volta"),
    ("A100", "ampere"),
    ("A10", "ampere"),
    ("H100", "hopper"),
    ("H200", "hopper"),
    ("H20", "hopper"),
    ("GH200", "hopper"),
    ("B200", "blackwell"),
    ("B300", "blackwell"),
    ("GB", "blackwell"),
    ("TPU", "tpu"),
    ("MI", "cdna"),
)


def stack_key(text: str) -> str:
    """Return the one spelling of a stack name."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def version_family(stack: str) -> str:
    """Drop the patch number: 26.04.01 performs like 26.04."""
    return re.sub(r"(\d+\.\d+)\.\d+$", r"\1", stack)


def generation_of(part: str) -> str:
    """Return the kernel generation of an accelerator name."""
    for prefix, name in GENERATIONS:
        if part.upper().startswith(prefix):
            return name
    return "other"


def family_of(stack: str, part: str) -> str:
    """Return the family of a stack key, or `default`."""
    old = generation_of(part) in ("volta", "ampere")
    for prefix, modern, early in FAMILIES:
        if stack.startswith(prefix):
            return early if old else modern
    return "default"


def levels_of(stack: str, part: str) -> tuple[str, str, str]:
    """Return the profile names of a stack, from general to specific."""
    family, generation = family_of(stack, part), generation_of(part)
    return family, f"{family}@{generation}", f"stack:{version_family(stack)}@{generation}"
