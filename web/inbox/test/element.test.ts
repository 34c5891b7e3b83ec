/** The element in Chromium, on pages of another origin than the server. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";

import type { Browser, Page } from "puppeteer-core";

import { find, Site, startBrowser, texts } from "./browser.ts";
import { eventually, plain, Server } from "./server.ts";

const pictures = process.env["PICTURES"] ?? resolve("../../../.test/screens");
const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
let server: Server;
let site: Site;
let browser: Browser;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  server = await Server.start();
  site = await Site.start(server);
  browser = await startBrowser();
});
after(async () => {
  await browser.close();
  await site.stop();
  await server.stop();
});

async function visit(of: string, parameters = "", at = site): Promise<Page> {
  const page = await browser.newPage();
  await page.setViewport({ width: 1100, height: 800 });
  page.setDefaultTimeout(120_000);
  await page.goto(`${at.origin}/?of=${of}${parameters}`);
  return page;
}

const rows = (page: Page): Promise<string[]> => texts(page, ".item .subject");
const focused = (page: Page): Promise<string> => page.evaluate(() => {
  const element = document.querySelector("fanfare-inbox")!.shadowRoot!.activeElement as HTMLElement | null;
  return element?.getAttribute("aria-label") ?? element?.querySelector(".subject")?.textContent ?? element?.textContent ?? "";
});
const seen = (page: Page): Promise<[string, any][]> => page.evaluate(() => (window as unknown as { seen: [string, any][] }).seen);

/** An HTML message, the last part of which is an image of its own. */
const rich = (subject: string, html: string): string => `From: News <news@example.org>\nSubject: ${subject}\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n${html}\n`;

const examples = [
  ...Array.from({ length: 9 }, (_, n) => plain(`Timetable of week ${n + 1}`, "The trains of line 4 run every ten minutes, and every twenty minutes after 21:00.")),
  plain("Your invoice for October", "Thank you for your order. The invoice is attached."),
  plain("Une longue ligne : LlanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogochLlanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch", "x".repeat(300)),
  plain("طريق مغلق في وسط المدينة", "يرجى استخدام الطريق البديل."),
  rich("Storm warning for the coast", '<h2>Storm warning</h2><p>Winds of up to <strong>110 km/h</strong> are expected on Friday. <a href="https://news.example.org/storm">Read more</a></p><img src="https://news.example.org/map.png" alt="Map of the coast">'),
  plain("Road closed", "The High Street is closed from Monday, 6:00, to Wednesday, 20:00.\n\nBuses of line 12 go through Mill Lane.\nDetails: https://news.example.org/roads?id=12.\n"),
];

test("the pages of the element are accessible and fit narrow and wide screens, in light, dark and right-to-left", async () => {
  await server.store("looks@example.org", ...examples);
  for (const [name, parameters, scheme] of [["light", "", "light"], ["dark", "", "dark"], ["rtl", "&lang=ar&dir=rtl", "light"]] as const) {
    const page = await visit("looks@example.org", parameters);
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await find(page, ".item");
    const check = async (state: string): Promise<void> => {
      for (const [size, width] of [["narrow", 320], ["wide", 1100]] as const) {
        await page.setViewport({ width, height: 760 });
        const wide = await page.evaluate(() => {
          const all = [...document.querySelector("fanfare-inbox")!.shadowRoot!.querySelectorAll<HTMLElement>(".panel, .pane, .body, article, header, .text, .bar, .head")];
          return [document.documentElement.scrollWidth - innerWidth, ...all.filter((element) => element.scrollWidth > element.clientWidth + 1).map((element) => element.className)].filter((found) => found !== 0);
        });
        assert.deepEqual(wide, [], `${state} ${size} ${name} is too wide`);
        await page.screenshot({ path: join(pictures, `inbox-${state}-${size}-${name}.png`) as `${string}.png` });
        await page.evaluate(axe);
        const violations = await page.evaluate(async () => {
          const { violations } = await (window as any).axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], iframes: false });
          return violations.map((one: any) => `${one.id}: ${one.help}: ${one.nodes.map((node: any) => node.html + " " + node.failureSummary).join("; ")}`);
        });
        assert.deepEqual(violations, [], `${state} ${size} ${name}`);
      }
    };
    await check("list");
    for (const [state, subject] of [["text", "Road closed"], ["html", "Storm warning for the coast"]] as const) {
      await page.evaluate((wanted) => {
        const inbox = document.querySelector("fanfare-inbox") as any;
        void inbox.open(inbox.inbox.messages.find((message: any) => message.subject === wanted).id);
      }, subject);
      await find(page, state === "text" ? ".text" : "iframe");
      await check(state);
    }
    await page.close();
  }
});

