"""What each key of an estimate's row means, and what is supposed where it is left out."""

ESTIMATE_KEYS = {
    "train": {
        "id": ("names the row; comes back in the answer", ""),
        "model": ("a model of the facts by any of its names, or a shape", ""),
        "accelerator": ("a part of the facts by any of its names", ""),
        "gpus": ("how many of them", ""),
        "seq": ("tokens a sequence", "4,096 for a named model, 2,048 for a shape"),
        "micro_batch": (
            "sequences that a rank takes at once",
            "the fastest of 1, 2, 4, 8 and 16 that divides and fits; twice as large must be 2% "
            "faster",
        ),
        "global_batch": ("sequences a step, all ranks together", "8 micro-batches a rank"),
        "gpus_per_node": ("GPUs of a node", "those that share the scale-up link"),
        "tp": ("tensor-parallel degree", "1"),
        "pp": ("pipeline stages", "1"),
        "dp": ("data-parallel degree", "`gpus / (tp x pp x cp)`"),
        "cp": ("context-parallel degree", "1"),
        "ep": ("expert-parallel degree; divides the ranks of a stage", "1"),
        "virtual_stages": (
            "chunks of the model on a stage; 1 does not interleave",
            "about two layers a chunk; 1 without fused attention",
        ),
        "shard": (
            "what data-parallel ranks share out: nothing, optimizer, gradients too, weights too",
            "what the family does: `zero3` for FSDP stacks and MaxText, `none` for old Megatron "
            "and `pytorch-compile`, else `zero1`",
        ),
        "recompute": ("what the backward pass computes again", "`selective`"),
        "sequence_parallel": (
            "whether norms are split over the tensor-parallel ranks",
            "true where `tp` is above 1, but not in Megatron before 2022",
        ),
        "precision": ("of the matrix products", "`bf16`"),
        "stack": ("framework and version in any spelling", "the `default` profile"),
        "nic_gbps_per_gpu": (
            "network rate of one GPU, one way",
            "that of a server with this accelerator, else 400",
        ),
        "step_s": ("seconds that a step took; of observed runs alone", "not an observed run"),
        "memory_gib": ("peak memory that a run had; read and not used", "not known"),
    },
    "serve": {
        "id": ("names the row; comes back in the answer", ""),
        "model": ("a model of the facts by any of its names, or a shape", ""),
        "accelerator": ("a part of the facts by any of its names", ""),
        "tp": (
            "tensor-parallel ranks of the replica",
            "the fewest, by doubling, that hold the weights in 85% of their memory",
        ),
        "pp": ("pipeline stages of the replica", "1"),
        "precision": ("of the weights", "`bf16`"),
        "engine": ("engine and version in any spelling", "the `generic` profile"),
        "input_tokens": ("tokens of a prompt", ""),
        "output_tokens": ("tokens of an answer", "1"),
        "mode": ("which question is asked", "`max-throughput`"),
        "batch": (
            "sequences at once; clients of a closed loop in mode `online`",
            "what the cache holds; 1 in mode `first-token`",
        ),
        "qps": (
            "requests a second, in mode `online`",
            "a closed loop of `batch` clients; without those all requests at once",
        ),
        "output_tokens_per_s": (
            "tokens a second that a run reached; of observed runs alone",
            "not observed",
        ),
        "ttft_s": ("mean wait for the first token; of observed runs alone", "not observed"),
        "tpot_s": ("mean wait for each further token; of observed runs alone", "not observed"),
    },
    "shape": {
        "layers": ("layers", ""),
        "hidden": ("width between layers", ""),
        "heads": ("attention heads", ""),
        "kv_heads": ("key and value heads", "`heads`"),
        "ffn": (
            "inner width of the feed-forward part, or of one expert",
            "`4 x hidden`; `8/3 x hidden` where gated",
        ),
        "gated": ("whether the feed-forward part has a gate", "false"),
        "vocab": ("tokens in the vocabulary", "50,304"),
        "experts": ("experts of a layer", "0: a dense model"),
        "topk": ("experts that a token passes through", "0"),
        "head_dim": ("width of a head", "`hidden / heads`"),
        "shared_experts": ("experts that every token passes through", "0"),
        "dense_layers": ("first layers that are dense in a mixture", "0"),
        "tied": ("whether input and output embeddings are one", "false"),
    },
}
