import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { type Client, ConnectionError, Pool, ProblemError, RefusedError, Session, type SessionResponse } from "fanfare-client/session";
import { type Answer, Fault, Retry, run, type Task } from "fanfare-client/worker";

import { Broker } from "./broker.js";
import { eventually } from "./server.js";

let broker: Broker;
let stops: (() => Promise<void>)[];
beforeEach(async () => {
  broker = await Broker.start();
  stops = [() => broker.stop()];
});
afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
});

/** Runs an instance in this process, until the end of the test. */
function work(handle: (task: Task) => Answer | Promise<Answer>, options: { instance?: string; concurrency?: number } = {}) {
  const controller = new AbortController();
  const lines: string[] = [];
  const finished = run(handle, { ...broker.server, worker: "echo", instance: "one", concurrency: 1, ...options, signal: controller.signal, handleSignals: false, log: (line) => lines.push(line) });
  finished.catch(() => undefined);
  const leave = async () => {
    controller.abort();
    await finished.catch(() => undefined);
  };
  stops.push(leave);
  return { finished, leave, lines, abort: () => controller.abort() };
}

const echo = (task: Task) => task.body;

async function open(options: { resends?: number; reconnectFor?: number } = {}): Promise<Session> {
  const session = await Session.open({ ...broker.server, worker: "echo", ...options });
  stops.push(() => session.detach().catch(() => undefined));
  return session;
}

async function gather(client: Client, from?: number): Promise<SessionResponse[]> {
  const all = [];
  for await (const response of client.responses(from === undefined ? {} : { from })) all.push(response);
  return all;
}

const rejection = async <E extends Error>(promise: Promise<unknown>, type: new (...args: never[]) => E): Promise<E> => {
  const error = await promise.then(() => undefined, (reason: unknown) => reason);
  assert.ok(error instanceof type, `expected ${type.name}: ${String(error)}`);
  return error;
};

test("requests have their responses, in the order of the responses", async () => {
  work(echo);
  const client = await (await open()).client("a");
  assert.equal(await client.send("first", { userData: "mine", id: "x" }), 1);
  assert.equal(await client.send(new Uint8Array([0, 255])), 2);
  assert.deepEqual(await client.flush(), { requests: 2, accepted: 2 });
  assert.equal(await client.end(2), 2);
  const [first, second] = await gather(client);
  assert.ok(first && second);
  assert.deepEqual([first.number, first.request, first.text, first.userData.toString(), first.id, first.ok], [1, 1, "first", "mine", "x", true]);
  assert.deepEqual([second.number, [...second.body], second.id, second.last], [2, [0, 255], "", true]);
});

test("many requests share a frame, and send waits for the window", async () => {
  broker.window = 50;
  work(echo, { concurrency: 100 });
  const client = await (await open()).client("a");
  for (let n = 0; n < 500; n++) await client.send(String(n));
  await client.end(500);
  const bodies = (await gather(client)).map((r) => Number(r.text));
  assert.deepEqual(bodies.sort((a, b) => a - b), Array.from({ length: 500 }, (_, n) => n));
  const sizes = broker.frames.filter((f) => f.type === 1).map((f) => f.count);
  assert.equal(sizes.reduce((a, b) => a + b), 500);
  assert.ok(Math.max(...sizes) <= 50 && Math.max(...sizes) > 1, String(sizes));
});

test("requests that nobody waits for stay within the window", async () => {
  broker.window = 7;
  broker.paused = true;
  work(echo);
  const client = await (await open()).client("a");
  const sends = Array.from({ length: 100 }, (_, n) => client.send(String(n)));
  await eventually("the window is used", () => broker.frames.length > 0);
  assert.deepEqual(broker.frames.map((f) => f.count), [7]);
  broker.resume();
  assert.deepEqual(await Promise.all(sends), Array.from({ length: 100 }, (_, n) => n + 1));
  assert.equal(await client.end(100), 100);
  assert.equal((await gather(client)).length, 100);
});

