/** Tasks, exports, and the pages of topics, templates and settings, against the real server. Effects are verified through the API. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";

import type { Browser } from "playwright-core";

import { startBrowser, Visitor } from "./browser.ts";
import { eventually, hostile, Server } from "./server.ts";

const pictures = process.env["PICTURES"] ?? resolve("../../build/console-screenshots");
let server: Server;
let browser: Browser;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  server = await Server.start();
  browser = await startBrowser();
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

/** Takes pictures of a page in light, dark and on a phone, where it must be accessible and fit. */
async function looks(name: string, address: string, also: (visitor: Visitor) => Promise<unknown> = async () => {}): Promise<void> {
  for (const [look, options] of Object.entries({ light: {}, dark: { colorScheme: "dark" }, phone: { viewport: { width: 390, height: 844 } } })) {
    const visitor = await visit(server.key, options);
    await visitor.open(address);
    await also(visitor);
    const wide = await visitor.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${name} is ${wide} pixels too wide: ${look}`);
    await visitor.page.screenshot({ path: join(pictures, `${name}-${look}.png`), fullPage: true });
    await visitor.accessible(`${name} ${look}`);
    await visitor.check();
    await visitor.close();
  }
}

const taskOf = (visitor: Visitor): string => new URL(visitor.page.url()).searchParams.get("id")!;

test("all suppressions that match a filter are lifted by a task", async () => {
  const lines = Array.from({ length: 130 }, (_, n) => JSON.stringify({ address: `p${n}@example.org`, reason: n < 125 ? "soft_bounces" : "complaint" }));
  await server.ask("POST", "/v1/suppression-list?quiet=true", lines.join("\n"), "news", "application/x-ndjson");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("suppressions?service=news&reason=soft_bounces");
  await page.getByRole("button", { name: "Lift all that match (more than 100)" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  const text = await dialog.innerText();
  assert.match(text, /Reason: temporary bounces/);
  assert.match(text, /more than 100/);
  await dialog.getByLabel("Reason").fill(`works again ${hostile}`);
  await visitor.accessible("question of a task");
  await page.screenshot({ path: join(pictures, "task-question.png") });
  await page.keyboard.press("Enter");
  await page.getByText("125 of 125 found").waitFor();
  await page.getByText("completed").waitFor();
  const left = (await server.ask("GET", "/v1/suppression-list?limit=1000")).suppressions;
  assert.deepEqual(left.map((one: any) => one.reason), Array(5).fill("complaint"));
  const id = taskOf(visitor);
  const task = await server.ask("GET", `/v1/tasks/${id}`);
  assert.equal(task.done, 125);
  assert.match(task.reason, /works again/);
  const { audit } = await server.ask("GET", `/v1/audit?name=${id}`);
  assert.deepEqual(audit.map((one: any) => one.action), ["end", "create"]);
  await visitor.check();
  await visitor.close();
  await looks("task", `task?id=${id}&service=news`);
  await looks("tasks", "tasks?service=news");
});

test("a filter with which there is nothing to do offers no task, and neither does a key without the scope", async () => {
  await server.subscribe(3, "offer");
  const visitor = await visit();
  await visitor.open("suppressions?service=news&reason=complaint");
  await visitor.page.getByRole("button", { name: "Lift all that match (5)" }).waitFor();
  await visitor.open("subscriptions?service=news&state=active");
  await visitor.page.getByRole("button", { name: /End all that match/ }).waitFor();
  await visitor.open("subscriptions?service=news&state=ended");
  assert.equal(await visitor.page.getByRole("button", { name: /End all that match/ }).count(), 0);
  await visitor.close();
  const reader = await visit(await server.createKey("reader", ["read"]));
  await reader.open("suppressions");
  await reader.page.getByRole("row").nth(1).waitFor();
  assert.equal(await reader.page.getByRole("button", { name: /Lift/ }).count(), 0);
  await reader.check();
  await reader.close();
});

test("the subscriptions to a topic are ended by a task", async () => {
  await server.subscribe(7, "story");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("subscriptions?service=news&topic=story");
  await page.getByRole("button", { name: "End all that match (7)" }).click();
  const dialog = page.getByRole("dialog");
  assert.match(await dialog.innerText(), /Topic: story/);
  await dialog.getByRole("button", { name: "End subscriptions" }).click();
  await page.getByText("7 of 7 found").waitFor();
  const { subscriptions } = await server.ask("GET", "/v1/subscriptions");
  assert.ok(subscriptions.every(({ topic, state }: any) => state === (topic === "story" ? "ended" : "active")), JSON.stringify(subscriptions));
  await visitor.check();
  await visitor.close();
});

test("all broadcasts that wait for approval are approved", async () => {
  await server.subscribe(6, "offer");
  const events = [await server.publish("offer", "One"), await server.publish("offer", "Two")];
  for (const event of events) await server.reaches(event, "held");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("broadcasts?service=news");
  await page.getByRole("button", { name: "Approve all (2)" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Approve broadcasts" }).click();
  await page.getByText("2 of 2 found").waitFor();
  for (const event of events) {
    await server.reaches(event, "completed");
    assert.ok((await server.event(event)).deliveries.accepted > 0);
  }
  await visitor.check();
  await visitor.close();
});

test("a running task shows its progress, and is cancelled", async () => {
  const visitor = await visit();
  const { page } = visitor;
  const task = { id: "tsk-1", service: "news", action: "retry-parked", filter: {}, state: "running", found: 200, done: 50, failed: 3, last_error: `prk-1: ${hostile}`, key_id: "key-1", key_name: hostile, started_at: "2026-03-01T10:00:00Z" };
  const requests: string[] = [];
  await page.route(/\/v1\/tasks\/tsk-1/, (route) => {
    const { pathname } = new URL(route.request().url());
    if (route.request().method() === "POST") {
      requests.push(pathname);
      task.state = "cancelled";
    } else if (task.state === "running") task.done++;
    return route.fulfill({ json: task });
  });
  await visitor.open("task?id=tsk-1&service=news");
  await page.getByText("of 200 found").waitFor();
  await page.getByText("3 failed").waitFor();
  const shown = async () => Number(await page.locator("progress").getAttribute("value"));
  const first = await shown();
  await eventually("the progress goes on", async () => (await shown()) > first);
  await visitor.accessible("running task");
  await page.screenshot({ path: join(pictures, "task-running.png"), fullPage: true });
  await page.getByRole("button", { name: "Cancel task" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel task" }).click();
  await page.locator(".state", { hasText: "cancelled" }).waitFor();
  assert.deepEqual(requests, ["/v1/tasks/tsk-1/cancel"]);
  assert.equal(await page.locator("progress").count(), 0);
  await visitor.check();
  await visitor.close();
});

test("an export is the whole list, not only the rows that were loaded", async () => {
  await server.subscribe(150, "warning", "slow");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("subscriptions?service=news&topic=warning");
  assert.equal(await page.locator("tbody tr").count(), 100);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export the list as CSV" }).click()]);
  assert.equal(download.suggestedFilename(), "subscriptions.csv");
  const chunks: Buffer[] = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer);
  const lines = Buffer.concat(chunks).toString().trim().split("\r\n");
  assert.equal(lines.length, 151);
  assert.ok(lines.slice(1).every((line) => line.includes(",warning,slow,")));
  await visitor.check();
  await visitor.close();
});

test("a condition is tried on the data of an event, and an error shows its column", async () => {
  const event = await server.publish("story", `Storm ${hostile}`);
  await server.reaches(event, "completed");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("topic?name=story&service=news&show=try");
  await page.getByLabel("Data of a recent event").selectOption({ index: 1 });
  await eventually("the data are there", async () => (await page.getByLabel("Data of the event (JSON)").inputValue()).includes("Dover"));
  const condition = page.getByLabel("Condition", { exact: true });
  await condition.fill("event.place == 'Dover' && event.title.startsWith('Calm')");
  await page.getByRole("button", { name: "Try the condition" }).click();
  await page.getByText("The event does not match").waitFor();
  await page.locator(".condition li", { hasText: 'event.place == "Dover"' }).first().waitFor();
  await condition.fill("event.place == 'Dover'");
  await condition.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("The event matches").waitFor();
  await condition.fill("event.place == 'Dover' && event.plaec == 1");
  await page.getByRole("button", { name: "Try the condition" }).click();
  const mark = await page.locator(".fault").innerText();
  assert.equal(mark.split("\n")[1]!.indexOf("^"), "event.place == 'Dover' && event.".length, mark);
  await visitor.accessible("condition with an error");
  await page.getByLabel("Condition or rule").selectOption("near");
  await page.getByLabel("Values of the rule (JSON)").fill('{"place":"Dover"}');
  await page.getByRole("button", { name: "Try the condition" }).click();
  await page.getByText("The event matches").waitFor();
  await page.getByLabel("Data of the event (JSON)").fill("{");
  await page.getByRole("button", { name: "Try the condition" }).click();
  await page.getByText("This is not valid JSON").waitFor();
  await visitor.check();
  await visitor.close();
});

test("the page of a topic shows who would receive an event", async () => {
  await server.ask("PUT", "/v1/subscriptions/dover", { topic: "story", channel: "email", to: "ada@example.org", filter: "event.place == 'Dover'" });
  const address = "topic?name=story&service=news&show=try";
  const act = async ({ page }: Visitor) => {
    await page.getByLabel("Data of the event (JSON)").fill('{"title":"Storm","place":"Dover"}');
    await page.getByLabel("Condition", { exact: true }).fill("event.place == 'Dover'");
    await page.getByRole("button", { name: "Try the condition" }).click();
    await page.getByText("The event matches").waitFor();
    await page.getByRole("button", { name: "Show who would receive it" }).click();
    await page.getByText("ada@example.org").waitFor();
  };
  const run = await server.ask("POST", "/v1/topics/story/match", { title: "Storm", place: "Dover" });
  const visitor = await visit();
  await visitor.open(address);
  await act(visitor);
  await visitor.page.getByText(run.matched === 1 ? "1 subscription matches." : `${run.matched} subscriptions match.`).waitFor();
  await visitor.check();
  await visitor.close();
  await looks("topic-try", address, act);
});

const letter = (text: string) => ({
  subject: "{{ event.title }}", text, html: `<script>window.hacked=1</script><p onclick="window.hacked=1">${text} {{ event.title }}</p><img src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">`,
  locales: { cy: { subject: "Cymraeg", text: "Bore da", html: "<p>Bore da</p>" } },
});

