"""Makes the policy of a service by its name, so that the table of services is known before the client is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2t_plugins.policies.endpoint.providers import PROVIDERS, TRANSPORT


class EndpointFactory:
    """Makes the policy of one service; what is heavy is imported only then."""

    transport: tuple[str, ...] = TRANSPORT

    def __init__(self, provider: str) -> None:
        self.provider = provider

    @property
    def shared_settings(self) -> tuple[str, ...]:
        """Settings that a command's option may give to every policy at once; --base-url is for servers without a name."""
        return ("concurrency",) if PROVIDERS[self.provider].key_needed else ("base_url", "concurrency")

    def __call__(self, argument: str, settings: Mapping[str, str]) -> Any:
        from t2t_plugins.policies.endpoint.policy import Endpoint

        return Endpoint(self.provider, argument, settings)
