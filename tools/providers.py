"""Write the tables of providers in docs/models.md from their declarations
(``masis/llm/providers/apis``).

python tools/providers.py           # writes them
python tools/providers.py --check   # says whether they are current
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from masis.llm.provider_apis import KnownProvider, provider_api
from masis.schema.providers import OWN_PROVIDERS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "models.md"


def own_providers() -> dict[str, KnownProvider]:
    """Return the known providers of this package, whatever else is installed."""
    apis = {point.name: provider_api(point.name) for point in OWN_PROVIDERS}
    return {name: provider for api in apis.values() for name, provider in api.known.items()}


def addresses() -> Iterator[str]:
    """Yield the table of known providers."""
    yield "| provider | what it is | address | key |"
    yield "|---|---|---|---|"
    for point in OWN_PROVIDERS:
        api = provider_api(point.name)
        for name, provider in api.known.items():
            title = f"{provider.title} (extra `{api.extra}`)" if api.extra else provider.title
            places = filter(None, (provider.address, provider.address_env))
            address = ", or ".join(f"`{place}`" for place in places) or "in your table"
            key = f"`{provider.key_env}`" if provider.key_env else "none"
            yield f"| `{name}` | {title} | {address} | {key} |"


def defaults() -> Iterator[str]:
    """Yield the table of default models."""
    yield "| | critic, evaluator | drafter, verifier, reviser, grader of abstracts |"
    yield "|---|---|---|"
    for name, provider in own_providers().items():
        if provider.strong:
            yield f"| `{name}` | `{provider.strong}` | `{provider.plain}` |"


TABLES = {"providers": addresses, "default models": defaults}


def page(now: str) -> str:
    """Return the page with its tables regenerated. Raises ValueError if it has lost the marks
    around one.
    """
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: made by tools/providers.py -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = now.partition(begin)
        _, mark, after = rest.partition(end)
        if not mark:
            raise ValueError(f"{PAGE.name}: the marks around the table of {name} are gone")
        lines = "\n".join(table())
        now = f"{before}{begin}\n{lines}\n\n{end}{after}"
    return now


def main() -> int:
    """Write or check."""
    now = PAGE.read_text(encoding="utf-8")
    content = page(now)
    if "--check" in sys.argv:
        return 0 if now == content else 1
    PAGE.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
