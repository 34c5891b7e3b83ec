"""What the lines by hand add to the generated client."""

import importlib
import json
import pkgutil

import httpx
import pytest
from conftest import Server, eventually

from fanfare_client import ProblemError, api, connect, pages, publish_lines, put_subscriptions
from fanfare_client.api.configuration import apply
from fanfare_client.api.messages import get_message, send_message
from fanfare_client.api.operations import get_status
from fanfare_client.api.subscribers import erase_subscriber, export_subscriber, list_subscribers
from fanfare_client.api.subscriptions import end_subscription, get_subscription, put_subscription
from fanfare_client.api.traces import get_event, list_deliveries
from fanfare_client.lines import BLOCK_LINES
from fanfare_client.models import EraseRequest, LineError, MessageContent, MessageRequest, SubscriptionRequest

NEWS = {
    "service": "news",
    "topics": {"story": {"schema": {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}, "template": "story"}},
    "templates": {"story": {"subject": "{{ event.title }}", "text": "Hello"}},
}


@pytest.fixture(scope="module")
def news(server: Server):
    with server.client("news") as client:
        channel = {"driver": "smtp", "relay": server.relay, "from": "news@example.org", "rate": "unlimited"}
        apply.sync(client=client, body={**NEWS, "channels": {"email": channel}})
        yield client


def test_apply_a_second_time_changes_nothing(news) -> None:
    assert apply.sync(client=news, body={"service": "news"}).changes == []


def test_every_function_answers_one_thing() -> None:
    modules = [importlib.import_module(m.name) for m in pkgutil.walk_packages(api.__path__, "fanfare_client.api.") if not m.ispkg]
    answers = {m.__name__: str(m.sync_detailed.__annotations__["return"]) for m in modules}
    assert len(answers) > 70
    assert [name for name, answer in answers.items() if "|" in answer or "Union" in answer] == []


def test_wrong_key_is_a_typed_error(server: Server) -> None:
    with pytest.raises(ProblemError) as caught, connect(server.url, "wrong") as client:
        get_status.sync(client=client)
    assert caught.value.problem.status == 401 and caught.value.code == "unauthenticated" and caught.value.problem.request_id


def test_answer_of_something_in_between_is_an_error_too() -> None:
    gateway = httpx.MockTransport(lambda _: httpx.Response(502, text="<h1>Bad Gateway</h1>"))
    with pytest.raises(ProblemError) as caught, connect("http://127.0.0.1:1", "key", httpx_args={"transport": gateway}) as client:
        get_status.sync(client=client)
    assert caught.value.problem.status == 502 and "Bad Gateway" in caught.value.problem.detail


def test_several_mistakes_are_all_named(news) -> None:
    with pytest.raises(ProblemError) as caught:
        apply.sync(client=news, body={"service": "news", "topics": {"a": {"template": "none"}, "b": {"template": "none"}}})
    problem = caught.value.problem  # the first mistake; errors are the others
    assert [problem.pointer, *(e.pointer for e in problem.errors)] == ["/topics/a/template", "/topics/b/template"]


def test_subscription_comes_and_goes(news) -> None:
    wanted = SubscriptionRequest(topic="story", channel="email", to="bo@example.org", locale="de-AT")
    assert put_subscription.sync("bo", client=news, body=wanted).created
    assert not put_subscription.sync("bo", client=news, body=wanted).created
    assert get_subscription.sync("bo", client=news).state == "active"
    assert end_subscription.sync_detailed("bo", client=news).status_code == 204
    assert get_subscription.sync("bo", client=news).state == "ended"


def test_lines_count_over_all_blocks(news) -> None:
    total = 2 * BLOCK_LINES + 10
    wanted = ({"topic": "story", "channel": "email", "to": f"p{n}@example.org" if n % 400 != 399 else "bad"} for n in range(total))
    answers = list(put_subscriptions(wanted, client=news))
    assert len(answers) == total
    assert [a.line for a in answers if isinstance(a, LineError)] == [400, 800]
    assert isinstance(answers[399], LineError) and answers[399].error.code == "invalid"


def test_events_in_lines_are_told_apart_by_their_ids(news) -> None:
    events = [{"title": "a", "no": 1}, {"title": 7, "no": 2}, {"title": "a again", "no": 1}]
    first, wrong, again = publish_lines("story", events, client=news, id="/no")
    assert isinstance(wrong, LineError) and wrong.line == 2 and wrong.error.pointer == "/data/title"
    assert not first.duplicate and again.duplicate and again.id == first.id


def test_key_is_not_printed(server: Server) -> None:
    assert server.key not in repr(server.client("news"))


def test_nothing_to_send_sends_nothing(news) -> None:
    assert list(put_subscriptions([], client=news)) == []


def test_unknown_topic_of_lines_is_an_answer_or_an_error(news) -> None:
    answers = list(publish_lines("none", [{}], client=news))
    assert [a.error.code for a in answers] == ["not_found"]


def test_pages_end(news) -> None:
    (answer,) = publish_lines("story", [{"title": "paged"}], client=news)
    eventually("it is completed", lambda: get_event.sync(answer.id, client=news).state == "completed")
    seen = [d.id for page in pages(list_deliveries.sync, answer.id, client=news, limit=300) for d in page.deliveries]
    assert len(seen) == len(set(seen)) == 1008


def test_message_is_sent_once_under_its_key(server: Server, news) -> None:
    wanted = MessageRequest(channel="email", to="grace@example.org", content=MessageContent(subject="Once", text="Only once."), reference="order-1")
    first, again = (send_message.sync(client=news, body=wanted, wait="20s", idempotency_key="order-1") for _ in range(2))
    assert first.id == again.id and first.state == "accepted"
    assert server.arrived().count("grace@example.org") == 1
    assert get_message.sync(first.id, client=news).reference == "order-1"
    with pytest.raises(ProblemError) as caught:
        send_message.sync(client=news, body=MessageRequest(channel="none", to="grace@example.org", template="story"))
    assert caught.value.problem.pointer == "/channel"


def test_person_is_exported_in_lines_and_forgotten(news) -> None:
    put_subscription.sync("kim", client=news, body=SubscriptionRequest(topic="story", channel="email", to="kim@example.org"))
    (kim,) = list_subscribers.sync(client=news, address="kim@example.org").subscribers
    lines = [json.loads(line) for line in export_subscriber.sync(kim.id, client=news).splitlines()]
    assert any("kim@example.org" in json.dumps(line) for line in lines)
    assert erase_subscriber.sync(kim.id, client=news, body=EraseRequest()).subscriptions == 1
    assert list_subscribers.sync(client=news, address="kim@example.org").subscribers == []
