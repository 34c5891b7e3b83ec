import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { eventually, type Server, startServer } from "./server.js";

let server: Server;
after(() => server.stop());
before(async () => {
  server = await startServer();
});

// readme.ts is made of the blocks of the README when the package is built.
test("the README runs as it stands", async () => {
  process.env["FANFARE_SERVER"] = server.url;
  process.env["FANFARE_KEY"] = server.key;
  process.env["RELAY"] = server.relay;
  const told = await import("./readme.js");

  for (const kind of ["topic", "template", "channel"]) {
    assert.ok(told.diff.changes.some((c) => c.action === "create" && c.kind === kind), kind);
  }
  assert.deepEqual(told.failed.map((bad) => [bad.line, bad.error.pointer]), [[8, "/to"]]);
  assert.equal(told.more.length, 2);
  assert.deepEqual([told.states.size, new Set(told.states.values())], [1000, new Set(["accepted"])]);
  assert.deepEqual([told.refused?.problem.status, told.refused?.code, told.refused?.problem.pointer], [422, "invalid", "/data/percent"]);
  assert.equal(told.message.state, "accepted");
  await eventually("everybody got three mails, Ada and Grace one", () => server.arrived().length === 3 * 999 + 2);
  assert.equal(server.arrived().filter((to) => to === "ada@example.com").length, 1);
});
