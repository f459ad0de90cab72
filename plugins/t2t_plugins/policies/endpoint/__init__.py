"""Any OpenAI-compatible chat endpoint as a policy: `openai:MODEL`, `gemini:MODEL`, `openrouter:MODEL`, `endpoint:MODEL`, ...

`providers` is the table of services and `factory` makes the policy of one by its name. `policy` is what a bench calls: it asks
many tasks at once by `exchange`, within the `budget`, at one or several `addresses`, whose keys and proxies `access` finds.
`client` sends one request. `reply` judges what came back: `kinds` decides by its status and words what a failure is, `bodies`
takes streams and packed bodies apart, `message` reads the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2t_plugins.policies.endpoint.exchange import Patience
    from t2t_plugins.policies.endpoint.policy import Endpoint

__all__ = ["Endpoint", "Patience"]


def __getattr__(name: str) -> Any:  # the table of services is read at every start, the client only where one is asked
    if name == "Endpoint":
        from t2t_plugins.policies.endpoint.policy import Endpoint

        return Endpoint
    if name == "Patience":
        from t2t_plugins.policies.endpoint.exchange import Patience

        return Patience
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
