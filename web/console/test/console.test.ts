/** The console against the real server. Effects are verified through the API. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";

import type { Browser } from "playwright-core";

import { startBrowser, Visitor } from "./browser.ts";
import { eventually, hostile, Server } from "./server.ts";

const pictures = process.env["PICTURES"] ?? resolve("../../build/console-screenshots");
let server: Server;
let browser: Browser;
let story = ""; // an event with accepted and failed deliveries

before(async () => {
  mkdirSync(pictures, { recursive: true });
  server = await Server.start();
  browser = await startBrowser();
  await server.subscribe(40, "story");
  await server.subscribe(5, "offer");
  await server.subscribe(60, "warning", "slow");
  await server.subscribe(10, "story", "email", "weather");
  await server.ask("POST", "/v1/suppressions", { address: "story7@example.org", source: hostile });
  story = await server.publish("story", `Bridge closed ${hostile}`);
  await server.publish("story", "Storm over the coast", "weather");
  await server.reaches(story, "completed");
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const visit = async (key = server.key, options = {}): Promise<Visitor> => {
  const visitor = await Visitor.start(browser, server, options);
  await visitor.signIn(key);
  return visitor;
};

test("a wrong key is refused with the error and the hint of the server", async () => {
  const visitor = await Visitor.start(browser, server);
  await visitor.page.goto(`${server.url}/console/`);
  await visitor.page.getByLabel("API key").fill("wrong");
  await visitor.page.getByRole("button", { name: "Sign in" }).click();
  const alert = visitor.page.getByRole("alert");
  await alert.waitFor();
  assert.match(await alert.innerText(), /key/);
  assert.equal(await visitor.page.getByLabel("API key").inputValue(), "");
  await visitor.accessible("sign-in with an error");
  await visitor.page.screenshot({ path: join(pictures, "sign-in.png") });
  await visitor.check();
  await visitor.close();
});

test("a sign-in ends with the button, and the browser stores no key", async () => {
  const visitor = await visit();
  const stored = await visitor.page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie);
  assert.ok(!stored.includes(server.key));
  await visitor.page.getByRole("button", { name: "Sign out" }).click();
  await visitor.page.getByLabel("API key").waitFor();
  await visitor.page.reload();
  await visitor.page.getByLabel("API key").waitFor();
  await visitor.check();
  await visitor.close();
});

test("every page is accessible, keeps its policy, and fits in light, dark and on a phone", async () => {
  const held = await server.publish("offer", "An offer");
  await server.reaches(held, "held");
  const slow = await server.publish("warning", `High water ${hostile}`);
  await server.reaches(slow, "running");
  const { deliveries } = await server.ask("GET", `/v1/events/${story}/deliveries?state=failed`);
  assert.ok(deliveries.length > 0, "some deliveries failed");
  const { subscriptions } = await server.ask("GET", "/v1/subscriptions?topic=story&limit=1");
  await server.ask("PUT", "/v1/mailboxes/story1@example.org");
  const session = await server.ask("POST", "/v1/sessions", { worker: "resize" });

  const addresses: Record<string, string> = {
    "now": "", "now-all": "?service=", "broadcasts": "broadcasts", "broadcast-failed": `broadcast?id=${story}`, "broadcast-running": `broadcast?id=${slow}`, "broadcast-held": `broadcast?id=${held}`,
    "events": "events", "event": `event?id=${story}`, "delivery": `delivery?id=${deliveries[0].id}`, "people": "people", "person": `person?id=story7@example.org&event=${story}`, "person-unknown": "person?id=nobody@example.org",
    "subscriptions": "subscriptions", "subscription": `subscription?id=${subscriptions[0].id}&event=${story}`, "suppressions": "suppressions", "channels": "channels", "channel": "channel?name=slow",
    "parked": "parked", "topics": "topics", "topic": "topic?name=story", "templates": "templates", "template": "template?name=story", "captured": "captured", "mailboxes": "mailboxes", "mailbox": "mailbox?address=story1@example.org", "sessions": "sessions", "session": `session?id=${session.id}`, "nodes": "nodes", "audit": "audit", "keys": "keys?service=", "missing": "nothing",
  };
  for (const [look, options] of Object.entries({
    light: {}, dark: { colorScheme: "dark" }, phone: { viewport: { width: 390, height: 844 } }, "right-to-left": {},
  })) {
    const visitor = await visit(server.key, options);
    for (const [name, address] of Object.entries(addresses)) {
      const service = address.includes("service=") ? "" : `${address.includes("?") ? "&" : "?"}service=news`;
      await visitor.open(address + service);
      if (look === "right-to-left") await visitor.page.evaluate(() => (document.documentElement.dir = "rtl"));
      const wide = await visitor.page.evaluate(() => Math.max(document.documentElement.scrollWidth - innerWidth, ...[...document.querySelectorAll("main h1, main section")].map((one) => -one.getBoundingClientRect().left)));
      assert.ok(wide <= 0, `${name} is ${wide} pixels too wide: ${look}`);
      await visitor.page.screenshot({ path: join(pictures, `${name}-${look}.png`), fullPage: true });
      await visitor.accessible(`${name} ${look}`);
      await visitor.check();
    }
    await visitor.close();
  }
  for (const event of [slow, held]) await server.cancel(event);
});

test("hostile texts are shown as texts", async () => {
  const visitor = await visit();
  await visitor.open(`event?id=${story}&service=news`);
  const text = await visitor.page.locator("main").innerText();
  assert.ok(text.includes("<script>window.hacked=1</script>"));
  assert.equal(await visitor.page.locator("main script, main img").count(), 0);
  await visitor.check();
  await visitor.close();
});

test("a broadcast is paused, resumed and cancelled", async () => {
  const event = await server.publish("warning", "Flood");
  await server.reaches(event, "running");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open(`broadcast?id=${event}&service=news`);
  const dialog = page.getByRole("dialog");

  await page.getByRole("button", { name: "Pause" }).click();
  assert.match(await dialog.innerText(), /Nothing more is sent/);
  await dialog.getByLabel("Reason").fill(`wrong text ${hostile}`);
  await visitor.accessible("question");
  await page.screenshot({ path: join(pictures, "question.png") });
  await dialog.getByRole("button", { name: "Pause" }).click();
  await server.reaches(event, "paused");
  assert.match((await server.event(event)).reason, /wrong text/);

  await page.getByRole("button", { name: "Resume" }).click();
  await dialog.getByRole("button", { name: "Resume" }).click();
  await server.reaches(event, "running");

  await page.getByRole("button", { name: "Cancel broadcast" }).click();
  assert.match(await dialog.innerText(), /cannot be undone/);
  await dialog.getByRole("button", { name: "Cancel broadcast" }).click();
  await server.reaches(event, "cancelled", "completed");
  assert.ok((await server.event(event)).deliveries.cancelled > 0);
  await visitor.check();
  await visitor.close();
});

test("a held broadcast is approved", async () => {
  const event = await server.publish("offer", "Sale");
  await server.reaches(event, "held");
  const visitor = await visit();
  await visitor.open(`broadcast?id=${event}&service=news`);
  await visitor.page.getByRole("button", { name: "Approve" }).click();
  await visitor.page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await server.reaches(event, "completed");
  await visitor.check();
  await visitor.close();
});

test("a channel is paused on its page, and resumed on the page Now", async () => {
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("channel?name=email&service=news");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("relay is replaced");
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
  const paused = async () => (await server.ask("GET", "/v1/status")).paused;
  await eventually("it is paused", async () => (await paused()).some((one: any) => one.scope.name === "news/email" && one.reason === "relay is replaced"));
  await visitor.open("?service=news");
  await page.getByText("relay is replaced").waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  await eventually("it is resumed", async () => (await paused()).length === 0);
  await visitor.check();
  await visitor.close();
});

test("a service is paused and resumed on the page Now", async () => {
  const visitor = await visit();
  const { page } = visitor;
  const dialog = page.getByRole("dialog");
  await visitor.open("?service=weather");
  await page.getByRole("button", { name: "Pause sending" }).click();
  assert.match(await dialog.innerText(), /service weather/);
  await dialog.getByRole("button", { name: "Pause" }).click();
  const paused = async () => (await server.ask("GET", "/v1/status", undefined, "")).paused;
  await eventually("it is paused", async () => (await paused()).some(({ scope }: any) => scope.kind === "service" && scope.name === "weather"));
  const event = await server.publish("story", "Hail", "weather");
  const accepted = async () => (await server.ask("GET", `/v1/events/${event}`, undefined, "weather").catch(() => undefined))?.deliveries ?? {};
  await eventually("its messages wait", async () => (await accepted()).pending === 10);
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Pause sending" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Resume" }).click();
  await dialog.getByRole("button", { name: "Resume" }).click();
  await eventually("its messages are sent", async () => !(await accepted()).pending);
  assert.deepEqual(await paused(), []);
  await page.getByRole("button", { name: "Pause sending" }).waitFor();
  await visitor.check();
  await visitor.close();
});

test("a destination that asked for a pause is resumed", async () => {
  let isReady = false;
  const receiver = createServer((request, response) => {
    request.resume();
    response.writeHead(isReady ? 204 : 429, isReady ? {} : { "Retry-After": "3600" }).end();
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const name = `127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  await server.ask("POST", "/v1/subscriptions", { topic: "price", channel: "hook", to: `http://${name}/` });
  const first = await server.publish("price", "Oil");
  const destinations = async () => (await server.ask("GET", "/v1/channels/hook/destinations")).destinations;
  await eventually("it is suspended", async () => (await destinations()).some((one: any) => one.name === name && one.state === "suspended"));
  const event = await server.publish("price", "Gas");
  await eventually("the next message waits", async () => (await destinations()).some((one: any) => (one.aside ?? 0) + (one.postponed ?? 0) > 0));
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("channel?name=hook&service=news");
  const row = page.getByRole("row").filter({ hasText: name }).filter({ has: page.getByRole("button") });
  await row.getByText("suspended").waitFor();
  await visitor.accessible("channel with a destination");
  await page.screenshot({ path: join(pictures, "destination.png"), fullPage: true });
  isReady = true;
  await row.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  await server.reaches(event, "completed");
  assert.equal((await server.event(event)).deliveries.accepted, 1);
  await row.waitFor({ state: "detached" });
  await server.cancel(first);
  await visitor.check();
  await visitor.close();
  receiver.close();
});

test("a retry of parked work that the server refuses says why, and the work is dropped", async () => {
  const visitor = await visit();
  const { page } = visitor;
  const dialog = page.getByRole("dialog");
  let parked = [{ id: "prk-1", kind: "batch", event: story, reason: `the batch is damaged ${hostile}`, failures: 5, members: 250, at: "2026-03-01T10:00:00Z" }];
  const requests: string[] = [];
  await page.route(/\/v1\/parked/, (route) => {
    const request = route.request();
    if (request.method() === "GET") return route.fulfill({ json: { parked } });
    requests.push(`${request.method()} ${new URL(request.url()).pathname}`);
    if (request.method() === "POST") return route.fulfill({ status: 409, json: { code: "conflict", detail: "the batch cannot be read", hint: "drop the batch" } });
    parked = [];
    return route.fulfill({ status: 204 });
  });
  await visitor.open("parked?service=news");
  await page.getByRole("button", { name: "Retry", exact: true }).click();
  assert.match(await dialog.innerText(), /for 250 recipients/);
  await dialog.getByRole("button", { name: "Retry" }).click();
  await dialog.getByText("drop the batch").waitFor();
  await visitor.accessible("refused retry");
  await dialog.getByRole("button", { name: "Back" }).click();
  await page.getByRole("button", { name: "Drop", exact: true }).click();
  assert.match(await dialog.innerText(), /250 recipients get no message/);
  await dialog.getByRole("button", { name: "Drop" }).click();
  await page.getByText("Nothing is parked.").waitFor();
  assert.deepEqual(requests, ["POST /v1/parked/prk-1/retry", "DELETE /v1/parked/prk-1"]);
  await visitor.check();
  await visitor.close();
});

test("a person is found by the address, and a suppression is lifted", async () => {
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("?service=news");
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").fill("story7@example.org");
  await visitor.accessible("palette");
  await page.screenshot({ path: join(pictures, "palette.png") });
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "story7@example.org" }).waitFor();
  await page.getByLabel("Id of the event").fill(story);
  await page.getByRole("button", { name: "Explain" }).click();
  await page.locator(".explained").first().waitFor();
  await page.getByRole("button", { name: "Lift suppression" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Lift suppression" }).click();
  await eventually("it is lifted", async () => (await server.ask("GET", "/v1/suppression-list")).suppressions.length === 0);
  await visitor.check();
  await visitor.close();
});

test("a person is erased after their address was typed, and their mailbox is shown before", async () => {
  const address = "erased@example.org";
  await server.ask("POST", "/v1/subscriptions", { topic: "offer", channel: "email", to: address });
  await server.ask("PUT", `/v1/mailboxes/${address}`);
  const viewer = await visit(await server.createKey("viewer of people", ["read"]));
  await viewer.open(`person?id=${address}`);
  await viewer.page.getByRole("heading", { name: `Mailbox ${address}` }).waitFor();
  assert.equal(await viewer.page.getByRole("button", { name: "Erase" }).count(), 0);
  await viewer.close();

  const visitor = await visit();
  const { page } = visitor;
  await visitor.open(`person?id=${address}&service=news`);
  await page.getByRole("table", { name: `Folders of ${address}` }).getByText("inbox", { exact: true }).waitFor();
  await visitor.accessible("person with a mailbox");
  await page.screenshot({ path: join(pictures, "person-mailbox.png"), fullPage: true });
  await page.getByRole("button", { name: "Erase" }).click();
  const dialog = page.getByRole("dialog");
  const button = dialog.getByRole("button", { name: "Erase" });
  assert.ok(await button.isDisabled());
  await dialog.getByLabel("To continue, type").fill("someone@example.org");
  assert.ok(await button.isDisabled());
  await dialog.getByLabel("To continue, type").press("Enter");
  await dialog.getByLabel("To continue, type").fill(address);
  await dialog.getByLabel("Also prevent").check();
  await visitor.accessible("erasure");
  await page.screenshot({ path: join(pictures, "erase.png") });
  assert.equal((await server.ask("GET", `/v1/subscribers?address=${address}`)).subscribers.length, 1);
  await button.click();
  await page.waitForURL(/people/);
  assert.deepEqual((await server.ask("GET", `/v1/subscribers?address=${address}`)).subscribers, []);
  assert.ok((await server.ask("GET", "/v1/suppression-list")).suppressions.some((one: any) => one.reason === "erased"));
  await visitor.check();
  await visitor.close();
});

test("mailboxes, sessions and nodes are reached from the page Now, if the server answers and the key may see them", async () => {
  await server.ask("PUT", "/v1/mailboxes/story2@example.org");
  await server.ask("PATCH", "/v1/mailboxes/story2@example.org", { max_bytes: 5_000_000, disabled: true });
  const { id } = await server.ask("POST", "/v1/sessions", { worker: "resize", name: "thumbnails", max_instances: 4 });
  const visitor = await Visitor.start(browser, server);
  const { page } = visitor;
  const node = { url: "http://10.0.0.1:8085", version: "0.2.0", roles: ["all"], started_at: "2026-03-01T10:00:00Z", last_seen_at: "2026-03-01T12:00:00Z", silent_seconds: 0.4, responding: true, clock_skew_ms: 1.25, leader: true, delivers: true, matches: true, connections: 12 };
  const nodes = [{ ...node, name: hostile }, { ...node, name: "fan-2", leader: false, responding: false }];
  await page.route("**/v1/nodes", (route) => route.fulfill({ json: { clustered: true, nodes, bus: { embedded: true, replicas: 3, current: 2, sync: "always" } } }));
  await visitor.signIn();
  const main = page.getByRole("main");
  await main.getByRole("link", { name: "Sessions" }).click(); // without a service, the page asks for it
  await main.getByRole("button", { name: "weather" }).click();
  await page.getByText("There are no sessions").waitFor();
  await visitor.open("?service=news");
  await main.getByRole("link", { name: "Mailboxes" }).click();
  await page.getByRole("row").filter({ hasText: "story2@example.org" }).filter({ hasText: "disabled" }).getByRole("link").click();
  await page.getByText("of 5 MB").waitFor();
  await page.getByRole("cell", { name: "inbox", exact: true }).waitFor();

  await visitor.open("?service=news");
  await main.getByRole("link", { name: "Sessions" }).click();
  await page.getByLabel("Worker").fill("resize");
  await page.getByLabel("Worker").press("Enter");
  await page.waitForURL(/worker=resize/);
  await page.getByRole("link", { name: "thumbnails" }).click();
  await page.getByText("No client has connected yet").waitFor();
  await page.getByText("0 (0–4)").waitFor();

  await visitor.open("?service=news");
  await main.getByRole("link", { name: "Nodes" }).click();
  await page.getByText("Some NATS servers lack a complete copy").waitFor();
  assert.equal(await page.getByRole("row").filter({ hasText: "fan-2" }).getByText("down").count(), 1);
  await visitor.accessible("nodes");
  await page.screenshot({ path: join(pictures, "nodes-cluster.png"), fullPage: true });
  await visitor.check();
  await visitor.close();

  const viewer = await Visitor.start(browser, server);
  await viewer.page.route("**/v1/mailboxes?**", (route) => route.fulfill({ status: 404, json: { code: "not_found", detail: "no such route" } }));
  await viewer.signIn(await server.createKey("viewer of sessions", ["read"]));
  await viewer.page.getByRole("main").getByRole("link", { name: "Sessions" }).waitFor();
  assert.equal(await viewer.page.getByRole("link", { name: /Mailboxes|Nodes/ }).count(), 0);
  await viewer.check();
  await viewer.close();
  await server.ask("DELETE", `/v1/sessions/${id}`);
});

