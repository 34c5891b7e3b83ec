/** Messages to lists in the console. Effects are verified through the API, and in the messages that were captured. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";

import type { Browser, Locator } from "playwright-core";

import { startBrowser, Visitor } from "./browser.ts";
import { eventually, hostile, Server } from "./server.ts";

const pictures = process.env["PICTURES"] ?? resolve("../../build/console-screenshots");
let server: Server;
let browser: Browser;
let writer = "", approver = "";

before(async () => {
  mkdirSync(pictures, { recursive: true });
  server = await Server.start({ capture: true });
  browser = await startBrowser();
  await server.ask("POST", "/v1/apply", { service: "news", templates: { invitation: { subject: "Hello {{ sub.name }}", markdown: "Dear {{ sub.name }}, see you in **{{ sub.city }}**." } } });
  writer = await server.createKey("writer", ["publish", "read"]);
  approver = await server.createKey("approver", ["approve", "read"]);
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const visit = async (key: string, options = {}): Promise<Visitor> => {
  const visitor = await Visitor.start(browser, server, options);
  await visitor.signIn(key);
  return visitor;
};

const file = (text: string) => ({ name: "members.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
const good = `E-Mail;name;city\nada@example.org;Ada;London\ngrace@example.org;${'"' + hostile.replaceAll('"', '""') + '"'};New York\n`;
const send = (id: string): Promise<any> => server.ask("GET", `/v1/sends/${id}`);
const idOf = (address: string): string => new URL(address).searchParams.get("id")!;
const captured = async (recipient: string): Promise<any[]> => (await server.ask("GET", `/v1/captured?recipient=${recipient}`)).captured;

/** Approves a send through the API, as another person. */
async function approve(id: string): Promise<void> {
  const { digest } = await send(id);
  const response = await fetch(`${server.url}/v1/sends/${id}/approve`, { method: "POST", headers: { "Authorization": `Bearer ${approver}`, "Content-Type": "application/json" }, body: JSON.stringify({ digest }) });
  assert.equal(response.status, 200, await response.text());
}

test("a CSV file is sent tomorrow at eight in at most eight actions, and another person approves it", async () => {
  const visitor = await visit(writer);
  const { page } = visitor;
  let actions = 0;
  const click = async (what: Locator): Promise<void> => {
    actions++;
    await what.click();
  };
  await click(page.getByRole("navigation").getByRole("link", { name: "Sends" }));
  await click(page.getByRole("link", { name: "New send" }));
  await visitor.settled();
  await visitor.accessible("a new send");
  await page.screenshot({ path: join(pictures, "new-send.png"), fullPage: true });
  actions++;
  await page.getByRole("combobox", { name: /^Template/ }).selectOption("invitation");
  actions++;
  await page.locator("input[type=file]").setInputFiles(file(good));
  assert.equal(await page.getByLabel("Column with the addresses").inputValue(), "E-Mail");
  await click(page.getByRole("button", { name: "Tomorrow at 08:00" }));
  await click(page.getByRole("button", { name: "Create draft and check the list" }));
  await page.waitForURL(/\/send\?/);
  await visitor.settled();
  const id = idOf(page.url());
  const preview = page.locator(".preview");
  await preview.getByText("Hello Ada").waitFor();
  await page.frameLocator("iframe").getByText("see you in").waitFor();
  await visitor.accessible("a draft");
  await page.screenshot({ path: join(pictures, "send-draft.png"), fullPage: true });
  await click(page.getByRole("button", { name: "Submit for approval" }));
  assert.ok(actions <= 8, `${actions} actions`);
  await eventually("it is submitted", async () => (await send(id)).state === "submitted");
  const { send_at, digest, template } = await send(id);
  assert.equal(template, "invitation@1");
  const at = new Date(send_at), wanted = new Date();
  wanted.setDate(wanted.getDate() + 1);
  assert.equal(at.toLocaleTimeString("en-GB", { timeZone: "Europe/London" }), "08:00:00");
  assert.ok(Math.abs(at.getTime() - wanted.getTime()) < 25 * 3_600_000);

  // The other row of the list, which has a hostile text.
  await page.getByRole("button", { name: "Next" }).click();
  await preview.getByText("grace@example.org").waitFor();
  assert.ok((await preview.innerText()).includes("<script>"));
  for (let reads = 0; reads < 2; reads++) await page.waitForResponse((response) => response.url().includes(`/v1/sends/${id}`) && !response.url().includes("recipients"));
  await page.waitForFunction(() => !document.querySelector("[aria-busy='true']"));
  assert.ok((await preview.innerText()).includes("grace@example.org"), "the row changed by itself");
  await page.getByRole("button", { name: "Previous" }).click();
  await preview.getByText("Hello Ada").waitFor();

  // The author sees why they cannot approve it, and the API refuses them, too.
  const button = page.getByRole("button", { name: "Approve" });
  await button.waitFor();
  assert.ok(await button.isDisabled());
  await page.getByText("You cannot approve it").waitFor();
  await visitor.accessible("a send that waits for approval");
  await page.screenshot({ path: join(pictures, "send-submitted.png"), fullPage: true });
  const refused = await page.evaluate(async ([id, digest]) => (await fetch(`/v1/sends/${id}/approve`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ digest }) })).status, [id, digest]);
  assert.equal(refused, 403);
  assert.equal((await send(id)).state, "submitted");

  const other = await visit(approver);
  await other.open(`send?id=${id}`);
  await other.page.getByText(digest).waitFor();
  await other.page.getByRole("button", { name: "Approve" }).click();
  await other.accessible("the question about an approval");
  await other.page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await eventually("it is scheduled", async () => (await send(id)).state === "scheduled");
  assert.match((await send(id)).approved_by, /approver/);
  await other.check();
  await other.close();

  // A change of the time ends the approval.
  await page.getByText("Change the time").click();
  await page.getByLabel("As soon as it is approved").check();
  await page.getByRole("button", { name: "Set time" }).click();
  await eventually("it is a draft", async () => (await send(id)).state === "draft");
  assert.equal((await send(id)).approved_by, undefined);
  await page.getByRole("button", { name: "Submit for approval" }).click();
  await eventually("it is submitted again", async () => (await send(id)).state === "submitted");
  await approve(id);
  await eventually("it is completed", async () => (await send(id)).state === "completed");
  await eventually("the page shows it", async () => (await page.locator(".title .state").innerText()) === "completed");
  assert.equal((await captured("ada@example.org"))[0].subject, "Hello Ada");
  assert.equal((await captured("grace@example.org")).length, 1);
  const [report] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download report" }).click()]);
  const chunks: Buffer[] = [];
  for await (const chunk of await report.createReadStream()) chunks.push(chunk as Buffer);
  const lines = Buffer.concat(chunks).toString().split("\r\n");
  assert.equal(lines[0], "row,address,state,reason,time,delivery");
  assert.match(lines[1]!, /^2,ada@example\.org,accepted,/);
  await visitor.accessible("a completed send");
  await page.screenshot({ path: join(pictures, "send-completed.png"), fullPage: true });
  await visitor.check();
  await visitor.close();
});

