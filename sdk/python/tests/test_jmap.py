"""Mailboxes over JMAP with jmapc, a client that shares nothing with the server."""

from __future__ import annotations

import pathlib
import threading
from typing import Any

import httpx
import jmapc
import pytest
import requests
from conftest import Server, eventually
from jmapc import methods

ADDRESS = "joe@example.org"


class Plain(requests.adapters.HTTPAdapter):
    """jmapc looks for the session by HTTPS; the server of the tests has no certificate."""

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        assert request.url is not None
        request.url = request.url.replace("https://", "http://", 1)
        return super().send(request, *args, **kwargs)


@pytest.fixture(scope="module")
def client(server: Server) -> jmapc.Client:
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}) as api:
        channel = f"{{driver: smtp, relay: '{server.relay}', from: news@example.org, submission: [example.org]}}"
        api.post("/v1/apply", content=f"service: jmap\nchannels:\n  mail: {channel}\n", headers={"Content-Type": "application/yaml"}).raise_for_status()
        api.put("/v1/subscribers/joe", json={"addresses": [{"kind": "mail", "address": ADDRESS}]}).raise_for_status()
        made = api.post(f"/v1/mailboxes/{ADDRESS}/app-passwords", json={}).raise_for_status().json()
    client = jmapc.Client.create_with_password(host=server.url.removeprefix("http://"), user=made["user"], password=made["password"])
    client.requests_session.mount("https://", Plain())
    return client


def mailbox(client: jmapc.Client, role: str) -> str:
    found = client.request(methods.MailboxQuery(filter=jmapc.MailboxQueryFilterCondition(role=role)))
    assert isinstance(found, methods.MailboxQueryResponse) and found.ids is not None
    return found.ids[0]


def test_the_session_and_echo(client: jmapc.Client) -> None:
    assert client.jmap_session.username == ADDRESS
    answer = client.request(methods.CoreEcho(data={"hello": "world"}))
    assert isinstance(answer, methods.CoreEchoResponse) and answer.data == {"hello": "world"}


def test_a_draft_is_created_found_changed_and_destroyed(client: jmapc.Client) -> None:
    drafts = mailbox(client, "drafts")
    draft = jmapc.Email(
        mail_from=[jmapc.EmailAddress(name="Jürgen", email=ADDRESS)], to=[jmapc.EmailAddress(email="ann@example.org")], subject="Käse",
        keywords={"$draft": True}, mailbox_ids={drafts: True}, body_values={"b": jmapc.EmailBodyValue(value="one\nzwölf")},
        text_body=[jmapc.EmailBodyPart(part_id="b", type="text/plain")],
    )
    made = client.request(methods.EmailSet(create={"draft": draft}))
    assert isinstance(made, methods.EmailSetResponse) and made.created and made.created["draft"] and made.new_state
    condition = jmapc.EmailQueryFilterCondition(in_mailbox=drafts, text="zwölf")
    results = client.request([
        methods.EmailQuery(filter=condition, sort=[jmapc.Comparator(property="receivedAt", is_ascending=False)], collapse_threads=True),
        methods.EmailGet(ids=jmapc.Ref("/ids"), fetch_text_body_values=True),
        methods.SearchSnippetGet(filter=condition, ids=jmapc.Ref("/ids", method=0)),
    ])
    read, snippets = results[1].response, results[2].response
    assert isinstance(read, methods.EmailGetResponse) and isinstance(snippets, methods.SearchSnippetGetResponse)
    (email,) = read.data
    assert email.subject == "Käse" and email.mail_from == draft.mail_from and email.keywords == {"$draft": True}
    assert email.body_values and next(iter(email.body_values.values())).value == "one\nzwölf"
    assert snippets.data[0].preview == "one <mark>zwölf</mark>"
    threads = client.request(methods.ThreadGet(ids=[email.thread_id or ""]))
    assert isinstance(threads, methods.ThreadGetResponse) and threads.data[0].email_ids == [email.id]

    state = read.state or ""
    client.request(methods.EmailSet(update={email.id or "": {"keywords/$seen": True}}))
    changes = client.request(methods.EmailChanges(since_state=state))
    assert isinstance(changes, methods.EmailChangesResponse) and changes.updated == [email.id] and not changes.created and not changes.destroyed
    client.request(methods.EmailSet(destroy=[email.id or ""]))
    moved = client.request(methods.EmailQueryChanges(filter=jmapc.EmailQueryFilterCondition(in_mailbox=drafts), since_query_state=state))
    assert isinstance(moved, methods.EmailQueryChangesResponse) and moved.removed == [email.id] and moved.added == []


