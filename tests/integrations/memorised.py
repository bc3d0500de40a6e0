"""A tiny Qwen3 that has learned by heart how the oracle plays, with a tokenizer made on the spot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import trl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import get_json_schema

from inquitree_gym.integrations.session import play_task
from inquitree_gym.integrations.tasks import EpisodeTask
from inquitree_gym.integrations.trl import TRLEpisode

TEMPLATE = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
END, PAD = "<|im_end|>", "<|endoftext|>"
SPECIAL = ["<|im_start|>", END, PAD, "<tool_call>", "</tool_call>", "<think>", "</think>"]


def conversation(task: EpisodeTask) -> list[dict[str, Any]]:
    """Return the oracle's inquiry as a chat in which each move is a call of the tool."""
    episode = play_task(task)
    messages: list[dict[str, Any]] = []
    for turn in episode.turns:
        role = {"role": "tool", "name": "move"} if messages else {"role": "user"}
        call = {"type": "function", "function": {"name": "move", "arguments": {"text": turn.action}}}
        messages += [{**role, "content": turn.observation}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    closing = {"role": "tool", "name": "move", "content": episode.footer.observation}
    return [*messages, closing, {"role": "assistant", "content": "The project is closed."}]


def make_tokenizer(texts: Sequence[str], size: int = 2_000) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer on ``texts``."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=END, pad_token=PAD)
    tokenizer.chat_template = TEMPLATE.read_text(encoding="utf-8")
    return tokenizer


def memorise(
    conversations: Sequence[list[dict[str, Any]]], steps: int, seed: int = 0
) -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """Return a model that was trained on whole conversations, and its tokenizer."""
    texts = [str(message) for chat in conversations for message in chat]
    tokenizer = make_tokenizer(texts)
    tools = [get_json_schema(TRLEpisode().move)]
    rows = [tokenizer.apply_chat_template(chat, tools=tools, return_dict=True)["input_ids"] for chat in conversations]
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=128, intermediate_size=256, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=8_192,
            eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
        )
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    batch = tokenizer.pad({"input_ids": rows}, return_tensors="pt")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    for _ in range(steps):
        loss = model(**batch, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, tokenizer