test("after a lost connection, requests are sent again and responses arrive once", async () => {
  const total = 3000;
  broker.window = 200;
  work(echo, { concurrency: 20 });
  const client = await (await open()).client("a");
  const seen: string[] = [];
  const handled = client.onResponse((response) => {
    seen.push(response.text);
    if (seen.length === 500 || seen.length === 1500) broker.dropConnections();
  });
  for (let n = 0; n < total; n++) await client.send(`request ${n}`);
  assert.equal(await client.end(total), total);
  await handled;
  assert.equal(seen.length, total);
  assert.equal(new Set(seen).size, total);
  assert.ok(broker.dispatched.some((d) => d.endsWith(" 2")), "tasks of the lost connection ran again");
});

test("requests and barriers that the server never saw are sent again", async () => {
  work(echo);
  const client = await (await open()).client("a");
  await client.send("kept");
  await client.flush();
  broker.paused = true;
  await client.send("lost");
  const flushed = client.flush();
  const ended = client.end(2);
  await eventually("the frames have arrived", () => broker.frames.filter((f) => f.type === 3).length === 1);
  broker.dropConnections();
  broker.paused = false;
  assert.deepEqual(await flushed, { requests: 2, accepted: 2 });
  assert.equal(await ended, 2);
  assert.deepEqual((await gather(client)).map((r) => r.text), ["kept", "lost"]);
});

test("a repeated id runs once, and different content is refused", async () => {
  work(echo);
  const client = await (await open()).client("a");
  await client.send("one", { id: "x" });
  await client.send("one", { id: "x" });
  assert.deepEqual(await client.flush(), { requests: 2, accepted: 1 });
  assert.equal(client.repeated, 1);
  await client.send("two", { id: "x" });
  const refused = await rejection(client.end(), RefusedError);
  assert.match(refused.message, /1 of the requests were refused: request 3 \(id "x"\): the id was sent before with different content/);
  assert.deepEqual(refused.refusals.map((r) => [r.number, r.id, r.problem.code]), [[3, "x", "conflict"]]);
  assert.equal(await client.end(1), 1);
  assert.deepEqual((await gather(client)).map((r) => r.text), ["one"]);
});

test("a refusal that was lost with the connection is reported nevertheless", async () => {
  work(echo);
  const client = await (await open()).client("a");
  await client.send("one", { id: "x" });
  await client.flush();
  broker.paused = true;
  await client.send("two", { id: "x" });
  await client.send("new", { id: "y" });
  await eventually("the requests have arrived", () => broker.frames.filter((f) => f.type === 1).length === 2);
  // The server keeps the requests, but its answer does not arrive.
  const stream = broker.stream("ses-1", "a");
  stream.socket!.send = () => undefined;
  broker.resume();
  broker.dropConnections();
  const refused = await rejection(client.flush(), RefusedError);
  assert.deepEqual(refused.refusals.map((r) => [r.number, r.id]), [[2, "x"]]);
  assert.equal(await client.end(2), 2);
  assert.deepEqual((await gather(client)).map((r) => r.text), ["one", "new"]);
});

test("end with a wrong count is refused, and the stream stays open", async () => {
  work(echo);
  const client = await (await open()).client("a");
  await client.send("one");
  const { problem } = await rejection(client.end(2), ProblemError);
  assert.deepEqual([problem.code, problem.detail], ["conflict", "1 requests were accepted: the client expected 2"]);
  await client.send("two");
  assert.equal(await client.end(2), 2);
  await rejection(client.send("three"), ProblemError);
  assert.equal(await client.end(), 2);
  assert.match((await rejection(client.end(3), ProblemError)).message, /ended with 2 accepted requests instead of 3/);
});

test("invalid requests are refused before they are sent", async () => {
  const client = await (await open()).client("a");
  const cases: [Promise<unknown>, string][] = [
    [client.send(Buffer.alloc(1001)), "413 too_large: the body has 1001 bytes; the message limit of worker echo is 1000 (send less, or raise the message_limit of the worker)"],
    [client.send("x", { id: "i".repeat(65) }), "422 invalid: id has 65 bytes; at most 64 are allowed (use a shorter id)"],
    [client.send("x", { action: "ü".repeat(33) }), "422 invalid: action has 66 bytes; at most 64 are allowed (use a shorter action)"],
    [client.send("x", { userData: Buffer.alloc(1025) }), "422 invalid: userData has 1025 bytes; at most 1024 are allowed (use a shorter userData)"],
    [client.send("x", { timeout: -1 }), "422 invalid: the timeout -1 is not a number of milliseconds from 0 to 2^32 - 1 (omit it for the timeout of the action)"],
  ];
  for (const [sent, message] of cases) assert.equal((await rejection(sent, ProblemError)).message, message);
  assert.deepEqual(await client.flush(), { requests: 0, accepted: 0 });
});

