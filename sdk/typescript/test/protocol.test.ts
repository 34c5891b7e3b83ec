/** The example examples/workers/protocol-typescript, with the real server and instances in processes of their own. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { type Fanfare, ok, pages, publishLines, putSubscriptions } from "fanfare-client";

import { Gateway, number } from "./gateway.js";
import { eventually, type Server, startServer } from "./server.js";

const example = "../../../examples/workers/protocol-typescript";
const people = Number(process.env.FANFARE_PEOPLE ?? 300);
const [unknown, busy, cut] = [people, 5, 9]; // persons with other replies than the rest

const gateway: Gateway = new Gateway({ unknown: number(unknown), busy: number(busy), cut: number(cut) }, () => gateway.sent.size >= people / 6);

let server: Server;
let texts: Fanfare;
const instances: ChildProcess[] = [];

function startInstance(name: string): ChildProcess {
  const env = { FANFARE_URL: server.url, FANFARE_KEY: server.key, FANFARE_SERVICE: "texts", FANFARE_WORKER: "gateway", FANFARE_INSTANCE: name, GATEWAY_URL: `${gateway.url}/${name}` };
  const child = spawn(process.execPath, ["dist/examples/protocol.js"], { env: { ...process.env, ...env }, stdio: ["ignore", "inherit", "ignore"] });
  instances.push(child);
  return child;
}

before(async () => {
  await gateway.start();
  server = await startServer();
  texts = server.client("texts");
});
after(async () => {
  for (const child of instances) child.kill("SIGKILL");
  await server.stop();
  gateway.stop();
});

test("the page shows functions of the example", () => {
  const blocks = readFileSync("../../../docs/how-to/workers-in-the-pipeline.md", "utf8").matchAll(/^```ts\n(.*?)^```$/gms);
  const program = readFileSync(`${example}/protocol.ts`, "utf8");
  assert.equal([...blocks].filter(([, block]) => program.endsWith(block!)).length, 1);
});

test("each person gets one message of the protocol", async () => {
  // The document of the example, with shorter pauses.
  const document = readFileSync(`${example}/fanfare.yaml`, "utf8");
  const quick = document.replace("retry: [30s, 5m, 1h]", "retry: [1s]").replace("rate: 100/s", "rate: unlimited");
  assert.equal(quick.match(/retry: \[1s\]|rate: unlimited/g)?.length, 2);
  await texts.raw({ path: "/v1/apply", contentType: "application/yaml", body: quick });
  const wanted = Array.from({ length: people + 1 }, (_, n) => ({
    topic: "warning", channel: "sms", to: `https://sms.example.org/${encodeURIComponent(number(n))}`, attributes: { name: `Person "${n}"` },
  }));
  for await (const answer of putSubscriptions(texts, wanted)) assert.ok(!("error" in answer), JSON.stringify(answer));
  const killed = startInstance("killed");
  startInstance("stays");
  const connected = async () => (await ok(texts.GET("/v1/workers/{worker}", { params: { path: { worker: "gateway" } } }))).instances?.length;
  await eventually("both instances are connected", async () => (await connected()) === 2);

  let event = "";
  for await (const answer of publishLines(texts, "warning", [{ title: "Storm", area: "Ufer \\ \"Süd\"", until: "18:00" }])) {
    assert.ok("id" in answer, JSON.stringify(answer));
    event = answer.id;
  }
  const completed = async () => (await ok(texts.GET("/v1/events/{id}", { params: { path: { id: event } } }))).state === "completed";
  await eventually("an instance waits for replies", () => gateway.unanswered.size > 0);
  assert.equal(await completed(), false);
  killed.kill("SIGKILL");
  const [began, before] = [Date.now(), gateway.sent.size];
  await eventually("the event is completed", completed, Math.max(30_000, 10 * people));
  console.log(`${Math.round((1000 * (gateway.sent.size - before)) / (Date.now() - began))} messages/s with one instance`);

  const states = new Map<string, string>();
  const list = (cursor: string | undefined) => ok(texts.GET("/v1/events/{id}/deliveries", { params: { path: { id: event }, query: { limit: 1000, ...(cursor !== undefined && { cursor }) } } }));
  for await (const page of pages(list)) for (const { address, state } of page.deliveries) states.set(decodeURIComponent(new URL(address).pathname.slice(1)), state);
  assert.equal(states.size, people + 1);
  for (let n = 0; n <= people; n++) assert.equal(states.get(number(n)), n === unknown ? "failed" : "accepted", number(n));

  assert.deepEqual(gateway.wrong, []);
  const sent = new Map<string, string[]>();
  for (const { to, text } of gateway.sent.values()) sent.set(to, [...(sent.get(to) ?? []), text]);
  // The instance that was killed may have passed the unknown number on.
  sent.delete(number(unknown));
  assert.equal(sent.size, people);
  for (let n = 0; n < people; n++) assert.deepEqual(sent.get(number(n)), [`Storm: Ufer \\ "Süd", until 18:00. For Person "${n}"`]);

  const postsTo = new Map<string, Gateway["posts"]>();
  for (const post of gateway.posts) postsTo.set(post.to, [...(postsTo.get(post.to) ?? []), post]);
  for (let n = 0; n <= people; n++) {
    const posts = postsTo.get(number(n)) ?? [];
    const times = n === busy || n === cut ? 2 : 1; // twice after a temporary failure
    assert.equal(new Set(posts.map(({ key }) => key)).size, 1, number(n));
    assert.ok(posts.length >= times, number(n));
    // The instance that stays posts again only the messages of a request that the other one left unanswered.
    for (const instance of ["killed", "stays"]) assert.ok(posts.filter(({ from }) => from === instance).length <= times, `${instance} ${number(n)}`);
    if (gateway.unanswered.has(posts[0]!.key)) assert.equal(posts.at(-1)!.from, "stays", number(n));
  }
});