test("a sign-in of somebody else is ended, and their page says so", async () => {
  const other = await visit(await server.createKey("Ada", ["admin"]));
  const visitor = await visit();
  await visitor.open("keys?service=");
  const row = visitor.page.getByRole("row").filter({ hasText: "Ada (" }).filter({ has: visitor.page.getByRole("button") });
  await row.getByRole("button", { name: "End" }).click();
  await visitor.page.getByRole("dialog").getByRole("button", { name: "End" }).click();
  await eventually("it is ended", async () => (await server.ask("GET", "/v1/sign-ins")).sign_ins.every((one: any) => one.key_name !== "Ada"));
  await other.page.getByRole("link", { name: "Events", exact: true }).click();
  await other.page.getByText("Your sign-in has ended").waitFor();
  await visitor.check();
  await visitor.close();
  await other.close();
});

test("a viewer is offered no action, and no page that needs more", async () => {
  const visitor = await visit(await server.createKey("viewer", ["read"]));
  const { page } = visitor;
  assert.equal(await page.getByRole("link", { name: "Audit log" }).count(), 0);
  const event = await server.publish("warning", "Ice");
  await server.reaches(event, "running");
  await visitor.open(`broadcast?id=${event}`);
  assert.equal(await page.getByRole("button", { name: /Pause|Cancel/ }).count(), 0);
  await visitor.open("audit");
  await page.getByText("Your key may not see this page").waitFor();
  await server.cancel(event);
  await visitor.check();
  await visitor.close();
});

