"""What a person at a terminal is told of the link."""

from uuid import UUID

from tidemill.agent.link.link_news import SpokenLinkNews
from tidemill.link.dialled.calls import CallEnd

NOBODY = CallEnd("pool_unreachable", "Nobody listens there.")
URL = "https://pool.example.com"


def test_the_same_trouble_is_told_once_until_there_is_a_link_again() -> None:
    told: list[str] = []
    news = SpokenLinkNews(told.append, joins_within_s=None)
    for _ in range(3):
        news.lost(NOBODY, again_s=2)
    news.linked(URL, UUID(int=1), generation=2)
    news.lost(NOBODY, again_s=2)
    trouble = "Nobody listens there. It is tried again; Ctrl-C stops that."
    assert told == [trouble, f"This machine is linked to the pool at {URL}.", trouble]


def test_a_newcomer_hears_how_long_it_tries_and_its_welcome_is_told_elsewhere() -> None:
    told: list[str] = []
    news = SpokenLinkNews(told.append, joins_within_s=30)
    news.lost(NOBODY, again_s=2)
    news.linked(URL, UUID(int=1), generation=1)
    news.lost(NOBODY, again_s=2)
    assert told == [
        "Nobody listens there. It is tried again for 30 s; Ctrl-C stops that.",
        "Nobody listens there. It is tried again; Ctrl-C stops that.",
    ]
