"""A Qwen3 of 250,000 parameters that knows nothing, with a tokenizer for the oracle's inquiries, for trying `train.py`.

python examples/grpo/tiny.py --out runs/tiny
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from train import TEMPLATE, Settings, lesson
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

END, PAD = "<|im_end|>", "<|endoftext|>"


def make(out: Path, settings: Settings, words: int = 1_200, width: int = 96) -> None:
    """Write the folder of a model with weights drawn from seed 0 and a byte-level tokenizer of at most ``words``."""
    text = str([lesson(settings, number, 0) for number in range(settings.trees)])
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", END, PAD, "<tool_call>", "</tool_call>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        [text], trainers.BpeTrainer(vocab_size=words, special_tokens=special, initial_alphabet=alphabet)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=END, pad_token=PAD)
    tokenizer.chat_template = TEMPLATE.read_text(encoding="utf-8")
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=width, intermediate_size=2 * width, num_hidden_layers=2,
        num_attention_heads=width // 32, num_key_value_heads=1, head_dim=32, max_position_embeddings=8_192,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
        tie_word_embeddings=True,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    print(f"{out}: {model.num_parameters():,} parameters, {len(tokenizer):,} tokens")


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/tiny"))
    make(parser.parse_args().out, Settings())


if __name__ == "__main__":
    main()
