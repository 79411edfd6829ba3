"""A fake E-utilities server on loopback: real HTTP, replies in PubMed's format, and scripted
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


class RecordedRequest(NamedTuple):
    """A recorded request."""

    path: str
    parameters: dict[str, str]
    user_agent: str


def article(pmid: int, title: str = "") -> str:
    """Return one record in the format of efetch."""
    return (
        f"<PubmedArticle><MedlineCitation><PMID>{pmid}</PMID><Article>"
        f"<ArticleTitle>{title or f'Study {pmid}'}</ArticleTitle><Abstract><AbstractText>Text"
        f" {pmid}.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>"
    )


def articles(pmids: list[int]) -> bytes:
    """Return a complete efetch reply."""
    return f"<?xml version='1.0' ?><PubmedArticleSet>{''.join(map(article, pmids))}</PubmedArticleSet>".encode()


def hits(total: int, pmids: list[int]) -> bytes:
    """Return a complete esearch reply."""
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
    """Sends ``faults`` first, one per request, and then replies like PubMed with these ids."""

    address: str = ""
    pmids: list[int] = field(default_factory=lambda: list(range(101, 601)))
    faults: list[Reply] = field(default_factory=list)
    requests: list[RecordedRequest] = field(default_factory=list)
    fetches: Callable[[list[int]], bytes] = articles
    hits_for_all_words: int | None = None

    def reply(self, request: RecordedRequest) -> Reply:
        """Return the reply to a request."""
        self.requests.append(request)
        if self.faults:
            return self.faults.pop(0)
        parameters = request.parameters
        start, limit = int(parameters.get("retstart", 0)), int(parameters.get("retmax", 20))
        if request.path.endswith("esearch.fcgi"):
            pmids = self.pmids
            if self.hits_for_all_words is not None and " AND " in parameters["term"]:
                pmids = pmids[: self.hits_for_all_words]
            return Reply(body=hits(len(pmids), pmids[start : start + limit]))
        return Reply(body=self.fetches([int(pmid) for pmid in parameters["id"].split(",")]))


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve on a free local port while the block runs."""

    class Handler(Quiet):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            form = parse_qs(self.rfile.read(length).decode(), keep_blank_values=True)
            parameters = {name: values[0] for name, values in form.items()}
            request = RecordedRequest(self.path, parameters, self.headers["User-Agent"])
            reply = server.reply(request)
            self.send_response(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body) + reply.cut))
            self.end_headers()
            self.wfile.write(reply.body)

    with loopback(Handler) as server.address:
        yield server
