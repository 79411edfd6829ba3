"""Stores the personal tokens of the JSON API by the SHA-256 of their text."""

from __future__ import annotations

from datetime import timedelta

from masis.errors import UnknownRecord
from masis.schema.base import add_time
from masis.schema.tokens import ApiToken
from masis.store.core.connections import StorePart

_COLUMNS = ", ".join(ApiToken.model_fields)

USE_NOTED_EVERY = timedelta(hours=1)
"""A use is written at most this often, so that requests that only read rarely write."""


class Tokens(StorePart):
    """The personal tokens of a store."""

    def add(self, token: ApiToken, digest: str) -> None:
        """Store a new token. Raises StoreError if the database can't be written."""
        values = {**token.model_dump(), "digest": digest}
        with self._database.transaction() as connection:
            connection.execute(
                f"INSERT INTO api_tokens ({', '.join(values)})"  # noqa: S608 (our own columns)
                f" VALUES ({', '.join('?' * len(values))})",
                list(values.values()),
            )

    def find(self, digest: str) -> ApiToken | None:
        """Return the token with this digest, even if it is revoked or has expired, or None."""
        rows = self._select("digest = ?", digest)
        return rows[0] if rows else None

    def get(self, token_id: str) -> ApiToken:
        """Return a token by its id.

        Raises:
            UnknownRecord: There is no such token.

        """
        rows = self._select("id = ?", token_id)
        if not rows:
            raise UnknownRecord(f"there is no token {token_id!r}.")
        return rows[0]

    def all(self) -> tuple[ApiToken, ...]:
        """Return all tokens, newest first."""
        return self._select("?", 1)

    def revoke(self, token_id: str, by: str) -> ApiToken:
        """Revoke a token. A token that is already revoked stays as it is.

        Raises:
            UnknownRecord: There is no such token.

        """
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE api_tokens SET revoked_at = ?, revoked_by = ?"
                " WHERE id = ? AND revoked_at IS NULL",
                [self._database.now(), by, token_id],
            )
        return self.get(token_id)

    def note_use(self, token: ApiToken, now: str) -> None:
        """Store that the token was used at this time, unless it was used within the last hour."""
        if token.used_at is not None and add_time(token.used_at, USE_NOTED_EVERY) > now:
            return
        with self._database.transaction(durable=False) as connection:
            connection.execute("UPDATE api_tokens SET used_at = ? WHERE id = ?", [now, token.id])

    def _select(self, condition: str, value: object) -> tuple[ApiToken, ...]:
        rows = self._database.execute(
            f"SELECT {_COLUMNS} FROM api_tokens WHERE {condition}"  # noqa: S608 (our own columns)
            " ORDER BY created_at DESC, id",
            [value],
        )
        return tuple(ApiToken.model_validate(dict(row)) for row in rows)
