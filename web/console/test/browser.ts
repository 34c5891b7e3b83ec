/** The console in Chromium. Every page is watched for breaches of its policy. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";

import type { Server } from "./server.ts";

/** Starts Chromium: that of Debian, or that of the variable CHROMIUM. */
export function startBrowser(): Promise<Browser> {
  const folders = (process.env["PATH"] ?? "").split(":");
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const found = process.env["CHROMIUM"] ?? folders.flatMap((folder) => names.map((name) => join(folder, name))).find((path) => existsSync(path));
  if (!found) throw new Error("there is no Chromium: install the Debian package chromium, or set CHROMIUM");
  return chromium.launch({ executablePath: found, timeout: 120_000, args: ["--no-sandbox", "--disable-gpu", "--no-zygote", "--disable-features=Translate,OptimizationHints,MediaRouter"] });
}

const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");

/** A Visitor is a browser profile that uses the console. */
export class Visitor {
  readonly faults: string[] = [];

  private constructor(
    readonly server: Server,
    readonly context: BrowserContext,
    readonly page: Page,
  ) {}

  static async start(browser: Browser, server: Server, options: BrowserContextOptions = {}): Promise<Visitor> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: "en-GB", timezoneId: "Europe/London", reducedMotion: "reduce", ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    const visitor = new Visitor(server, context, page);
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (url.origin !== server.url && url.protocol !== "blob:") visitor.faults.push(`request to ${request.url()}`);
    });
    page.on("pageerror", (error) => visitor.faults.push(`error: ${error.message}`));
    page.on("console", (message) => {
      // A browser reports each response with a status of 400 or more; the API uses them as answers.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) visitor.faults.push(`console: ${message.text()}`);
    });
    await page.addInitScript(() => {
      addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample} ${event.sourceFile}:${event.lineNumber}`));
    });
    return visitor;
  }

  async signIn(key = this.server.key): Promise<void> {
    await this.page.goto(`${this.server.url}/console/`);
    await this.page.getByLabel("API key").fill(key);
    await this.page.getByRole("button", { name: "Sign in" }).click();
    await this.page.locator("nav").waitFor({ state: "attached" });
  }

  /** Opens a page of the console, and waits until it has its values. */
  async open(address: string): Promise<void> {
    await this.page.goto(`${this.server.url}/console/${address}`);
    await this.settled();
  }

  async settled(): Promise<void> {
    await this.page.locator("main h1").first().waitFor();
    await this.page.waitForFunction(() => !document.querySelector("[aria-busy='true']") && ![...document.querySelectorAll("[role='status']")].some((one) => one.textContent?.includes("Loading")));
  }

  /** Fails if a page broke its policy, loaded something from elsewhere, or ran a hostile text. */
  async check(): Promise<void> {
    assert.equal(await this.page.evaluate(() => "hacked" in window), false, "a hostile text ran");
    assert.deepEqual(this.faults, []);
  }

  /** Fails if axe finds a problem. DevTools inject axe, because the policy of the page forbids it. */
  async accessible(what: string): Promise<void> {
    const session = await this.context.newCDPSession(this.page);
    const evaluate = async (expression: string): Promise<any> => {
      const { result, exceptionDetails } = await session.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
      assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails));
      return result.value;
    };
    await evaluate(axe + ";0");
    const found = await evaluate(`axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }).then(({ violations }) =>
      violations.map((one) => one.id + ": " + one.help + ": " + one.nodes.slice(0, 3).map((node) => node.html + " " + node.failureSummary).join("; ")))`);
    await session.detach();
    assert.deepEqual(found, [], what);
  }

  async close(): Promise<void> {
    await this.context.close();
  }
}
