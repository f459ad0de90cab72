"""The OpenAI-compatible services: one client, a table of addresses, key variables and small differences.

A further service is a further row. The addresses and switches are from the services' documentation; docs/endpoints.md says
which were met and which were only tried against a stand-in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

OWN_KEY = "T2T_API_KEY"
# Settings that say how a service is asked and what it costs, not what it is asked: a row is told apart without them.
_WAY = ("base_url", "api_key_env", "proxy", "timeout", "max_bytes", "concurrency")
_PATIENCE = ("attempts", "backoff", "max_wait", "give_up")
_MONEY = ("price_in", "price_out", "prices")
TRANSPORT = (*_WAY, *_PATIENCE, *_MONEY)


@dataclass(frozen=True)
class Provider:
    """A service. limit: the name its API gives to the most response tokens; thinking: how it switches thinking on and off."""

    name: str
    title: str
    base_url: str = ""
    key_variable: str = OWN_KEY
    key_needed: bool = True
    limit: str = "max_tokens"
    thinking: str = "template"


PROVIDERS = {
    p.name: p
    for p in (
        Provider(
            "openai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY", limit="max_completion_tokens", thinking="effort"
        ),
        Provider(
            "gemini",
            "Google Gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
            thinking="effort",
        ),
        Provider("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", thinking="reasoning"),
        Provider("anthropic", "Anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", thinking="budget"),
        Provider("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", thinking="type"),
        Provider("moonshot", "Moonshot (Kimi)", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", thinking="type"),
        Provider("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", thinking="effort"),
        Provider("together", "Together AI", "https://api.together.xyz/v1", "TOGETHER_API_KEY", thinking="reasoning"),
        Provider("local", "a server on this machine, port 8000", "http://127.0.0.1:8000/v1", key_needed=False),
        Provider("endpoint", "any OpenAI-compatible server (base_url=...)", key_needed=False),
    )
}

# How a service is told to think or not: its part of the request body, from (on, most response tokens).
THINKING: Mapping[str, Callable[[bool, int], dict[str, Any]]] = {
    "template": lambda on, limit: {"chat_template_kwargs": {"enable_thinking": on}},  # vLLM, SGLang; Qwen3-style templates
    "effort": lambda on, limit: {"reasoning_effort": "medium" if on else "none"},
    "reasoning": lambda on, limit: {"reasoning": {"enabled": on}},
    "type": lambda on, limit: {"thinking": {"type": "enabled" if on else "disabled"}},
    "budget": lambda on, limit: {
        "thinking": {"type": "enabled", "budget_tokens": max(1024, limit // 2)} if on else {"type": "disabled"}
    },
}