test("the errors of a dragged file are listed by row, and its other rows are sent on demand", async () => {
  const visitor = await visit(writer, { viewport: { width: 390, height: 844 } });
  const { page } = visitor;
  await visitor.open("new-send");
  await page.getByRole("combobox", { name: /^Template/ }).selectOption("invitation");
  const bad = "to,name,city\nbea@example.org,Bea,Rome\nnobody,Bob,Oslo\ncara@example.org,,Bonn\n";
  const data = await page.evaluateHandle((text) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], "bad.csv", { type: "text/csv" }));
    return transfer;
  }, bad);
  await page.locator(".drop").dispatchEvent("drop", { dataTransfer: data });
  await page.getByText("bad.csv").waitFor();
  await page.getByRole("button", { name: "Create draft and check the list" }).click();
  await page.waitForURL(/\/send\?/);
  const id = idOf(page.url());
  const table = page.getByRole("table");
  await table.waitFor();
  assert.deepEqual((await table.getByRole("row").allInnerTexts()).length, 3);
  const text = await table.innerText();
  assert.match(text, /not an email address/);
  assert.match(text, /the cell is empty/);
  const before = await send(id);
  assert.equal(before.recipients, undefined);
  assert.equal(before.refused.invalid, 2);
  await visitor.accessible("errors of a list");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
  await page.screenshot({ path: join(pictures, "send-errors-phone.png"), fullPage: true });
  await page.getByRole("button", { name: "Send without these 2 rows" }).click();
  await eventually("the list is stored", async () => (await send(id)).recipients?.valid === 1);
  await page.getByRole("button", { name: "Submit for approval" }).click();
  await eventually("it is submitted", async () => (await send(id)).state === "submitted");
  await approve(id);
  await eventually("it is completed", async () => (await send(id)).state === "completed");
  assert.equal((await captured("bea@example.org")).length, 1);
  assert.equal((await captured("cara@example.org")).length, 0);

  await visitor.open("sends?state=completed");
  await page.getByRole("table").getByRole("link", { name: "bad" }).first().waitFor();
  await visitor.accessible("the list of sends");
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(over <= 0, `the list is ${over} pixels too wide`);
  await page.screenshot({ path: join(pictures, "sends-phone.png"), fullPage: true });
  await visitor.check();
  await visitor.close();
});

test("a send is cancelled, and deleted", async () => {
  const { id } = await server.ask("POST", "/v1/sends", { name: `Party ${hostile}`, channel: "email", template: "invitation", send_at: new Date(Date.now() + 86_400_000).toISOString() });
  await server.ask("PUT", `/v1/sends/${id}/recipients`, "to,name,city\ndora@example.org,Dora,Rome\n", "news", "text/csv");
  await server.ask("POST", `/v1/sends/${id}/submit`);
  await approve(id);
  const visitor = await visit(server.key, { colorScheme: "dark" });
  const { page } = visitor;
  const dialog = page.getByRole("dialog");
  await visitor.open(`send?id=${id}&service=news`);
  assert.ok((await page.locator("h1").innerText()).includes("<script>"));
  await visitor.accessible("a scheduled send");
  await page.screenshot({ path: join(pictures, "send-scheduled-dark.png"), fullPage: true });
  await page.getByRole("button", { name: "Cancel send" }).click();
  await dialog.getByLabel("Reason").fill("wrong list");
  await dialog.getByRole("button", { name: "Cancel send" }).click();
  await eventually("it is cancelled", async () => (await send(id)).state === "cancelled");
  assert.equal((await send(id)).reason, "wrong list");
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.waitForURL(/\/sends/);
  await eventually("it is deleted", () => send(id).then(() => false, () => true));
  assert.equal((await captured("dora@example.org")).length, 0);
  await visitor.check();
  await visitor.close();
});