test("a template is previewed by language, with its own data, and its HTML runs nothing", async () => {
  await server.ask("PUT", "/v1/templates/letter", letter("Good morning"));
  await server.ask("PUT", "/v1/templates/letter", letter("Good evening"));
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("template?name=letter&service=news");
  const frame = page.frameLocator("iframe");
  await frame.getByText("Good evening").waitFor();
  assert.equal(await frame.locator("script, [onclick]").count(), 0);
  assert.equal(await page.locator("main script, main p[onclick]").count(), 0);
  await page.getByLabel("Language").last().selectOption("cy");
  await frame.getByText("Bore da").waitFor();
  await page.getByText("Cymraeg").waitFor();
  await page.getByLabel("Language").last().selectOption("");
  await page.getByLabel("Data of the event (JSON)").fill(JSON.stringify({ title: `Mine ${hostile}` }));
  await page.getByRole("button", { name: "Use these data" }).click();
  await frame.getByText("Mine <script>").waitFor();
  await page.locator(".subject", { hasText: "Mine <script>" }).waitFor();
  await page.getByRole("button", { name: "Plain text" }).or(page.getByRole("button", { name: "Text", exact: true })).first().click();
  await page.locator("pre", { hasText: "Good evening" }).waitFor();
  await page.getByLabel("Version").selectOption("1");
  await page.locator("pre", { hasText: "Good morning" }).waitFor();
  await page.getByRole("tab", { name: "Versions" }).click();
  await page.locator(".diff .added", { hasText: "Good evening" }).first().waitFor();
  await page.locator(".diff .removed", { hasText: "Good morning" }).first().waitFor();
  await page.getByRole("tab", { name: "Problems for readers" }).click();
  await page.getByText("image-alt").waitFor();
  await visitor.check();
  await visitor.close();
  await looks("template-preview", "template?name=letter&service=news");
  await looks("template-versions", "template?name=letter&service=news&show=versions");
  await looks("template-problems", "template?name=letter&service=news&show=problems");
});

