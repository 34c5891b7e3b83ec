/** Sessions and workers with the real server. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";

import { type Fanfare, ok } from "fanfare-client";
import { type Client, ConnectionError, ProblemError, RefusedError, Session, type SessionResponse } from "fanfare-client/session";
import { run } from "fanfare-client/worker";

import { eventually, type Server, startServer } from "./server.js";

let server: Server;
let shop: Fanfare;
let here: { url: string; key: string; service: string };
const instances: ChildProcess[] = [];
let started = 0;

function startInstance(worker: string, program = "dist/test/instance.js"): ChildProcess {
  const env = { ...process.env, FANFARE_URL: server.url, FANFARE_KEY: server.key, FANFARE_SERVICE: "shop", FANFARE_WORKER: worker, FANFARE_INSTANCE: `test-${++started}` };
  const child = spawn(process.execPath, [program], { env, stdio: ["ignore", "inherit", "ignore"] });
  instances.push(child);
  return child;
}

before(async () => {
  server = await startServer();
  shop = server.client("shop");
  here = { url: server.url, key: server.key, service: "shop" };
  const workers = { echo: { concurrency: 8, message_limit: "2KB" }, pricing: { concurrency: 2 } };
  await ok(shop.POST("/v1/apply", { body: { service: "shop", workers } }));
  startInstance("echo");
});
after(async () => {
  for (const child of instances) child.kill("SIGKILL");
  await server.stop();
});

async function gather(client: Client): Promise<SessionResponse[]> {
  const all = [];
  for await (const response of client.responses()) all.push(response);
  return all;
}

const rejection = async <E extends Error>(promise: Promise<unknown>, type: new (...args: never[]) => E): Promise<E> => {
  const error = await promise.then(() => undefined, (reason: unknown) => reason);
  assert.ok(error instanceof type, `expected ${type.name}: ${String(error)}`);
  return error;
};

for (const kind of ["interactive", "durable"] as const) {
  test(`each request has one response (${kind})`, async () => {
    const session = await Session.open({ ...here, worker: "echo", kind });
    const client = await session.client("a");
    for (let n = 0; n < 20_000; n++) await client.send(String(n), { userData: String(-n) });
    assert.equal(await client.end(20_000), 20_000);
    const all = await gather(client);
    assert.deepEqual(all.map((r) => r.number), all.map((_, n) => n + 1));
    assert.ok(all.every((r) => r.ok && r.text === `${r.request - 1}!` && Number(r.userData.toString()) === 1 - r.request));
    assert.equal(new Set(all.map((r) => r.request)).size, 20_000);
    // The last response has no flag if it came before the end.
    assert.ok(all.slice(0, -1).every((r) => !r.last));
    await session.close({ purge: true });
  });

  test(`faults, retries, ids and counts (${kind})`, async () => {
    const session = await Session.open({ ...here, worker: "echo", kind });
    const client = await session.client("a");
    for (const action of ["fault", "retry", "large"]) await client.send(action, { action, id: action });
    await client.send("fault", { action: "fault", id: "fault" });
    assert.deepEqual(await client.flush(), { requests: 4, accepted: 3 });
    await client.send("other", { id: "fault" });
    const refused = await rejection(client.end(3), RefusedError);
    assert.deepEqual(refused.refusals.map((r) => [r.number, r.id, r.problem.code]), [[5, "fault", "conflict"]]);
    assert.match((await rejection(client.end(4), ProblemError)).message, /3.*4|4.*3/);
    assert.equal(await client.end(3), 3);
    const found = new Map((await gather(client)).map((r) => [r.id, r]));
    assert.deepEqual([...found.keys()].sort(), ["fault", "large", "retry"]);
    assert.deepEqual(found.get("fault")!.fault, { code: "no_price", message: "there is no price" });
    assert.match(found.get("large")!.fault!.message, /3000 bytes/);
    assert.deepEqual([found.get("retry")!.text, found.get("retry")!.attempts], ["retry!", 2]);
    await rejection(client.send("x"), ProblemError);
    await session.close({ purge: true });
  });
}

test("bad input has clear errors", async () => {
  assert.match((await rejection(Session.open({ ...here, worker: "none" }), ProblemError)).message, /none/);
  assert.equal((await rejection(Session.open({ ...here, worker: "echo", key: "wrong" }), ProblemError)).code, "unauthenticated");
  const quiet = { handleSignals: false, log: () => undefined };
  assert.equal((await rejection(run(() => "", { ...here, ...quiet, worker: "echo", key: "wrong" }), ProblemError)).code, "unauthenticated");
  assert.match((await rejection(run(() => "", { ...here, ...quiet, worker: "none" }), ProblemError)).message, /none/);
  const session = await Session.open({ ...here, worker: "echo" });
  await rejection(session.client("not a name"), ProblemError);
  const client = await session.client("a");
  assert.equal((await rejection(client.send(Buffer.alloc(2001)), ProblemError)).code, "too_large");
  await rejection(session.client("a", { from: 7 }), Error);
  await rejection(client.flush(), ConnectionError); // replaced by the connection before
  await session.close();
  assert.equal((await rejection(Session.attach({ ...here, id: "ses-999999" }), ProblemError)).code, "not_found");
});

test("a durable load survives the loss of the server and of a worker", async () => {
  const total = 20_000;
  const session = await Session.open({ ...here, worker: "echo", kind: "durable" });
  const client = await session.client("a");
  const seen: string[] = [];
  const handled = client.onResponse((response) => {
    assert.ok(response.ok, response.text);
    seen.push(response.text);
  });
  const sending = (async () => {
    for (let n = 0; n < total; n++) await client.send(String(n), { action: "slow", ...(n % 3 === 0 && { id: `id-${n}` }) });
  })();
  await eventually("there are responses", () => seen.length > 1000);
  await server.restart();
  await eventually("there are more", () => seen.length > 5000);
  instances.shift()!.kill("SIGKILL");
  startInstance("echo");
  await sending;
  assert.equal(await client.end(total), total);
  await handled;
  assert.equal(seen.length, total);
  assert.deepEqual(new Set(seen), new Set(Array.from({ length: total }, (_, n) => `${n}!`)));
  await session.detach();

  // Another process reads all responses again.
  const again = await Session.attach({ ...here, id: session.id });
  const reader = await again.client("a", { from: 1 });
  assert.deepEqual((await gather(reader)).map((r) => r.text), seen);
  await again.close({ purge: true });
});

test("the examples run", async () => {
  const worker = startInstance("pricing", "dist/examples/worker.js");
  const env = { ...process.env, FANFARE_URL: server.url, FANFARE_KEY: server.key, FANFARE_SERVICE: "shop" };
  const client = spawn(process.execPath, ["dist/examples/client.js"], { env, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  client.stdout.on("data", (part: Buffer) => (output += part.toString()));
  const [code] = (await once(client, "close")) as [number];
  assert.deepEqual([code, output], [0, `total ${100 * 101}\n`]);
  worker.kill("SIGTERM");
  assert.deepEqual(await once(worker, "exit"), [0, null]);
});
