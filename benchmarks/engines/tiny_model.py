"""Write a tiny Llama with random weights and a tokenizer: a model for vLLM without a download.

    VENV/bin/python tiny_model.py FOLDER

It runs in the environment of vLLM, which has `transformers` and `tokenizers`.
"""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEXT = [f"word{number} and word{number + 1} make {2 * number + 1}" for number in range(2_000)]
SPECIAL = ("<unk>", "<s>", "</s>")
CHAT = "{% for m in messages %}{{ m['content'] }} {% endfor %}"


def main() -> None:
    """Write the model."""
    folder = Path(sys.argv[1])
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=1_000, special_tokens=list(SPECIAL))
    tokenizer.train_from_iterator(TEXT, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token=SPECIAL[0],
        bos_token=SPECIAL[1],
        eos_token=SPECIAL[2],
        chat_template=CHAT,
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1_024,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        # Special tokens are never likely, so an answer is as long as it was asked for.
        model.lm_head.weight[: len(SPECIAL)] = 0
    model.save_pretrained(folder)


if __name__ == "__main__":
    main()