test("a preview is sent to the address that the person types, and all captured messages are deleted", async () => {
  const own = await Server.start({ capture: true });
  try {
    await own.ask("PUT", "/v1/templates/letter", { ...letter("Good evening"), attachments: [{ name: "list.txt", content: Buffer.from("one, two").toString("base64") }] });
    const visitor = await Visitor.start(browser, own);
    const { page } = visitor;
    await visitor.signIn(own.key);
    await visitor.open("template?name=letter&service=news");
    await page.getByLabel("Data of the event (JSON)").fill(JSON.stringify({ title: "{{ 7 | times: 6 }} & more" }));
    await page.getByRole("button", { name: "Use these data" }).click();
    await page.locator(".subject", { hasText: "& more" }).waitFor();
    await page.getByLabel("Your address").fill("me@example.org");
    await page.getByRole("button", { name: "Send the preview" }).click();
    await page.getByRole("status").filter({ hasText: "sent to me@example.org" }).first().waitFor();
    const captured = async () => (await own.ask("GET", "/v1/captured")).captured;
    await eventually("it is captured", async () => (await captured()).length === 1);
    const [message] = await captured();
    assert.equal(message.to, "me@example.org");
    assert.equal(message.subject, "{{ 7 | times: 6 }} & more");
    const content = await own.ask("GET", `/v1/captured/${message.id}`);
    assert.match(content.text, /Good evening/);
    assert.deepEqual(content.attachments.map((one: any) => one.name), ["list.txt"]);
    await visitor.open("captured?service=news");
    await page.getByRole("button", { name: "Delete all" }).click();
    const dialog = page.getByRole("dialog");
    assert.match(await dialog.innerText(), /cannot be undone/);
    await visitor.accessible("question about captured messages");
    await dialog.getByRole("button", { name: "Delete all" }).click();
    await page.getByText("Nothing was captured").or(page.locator(".empty")).first().waitFor();
    assert.deepEqual(await captured(), []);
    await visitor.check();
    await visitor.close();
  } finally {
    await own.stop();
  }
});