test("filters are in the address, and an export has the rows that match, without formulas", async () => {
  await server.ask("POST", "/v1/subscriptions", { topic: "story", channel: "email", to: "=1+1@example.org" });
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("subscriptions?service=news&topic=warning");
  await visitor.settled();
  assert.equal(await page.locator("tbody tr").count(), 60);
  await page.getByLabel("Topic").fill("story");
  await page.getByLabel("Topic").press("Enter");
  await page.waitForURL(/topic=story/);
  await page.getByText("=1+1@example.org").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: /Export/ }).click()]);
  const chunks: Buffer[] = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  assert.match(text, /^id,subscriber,service,topic,/);
  assert.ok(text.includes(",'=1+1@example.org,"), text.slice(0, 400));
  assert.ok(!text.includes(",warning,"));
  await visitor.check();
  await visitor.close();
});

test("the keyboard leads to pages, and the language changes", async () => {
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("?service=news");
  await page.keyboard.press("g");
  await page.keyboard.press("b");
  await page.waitForURL(/broadcasts/);
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await visitor.accessible("keys");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByLabel("Language").selectOption("de");
  await page.getByRole("heading", { name: "Aussendungen" }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.lang), "de");
  await page.reload();
  await page.getByRole("heading", { name: "Aussendungen" }).waitFor();
  await page.screenshot({ path: join(pictures, "german.png") });
  await visitor.check();
  await visitor.close();
});

