/** A page opens a mailbox with jmap-jam, a client that shares nothing with the server, and a token of the API. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { JamClient } from "jmap-jam";

import { eventually, type Server, startServer } from "./server.js";

let server: Server;
let jam: JamClient;
let account: string;
const address = "joe@example.org";
after(() => server.stop());
before(async () => {
  server = await startServer();
  const ask = async (method: string, path: string, type: string, body: string): Promise<unknown> => {
    const response = await fetch(server.url + path, { method, body, headers: { "Authorization": `Bearer ${server.key}`, "Content-Type": type } });
    assert.ok(response.ok, `${method} ${path}: ${response.status}`);
    return await response.json();
  };
  await ask("POST", "/v1/apply", "application/yaml", `service: jmap\nchannels:\n  mail: {driver: smtp, relay: '${server.relay}', from: news@example.org, submission: [example.org]}\n`);
  await ask("PUT", "/v1/subscribers/joe", "application/json", JSON.stringify({ addresses: [{ kind: "mail", address }] }));
  const { token } = (await ask("POST", `/v1/mailboxes/${address}/tokens`, "application/json", JSON.stringify({ lifetime: "5m" }))) as { token: string };
  jam = new JamClient({ sessionUrl: `${server.url}/jmap/session`, bearerToken: token });
  account = await jam.getPrimaryAccount();
});

test("a message is uploaded, imported, found and downloaded", async () => {
  const message = "From: Ann <ann@example.org>\r\nSubject: imported\r\n\r\nbody\r\n";
  const blob = await jam.uploadBlob(account, new Blob([message], { type: "message/rfc822" }));
  const [boxes] = await jam.api.Mailbox.query({ accountId: account, filter: { role: "inbox" } });
  const inbox = boxes.ids[0];
  assert.ok(inbox);
  const [made] = await jam.api.Email.import({ accountId: account, emails: { k: { blobId: blob.blobId, mailboxIds: { [inbox]: true }, keywords: {}, receivedAt: "2026-11-27T12:00:00Z" } } });
  const email = made.created?.["k"];
  assert.ok(email);
  const [found] = await jam.requestMany((request) => {
    const list = request.Email.query({ accountId: account, filter: { inMailbox: inbox, from: "ann" } });
    const emails = request.Email.get({ accountId: account, ids: list.$ref("/ids"), properties: ["subject", "header:From:asAddresses"] });
    return { list, emails };
  });
  const first = found.emails.list[0];
  assert.deepEqual([first?.subject, first?.["header:From:asAddresses"]], ["imported", [{ name: "Ann", email: "ann@example.org" }]]);
  const copy = await jam.downloadBlob({ accountId: account, blobId: email.blobId, mimeType: "message/rfc822", fileName: "copy.eml" });
  assert.equal(await copy.text(), message);
});

test("a mail is sent, and its submission has the result", async () => {
  const [identities] = await jam.api.Identity.get({ accountId: account });
  const identity = identities.list[0];
  assert.equal(identity?.email, address);
  const [boxes] = await jam.api.Mailbox.query({ accountId: account, filter: { role: "drafts" } });
  const drafts = boxes.ids[0];
  assert.ok(drafts);
  const message = `From: ${address}\r\nTo: ann@example.net\r\nSubject: sent with jmap-jam\r\n\r\nhello\r\n`;
  const blob = await jam.uploadBlob(account, new Blob([message], { type: "message/rfc822" }));
  const [stored] = await jam.api.Email.import({ accountId: account, emails: { k: { blobId: blob.blobId, mailboxIds: { [drafts]: true }, keywords: {}, receivedAt: "2026-11-28T12:00:00Z" } } });
  const emailId = stored.created?.["k"]?.id;
  assert.ok(emailId);
  const [made] = await jam.api.EmailSubmission.set({ accountId: account, create: { k: { emailId, identityId: identity.id } } });
  const id = made.created?.["k"]?.id;
  assert.ok(id, JSON.stringify(made.notCreated));
  await eventually("the mail at the other server", () => server.arrived().includes("ann@example.net"));
  await eventually("the result of the delivery", async () => {
    const [got] = await jam.api.EmailSubmission.get({ accountId: account, ids: [id] });
    return got.list[0]?.deliveryStatus?.["ann@example.net"]?.delivered === "unknown";
  });
});