test("an operator sees the settings of the server and of a service, without secrets", async () => {
  const visitor = await visit();
  const { page } = visitor;
  await visitor.open("settings");
  const { settings } = await server.ask("GET", "/v1/settings", undefined, "");
  assert.equal(await page.locator("tbody tr").count(), settings.length);
  await page.getByLabel("Name or text").fill("durability");
  const row = page.getByRole("row").filter({ has: page.locator("code", { hasText: /^durability$/ }) });
  await row.getByText("relaxed", { exact: true }).waitFor();
  await row.getByText("--durability").waitFor();
  await page.getByLabel("Name or text").fill("");
  await page.getByLabel("Set by").selectOption("changed");
  await eventually("only those that are set remain", async () => (await page.locator("tbody tr").count()) === settings.filter((one: any) => one.from !== "default").length);
  await visitor.open("services");
  await page.getByRole("link", { name: "weather" }).first().click();
  await page.getByRole("heading", { name: "weather" }).waitFor();
  await visitor.check();
  await visitor.close();
  const admin = await visit(await server.createKey("admin of one service", ["admin"]));
  assert.equal(await admin.page.getByRole("link", { name: "Settings", exact: true }).count(), 0);
  await admin.check();
  await admin.close();
  await looks("settings", "settings");
  await looks("service", "service?name=news&service=news");
});

test("the messages that a sink received are shown", async () => {
  const own = await Server.start({ keep: true });
  try {
    await own.subscribe(1, "story");
    const event = await own.publish("story", `Kept ${hostile}`);
    await own.reaches(event, "completed");
    const visitor = await Visitor.start(browser, own);
    const { page } = visitor;
    await visitor.signIn(own.key);
    await visitor.open("captured");
    const { captured } = await own.ask("GET", "/v1/captured", undefined, "");
    assert.deepEqual(captured.map((one: any) => [one.service, one.channel, one.to]), [["sink", "received", "story0@example.org"]]);
    await page.getByRole("link", { name: /Kept/ }).click();
    await page.getByRole("heading", { name: /Kept/ }).waitFor();
    await page.locator("pre", { hasText: "at Dover" }).waitFor();
    await page.getByRole("tab", { name: /^Header/ }).click();
    await page.getByText("X-Fanfare-Event").waitFor();
    await visitor.check();
    await visitor.close();
  } finally {
    await own.stop();
  }
});
