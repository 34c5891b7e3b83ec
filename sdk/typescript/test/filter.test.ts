/**
 * The example examples/workers/filter-typescript, alone and together with the formatter in Python and the protocol in TypeScript,
 * with the real server and instances in processes of their own.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test, type TestContext } from "node:test";

import { type Fanfare, ok, pages, publishLines, putSubscriptions } from "fanfare-client";

import { Gateway, number } from "./gateway.js";
import { eventually, type Server, startServer } from "./server.js";

const examples = "../../../examples/workers";
const people = Number(process.env["FANFARE_PEOPLE"] ?? 300);
const many = people >= 5000; // enough for several batches
const wait = Math.max(30_000, 10 * people); // milliseconds for all messages

// The market closes when it is November 28 in Tokyo, and still November 27 elsewhere.
const event = { company: "ACME", market: "XETRA", price: 1234.25, currency: "EUR", closed_at: "2026-11-27T22:30:00Z" };
const kinds = [
  { kept: false, time_zone: "Europe/Berlin", entitlements: { NYSE: "2099-12-31" } },
  { kept: false, time_zone: "Europe/Berlin", entitlements: { NYSE: "2099-12-31", XETRA: "2026-11-26" } },
  { kept: false, time_zone: "Asia/Tokyo", entitlements: { XETRA: "2026-11-27" } },
  { kept: true, time_zone: "Europe/Berlin", entitlements: { XETRA: "2026-11-27" } },
  { kept: true, time_zone: "Asia/Tokyo", entitlements: { XETRA: "2026-11-28" } },
  { kept: true, time_zone: "America/New_York", entitlements: { XETRA: "2026-11-27", NYSE: "2020-01-01" } },
];
const kind = (n: number) => kinds[n % kinds.length]!;
const everyone = Array.from({ length: people }, (_, n) => n);
const kept = everyone.filter((n) => kind(n).kept);
// Two more people, for whom the filter returns an error.
const [unrecorded, misspelt] = [people, people + 1];
const wrong = new Map<number, unknown>([[unrecorded, undefined], [misspelt, { XETRA: "soon" }]]);
const reasons = new Map([
  [unrecorded, "filter entitled: the customer has no attribute entitlements"],
  [misspelt, 'filter entitled: the last day for XETRA is "soon", not a date such as 2026-12-31'],
]);

const customer = (n: number, name: string) => ({
  locale: n % 2 === 0 ? "de-AT" : "en", time_zone: kind(n).time_zone,
  attributes: { name, shares: n + 1, entitlements: wrong.has(n) ? wrong.get(n) : kind(n).entitlements },
});

/** The example with an empty server. */
class Prices {
  private readonly instances = new Map<string, ChildProcess>();

  private constructor(
    readonly server: Server,
    readonly client: Fanfare,
  ) {}

  static async start(t: TestContext, show: number): Promise<Prices> {
    const server = await startServer(show);
    const prices = new Prices(server, server.client("prices"));
    t.after(async () => {
      for (const child of prices.instances.values()) child.kill("SIGKILL");
      await server.stop();
    });
    return prices;
  }

  /** Applies the document of an example with other settings. With few people, requests are small, so that there are several. */
  async apply(file: string, settings: Record<string, string>): Promise<void> {
    let document = readFileSync(`${examples}/${file}`, "utf8");
    for (const [old, other] of Object.entries({ ...settings, ...(!many && { "message_limit: 512KB": "message_limit: 8KB" }) })) {
      assert.ok(document.includes(old), old);
      document = document.replaceAll(old, other);
    }
    await this.client.raw({ path: "/v1/apply", contentType: "application/yaml", body: document });
  }

  /** Starts two instances of a worker, "killed" and "stays". */
  async begin(worker: string, command: string[], env: (instance: string) => Record<string, string> = () => ({})): Promise<void> {
    for (const instance of ["killed", "stays"]) {
      const own = { FANFARE_URL: this.server.url, FANFARE_KEY: this.server.key, FANFARE_SERVICE: "prices", FANFARE_WORKER: worker, FANFARE_INSTANCE: instance, PYTHONDONTWRITEBYTECODE: "1" };
      const child = spawn(command[0]!, command.slice(1), { env: { ...process.env, ...own, ...env(instance) }, stdio: ["ignore", "inherit", "ignore"] });
      this.instances.set(`${worker} ${instance}`, child);
    }
    await eventually(`both instances of ${worker} are connected`, async () => (await this.connected(worker)).size === 2);
  }

  async connected(worker: string) {
    const { instances } = await ok(this.client.GET("/v1/workers/{worker}", { params: { path: { worker } } }));
    return new Map((instances ?? []).map((one) => [one.name, one]));
  }