test("an unknown worker, a wrong key and no server are clear errors", async () => {
  const unknown = await rejection(Session.open({ ...broker.server, worker: "none" }), ProblemError);
  assert.deepEqual([unknown.problem.status, unknown.problem.detail], [404, "worker none does not exist"]);
  assert.equal((await rejection(Session.open({ ...broker.server, key: "x", worker: "echo" }), ProblemError)).code, "unauthenticated");
  const stopped = await Broker.start();
  const nowhere = stopped.server;
  await stopped.stop();
  assert.match((await rejection(Session.open({ ...nowhere, worker: "echo" }), ConnectionError)).message, /no connection to http:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/);
  const options = { handleSignals: false, log: () => undefined };
  assert.equal((await rejection(run(echo, { ...broker.server, ...options, worker: "none" }), ProblemError)).problem.detail, "worker none does not exist");
  assert.equal((await rejection(run(echo, { ...broker.server, ...options, worker: "echo", key: "x" }), ProblemError)).code, "unauthenticated");
  const session = await open();
  broker.sessions.clear();
  assert.equal((await rejection(session.client("a"), ProblemError)).problem.detail, "session ses-1 does not exist");
});

test("a program can attach to a session and read its responses again", async () => {
  work(echo);
  const session = await open();
  const client = await session.client("a");
  for (let n = 1; n <= 5; n++) await client.send(String(n));
  await client.end(5);
  const seen = [];
  for await (const response of client.responses()) {
    seen.push(response.number);
    if (response.number === 2) break;
  }
  await session.detach();
  assert.equal(broker.stream("ses-1", "a").received, 2, "the loop ended after the second response");

  const again = await Session.attach({ ...broker.server, id: session.id });
  assert.deepEqual((await gather(await again.client("a"))).map((r) => r.number), [3, 4, 5]);
  const reader = await again.client("a", { from: 2 });
  assert.deepEqual((await gather(reader)).map((r) => r.number), [2, 3, 4, 5]);
  assert.deepEqual((await gather(reader, 4)).map((r) => r.number), [4, 5]);
  assert.deepEqual((await gather(reader, 1)).map((r) => r.text), ["1", "2", "3", "4", "5"]);
  await again.detach();
});

test("a program that was killed continues after the requests that are kept", async () => {
  work(echo);
  const session = await open();
  const killed = await session.client("a");
  for (let n = 1; n <= 10; n++) await killed.send(String(n));
  await killed.flush();
  broker.paused = true;
  for (let n = 11; n <= 20; n++) await killed.send(String(n));
  const client = await session.client("a"); // replaces the first one, as a new process does
  broker.paused = false;
  assert.equal(client.lastRequest, 10);
  for (let n = client.lastRequest + 1; n <= 30; n++) assert.equal(await client.send(String(n)), n);
  assert.equal(await client.end(30), 30);
  assert.deepEqual((await gather(client)).map((r) => r.text), Array.from({ length: 30 }, (_, n) => String(n + 1)));
});

test("processed responses are confirmed, others are not", async () => {
  work(echo, { concurrency: 100 });
  const client = await (await open()).client("a");
  for (let n = 0; n < 2500; n++) await client.send("x");
  await client.end();
  const iterator = client.responses();
  for (let n = 0; n < 1001; n++) await iterator.next();
  await eventually("the first 1,000 are confirmed", () => broker.stream("ses-1", "a").received === 1000);
  await iterator.next();
  await eventually("the others are confirmed after a time", () => broker.stream("ses-1", "a").received === 1001);
});

test("a handler that throws stops the client", async () => {
  work(echo);
  const client = await (await open()).client("a");
  await client.send("x");
  const handled = client.onResponse(() => {
    throw new Error("no space");
  });
  await assert.rejects(handled, /no space/);
  await assert.rejects(client.flush(), /no space/);
  assert.equal(broker.stream("ses-1", "a").received, 0);
});

test("two connections with one client name do not fight", async () => {
  const session = await open();
  const first = await session.client("a");
  const second = await session.client("a");
  await eventually("the first one is replaced", () => first.send("x").then(() => false, (error: Error) => /newer connection has the same name/.test(error.message)));
  assert.deepEqual(await second.flush(), { requests: 0, accepted: 0 });
});

