/** Signing in to the console with an OpenID provider that others wrote: oidc-provider, with its pages for logins in development. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";

import { Provider } from "oidc-provider";
import type { Browser, Page } from "playwright-core";

import { startBrowser, Visitor } from "./browser.ts";
import { eventually, Server } from "./server.ts";

const pictures = process.env["PICTURES"] ?? resolve("../../build/console-screenshots");
const folder = mkdtempSync(join(tmpdir(), "fanfare-oidc-"));
const secret = "of the client: with & signs";

/** The groups of the people. Each has a name and a verified mail address. */
const people: Record<string, string[]> = { vera: ["readers"], adam: ["admins", "readers-of-weather"], carl: ["operators"], nora: [] };
const nameOf = (id: string): string => `${id[0]!.toUpperCase()}${id.slice(1)} <script>window.hacked=1</script>`;

let handler: RequestListener = (_, response) => response.writeHead(503).end();
const provider = createServer((request, response) => void handler(request, response));
let issuer = "";
let story = ""; // an event
let server: Server;
let browser: Browser;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  provider.listen(0, "127.0.0.1");
  await once(provider, "listening");
  issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const file = join(folder, "oidc.yaml");
  writeFileSync(join(folder, "secret"), secret + "\n");
  // YAML contains JSON.
  writeFileSync(file, JSON.stringify({
    issuers: [{ id: "staff", name: "Example Ltd", issuer, client_id: "fanfare", client_secret_file: join(folder, "secret"), scopes: ["profile", "email", "groups"] }],
    roles: [{ issuer, claim: "groups", value: "operators", role: "viewer" }],
  }));
  server = await Server.start({ args: ["--oidc", file] });
  await grant("news", { readers: "viewer", admins: "admin" });
  await grant("weather", { "readers-of-weather": "viewer" });
  handler = new Provider(issuer, {
    clients: [{ client_id: "fanfare", client_secret: secret, redirect_uris: [`${server.url}/console/sign-in/oidc/callback`], grant_types: ["authorization_code"], response_types: ["code"] }],
    pkce: { required: () => true },
    claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"], groups: ["groups"] },
    cookies: { keys: ["for tests"] },
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id, name: nameOf(id), email: `${id}@example.org`, email_verified: true, groups: people[id] ?? [] }) }),
  }).callback();
  await server.subscribe(5, "story");
  story = await server.publish("story", "Bridge closed");
  await server.reaches(story, "completed");
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await server?.stop();
  provider.close();
  rmSync(folder, { recursive: true });
});

/** Grants roles in a service to groups, instead of those that it has granted before. */
const grant = (service: string, groups: Record<string, string>): Promise<void> =>
  server.ask("POST", "/v1/apply", { service, roles: Object.entries(groups).map(([value, role]) => ({ issuer, claim: "groups", value, role })) }, service);

/** Opens a page of the console and goes to the issuer. */
async function toIssuer(address: string): Promise<Visitor> {
  const visitor = await Visitor.start(browser, server);
  await visitor.context.route("**/*", (route) => ([server.url, issuer].includes(new URL(route.request().url()).origin) ? route.continue() : route.abort()));
  await visitor.page.goto(`${server.url}/console/${address}`);
  await visitor.page.getByRole("link", { name: "Sign in with Example Ltd" }).click();
  await visitor.page.getByPlaceholder("Enter any login").waitFor();
  return visitor;
}

