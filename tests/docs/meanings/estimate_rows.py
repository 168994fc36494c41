"""The meaning and default of each key of an estimate's row."""

ESTIMATE_KEYS = {
    "train": {
        "id": ("ID of the row, repeated in the estimate", ""),
        "model": ("name or alias of a model in the facts, or a shape", ""),
        "accelerator": ("name or alias of an accelerator in the facts", ""),
        "gpus": ("number of GPUs", ""),
        "seq": ("sequence length in tokens", "4,096 for a named model, 2,048 for a shape"),
        "micro_batch": (
            "sequences per micro-batch",
            "the fastest of 1, 2, 4, 8 and 16 that divides the batch and fits in memory; a larger "
            "size must be at least 2% faster",
        ),
        "global_batch": ("sequences per step, over all ranks", "8 micro-batches per rank"),
        "gpus_per_node": ("GPUs per node", "the size of the scale-up domain"),
        "tp": ("tensor-parallel degree", "1"),
        "pp": ("pipeline stages", "1"),
        "dp": ("data-parallel degree", "`gpus / (tp x pp x cp)`"),
        "cp": ("context-parallel degree", "1"),
        "ep": ("expert-parallel degree; must divide the number of ranks of a stage", "1"),
        "virtual_stages": (
            "virtual stages per pipeline stage; 1 means no interleaving",
            "about two layers each, or one layer each if two do not fit; 1 without fused attention",
        ),
        "shard": (
            "sharding over data-parallel ranks: none, optimizer states (`zero1`), gradients too "
            "(`zero2`), or weights too (`zero3`)",
            "that of the stack family: `zero3` for FSDP stacks and MaxText, `none` for old "
            "Megatron and `pytorch-compile`, otherwise `zero1`",
        ),
        "recompute": ("activations that are recomputed in the backward pass", "`selective`"),
        "recompute_layers": (
            "layers of each pipeline stage that `full` recompute covers",
            "all of them",
        ),
        "sequence_parallel": (
            "whether norms are split over the tensor-parallel ranks",
            "true if `tp` is above 1, except in Megatron before 2022",
        ),
        "precision": ("precision of matrix multiplies", "`bf16`"),
        "gradient_precision": (
            "precision in which gradients are kept and reduced; a stack that makes them new in "
            "every step keeps none",
            "that of the stack family",
        ),
        "stack": ("framework and version, in any spelling", "the `default` profile"),
        "nic_gbps_per_gpu": (
            "network bandwidth per GPU in each direction",
            "that of a server with this accelerator, otherwise 400",
        ),
        "step_s": ("measured seconds per step; observed runs only", "not an observed run"),
        "memory_gib": ("measured peak memory; accepted but not used", "unknown"),
    },
    "serve": {
        "id": ("ID of the row, repeated in the estimate", ""),
        "model": ("name or alias of a model in the facts, or a shape", ""),
        "accelerator": ("name or alias of an accelerator in the facts", ""),
        "tp": (
            "tensor-parallel ranks of the replica",
            "the smallest power of two for which the weights fit in 85% of the memory",
        ),
        "pp": ("pipeline stages of the replica", "1"),
        "precision": ("precision of the weights", "`bf16`"),
        "engine": ("engine and version, in any spelling", "the `generic` profile"),
        "input_tokens": ("prompt length in tokens", ""),
        "output_tokens": ("response length in tokens", "1"),
        "mode": ("kind of estimate", "`max-throughput`"),
        "batch": (
            "concurrent sequences; in mode `online`, clients of a closed loop",
            "as many as fit in the KV cache; 1 in mode `first-token`",
        ),
        "qps": (
            "requests per second, in mode `online`",
            "a closed loop of `batch` clients; without `batch`, all requests arrive simultaneously",
        ),
        "requests": (
            "length of the run, in mode `online`; a run with an end has finite waits even if it "
            "is overloaded, and clients of a closed loop start it together",
            "a load that lasts; throughput of a stream, and a load without `qps` and `batch`, are "
            "those of a run as in the published tables of the engine (TensorRT-LLM: 500)",
        ),
        "length_cv": (
            "standard deviation of request lengths over their mean, in mode `online`: 0 for equal "
            "lengths, about 1 for chat",
            "unknown: 1 for a stream; between equal and mixed for a closed loop",
        ),
        "output_tokens_per_s": (
            "measured tokens per second; observed runs only",
            "not an observed run",
        ),
        "ttft_s": ("measured mean time to first token; observed runs only", "not an observed run"),
        "tpot_s": (
            "measured mean time per output token; observed runs only",
            "not an observed run",
        ),
    },
    "shape": {
        "layers": ("number of layers", ""),
        "hidden": ("hidden size", ""),
        "heads": ("attention heads", ""),
        "kv_heads": ("key-value heads", "`heads`"),
        "ffn": (
            "intermediate size of the MLP, or of one expert",
            "`4 x hidden`; `8/3 x hidden` if gated",
        ),
        "gated": ("whether the MLP is gated", "false"),
        "vocab": ("vocabulary size", "50,304"),
        "experts": ("experts per layer", "0 (a dense model)"),
        "topk": ("experts per token", "0"),
        "head_dim": ("size of an attention head", "`hidden / heads`"),
        "shared_experts": ("experts that every token uses", "0"),
        "dense_layers": ("dense layers before the first MoE layer", "0"),
        "tied": ("whether input and output embeddings are tied", "false"),
    },
}
