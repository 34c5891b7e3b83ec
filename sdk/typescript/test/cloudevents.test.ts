/**
 * The official CloudEvents SDK publishes in every mode, and the events arrive.
 *
 * Version 10 writes structured and binary messages and reads batches; a batch it
 * writes member by member, and the array around them stands here.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { CloudEvent, CONSTANTS, HTTP, type Message } from "cloudevents";
import { type Fanfare, ok } from "fanfare-client";

import { eventually, type Server, startServer } from "./server.js";

let server: Server;
let desk: Fanfare;
after(() => server.stop());
before(async () => {
  server = await startServer();
  desk = server.client("desk");
  await ok(desk.POST("/v1/apply", {
    body: {
      service: "desk",
      channels: { email: { driver: "smtp", relay: server.relay, from: "desk@example.org", rate: "unlimited" } },
      topics: { note: { template: "note" } },
      templates: { note: { subject: "{{ meta.id }}", text: "{{ meta.extensions.team }}" } },
    },
  }));
  await ok(desk.PUT("/v1/subscriptions/{id}", { params: { path: { id: "all" } }, body: { topic: "note", channel: "email", to: "reader@example.org" } }));
});

const modes: Record<string, (events: CloudEvent<unknown>[]) => Message[]> = {
  structured: (events) => events.map((event) => HTTP.structured(event)),
  binary: (events) => events.map((event) => HTTP.binary(event)),
  batched: (events) => [{ headers: { [CONSTANTS.HEADER_CONTENT_TYPE]: CONSTANTS.MIME_CE_BATCH }, body: JSON.stringify(events) }],
};

const post = (message: Message): Promise<Response> =>
  fetch(`${server.url}/v1/events`, {
    method: "POST",
    headers: { ...(message.headers as Record<string, string>), authorization: `Bearer ${server.key}`, "x-fanfare-service": "desk" },
    body: message.body as string,
  });

async function kept(messages: Message[]): Promise<{ id: string; duplicate: boolean }[]> {
  const all = [];
  for (const message of messages) {
    const answer = await post(message);
    assert.equal(answer.status, 202, await answer.clone().text());
    all.push(...((await answer.json()) as { events: { id: string; duplicate: boolean }[] }).events);
  }
  return all;
}

for (const [mode, write] of Object.entries(modes)) {
  test(`events arrive whole, ${mode}`, async () => {
    const before = server.arrived().length;
    const attributes = { source: `/javascript/${mode}`, type: "note", subject: "100% sure", team: "kitchen", weight: 7, hot: true };
    const sent = [
      new CloudEvent<unknown>({ ...attributes, id: `${mode} 1`, data: { title: "grüß dich", n: 1.5 } }),
      new CloudEvent<unknown>({ ...attributes, id: `${mode} 2`, data: [1, "two", null] }),
      new CloudEvent<unknown>({ ...attributes, id: `${mode} 3`, datacontenttype: "text/plain", data: "two\nlines" }),
      new CloudEvent<unknown>({ ...attributes, id: `${mode} 4` }),
    ];
    const messages = write(sent);
    for (const message of messages) assert.ok(HTTP.isEvent(message), "the SDK itself takes it for an event");
    const first = await kept(messages);
    assert.deepEqual(first.map((k) => k.duplicate), sent.map(() => false));
    assert.deepEqual(await kept(messages), first.map((k) => ({ ...k, duplicate: true })));
    await eventually("a mail for each", () => server.arrived().length === before + sent.length);

    for (const [n, event] of sent.entries()) {
      const read = () => ok(desk.GET("/v1/events/{id}", { params: { path: { id: first[n]!.id } } }));
      // A mail arrives a moment before its outcome is recorded.
      await eventually("it is completed", async () => (await read()).state === "completed");
      const trace = await read();
      assert.equal(trace.messages, 1);
      assert.deepEqual([trace.sourceid, trace.source, trace.type, trace.subject], [event.id, event.source, "note", "100% sure"]);
      assert.equal(new Date(trace.time!).toISOString(), event.time);
      // Headers have no types; the JSON format does.
      assert.deepEqual(trace.extensions, mode === "binary" ? { team: "kitchen", weight: "7", hot: "true" } : { team: "kitchen", weight: 7, hot: true });
      assert.deepEqual(trace.data, event.data);
    }
  });
}

test("a bad member refuses the batch", async () => {
  const good = new CloudEvent({ source: "/javascript", type: "note" });
  const answer = await post({ headers: { "content-type": CONSTANTS.MIME_CE_BATCH }, body: JSON.stringify([good, { ...good.toJSON(), specversion: "0.3" }]) });
  const problem = (await answer.json()) as { errors: { pointer: string }[] };
  assert.deepEqual([answer.status, problem.errors[0]?.pointer], [422, "/1/specversion"]);
});