test("a session that was closed elsewhere ends its clients", async () => {
  const session = await open();
  const client = await session.client("a");
  await client.flush();
  const reading = gather(client);
  const other = await Session.attach({ ...broker.server, id: session.id });
  await other.close({ purge: true });
  assert.equal((await rejection(reading, ProblemError)).problem.detail, "the session was closed by a client");
  await rejection(client.send("x"), ProblemError);
});

test("a client that stays without a server gives up in the end", async () => {
  const client = await (await open({ reconnectFor: 0 })).client("a");
  const reading = gather(client);
  await broker.stop();
  broker = await Broker.start();
  await rejection(reading, ConnectionError);
});

test("the first connection waits for a cluster without a leader", async () => {
  work(echo);
  const session = await open();
  broker.leaderless = 1;
  const client = await session.client("a");
  assert.ok(broker.leaderless <= 0);
  await client.send("x");
  assert.equal(await client.end(1), 1);
  assert.equal((await gather(client)).length, 1);
  const impatient = await open({ reconnectFor: 0 });
  broker.leaderless = 2;
  const error = await rejection(impatient.client("b"), ProblemError);
  assert.equal(error.problem.status, 503);
});

test("close with purge removes the stream", async () => {
  const client = await (await open()).client("a");
  await client.send("x");
  await client.flush();
  await client.close({ purge: true });
  assert.equal(broker.sessions.get("ses-1")!.streams.size, 0);
  assert.match((await rejection(client.send("x"), ProblemError)).message, /client a is closed/);
});

test("close sends what was not sent", async () => {
  const client = await (await open()).client("a");
  void client.send("x");
  await client.close();
  assert.equal(broker.stream("ses-1", "a").requests, 1);
});

test("await using closes an interactive session", async () => {
  {
    await using session = await Session.open({ ...broker.server, worker: "echo" });
    await using client = await session.client("a");
    await client.send("x");
  }
  assert.equal(broker.sessions.size, 0);
});

test("a pool divides requests over its sessions", async () => {
  work(echo);
  const pool = await Pool.open({ ...broker.server, worker: "echo", name: "p", sessions: 3 });
  const client = await pool.client("a");
  for (let n = 0; n < 30; n++) await client.send(String(n));
  assert.match((await rejection(client.end(31), ProblemError)).message, /30 accepted requests instead of 31/);
  assert.equal(await client.end(30), 30);
  const seen = [];
  for await (const response of client.responses()) seen.push(Number(response.text));
  assert.deepEqual(seen.sort((a, b) => a - b), Array.from({ length: 30 }, (_, n) => n));
  assert.deepEqual([...broker.sessions.values()].map((s) => s.streams.get("a")!.accepted), [10, 10, 10]);
  await pool.close();
  assert.equal(broker.sessions.size, 0);
});

test("faults, retries and exceptions", async () => {
  work((task) => {
    if (task.text === "fault") throw new Fault("no_price", "there is no price", "detail");
    if (task.text === "crash") throw new TypeError("boom");
    if (task.text === "reject") return Promise.reject(new Error("later"));
    if (task.text === "object") return {} as unknown as string;
    if (task.text === "large") return "x".repeat(1001);
    if (task.text === "never") throw new Retry("not ready");
    if (task.text === "retry" && task.attempt < 3) throw new Retry("not yet");
    return `attempt ${task.attempt}`;
  });
  const session = await open({ resends: 2 });
  const client = await session.client("a");
  for (const body of ["fault", "crash", "reject", "object", "large", "retry", "never"]) await client.send(body, { id: body });
  await client.end(7);
  const found = new Map((await gather(client)).map((r) => [r.id, r]));
  assert.deepEqual(found.get("fault")!.fault, { code: "no_price", message: "there is no price", detail: "detail" });
  assert.equal(found.get("fault")!.attempts, 1);
  const crash = found.get("crash")!.fault!;
  assert.deepEqual([crash.code, crash.message], ["fault", "boom"]);
  assert.match(crash.detail!, /TypeError: boom\n +at .*session\.test/);
  assert.equal(found.get("reject")!.fault!.message, "later");
  assert.equal(found.get("object")!.fault!.message, "the worker returned object: it must return text, a Uint8Array or nothing");
  assert.equal(found.get("large")!.fault!.message, "the response has 1001 bytes; the message limit of worker echo is 1000");
  assert.equal(found.get("retry")!.text, "attempt 3");
  assert.deepEqual([found.get("never")!.fault, found.get("never")!.attempts], [{ code: "retry", message: "not ready" }, 3]);
});

