/** The headless module against the real server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { events } from "../src/events.ts";
import { Inbox, InboxError, type TokenProvider } from "../src/headless.ts";
import { eventually, plain, Server } from "./server.ts";

let server: Server;
const urls: string[] = [];
const tokens: string[] = [];
let intercept: ((url: string, body: string) => void) | undefined;
const realFetch = globalThis.fetch;
const open: Inbox[] = [];

before(async () => {
  globalThis.fetch = (url, init) => {
    urls.push(String(url));
    intercept?.(String(url), String(init?.body ?? ""));
    return realFetch(url, init);
  };
  server = await Server.start();
});
after(async () => {
  for (const inbox of open) inbox.stop();
  await server.stop();
});

const inboxOf = (address: string, options: { pageSize?: number; token?: TokenProvider } = {}): Inbox => {
  const inbox = new Inbox({ server: server.url, token: () => server.token(address).then((given) => (tokens.push(given.token), given)), ...options });
  open.push(inbox);
  return inbox;
};
const subjects = (inbox: Inbox): string[] => inbox.messages.map((message) => message.subject);

test("messages are listed newest first, in pages, with the counts of all", async () => {
  await server.store("pages@example.org", ...["one", "two", "three", "four", "five"].map((subject) => plain(subject)));
  const inbox = inboxOf("pages@example.org", { pageSize: 2 });
  await inbox.start();
  assert.deepEqual([subjects(inbox), inbox.total, inbox.unread, inbox.hasMore], [["five", "four"], 5, 5, true]);
  await inbox.loadMore();
  assert.deepEqual([subjects(inbox), inbox.hasMore], [["five", "four", "three", "two"], true]);
  await inbox.loadMore();
  assert.deepEqual([subjects(inbox), inbox.hasMore], [["five", "four", "three", "two", "one"], false]);
  assert.deepEqual(inbox.messages[0]!.from, [{ name: "Ada", email: "ada@example.org" }]);
  assert.equal(inbox.messages[0]!.preview, "Text.");
});

test("a new message arrives over the event stream, and a recalled one goes", async () => {
  await server.person("live@example.org");
  const inbox = inboxOf("live@example.org");
  const arrived: string[] = [];
  inbox.addEventListener("arrive", (event) => arrived.push(...(event as CustomEvent).detail.map((message: { subject: string }) => message.subject)));
  await inbox.start();
  await eventually("the stream is open", () => inbox.connection === "live");
  const event = await server.publish("Road closed", "Today.");
  await eventually("the message is there", () => inbox.messages.length === 1);
  assert.deepEqual([subjects(inbox), inbox.unread, arrived], [["Road closed"], 1, ["Road closed"]]);
  await server.ask("POST", `/v1/broadcasts/${event}/recall`);
  await eventually("the message is recalled", () => inbox.messages.length === 0);
  assert.deepEqual([inbox.unread, inbox.total], [0, 0]);
});

test("a change shows at once and stays, and all other programs see it", async () => {
  await server.store("seen@example.org", ...Array.from({ length: 6 }, (_, n) => plain(`m${n}`)));
  const inbox = inboxOf("seen@example.org", { pageSize: 3 });
  const other = inboxOf("seen@example.org");
  await inbox.start();
  await other.start();
  await eventually("the stream is open", () => other.connection === "live");
  const id = inbox.messages[0]!.id;
  const done = inbox.setRead(id);
  assert.deepEqual([inbox.messages[0]!.unread, inbox.unread], [false, 5]);
  await done;
  assert.deepEqual([inbox.messages[0]!.unread, inbox.unread], [false, 5]);
  await eventually("the other sees it", () => other.unread === 5 && !other.messages[0]!.unread);
  await inbox.setRead(id, false);
  assert.deepEqual([inbox.messages[0]!.unread, inbox.unread], [true, 6]);
  const all = inbox.setAllRead();
  assert.deepEqual([inbox.messages.some((message) => message.unread), inbox.unread], [false, 0]);
  await all;
  await eventually("the other sees all", () => other.unread === 0 && other.messages.length === 6 && other.messages.every((message) => !message.unread));
});

test("a removed message is in the trash, and can be taken back", async () => {
  await server.store("trash@example.org", plain("old"), plain("new"));
  const inbox = inboxOf("trash@example.org");
  await inbox.start();
  const removed = inbox.remove(inbox.messages[0]!.id);
  assert.deepEqual([subjects(inbox), inbox.unread, inbox.total], [["old"], 1, 1]);
  const undo = await removed;
  assert.deepEqual([subjects(inbox), inbox.unread, inbox.total], [["old"], 1, 1]);
  await undo!();
  assert.deepEqual([subjects(inbox), inbox.unread, inbox.total], [["new", "old"], 2, 2]);
});

test("a change that fails is taken back", async () => {
  await server.store("fails@example.org", plain("old"), plain("new"));
  const inbox = inboxOf("fails@example.org");
  await inbox.start();
  await eventually("the stream is open", () => inbox.connection === "live");
  intercept = (_, body) => {
    if (body.includes("Email/set") || body.includes("notKeyword")) throw new TypeError("no network");
  };
  const id = inbox.messages[0]!.id;
  const network = (error: unknown): boolean => error instanceof InboxError && error.kind === "network";
  try {
    await assert.rejects(inbox.setRead(id), network);
    await assert.rejects(inbox.setAllRead(), network);
    await assert.rejects(inbox.remove(id), network);
  } finally {
    intercept = undefined;
  }
  assert.deepEqual([subjects(inbox), inbox.messages.map((message) => message.unread), inbox.unread, inbox.total], [["new", "old"], [true, true], 2, 2]);
});

test("the contents are text, HTML, attachments and images", async () => {
  await server.store("contents@example.org", plain("plain", "Grüße <b>"), [
    "From: ada@example.org", "Subject: rich", "MIME-Version: 1.0", 'Content-Type: multipart/mixed; boundary="a"', "",
    "--a", 'Content-Type: multipart/related; boundary="b"', "", "--b", "Content-Type: text/html", "", '<img src="cid:logo"><p>Hi</p>',
    "--b", "Content-Type: image/png", "Content-Id: <logo>", "Content-Disposition: inline", "Content-Transfer-Encoding: base64", "", "iVBORw0KGgo=", "--b--",
    "--a", 'Content-Type: text/html; name="page.html"', "Content-Disposition: attachment; filename=page.html", "", "<script>alert(1)</script>", "--a--", "",
  ].join("\n"));
  const inbox = inboxOf("contents@example.org");
  await inbox.start();
  const [rich, text] = inbox.messages;
  const first = await inbox.content(text!.id);
  assert.deepEqual([first.text.trim(), first.html, first.attachments, first.truncated], ["Grüße <b>", undefined, [], false]);
  const second = await inbox.content(rich!.id);
  assert.equal(second.html?.trim(), '<img src="cid:logo"><p>Hi</p>');
  assert.deepEqual([second.images.map((part) => part.cid), second.attachments.map((part) => part.name)], [["logo"], ["page.html"]]);
  const image = await inbox.download(second.images[0]!);
  assert.deepEqual([image.type, image.size], ["image/png", 8]);
  const page = await inbox.download(second.attachments[0]!);
  assert.deepEqual([page.type, (await page.text()).trim()], ["application/octet-stream", "<script>alert(1)</script>"]);
  assert.equal(inbox.unread, 2);
});

test("a token is replaced before it expires and after the server refused it, once for all requests", async () => {
  await server.mailbox("tokens@example.org");
  let asked = 0;
  const answers = [async () => ({ ...(await server.token("tokens@example.org")), expires_at: new Date().toISOString() }), async () => "refused"];
  const inbox = inboxOf("tokens@example.org", { token: () => (answers[asked++] ?? (() => server.token("tokens@example.org")))() });
  await Promise.all([inbox.start(), inbox.start()]);
  assert.equal(asked, 3);
  const broken = inboxOf("tokens@example.org", { token: () => Promise.reject(new Error("no session")) });
  await assert.rejects(broken.start(), (error: unknown) => error instanceof InboxError && error.kind === "token" && (error.cause as Error).message === "no session");
  const wrong = inboxOf("tokens@example.org", { token: () => "wrong" });
  await assert.rejects(wrong.start(), (error: unknown) => error instanceof InboxError && error.kind === "token" && error.status === 401);
});

test("the stream is opened again after a crash of the server, and misses nothing", async () => {
  await server.store("crash@example.org", plain("before"));
  const inbox = inboxOf("crash@example.org");
  await inbox.start();
  await eventually("the stream is open", () => inbox.connection === "live");
  await server.restart(async () => {
    await eventually("the stream has ended", () => inbox.connection === "waiting");
    await assert.rejects(inbox.refresh(), (error: unknown) => error instanceof InboxError && error.kind === "network");
  });
  await server.store("crash@example.org", plain("after"));
  await eventually("the message is there", () => inbox.messages.length === 2 && inbox.connection === "live");
});

test("a token is never part of a URL", () => {
  assert.ok(urls.some((url) => url.includes("/jmap/eventsource")));
  assert.ok(tokens.length > 0 && tokens.every((token) => token.length > 20));
  assert.deepEqual(urls.filter((url) => tokens.some((token) => url.includes(token))), []);
});

test("an event stream is read wherever it is cut", async () => {
  const text = ": comment\r\nevent: state\r\ndata: {\"a\":\r\ndata:1}\r\n\r\nevent:ping\rdata: ü\r\rid: 7\n\ndata\n\ndata: last";
  const bytes = new TextEncoder().encode(text);
  const expected = [{ type: "state", data: '{"a":\n1}' }, { type: "ping", data: "ü" }, { type: "message", data: "" }];
  for (let size = 1; size <= bytes.length; size++) {
    const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.slice(n * size, (n + 1) * size));
    const found = [];
    const stream = new ReadableStream<Uint8Array>({ start: (to) => (parts.forEach((part) => to.enqueue(part)), to.close()) });
    for await (const event of events(stream)) found.push(event);
    assert.deepEqual(found, expected, `parts of ${size} bytes`);
  }
});