test("the page Now shows events of the live stream, and plots with tables", async () => {
  const visitor = await Visitor.start(browser, server);
  const { page } = visitor;
  const now = Math.floor(Date.now() / 300_000) * 300_000;
  const rates = Array.from({ length: 288 }, (_, n) => ({
    at: new Date(now - (288 - n) * 300_000).toISOString(), minutes: 5, outcomes: { accepted: Math.round(4000 + 3000 * Math.sin(n / 20)), failed: n % 40 }, pending: 500 + 10 * (n % 30), deferred: 0,
  })).filter((_, n) => n < 100 || n > 110); // the server did not run for a time
  await page.route("**/v1/rates*", (route) => route.fulfill({ json: { rates } }));
  const status = await server.ask("GET", "/v1/status");
  status.deliveries.accepted_per_second = 4711;
  await page.route("**/v1/live*", (route) => route.fulfill({ contentType: "text/event-stream", body: `retry: 2000\n\n:\n\nevent: status\ndata: ${JSON.stringify(status)}\n\n` }));
  await visitor.signIn();
  await page.getByText("4,711").waitFor();
  await page.locator(".plot canvas").nth(1).waitFor();
  await page.getByText("Pending deliveries as a table").click();
  await page.getByRole("region", { name: "Pending deliveries" }).waitFor();
  await visitor.accessible("plots");
  await page.screenshot({ path: join(pictures, "plots-light.png"), fullPage: true });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.screenshot({ path: join(pictures, "plots-dark.png"), fullPage: true });
  await visitor.check();
  await visitor.close();
});

