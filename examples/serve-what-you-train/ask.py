"""Ask the model with the `openai` package: once as a whole, once as a stream.

OPENAI_BASE_URL and OPENAI_API_KEY say where and with which token.
"""

import argparse

from openai import OpenAI


def main() -> None:
    """Print two answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompt", nargs="?", default="The value of the ")
    parser.add_argument("--model", default="chars")
    parser.add_argument("--tokens", type=int, default=60)
    options = parser.parse_args()
    messages = [{"role": "user", "content": options.prompt}]
    asked = {"model": options.model, "messages": messages, "max_tokens": options.tokens, "seed": 1}
    with OpenAI() as client:
        whole = client.chat.completions.create(**asked)
        print(f"{options.prompt}{whole.choices[0].message.content}")
        parts = [
            part.choices[0].delta.content or ""
            for part in client.chat.completions.create(**asked, stream=True)
            if part.choices
        ]
    same = "".join(parts) == whole.choices[0].message.content
    print(f"the streamed answer is {'the same' if same else 'different'}, in {len(parts)} chunks")


if __name__ == "__main__":
    main()