test("a worker runs as many tasks as its capacity", async () => {
  let running = 0;
  let most = 0;
  const release: (() => void)[] = [];
  work(async () => {
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => release.push(resolve));
    running--;
  }, { concurrency: 3 });
  const client = await (await open()).client("a");
  for (let n = 0; n < 10; n++) await client.send("x");
  await client.end(10);
  let done = 0;
  const handled = client.onResponse(() => void done++);
  await eventually("all tasks ran", () => {
    if (running === 3 || done >= 7) release.splice(0).forEach((resolve) => resolve());
    return done === 10;
  });
  await handled;
  assert.equal(most, 3);
});

test("cancellation and timeout abort the signal of a task", async () => {
  const reasons: string[] = [];
  work(async (task) => {
    await new Promise<void>((resolve) => task.signal.addEventListener("abort", () => resolve()));
    reasons.push((task.signal.reason as Error).name);
  });
  const client = await (await open()).client("a");
  await client.send("x", { timeout: 20 });
  await client.send("x");
  await client.flush();
  await eventually("the first one has passed its timeout", () => reasons.length === 1);
  await eventually("the second one runs", () => broker.dispatched.length === 2 && [...broker.instances][0]!.running.size === 1);
  broker.cancel([...broker.instances][0]!);
  await eventually("it is stopped", () => reasons.length === 2);
  assert.deepEqual(reasons, ["TimeoutError", "AbortError"]);
});

for (const how of ["SIGTERM", "drain"]) {
  test(`an instance finishes its tasks and returns the others (${how})`, async () => {
    let finish: (() => void) | undefined;
    const first = work(() => new Promise<void>((resolve) => (finish = resolve)), { instance: "first" });
    await eventually("it is connected", () => broker.instances.size === 1);
    const client = await (await open()).client("a");
    await client.send("runs");
    await client.send("waits");
    await client.end(2);
    await eventually("one task runs", () => finish !== undefined && broker.dispatched.length === 2);
    if (how === "drain") broker.drain([...broker.instances][0]!);
    else first.abort();
    await eventually("the other task is returned", () => [...broker.instances][0]!.running.size === 1);
    assert.ok([...broker.instances][0]!.leaving);
    work(() => "second", { instance: "second" });
    finish!();
    await first.finished;
    const all = await gather(client);
    assert.deepEqual(all.map((r) => [r.request, r.text, r.attempts]).sort(), [[1, "", 1], [2, "second", 1]]);
  });
}

test("a worker connects again, and drops the tasks of the lost connection", async () => {
  const aborted: number[] = [];
  let hold = true;
  let started = 0;
  const instance = work(async (task) => {
    started++;
    if (hold) await new Promise<void>((resolve) => task.signal.addEventListener("abort", () => resolve()));
    if (task.signal.aborted) aborted.push(task.request);
    return `attempt ${task.attempt}`;
  });
  const client = await (await open()).client("a");
  await client.send("x");
  await client.end(1);
  await eventually("it runs", () => started === 1);
  hold = false;
  [...broker.instances][0]!.socket.terminate();
  assert.deepEqual((await gather(client)).map((r) => r.text), ["attempt 2"]);
  assert.deepEqual(aborted, [1]);
  assert.ok(instance.lines.some((line) => /connects again/.test(line)) && instance.lines.some((line) => /connected again/.test(line)), instance.lines.join("\n"));
});

test("two instances with one name do not fight", async () => {
  const first = work(echo);
  await eventually("it is connected", () => broker.instances.size === 1);
  work(echo);
  assert.match((await rejection(first.finished, ConnectionError)).message, /newer connection has the same name/);
});

test("missing settings are named", async () => {
  assert.equal((await rejection(run(echo, { handleSignals: false }), ProblemError)).message, "422 invalid: the address of the server is not set (set the environment variable FANFARE_URL, or pass the option)");
  assert.match((await rejection(run(echo, { ...broker.server, handleSignals: false }), ProblemError)).message, /FANFARE_WORKER/);
});