test("a lost connection is shown with the time of the values", async () => {
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("?service=news");
  await page.getByText("Accepted/s").waitFor();
  await page.route("**/v1/**", (route) => route.abort());
  await visitor.context.setOffline(true);
  await page.getByText("The connection to the server is lost.").waitFor();
  await page.getByText(/The values of this page are from \d\d:\d\d:\d\d/).waitFor();
  await page.screenshot({ path: join(pictures, "lost.png") });
  await visitor.context.setOffline(false);
  await page.unroute("**/v1/**");
  await page.getByText("The connection to the server is lost.").waitFor({ state: "detached" });
  await visitor.close();
});

/** An email that tries to run scripts, and to load something, wherever a page shows a part of it. */
const hostileMail = (elsewhere: string): string => {
  const text = hostile.replace("https://evil.example", elsewhere);
  const name = `=?utf-8?B?${Buffer.from(`"><b>${text}.html`).toString("base64")}?=`;
  return [
    "Delivered-To: story0@example.org", "X-Fanfare-Captured: news/email", "From: news@example.org", "To: story0@example.org", `Subject: Captured ${text}`, "Message-ID: <1@example.org>", `X-Hostile: ${text}`,
    "MIME-Version: 1.0", 'Content-Type: multipart/mixed; boundary="b"', "",
    "--b", "Content-Type: text/html; charset=utf-8", "",
    `<p id="shown">Shown</p>${text}<a id="script" href="java&#10;script:window.top.hacked=1">run</a><a id="out" href="${elsewhere}/" target="_top">out</a><a id="within" href="${elsewhere}/">within</a>
<form action="${elsewhere}/"><button>send</button></form><iframe src="${elsewhere}/"></iframe><meta http-equiv="refresh" content="0;url=${elsewhere}/">
<style>@import "${elsewhere}/x.css"; body { background: url(${elsewhere}/b.png) } p { color: green }</style><svg onload="window.top.hacked=1"></svg>`,
    "--b", "Content-Type: text/plain; charset=utf-8", "", `Plain ${text}`,
    "--b", "Content-Type: text/html", `Content-Disposition: attachment; filename="${name}"`, "", "<script>window.top.hacked=1</script>", "--b--", "",
  ].join("\r\n");
};

