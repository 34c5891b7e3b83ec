import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Broker } from "./broker.js";
import { eventually } from "./server.js";

const program = (name: string, env: Record<string, string>): { child: ChildProcess; output: () => string } => {
  let text = "";
  const child = spawn(process.execPath, [`dist/examples/${name}.js`], { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) stream!.on("data", (part: Buffer) => (text += part.toString()));
  return { child, output: () => text };
};

test("the README shows the examples, and a first worker has at most 15 lines", () => {
  const readme = readFileSync("README.md", "utf8");
  for (const name of ["worker", "client"]) {
    const source = readFileSync(`examples/${name}.ts`, "utf8");
    assert.ok(readme.includes("```typescript\n" + source + "```\n"), name);
    if (name === "worker") assert.ok(source.split("\n").length <= 16);
  }
});

test("the examples run", async () => {
  const broker = await Broker.start();
  broker.workers.add("pricing");
  const env = { FANFARE_URL: broker.server.url, FANFARE_KEY: broker.server.key, FANFARE_WORKER: "pricing" };
  const worker = program("worker", env);
  await eventually("the worker is connected", () => {
    assert.equal(worker.child.exitCode, null, worker.output());
    return broker.instances.size === 1;
  });
  const client = program("client", env);
  const [code] = (await once(client.child, "close")) as [number];
  assert.deepEqual([code, client.output()], [0, `total ${100 * 101}\n`]);
  worker.child.kill("SIGTERM");
  const [stopped] = (await once(worker.child, "close")) as [number];
  assert.deepEqual([stopped, worker.output()], [0, ""]);
  await broker.stop();
});
