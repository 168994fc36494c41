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
            "the fastest of 1, 2, 4, 8 and 16 that divides and fits; doubling must gain at least "
            "2%",
        ),
        "global_batch": ("sequences per step, over all ranks", "8 micro-batches per rank"),
        "gpus_per_node": ("GPUs per node", "those that share the scale-up link"),
        "tp": ("tensor-parallel degree", "1"),
        "pp": ("pipeline stages", "1"),
        "dp": ("data-parallel degree", "`gpus / (tp x pp x cp)`"),
        "cp": ("context-parallel degree", "1"),
        "ep": ("expert-parallel degree; divides the ranks of a stage", "1"),
        "virtual_stages": (
            "virtual stages per pipeline stage; 1 is not interleaved",
            "about two layers each; 1 without fused attention",
        ),
        "shard": (
            "what is sharded over data-parallel ranks: nothing, optimizer states, plus gradients, "
            "plus weights",
            "what the family uses: `zero3` for FSDP stacks and MaxText, `none` for old Megatron "
            "and `pytorch-compile`, else `zero1`",
        ),
        "recompute": ("activations recomputed in the backward pass", "`selective`"),
        "sequence_parallel": (
            "whether norms are split over the tensor-parallel ranks",
            "true if `tp` is above 1, except in Megatron before 2022",
        ),
        "precision": ("precision of matrix multiplies", "`bf16`"),
        "stack": ("framework and version, in any spelling", "the `default` profile"),
        "nic_gbps_per_gpu": (
            "network rate per GPU and direction",
            "that of a server with this accelerator, else 400",
        ),
        "step_s": ("measured seconds per step; observed runs only", "not an observed run"),
        "memory_gib": ("measured peak memory; read but not used", "not known"),
    },
    "serve": {
        "id": ("ID of the row, repeated in the estimate", ""),
        "model": ("name or alias of a model in the facts, or a shape", ""),
        "accelerator": ("name or alias of an accelerator in the facts", ""),
        "tp": (
            "tensor-parallel ranks of the replica",
            "the smallest power of two that holds the weights in 85% of its memory",
        ),
        "pp": ("pipeline stages of the replica", "1"),
        "precision": ("precision of the weights", "`bf16`"),
        "engine": ("engine and version, in any spelling", "the `generic` profile"),
        "input_tokens": ("prompt length in tokens", ""),
        "output_tokens": ("response length in tokens", "1"),
        "mode": ("what to estimate", "`max-throughput`"),
        "batch": (
            "sequences at once; clients of a closed loop in mode `online`",
            "what the KV cache holds; 1 in mode `first-token`",
        ),
        "qps": (
            "requests per second, in mode `online`",
            "a closed loop of `batch` clients; without `batch`, all requests at once",
        ),
        "output_tokens_per_s": (
            "measured tokens per second; observed runs only",
            "not observed",
        ),
        "ttft_s": ("measured mean time to first token; observed runs only", "not observed"),
        "tpot_s": ("measured mean time per output token; observed runs only", "not observed"),
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
        "experts": ("experts per layer", "0: a dense model"),
        "topk": ("experts per token", "0"),
        "head_dim": ("size of an attention head", "`hidden / heads`"),
        "shared_experts": ("experts that every token uses", "0"),
        "dense_layers": ("dense layers before the first MoE layer", "0"),
        "tied": ("whether input and output embeddings are tied", "false"),
    },
}