  async subscribe(subscriptions: Parameters<typeof putSubscriptions>[1]): Promise<void> {
    for await (const answer of putSubscriptions(this.client, subscriptions)) assert.ok(!("error" in answer), JSON.stringify(answer));
  }

  async publish(): Promise<string> {
    for await (const answer of publishLines(this.client, "price", [event])) {
      assert.ok("id" in answer, JSON.stringify(answer));
      return answer.id;
    }
    throw new Error("no answer");
  }

  /** Stops an instance: it takes requests and does not answer them. */
  halt(worker: string): void {
    this.instances.get(`${worker} killed`)!.kill("SIGSTOP");
  }

  /** Kills the halted instance when the other one waits for it. */
  async killHalted(worker: string): Promise<void> {
    await eventually(`the ${worker} that stays has answered all of its requests, and the other one has some`, async () => {
      const now = await this.connected(worker);
      return now.get("killed")!.running > 0 && now.get("stays")!.done > 0 && now.get("stays")!.running === 0;
    }, wait);
    await this.kill(worker);
  }

  async kill(worker: string): Promise<void> {
    const child = this.instances.get(`${worker} killed`)!;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  async completed(id: string): Promise<boolean> {
    return (await ok(this.client.GET("/v1/events/{id}", { params: { path: { id } } }))).state === "completed";
  }

  /** Returns the state and the last text of each delivery, by address. */
  async deliveries(id: string): Promise<Map<string, { state: string; text: string }>> {
    const found = new Map<string, { state: string; text: string }>();
    const list = (cursor: string | undefined) => ok(this.client.GET("/v1/events/{id}/deliveries", { params: { path: { id }, query: { limit: 1000, ...(cursor !== undefined && { cursor }) } } }));
    for await (const page of pages(list)) {
      for (const { address, state, attempts } of page.deliveries) {
        assert.ok(!found.has(address), address);
        found.set(address, { state, text: attempts?.at(-1)?.text ?? "" });
      }
    }
    return found;
  }
}

/** Checks the deliveries to everyone, and to the people for whom a worker has an error. */
function checkDeliveries(found: Map<string, { state: string; text: string }>, address: (n: number) => string, failed: Map<number, string>): void {
  assert.equal(found.size, people + failed.size);
  for (const n of everyone) {
    const { state, text } = found.get(address(n))!;
    if (kind(n).kept) assert.equal(state, "accepted", address(n));
    else assert.deepEqual([state, text], ["suppressed", "removed by filter entitled"], address(n));
  }
  for (const [n, text] of failed) assert.deepEqual(found.get(address(n)), { state: "failed", text });
}

test("the page shows functions of the filter", () => {
  const blocks = readFileSync("../../../docs/how-to/workers-in-the-pipeline.md", "utf8").matchAll(/^```ts\n(.*?)^```$/gms);
  const program = readFileSync(`${examples}/filter-typescript/filter.ts`, "utf8");
  assert.equal([...blocks].filter(([, block]) => program.endsWith(block!)).length, 1);
});

test("the filter keeps those who are entitled", async (t) => {
  const prices = await Prices.start(t, 2 * people);
  await prices.apply("filter-typescript/fanfare.yaml", { "127.0.0.1:2525": prices.server.relay });
  const address = (n: number) => `person${n}@example.org`;
  await prices.subscribe([...everyone, ...wrong.keys()].map((n) => ({ topic: "price", channel: "email", to: address(n), ...customer(n, `Person ${n}`) })));
  await prices.begin("entitled", [process.execPath, "dist/examples/filter.js"]);
  if (!many) prices.halt("entitled");
  const began = Date.now();
  const id = await prices.publish();
  if (many) {
    await eventually("a quarter has got mail", () => prices.server.arrived().length > kept.length / 4, wait);
    prices.halt("entitled");
  }
  await prices.killHalted("entitled");
  assert.equal(await prices.completed(id), false);
  await eventually("the event is completed", () => prices.completed(id), wait);
  console.log(`${Math.round((1000 * people) / (Date.now() - began))} people/s through the filter`);

  checkDeliveries(await prices.deliveries(id), address, reasons);
  await eventually("all mails are shown", () => prices.server.mails().length >= kept.length);
  const texts = new Map<string, string[]>();
  for (const [to, mail] of prices.server.mails()) {
    const [, text] = /^(Dear .*?)\s*$/m.exec(mail) ?? [];
    texts.set(to, [...(texts.get(to) ?? []), text ?? mail]);
  }
  assert.deepEqual([...texts.keys()].sort(), kept.map(address).sort());
  for (const n of kept) assert.deepEqual(texts.get(address(n)), [`Dear Person ${n}, ACME closed at 1234.25 EUR.`]);
});

/** The text for a person, without the formatter. */
function expected(n: number): string {
  const amount = (cents: number): string => {
    const whole = String(Math.floor(cents / 100)).replace(/\B(?=(\d{3})+$)/g, n % 2 === 0 ? "." : ",");
    return `${whole}${n % 2 === 0 ? "," : "."}${String(cents % 100).padStart(2, "0")} EUR`;
  };
  const [price, value] = [amount(123425), amount(123425 * (n + 1))];
  const name = `Person ${n} & <i>"Co"</i>`;
  if (n % 2 === 0) return `Guten Tag ${name},\n\nACME schloss bei ${price}. Ihre ${n + 1} Aktien sind ${value} wert.\n`;
  return `Dear ${name},\n\nACME closed at ${price}. Your ${n + 1} shares are worth ${value}.\n`;
}

test("a filter, a formatter and a protocol deliver an event together", async (t) => {
  // One more person has no shares, and another one a number that the gateway does not know. The filter keeps both.
  const shareless = people - (people % kinds.length) + kinds.length + 3;
  const unknown = shareless + 1;
  assert.ok(kind(shareless).kept && kind(unknown).kept);
  let leaves = false;
  const gateway = new Gateway({ unknown: number(unknown) }, () => leaves);
  await gateway.start();
  t.after(() => gateway.stop());
  const prices = await Prices.start(t, 0);
  await prices.apply("pipeline.yaml", { "rate: 100/s": "rate: unlimited", "retry: [30s, 5m, 1h]": "retry: [1s]" });
  const address = (n: number) => `https://sms.example.org/${encodeURIComponent(number(n))}`;
  const subscription = (n: number) => ({ topic: "price", channel: "sms", to: address(n), ...customer(n, `Person ${n} & <i>"Co"</i>`) });
  const without = subscription(shareless);
  await prices.subscribe([...[...everyone, ...wrong.keys(), unknown].map(subscription), { ...without, attributes: { ...without.attributes, shares: 0 } }]);
  await prices.begin("entitled", [process.execPath, "dist/examples/filter.js"]);
  await prices.begin("statements", [resolve("../venv/bin/python3"), resolve(examples, "xslt-formatter/formatter.py"), resolve(examples, "xslt-formatter/statement.xsl")]);
  await prices.begin("gateway", [process.execPath, "dist/examples/protocol.js"], (instance) => ({ GATEWAY_URL: `${gateway.url}/${instance}` }));

  const halt = () => ["entitled", "statements"].forEach((worker) => prices.halt(worker));
  if (!many) halt();
  const began = Date.now();
  const id = await prices.publish();
  if (many) {
    await eventually("a quarter is sent", () => gateway.sent.size > kept.length / 4, wait);
    console.log(`${Math.round((1000 * gateway.sent.size * people) / kept.length / (Date.now() - began))} people/s through two instances of each worker`);
    halt();
  }
  await prices.killHalted("entitled");
  leaves = true;
  await prices.killHalted("statements");
  await eventually("an instance of the protocol waits for replies", () => gateway.unanswered.size > 0, wait);
  assert.equal(await prices.completed(id), false);
  await prices.kill("gateway");
  const [from, before] = [Date.now(), gateway.sent.size];
  await eventually("the event is completed", () => prices.completed(id), wait);
  console.log(`${Math.round((1000 * (gateway.sent.size - before) * people) / kept.length / (Date.now() - from))} people/s through one instance of each worker`);

  const failed = new Map([...reasons, [shareless, "formatter statements: the subscriber has no shares"], [unknown, "unknown number"]]);
  checkDeliveries(await prices.deliveries(id), address, failed);
  assert.deepEqual(gateway.wrong, []);
  const sent = new Map<string, string[]>();
  for (const { to, text } of gateway.sent.values()) sent.set(to, [...(sent.get(to) ?? []), text]);
  sent.delete(number(unknown)); // the instance that was killed may have passed it on
  assert.deepEqual([...sent.keys()].sort(), kept.map(number).sort());
  for (const n of kept) assert.deepEqual(sent.get(number(n)), [expected(n)]);
  // A message is posted again, by the other instance, only if its reply was lost with the instance that was killed.
  const posts = new Map<string, string[]>();
  for (const { key, from: instance } of gateway.posts) posts.set(key, [...(posts.get(key) ?? []), instance]);
  for (const [key, by] of posts) assert.ok(by.length === 1 || (by.length === 2 && by[0] === "killed" && by[1] === "stays"), `${key} was posted by ${by.join(", ")}`);
  for (const key of gateway.unanswered) assert.deepEqual(posts.get(key), ["killed", "stays"], key);
});
