"""The APIs by which models are reached: one registered function for each.

A provider's table in the configuration names its API (``kind = "anthropic"``). Everything that
depends on which APIs there are asks this registry: making the provider, the check of settings, the
page Health, the docs. Another package adds one with an entry point of the group
``masis.providers``, whose name is the kind and whose object is a function decorated here
(``docs/extending.md``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from masis.errors import MissingExtra
from masis.schema.providers import provider_entry_points

if TYPE_CHECKING:  # at run time each provider's file imports this one's users
    from masis.llm.endpoints import Endpoint
    from masis.llm.providers.base import Provider

MakeProvider = Callable[["Endpoint"], "Provider"]


@dataclass(frozen=True)
class ProviderApi:
    """One API: how a provider that speaks it is made.

    Attributes:
        title: The API's name for people, such as ``Anthropic's Messages``.
        make: Returns a provider for an endpoint. It imports the vendor's SDK itself, so that only
            those who use it load it.
        extra: The extra of this package that brings the SDK; empty if none is needed.
        library: The SDK's top-level package, by whose absence the extra is known to be missing.
        home: The module that imports the SDK, which the page Health imports to try it.

    """

    title: str
    make: MakeProvider
    extra: str = ""
    library: str = ""
    home: str = ""

    def __call__(self, endpoint: Endpoint) -> Provider:
        """Return a provider for an endpoint. Raises MissingExtra if its SDK isn't installed."""
        try:
            return self.make(endpoint)
        except ModuleNotFoundError as error:
            if not self.library or error.name != self.library:
                raise
            message = f"{self.title} needs a package that isn't installed: pip install"
            raise MissingExtra(f"{message} '.[{self.extra}]'") from None


def provider(
    title: str, *, extra: str = "", library: str = "", home: str = ""
) -> Callable[[MakeProvider], ProviderApi]:
    """Declare a function that makes providers of one API.

    Example:
        ::

            @provider("The API of example.org")
            def example(endpoint: Endpoint) -> Provider:
                from my_package.client import ExampleProvider

                return ExampleProvider(endpoint)

    """
    return lambda make: ProviderApi(title, make, extra, library, home)


def provider_api(kind: str) -> ProviderApi:
    """Return the API of a kind that ``ProviderSettings.kind`` accepts."""
    api: ProviderApi = provider_entry_points()[kind].load()
    return api