test("everything works with the keyboard alone", async () => {
  await server.store("keys@example.org", ...Array.from({ length: 12 }, (_, n) => plain(`m${n}`)));
  const page = await visit("keys@example.org");
  await find(page, ".item");
  const press = async (key: any, expected: string): Promise<void> => {
    await page.keyboard.press(key);
    await eventually(`${key} leads to ${expected}, not to ${await focused(page)}`, async () => (await focused(page)) === expected);
  };
  await press("Tab", "Mark all as read");
  await press("Tab", "m11");
  await press("ArrowDown", "m10");
  await press("End", "m2");
  await press("ArrowDown", "m2");
  await press("Home", "m11");
  await press("Tab", "Delete: m11");
  await press("Tab", "Load more");
  await press("Enter", "m1");
  await press("ArrowUp", "m2");
  await press("Enter", "m2"); // the heading of the message
  assert.deepEqual(await texts(page, "article h3"), ["m2"]);
  await press("Escape", "m2");
  assert.deepEqual(await texts(page, "article h3"), []);
  await eventually("it is read", async () => (await texts(page, ".item:not(.unread) .subject")).join() === "m2");
  // The message with "Undo" must not go before a slow machine has pressed Tab.
  await page.evaluate(() => {
    const start = window.setTimeout;
    window.setTimeout = ((step: () => void, millis: number) => (millis === 10_000 ? 0 : start(step, millis))) as typeof window.setTimeout;
  });
  await press("Delete", "m1");
  await find(page, ".toast:not([hidden])");
  assert.equal((await rows(page)).includes("m2"), false);
  await press("Tab", "Delete: m1");
  await press("Tab", "Undo");
  await press("Enter", "m1");
  await eventually("it is back", async () => (await rows(page)).includes("m2"));
  await page.keyboard.down("Shift");
  await press("Tab", "Mark all as read");
  await page.keyboard.up("Shift");
  await press("Space", "m1"); // the button goes, and the focus stays in the inbox
  await eventually("all are read", async () => (await texts(page, ".item.unread")).length === 0);
  await page.close();
});

test("a screen reader gets names, roles and news", async () => {
  await server.person("reader@example.org");
  const page = await visit("reader@example.org");
  await eventually("it is empty", async () => (await texts(page, "[part=empty]"))[0] === "You have no messages.");
  await eventually("the stream is open", () => page.evaluate(() => (document.querySelector("fanfare-inbox") as any).inbox.connection === "live"));
  await server.publish("Road closed", "The High Street is closed.");
  await find(page, ".item.unread"); // without a reload
  assert.deepEqual(await texts(page, "[role=status]"), ["New message: Road closed"]);
  const tree = JSON.stringify(await page.accessibility.snapshot());
  for (const part of ['"role":"button","name":"Unread News Road closed The High Street is closed. ', '"name":"Delete: Road closed"', "1 unread message"]) assert.ok(tree.includes(part), `${part} in ${tree}`);
  assert.deepEqual((await seen(page)).at(-1), ["fanfare-unread", { unread: 1, total: 1 }]);
  await (await find(page, ".row")).click();
  await find(page, ".text");
  await eventually("it is read", async () => JSON.stringify((await seen(page)).at(-1)) === JSON.stringify(["fanfare-unread", { unread: 0, total: 1 }]));
  await page.close();
});

test("a page of another origin than the token names gets nothing", async (t) => {
  await server.store("origin@example.org", plain("private"));
  const other = await Site.start(server, "localhost", () => site.origin);
  t.after(() => other.stop());
  const page = await visit("origin@example.org", "", other);
  await find(page, ".notice:not([hidden])");
  assert.deepEqual([await rows(page), await texts(page, ".notice p")], [[], ["The inbox cannot be reached. Check your connection, and try again."]]);
  assert.deepEqual(await seen(page), [["fanfare-error", "network"]]);
  await page.close();
});

