/** Pages of a customer in a real browser, with a backend that gives them tokens. */
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

import puppeteer, { type Browser, type ElementHandle, type Page } from "puppeteer-core";

import { eventually, type Server } from "./server.ts";

/** Starts Chromium: that of Debian, or that of the variable CHROMIUM. */
export function startBrowser(): Promise<Browser> {
  const folders = (process.env["PATH"] ?? "").split(":");
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const found = process.env["CHROMIUM"] ?? folders.flatMap((folder) => names.map((name) => join(folder, name))).find((path) => existsSync(path));
  if (!found) throw new Error("there is no Chromium: install the Debian package chromium, or set CHROMIUM");
  return puppeteer.launch({ executablePath: found, headless: true, timeout: 180_000, protocolTimeout: 180_000, args: ["--no-sandbox", "--disable-gpu", "--no-zygote", "--force-color-profile=srgb", "--disable-features=Translate,OptimizationHints,MediaRouter"] });
}

/** An HTTP server of a page, which counts what is asked of it. */
export class Site {
  readonly requests: string[] = [];
  readonly #server: HttpServer;
  readonly origin: string;

  private constructor(server: HttpServer, host: string) {
    this.#server = server;
    this.origin = `http://${host}:${(server.address() as AddressInfo).port}`;
  }

  /** Serves pages on which the element shows the inbox of the parameter `of`. Their tokens are for allowed origins; by default for this one. */
  static async start(server: Server, host = "127.0.0.1", allowed?: () => string): Promise<Site> {
    let site: Site;
    const http = createServer((request, response) => {
      const url = new URL(request.url!, site.origin);
      site.requests.push(url.pathname);
      const send = (type: string, body: string) => response.writeHead(200, { "Content-Type": type, "Content-Security-Policy": `script-src 'self'; connect-src 'self' ${server.url}` }).end(body);
      const value = (name: string) => url.searchParams.get(name) ?? "";
      if (url.pathname === "/inbox.js") send("text/javascript", readFileSync("dist/fanfare-inbox.js", "utf8"));
      else if (url.pathname === "/languages.js") send("text/javascript", readFileSync("dist/languages.js", "utf8"));
      else if (url.pathname === "/page.js") send("text/javascript", script);
      else if (url.pathname === "/token") {
        void server.token(value("of"), allowed?.() ?? site.origin).then((token) => send("application/json", JSON.stringify(token)), (error: unknown) => response.writeHead(500).end(String(error)));
      } else if (url.pathname === "/") send("text/html", page(server.url, value("lang") || "en", value("dir") || "ltr"));
      else response.writeHead(404).end();
    });
    await new Promise<void>((listening) => http.listen(0, host === "localhost" ? "127.0.0.1" : host, listening));
    return (site = new Site(http, host));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}

const page = (server: string, lang: string, dir: string): string => `<!DOCTYPE html>
<html lang="${lang}" dir="${dir}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Example</title><script type="module" src="/page.js"></script>
<style>html { color-scheme: light dark } body { font-family: system-ui, sans-serif; margin: 0; padding: 1rem; background: light-dark(#f3f4f7, #0d0f13) } main { max-inline-size: 68rem; margin: auto } h1 { font-size: 1.25rem; color: light-dark(#1b2028, #e9ebef) }</style></head>
<body><main><h1>Example</h1><fanfare-inbox server="${server}" page-size="10"></fanfare-inbox></main></body></html>`;

const script = `import { FanfareInbox } from "/inbox.js";
import { languages } from "/languages.js";
FanfareInbox.languages = languages;
const inbox = document.querySelector("fanfare-inbox");
window.seen = [];
for (const name of ["fanfare-unread", "fanfare-open", "fanfare-error"]) inbox.addEventListener(name, (event) => window.seen.push([name, name === "fanfare-error" ? event.detail.kind : event.detail]));
inbox.tokenProvider = async () => (await fetch("/token" + location.search)).json();`;

/** Finds an element in the shadow root, or waits for it. It asks instead of waiting for frames, which a busy machine hardly draws. */
export async function find(page: Page, selector: string): Promise<ElementHandle> {
  let found: ElementHandle | null = null;
  await eventually(`${selector} is there`, async () => (found = await page.$(`fanfare-inbox >>> ${selector}`)));
  return found!;
}

/** The text of the elements of a selector in the shadow root. */
export const texts = (page: Page, selector: string): Promise<string[]> =>
  page.$$eval(`fanfare-inbox >>> ${selector}`, (elements) => elements.map((element) => (element as HTMLElement).innerText));
