"""A fake E-utilities server on loopback: real HTTP, replies shaped like PubMed's, and scripted
faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import parse_qs

from tests.loopback import Quiet, loopback


class Reply(NamedTuple):
    """A reply to send. ``cut`` announces more bytes than are sent."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    cut: int = 0


class Asked(NamedTuple):
    """A recorded request."""

    path: str
    parameters: dict[str, str]
    user_agent: str


def article(pmid: int, title: str = "") -> str:
    """Return one record as efetch returns it."""
    return (
        f"<PubmedArticle><MedlineCitation><PMID>{pmid}</PMID><Article>"
        f"<ArticleTitle>{title or f'Study {pmid}'}</ArticleTitle><Abstract><AbstractText>Text"
        f" {pmid}.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>"
    )


def articles(pmids: list[int]) -> bytes:
    """Return a whole efetch reply."""
    return f"<?xml version='1.0' ?><PubmedArticleSet>{''.join(map(article, pmids))}</PubmedArticleSet>".encode()


def hits(total: int, pmids: list[int]) -> bytes:
    """Return a whole esearch reply."""
    ids = "".join(f"<Id>{pmid}</Id>" for pmid in pmids)
    return (
        '<?xml version="1.0" encoding="UTF-8" ?><!DOCTYPE eSearchResult PUBLIC "-//NLM//DTD esearch'
        ' 20060628//EN" '
        '"https://dtd.example.org/esearch.dtd"><eSearchResult>'
        f"<Count>{total}</Count><RetMax>{len(pmids)}</RetMax><RetStart>0</RetStart><IdList>{ids}</IdList>"
        "<TranslationSet/></eSearchResult>"
    ).encode()


@dataclass
class Server:
    """Sends ``faults`` first, one per request, and then replies as PubMed would with these ids."""

    address: str = ""
    pmids: list[int] = field(default_factory=lambda: list(range(101, 601)))
    faults: list[Reply] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    fetches: Callable[[list[int]], bytes] = articles
    holding_all: int | None = None

    def reply(self, asked: Asked) -> Reply:
        """Return the reply to a request."""
        self.asked.append(asked)
        if self.faults:
            return self.faults.pop(0)
        given = asked.parameters
        start, most = int(given.get("retstart", 0)), int(given.get("retmax", 20))
        if asked.path.endswith("esearch.fcgi"):
            found = self.pmids
            if self.holding_all is not None and " AND " in given["term"]:
                found = found[: self.holding_all]
            return Reply(body=hits(len(found), found[start : start + most]))
        return Reply(body=self.fetches([int(pmid) for pmid in given["id"].split(",")]))


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve on a free local port while the block runs."""

    class Handler(Quiet):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            sent = parse_qs(self.rfile.read(length).decode(), keep_blank_values=True)
            parameters = {name: values[0] for name, values in sent.items()}
            reply = server.reply(Asked(self.path, parameters, self.headers["User-Agent"]))
            self.send_response(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body) + reply.cut))
            self.end_headers()
            self.wfile.write(reply.body)

    with loopback(Handler) as server.address:
        yield server