test("a hostile message does nothing", async (context) => {
  const tracker = await Site.start(server);
  context.after(() => tracker.stop());
  const t = tracker.origin;
  const html = `<html><head><meta http-equiv="refresh" content="0;url=${t}/refresh"><link rel="stylesheet" href="${t}/link.css"><base href="${t}/"><style>@import url(${t}/import.css); body{background:url(${t}/style.png)} @font-face{font-family:x;src:url(${t}/font)} *{font-family:x}</style></head>
<body onload="parent.hacked=1" background="${t}/background.png" style="background:url(${t}/inline.png)"><a id="evil" href="javascript:opener?opener.hacked=11:top.hacked=11">click</a> <a id="data" href="data:text/html,<script>alert(1)</script>">data</a> <a id="good" ping="${t}/ping" href="${t}/page" target="_top">good</a><script>top.hacked=2</script><script src="${t}/script.js"></script>
<img src="${t}/image.png" onerror="top.hacked=3"><img srcset="${t}/srcset.png 2x"><img src=x onerror=top.hacked=4><svg onload="top.hacked=5"><a xlink:href="javascript:top.hacked=6"><text y="20">svg</text></a><image href="${t}/svg.png"/></svg>
<iframe src="${t}/frame"></iframe><iframe srcdoc="<script>top.hacked=7</script>"></iframe><object data="${t}/object"></object><embed src="${t}/embed"><video src="${t}/video" poster="${t}/poster"></video>
<form action="${t}/form"><input name=a autofocus onfocus="top.hacked=8"><button>Send</button></form><math><mtext><table><mglyph><style><img src=x onerror="top.hacked=9"></style></mglyph></table></mtext></math>
<noscript><p title="</noscript><img src=x onerror=top.hacked=10>"></noscript><p style="position:fixed;inset:0;z-index:9999">over all</p></body></html>`;
  await server.store("hostile@example.org", plain('<img src=x onerror="window.hacked=20">', '<script>window.hacked=21</script> javascript:alert(1) https://example.org/"onmouseover="window.hacked=22'),
    rich(`Giant ${"=?utf-8?q?=E2=80=AE?= ".repeat(20)}${"W".repeat(60_000)}`, html));
  const page = await visit("hostile@example.org");
  const answered: string[] = [];
  page.on("response", (response) => answered.push(response.url()));
  await page.setViewport({ width: 320, height: 700 });
  await find(page, ".item");
  await (await find(page, ".row")).click();
  const frame = await find(page, "iframe");
  await eventually("the frame has loaded", async () => (await page.frames()[1]?.evaluate("location.href + document.readyState").catch(() => "")) === "about:srcdoccomplete");
  const inside = page.frames()[1]!;
  assert.deepEqual(await inside.evaluate("[...document.links].map((link) => [link.textContent, link.getAttribute('href'), link.target, link.rel])"), [["good", `${t}/page`, "_blank", "noopener noreferrer nofollow"]]);
  assert.equal(await inside.evaluate("document.querySelectorAll('script,iframe,object,embed,form,input,svg,math,link,base,video,[onload],[onerror],[ping]').length"), 0);
  assert.equal(await inside.evaluate("document.querySelectorAll('meta[http-equiv=refresh],a[href^=javascript],a[href^=data]').length"), 0);
  assert.equal(await inside.evaluate("origin"), "null");
  assert.equal(await frame.evaluate((element) => element.getAttribute("sandbox")), "allow-popups allow-popups-to-escape-sandbox");
  await inside.evaluate("document.querySelectorAll('#evil, #data').forEach((link) => link.click())");
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is too wide");
  await (await find(page, "[part~=back]")).click();
  await (await find(page, ".item:nth-child(2) .row")).click();
  await find(page, ".text");
  assert.match((await texts(page, ".text"))[0]!, /^<script>window.hacked=21<\/script> javascript:alert/);
  assert.deepEqual(await page.$$eval("fanfare-inbox >>> .text a", (links) => links.map((link) => [(link as HTMLAnchorElement).href, (link as HTMLAnchorElement).rel])), [["https://example.org/", "noopener noreferrer nofollow"]]);
  assert.equal(await page.evaluate(() => (window as any).hacked), undefined);
  assert.deepEqual([tracker.requests, answered.filter((url) => url.startsWith(t))], [[], []]);

  // Images of other sites are loaded only after a click, and nothing else is.
  await (await find(page, "[part~=back]")).click();
  await (await find(page, ".row")).click();
  await (await find(page, "[part~=show-images]")).click();
  await eventually("the image is loaded", () => tracker.requests.includes("/image.png"));
  assert.deepEqual(tracker.requests.filter((path) => !path.endsWith(".png")), []);
  assert.equal(await page.evaluate(() => (window as any).hacked), undefined);
  await page.close();
});

