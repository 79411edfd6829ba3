"""The registry of provider APIs, each declared by one decorated function.

A provider's table in the configuration names its API (``kind = "anthropic"``). Everything that
depends on the available APIs uses this registry: creating providers, the provider names that need
no table, settings validation, the page Health and the docs. A module of
``masis.llm.providers.apis`` adds an API. Another package adds one with an entry point of the group
``masis.providers``; its name is the kind and its object is a function decorated with ``provider``
(``docs/extending.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

from masis.errors import MissingExtra
from masis.schema.providers import OWN_PROVIDERS, PROVIDERS_GROUP, provider_entry_points
from masis.schema.registry import added_entry_points, load_added

if TYPE_CHECKING:  # at run time each provider's file imports this one's users
    from masis.llm.providers.base import Endpoint, Provider

MakeProvider = Callable[["Endpoint"], "Provider"]


@dataclass(frozen=True)
class KnownProvider:
    """A provider that can be used without a table in ``masis.toml``, as ``NAME:MODEL``.

    Attributes:
        title: Its name for people, such as ``OpenAI``.
        address: Its address; None if each customer has another, which ``address_env`` or a table
            gives.
        key_env: The variable with its key; empty if it has none. The key goes to ``address``, or to
            the address in ``address_env``, and to no other.
        address_env: The variable that replaces the address.
        strong: The default model of the roles that judge; empty if there is no default.
        plain: The default model of the other roles.
        get_a_key: The page where people get a key.
        batches: Whether a local server processes many calls at the same time. Others on one's own
            machine or network have few slots, often one.
        kind: The API's kind, which the registry fills in.

    """

    title: str
    address: str | None = None
    key_env: str = ""
    address_env: str = ""
    strong: str = ""
    plain: str = ""
    get_a_key: str = ""
    batches: bool = False
    kind: str = ""


@dataclass(frozen=True)
class ProviderApi:
    """One API: a function that makes its providers, and facts about its servers.

    Attributes:
        title: The API's name for people, such as ``Anthropic's Messages``.
        make: Returns a provider for an endpoint. It imports the vendor's SDK itself, so that only
            those who use it load it.
        extra: The extra of this package that brings the SDK; empty if none is needed.
        library: The SDK's top-level package, whose import fails if the SDK is missing; empty if
            there is none.
        needs_key: Whether each of its servers needs a key. Otherwise a missing key is an error only
            at a known provider's own address or if a table names a key, because many servers that
            speak a vendor's API need none.
        parameters: The parameters that its providers leave out or rename when a server refuses
            them: ``temperature``, ``effort`` and others of
            ``masis.llm.providers.provider_errors.PARAMETERS``. The setting ``effort`` is refused if
            it isn't one of them.
        known: The providers of this API that can be used without a table, by name.

    """

    title: str
    make: MakeProvider
    extra: str = ""
    library: str = ""
    needs_key: bool = False
    parameters: tuple[str, ...] = ()
    known: Mapping[str, KnownProvider] = field(default_factory=dict)

    @property
    def install(self) -> str:
        """The command that installs its SDK; empty if it has none."""
        return install_command(self.extra, self.library)

    def __call__(self, endpoint: Endpoint) -> Provider:
        """Return a provider for an endpoint. Raises MissingExtra if its SDK isn't installed."""
        try:
            return self.make(endpoint)
        except ModuleNotFoundError as error:
            if not self.library or error.name != self.library:
                raise
            message = f"{self.title} needs a package that isn't installed: {self.install}"
            raise MissingExtra(message) from None


def install_command(extra: str, library: str) -> str:
    """Return the command that installs an extra or, without one, a library; "" without either."""
    if extra:
        return f"pip install '.[{extra}]'"
    return f"pip install {library}" if library else ""


def provider(
    title: str,
    *,
    extra: str = "",
    library: str = "",
    needs_key: bool = False,
    parameters: tuple[str, ...] = (),
    known: Mapping[str, KnownProvider] | None = None,
) -> Callable[[MakeProvider], ProviderApi]:
    """Declare a function that makes providers of one API (the arguments are ``ProviderApi``'s).

    Example:
        ::

            @provider(
                "The API of example.org",
                needs_key=True,
                known={
                    "example": KnownProvider(
                        "Example", "https://api.example.org", key_env="EXAMPLE_API_KEY"
                    )
                },
            )
            def example(endpoint: Endpoint) -> Provider:
                from my_package.client import ExampleProvider

                return ExampleProvider(endpoint)

    """
    return lambda make: ProviderApi(
        title, make, extra, library, needs_key, parameters, dict(known or {})
    )


def provider_api(kind: str) -> ProviderApi:
    """Return the API of a kind that ``ProviderSettings.kind`` accepts."""
    api: ProviderApi = provider_entry_points()[kind].load()
    return api


def known_providers() -> Mapping[str, KnownProvider]:
    """Return every provider that can be used without a table, by name.

    Those of this package come first and win. A package that can't be loaded is left out with a
    warning.
    """
    return _load_known(added_entry_points(PROVIDERS_GROUP))


@lru_cache(maxsize=1)
def _load_known(added: tuple[EntryPoint, ...]) -> dict[str, KnownProvider]:
    built_in: dict[str, ProviderApi] = {point.name: point.load() for point in OWN_PROVIDERS}
    loaded = load_added(PROVIDERS_GROUP, ProviderApi)
    apis = built_in | {kind: api for kind, api in loaded.items() if kind not in built_in}
    known: dict[str, KnownProvider] = {}
    for kind, api in apis.items():
        for name, entry in api.known.items():
            known.setdefault(name, replace(entry, kind=kind))
    return known
