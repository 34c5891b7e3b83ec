import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { connect, type Fanfare, ok, pages, ProblemError, publishLines, putSubscriptions } from "fanfare-client";

import { blockLines } from "../src/lines.js";
import { eventually, type Server, startServer } from "./server.js";

let server: Server;
let news: Fanfare;
after(() => server.stop());
before(async () => {
  server = await startServer();
  news = server.client("news");
  await ok(news.POST("/v1/apply", {
    body: {
      service: "news",
      channels: { email: { driver: "smtp", relay: server.relay, from: "news@example.org", rate: "unlimited" } },
      topics: { story: { schema: { type: "object", required: ["title"], properties: { title: { type: "string" } } }, template: "story" } },
      templates: { story: { subject: "{{ event.title }}", text: "Hello" } },
    },
  }));
});

const gather = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
};

const refusal = async (call: Promise<unknown>): Promise<ProblemError> => {
  const error = await call.then(() => undefined, (reason: unknown) => reason);
  assert.ok(error instanceof ProblemError, String(error));
  return error;
};

test("apply a second time changes nothing", async () => {
  assert.deepEqual((await ok(news.POST("/v1/apply", { body: { service: "news" } }))).changes, []);
});

test("a wrong key is a typed error", async () => {
  const stranger = connect({ url: server.url, key: "wrong" });
  const { problem } = await refusal(ok(stranger.GET("/v1/status")));
  assert.deepEqual([problem.status, problem.code], [401, "unauthenticated"]);
  assert.ok(problem.request_id);
});

test("the answer of something in between is an error too", async () => {
  const client = connect({ url: "http://127.0.0.1:1", key: "key", fetch: async () => new Response("<h1>Bad Gateway</h1>", { status: 502 }) });
  const { problem } = await refusal(ok(client.GET("/v1/status")));
  assert.equal(problem.status, 502);
  assert.match(problem.detail, /Bad Gateway/);
});

test("several mistakes are all named", async () => {
  const { problem } = await refusal(ok(news.POST("/v1/apply", { body: { service: "news", topics: { a: { template: "none" }, b: { template: "none" } } } })));
  assert.deepEqual([problem.pointer, ...(problem.errors ?? []).map((e) => e.pointer)], ["/topics/a/template", "/topics/b/template"]);
});

test("a subscription comes and goes", async () => {
  const params = { path: { id: "bo" } };
  const body = { topic: "story", channel: "email", to: "bo@example.org", locale: "de-AT" };
  assert.equal((await ok(news.PUT("/v1/subscriptions/{id}", { params, body }))).created, true);
  assert.equal((await ok(news.PUT("/v1/subscriptions/{id}", { params, body }))).created, false);
  assert.equal((await ok(news.GET("/v1/subscriptions/{id}", { params }))).state, "active");
  await ok(news.DELETE("/v1/subscriptions/{id}", { params }));
  assert.equal((await ok(news.GET("/v1/subscriptions/{id}", { params }))).state, "ended");
});

test("lines count over all blocks", async () => {
  const total = 2 * blockLines + 10;
  function* wanted() {
    for (let n = 0; n < total; n++) yield { topic: "story", channel: "email", to: n % 400 === 399 ? "bad" : `p${n}@example.org` };
  }
  const answers = await gather(putSubscriptions(news, wanted()));
  assert.equal(answers.length, total);
  assert.deepEqual(answers.flatMap((a) => ("error" in a ? [[a.line, a.error.code]] : [])), [[400, "invalid"], [800, "invalid"]]);
});

test("events in lines are told apart by their ids", async () => {
  const events = [{ title: "a", no: 1 }, { title: 7, no: 2 }, { title: "a again", no: 1 }];
  const [first, wrong, again] = await gather(publishLines(news, "story", events, { id: "/no" }));
  assert.ok(first && "id" in first && again && "id" in again && wrong && "error" in wrong);
  assert.deepEqual([wrong.line, wrong.error.pointer], [2, "/data/title"]);
  assert.deepEqual([first.duplicate, again.duplicate, again.id], [false, true, first.id]);
});

test("nothing to send sends nothing", async () => {
  assert.deepEqual(await gather(putSubscriptions(news, [])), []);
});

test("pages end", async () => {
  const [answer] = await gather(publishLines(news, "story", [{ title: "paged" }]));
  assert.ok(answer && "id" in answer);
  const path = { id: answer.id };
  await eventually("it is completed", async () => (await ok(news.GET("/v1/events/{id}", { params: { path } }))).state === "completed");
  const list = (cursor?: string) => ok(news.GET("/v1/events/{id}/deliveries", { params: { path, query: { limit: 300, ...(cursor && { cursor }) } } }));
  const seen = (await gather(pages(list))).flatMap((page) => page.deliveries.map((d) => d.id));
  assert.deepEqual([seen.length, new Set(seen).size], [1008, 1008]);
});