test("readers are told what to do without a network or a token, and the page goes on afterwards", async () => {
  await server.store("errors@example.org", plain("one"));
  const page = await visit("errors@example.org");
  // The page also tries by itself, so the button may be gone before a mouse gets to it.
  const retry = async (): Promise<void> => (await find(page, "[part~=retry]")).evaluate((button) => (button as HTMLButtonElement).click());
  await find(page, ".item");
  await page.setOfflineMode(true);
  await (await find(page, ".row")).click();
  await find(page, ".notice:not([hidden])");
  assert.match((await texts(page, "[role=alert]"))[0]!, /^The inbox cannot be reached/);
  await page.setOfflineMode(false);
  await retry();
  await eventually("the notice goes", async () => (await page.$("fanfare-inbox >>> .notice:not([hidden])")) === null);
  await page.evaluate(() => {
    const inbox = document.querySelector("fanfare-inbox") as any;
    const provider = inbox.tokenProvider;
    inbox.tokenProvider = () => ((window as any).signedIn ? provider() : Promise.reject(new Error("signed out")));
  });
  await eventually("the notice says it", async () => (await texts(page, ".notice p"))[0] === "Your session has expired. Try again, or sign in again.");
  assert.deepEqual((await seen(page)).at(-1), ["fanfare-error", "token"]);
  await page.evaluate(() => ((window as any).signedIn = true));
  await retry();
  await eventually("the message is there again", async () => (await rows(page)).join() === "one");
  await eventually("the notice goes again", async () => (await page.$("fanfare-inbox >>> .notice:not([hidden])")) === null);
  await page.close();
});

test("a page replaces texts, slots, language and colors, and can open messages itself", async () => {
  await server.store("own@example.org", plain("one"));
  const page = await visit("own@example.org", "&lang=de-AT");
  await find(page, ".item");
  assert.deepEqual([await texts(page, "h2"), await texts(page, "[part~=read-all]")], [["Posteingang"], ["Alle als gelesen markieren"]]);
  await page.evaluate(() => (document.documentElement.lang = "fr"));
  await eventually("it is French", async () => (await texts(page, "h2"))[0] === "Boîte de réception");
  await page.evaluate(() => {
    const inbox = document.querySelector("fanfare-inbox") as any;
    inbox.texts = { readAll: "Tout lu" };
    inbox.style.setProperty("--fanfare-background", "rgb(1, 2, 3)");
    inbox.insertAdjacentHTML("beforeend", '<strong slot="header">Actualités</strong>');
    inbox.addEventListener("fanfare-open", (event: Event) => event.preventDefault());
  });
  assert.deepEqual([await texts(page, "[part~=read-all]"), await page.$eval("fanfare-inbox >>> h2", (title) => title.checkVisibility())], [["Tout lu"], false]);
  assert.equal(await page.$eval("fanfare-inbox >>> .panel", (panel) => getComputedStyle(panel).backgroundColor), "rgb(1, 2, 3)");
  await (await find(page, ".row")).click();
  await eventually("it is read", async () => (await texts(page, ".item:not(.unread)")).length === 1);
  assert.deepEqual([await texts(page, "article h3"), (await seen(page)).some(([name, detail]) => name === "fanfare-open" && detail.subject === "one")], [[], true]);
  await page.close();
});

test("the element has no dependencies, and is smaller than 15 KB", () => {
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as { dependencies?: object };
  assert.equal(dependencies, undefined);
  const size = gzipSync(readFileSync("dist/fanfare-inbox.js"), { level: 9 }).length;
  assert.ok(size < 15_000, `${size} bytes`);
});
