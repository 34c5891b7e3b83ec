/** The status that pages share, and the reasons for which messages did not arrive, against the real server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Browser, Page } from "playwright-core";

import { startBrowser, Visitor } from "./browser.ts";
import { eventually, Server } from "./server.ts";

let server: Server;
let browser: Browser;

before(async () => {
  server = await Server.start();
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

test("the pages of a browser share one stream, and another page continues it", async () => {
  const visitor = await Visitor.start(browser, server);
  const streams = new Map<Page, number>(); // requests of each page
  visitor.context.on("request", (request) => {
    const page = request.frame().page();
    if (new URL(request.url()).pathname === "/v1/live") streams.set(page, (streams.get(page) ?? 0) + 1);
  });
  await visitor.signIn();
  const first = visitor.page;
  await first.locator(".live.live").waitFor();
  const second = await visitor.context.newPage();
  await second.goto(`${server.url}/console/`);
  await second.locator(".live.live").waitFor();
  assert.equal(streams.get(first), 1);
  assert.equal(streams.get(second), undefined, "the second page has no stream");

  await server.ask("POST", "/v1/pause", { scope: { kind: "all" }, reason: "maintenance" }, "");
  for (const page of [first, second]) {
    await page.getByText("maintenance").waitFor();
    await page.getByText("by key-1 (admin of the first start)").waitFor();
  }
  await first.close();
  await eventually("the second page has a stream", () => streams.get(second) === 1);
  await server.ask("POST", "/v1/resume", { scope: { kind: "all" } }, "");
  await second.getByText("maintenance").waitFor({ state: "detached" });
  await second.locator(".live.live").waitFor();
  assert.deepEqual(visitor.faults, []);
  await visitor.close();
});

test("an event shows why messages did not arrive, and each reason leads to its messages", async () => {
  await server.subscribe(40, "story");
  const event = await server.publish("story", "A reason");
  await server.reaches(event, "completed");
  const { deliveries, reasons } = await server.event(event);
  assert.equal(reasons.length, 1, JSON.stringify(reasons));
  assert.equal(reasons[0].deliveries, deliveries.failed);
  const visitor = await Visitor.start(browser, server);
  await visitor.signIn();
  await visitor.open(`event?id=${event}&service=news`);
  const table = visitor.page.getByRole("region", { name: "Why messages did not arrive" }).or(visitor.page.getByRole("table", { name: "Why messages did not arrive" })).first();
  await table.getByText(reasons[0].reason).waitFor();
  await table.getByRole("link", { name: String(deliveries.failed) }).click();
  const list = visitor.page.getByRole("table", { name: "Deliveries" });
  await eventually("the list has the failed deliveries", async () => (await list.getByRole("row").count()) === deliveries.failed + 1);
  assert.equal(new URL(visitor.page.url()).searchParams.get("reason"), reasons[0].reason);
  await visitor.accessible("an event with reasons");

  // The message of a delivery is shown, rendered again.
  await list.getByRole("link", { name: "Details" }).first().click();
  await visitor.page.getByRole("heading", { name: "The message" }).waitFor();
  await visitor.page.locator("pre", { hasText: "A reason at Dover" }).waitFor();
  await visitor.accessible("a delivery with its message");
  await visitor.check();
  await visitor.close();
});