/** Logs in at the issuer, and consents. */
async function logIn(page: Page, id: string): Promise<void> {
  await page.getByPlaceholder("Enter any login").fill(id);
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

async function signedIn(id: string, address: string): Promise<Visitor> {
  const visitor = await toIssuer(address);
  await logIn(visitor.page, id);
  await visitor.settled();
  visitor.faults.length = 0; // those of the pages of the issuer
  return visitor;
}

/** Sends a request as the page does. */
const status = (page: Page, method: string, path: string, body?: object): Promise<number> =>
  page.evaluate(async ([method, path, body]) => (await fetch(path!, { method: method!, headers: { "Content-Type": "application/json" }, ...(body && { body }) })).status, [method, path, body ? JSON.stringify(body) : ""] as const);

test("a viewer signs in, sees the pages and has no actions", async () => {
  const visitor = await signedIn("vera", "topics?x=1");
  const { page } = visitor;
  assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, "/console/topics?x=1");
  const side = page.locator("#navigation");
  assert.match(await side.innerText(), /Signed in as\s+Vera script window\.hacked=1/);
  assert.match(await side.innerText(), /news: viewer/);
  await page.screenshot({ path: join(pictures, "oidc-viewer.png"), fullPage: true });
  for (const address of ["", "broadcasts", `broadcast?id=${story}`, "topics", "channels", "channel?name=email", "subscriptions", "suppressions", "parked", "templates"]) {
    await visitor.open(address);
    assert.equal(await page.getByRole("button", { name: /Pause|Resume|Cancel|Approve|Lift|Retry|Drop|Erase/ }).count(), 0, address);
    await visitor.accessible(`${address} of a viewer`);
  }
  for (const address of ["audit", "keys"]) {
    await visitor.open(address);
    assert.match(await page.locator("main").innerText(), /Your roles do not include this page/);
  }
  assert.equal(await status(page, "POST", "/v1/pause", { scope: { kind: "service", name: "news" } }), 403);
  assert.equal(await status(page, "GET", "/v1/status?service=weather"), 403);
  assert.equal(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie).then((stored) => /fanfare-console(?!-(theme|language))|eyJ/.test(stored)), false);
  const { sign_ins: signIns } = await server.ask("GET", "/v1/sign-ins", undefined, "");
  assert.deepEqual([signIns[0].mail, signIns[0].issuer, signIns[0].subject, signIns[0].service], ["vera@example.org", issuer, "vera", "news"]);
  const { audit } = await server.ask("GET", "/v1/audit?kind=sign-in&limit=1", undefined, "");
  assert.match(audit[0].key_name, new RegExp(`<vera@example\\.org> \\(${issuer}\\)$`));

  // Without the role, the sign-in ends at once.
  await grant("news", { admins: "admin" });
  await page.reload();
  await page.getByRole("link", { name: "Sign in with Example Ltd" }).waitFor();
  await visitor.check();
  await visitor.close();
});

test("a person with roles in several services chooses one, and acts only where they may", async () => {
  const visitor = await signedIn("adam", "");
  const { page } = visitor;
  const service = page.getByLabel("Service");
  assert.deepEqual(await service.locator("option").allInnerTexts(), ["news", "weather"]);
  const pause = page.getByRole("button", { name: "Pause" });
  await visitor.open("channel?name=email&service=news");
  await pause.first().waitFor();
  await service.selectOption("weather");
  await visitor.settled();
  assert.equal(await pause.count(), 0);
  assert.match(await page.locator("#navigation").innerText(), /weather: viewer/);
  await service.selectOption("news");
  await pause.first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).first().waitFor();
  const { audit } = await server.ask("GET", "/v1/audit?action=pause", undefined, "");
  assert.match(audit[0].key_name, /<adam@example\.org>/);
  await visitor.check();
  await visitor.close();
});

test("an administrator sees and ends the sign-ins of people", async () => {
  const visitor = await signedIn("adam", "");
  const operator = await Visitor.start(browser, server);
  await operator.signIn();
  await operator.open("keys?service=");
  const row = operator.page.getByRole("row", { name: /adam@example\.org/ }).first();
  assert.match(await row.innerText(), new RegExp(`${issuer}[^]*news: admin; weather: viewer`));
  await operator.accessible("sign-ins of people");
  await operator.page.screenshot({ path: join(pictures, "oidc-sign-ins.png"), fullPage: true });
  await row.getByRole("button", { name: "End" }).click();
  await operator.page.getByRole("dialog").getByText("block their account at the issuer").waitFor();
  await operator.page.getByRole("dialog").getByRole("button", { name: "End" }).click();
  await eventually("the sign-in has ended", async () => (await status(visitor.page, "GET", "/v1/services")) === 401);
  for (const one of [visitor, operator]) {
    await one.check();
    await one.close();
  }
});

test("a role of the settings is for all services", async () => {
  const visitor = await signedIn("carl", "topics?service=weather");
  assert.deepEqual(await visitor.page.getByLabel("Service").locator("option").allInnerTexts(), ["All services", "news", "weather"]);
  assert.match(await visitor.page.locator("#navigation").innerText(), /All services: viewer/);
  await visitor.check();
  await visitor.close();
});

test("a person without a role, and one who declines, read what to do", async () => {
  for (const [id, text] of [["nora", /You have no role in Fanfare yet/], ["", /refused the sign-in, or you declined it/]] as const) {
    const visitor = await toIssuer("events");
    if (id) await logIn(visitor.page, id);
    else await visitor.page.getByRole("link", { name: "Cancel" }).click();
    const alert = visitor.page.getByRole("alert");
    await alert.waitFor();
    visitor.faults.length = 0;
    assert.match(await alert.innerText(), text);
    await visitor.accessible("a refused sign-in");
    await visitor.page.screenshot({ path: join(pictures, `oidc-refused-${id || "cancel"}.png`) });
    await visitor.page.getByRole("link", { name: "Sign in with Example Ltd" }).waitFor();
    assert.match((await visitor.page.getByRole("link", { name: "Sign in with Example Ltd" }).getAttribute("href")) ?? "", /return=%2Fconsole%2Fevents$/);
    await visitor.check();
    await visitor.close();
  }
});