def test_a_file_is_uploaded_and_attached(client: jmapc.Client, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "data.bin"
    file.write_bytes(bytes(range(256)))
    blob = client.upload_blob(file)
    made = client.request(methods.EmailSet(create={"k": jmapc.Email(
        mailbox_ids={mailbox(client, "inbox"): True}, subject="with a file",
        attachments=[jmapc.EmailBodyPart(blob_id=blob.id, type=blob.type, name="data.bin", disposition="attachment")],
    )}))
    assert isinstance(made, methods.EmailSetResponse) and made.created and made.created["k"]
    read = client.request(methods.EmailGet(ids=[made.created["k"].id or ""]))
    assert isinstance(read, methods.EmailGetResponse) and read.data[0].attachments
    client.download_attachment(read.data[0].attachments[0], tmp_path / "copy.bin")
    assert (tmp_path / "copy.bin").read_bytes() == file.read_bytes()


def test_changes_come_by_the_event_stream(client: jmapc.Client) -> None:
    events = client.events
    change = threading.Timer(0.2, lambda: client.request(methods.MailboxSet(create={"k": jmapc.Mailbox(name="new")})))
    change.start()
    event = next(iter(events))
    change.join()
    assert event.data.changed[client.account_id].mailbox


def test_a_mail_is_sent_and_its_submission_has_the_result(client: jmapc.Client, server: Server) -> None:
    identities = client.request(methods.IdentityGet())
    assert isinstance(identities, methods.IdentityGetResponse) and [i.email for i in identities.data] == [ADDRESS]
    draft = jmapc.Email(
        mail_from=[jmapc.EmailAddress(email=ADDRESS)], to=[jmapc.EmailAddress(email="ann@example.net")], subject="sent with jmapc",
        keywords={"$draft": True}, mailbox_ids={mailbox(client, "drafts"): True}, body_values={"b": jmapc.EmailBodyValue(value="hello")},
        text_body=[jmapc.EmailBodyPart(part_id="b", type="text/plain")],
    )
    sent = mailbox(client, "sent")
    results = client.request([
        methods.EmailSet(create={"draft": draft}),
        methods.EmailSubmissionSet(
            on_success_update_email={"#out": {"keywords/$draft": None, "mailboxIds": {sent: True}}},
            create={"out": jmapc.EmailSubmission(
                email_id="#draft", identity_id=identities.data[0].id,
                envelope=jmapc.Envelope(mail_from=jmapc.Address(email=ADDRESS), rcpt_to=[jmapc.Address(email="ann@example.net")]),
            )},
        ),
    ])
    submission, moved = results[1].response, results[2].response
    assert isinstance(submission, methods.EmailSubmissionSetResponse) and submission.created and submission.created["out"]
    assert isinstance(moved, methods.EmailSetResponse) and moved.updated
    eventually("the mail at the other server", lambda: "ann@example.net" in server.arrived())

    def delivered() -> str | None:
        got = client.request(methods.EmailSubmissionGet(ids=[submission.created["out"].id or ""]))  # type: ignore[index,union-attr]
        assert isinstance(got, methods.EmailSubmissionGetResponse)
        status = got.data[0].delivery_status
        return status["ann@example.net"].delivered.value if status else None

    eventually("the result of the delivery", lambda: delivered() == "unknown")
    found = client.request(methods.EmailQuery(filter=jmapc.EmailQueryFilterCondition(in_mailbox=sent)))
    assert isinstance(found, methods.EmailQueryResponse) and found.ids and len(found.ids) == 1