test("a captured message is shown in all forms, runs nothing, requests nothing, and is deleted", async () => {
  const requests: string[] = [];
  const other = createServer((request, response) => {
    requests.push(request.url ?? "");
    response.end();
  }).listen(0, "127.0.0.1");
  await once(other, "listening");
  const elsewhere = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const own = await Server.start({ capture: true });
  try {
    await own.subscribe(3, "story");
    const event = await own.publish("story", "Bridge closed");
    await own.reaches(event, "completed");
    const folder = join(own.captured, "news", "email");
    await eventually("three messages are captured", () => readdirSync(folder).filter((name) => name.endsWith(".eml")).length === 3);
    const { captured } = await own.ask("GET", "/v1/captured");
    const { id } = captured[0];
    writeFileSync(join(folder, `${id}.eml`), hostileMail(elsewhere));

    const visitor = await Visitor.start(browser, own);
    const { page } = visitor;
    await visitor.signIn();
    await page.getByRole("link", { name: "Captured messages" }).click();
    await page.getByLabel("Subject").fill("captured <script>");
    await page.getByLabel("Subject").press("Enter");
    await page.waitForURL(/subject=captured/);
    await eventually("one is found", async () => (await page.locator("tbody tr").count()) === 1);
    await page.screenshot({ path: join(pictures, "captured-light.png") });
    await visitor.accessible("captured");
    await page.locator("tbody a").click();

    await page.locator("iframe").waitFor();
    const frame = page.frameLocator("iframe");
    await frame.locator("#shown").waitFor();
    const attributes = await page.locator("iframe").evaluate((one) => [one.getAttribute("sandbox"), one.getBoundingClientRect().width]);
    assert.equal(attributes[0], "");
    await visitor.accessible("captured message");
    for (const theme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: theme });
      await page.screenshot({ path: join(pictures, `captured-message-${theme}.png`), fullPage: true });
    }
    await page.emulateMedia({ colorScheme: "light" });
    await page.getByRole("button", { name: "Narrow" }).click();
    await eventually("it is narrow", async () => (await page.locator("iframe").evaluate((one) => one.getBoundingClientRect().width)) < Number(attributes[1]));
    for (const link of ["#script", "#out", "#within"]) {
      await page.getByRole("tab", { name: "Plain text" }).click();
      await page.getByRole("tab", { name: "HTML" }).click(); // the frame begins again
      await frame.locator(link).click();
    }

    for (const [tab, text] of Object.entries({ "Plain text": "Plain <script>", "Source": "X-Hostile: <script>", "Header": "X-Hostile", "Links": `${elsewhere}/`, "Attachments": ".html" })) {
      await page.getByRole("tab", { name: tab }).click();
      await page.getByRole("tabpanel").getByText(text).first().waitFor();
      await visitor.accessible(tab);
      await page.screenshot({ path: join(pictures, `captured-${tab.toLowerCase().replace(" ", "-")}.png`) });
      assert.equal(await page.locator("main script, main img, main [href^='java']").count(), 0);
    }
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("tabpanel").getByRole("link").click()]);
    assert.match(download.suggestedFilename(), /\.html$/);
    await page.getByRole("tab", { name: "Attachments" }).press("ArrowLeft");
    assert.equal(await page.getByRole("tab", { name: "Links" }).getAttribute("aria-selected"), "true");
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole("tab", { name: "HTML" }).click();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.screenshot({ path: join(pictures, "captured-message-phone.png"), fullPage: true });

    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.waitForURL(/captured/);
    await eventually("it is deleted", async () => !(await own.ask("GET", "/v1/captured")).captured.some((one: any) => one.id === id));
    assert.deepEqual(requests, []);
    // The browser reports each thing that it stopped in the frame.
    const stopped = visitor.faults.filter((fault) => fault.includes(elsewhere) || fault.includes("sandboxed"));
    assert.ok(stopped.length > 0);
    visitor.faults.splice(0, Infinity, ...visitor.faults.filter((fault) => !stopped.includes(fault)));
    await visitor.check();
    await visitor.close();
  } finally {
    await own.stop();
    other.close();
  }
});

test("a search that took long says how far back it came, and continues", async () => {
  const visitor = await visit();
  const { page } = visitor;
  const message = (n: number) => ({ id: `dlv-${n}`, service: "news", channel: "email", kind: "mail", to: `p${n}@example.org`, subject: `No. ${n}`, at: "2026-03-01T10:00:00Z", size_bytes: 1200 });
  await page.route("**/v1/captured?**", (route) => {
    const isNext = new URL(route.request().url()).searchParams.has("cursor");
    return route.fulfill({ json: isNext ? { captured: [message(1)] } : { captured: [], next: "c", searched_until: "2026-03-02T08:30:00Z" } });
  });
  await visitor.open("captured?service=news&subject=No.");
  await page.getByText(/searched back to .*08:30/).waitFor();
  assert.equal(await page.getByText("Nothing matches").count(), 0);
  await page.screenshot({ path: join(pictures, "captured-search.png") });
  await page.getByRole("button", { name: "Search further back" }).click();
  await page.getByText("p1@example.org").waitFor();
  assert.equal(await page.getByRole("button", { name: "Search further back" }).count(), 0);
  await visitor.check();
  await visitor.close();
});
