// A small backend: it serves the page and the package, and gives the page a token for the inbox of the person who is signed in.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

const fanfare = process.env.FANFARE_URL ?? "http://127.0.0.1:8085";
const key = process.env.FANFARE_KEY; // it never leaves this program
const port = Number(process.env.PORT ?? 3000);
const origin = process.env.ORIGIN ?? `http://127.0.0.1:${port}`;
if (!key) throw new Error("set FANFARE_KEY to an API key with the scope admin");

// Your application knows the person from the session cookie. In this example, everyone is Ada.
const signedIn = () => "ada@example.com";

const folder = new URL("../../build/sdk/inbox/dist/", import.meta.url);
const files = {
  "/": [new URL("index.html", import.meta.url), "text/html; charset=utf-8"],
  "/page.js": [new URL("page.js", import.meta.url), "text/javascript"],
  "/fanfare-inbox.js": [new URL("fanfare-inbox.js", folder), "text/javascript"],
  "/languages.js": [new URL("languages.js", folder), "text/javascript"],
};

async function token(request, response) {
  // Only the pages of this application may ask: a page of another site must not get the token.
  const site = request.headers["sec-fetch-site"];
  if (request.method !== "POST" || (site && site !== "same-origin")) return response.writeHead(403).end();
  const answer = await fetch(`${fanfare}/v1/mailboxes/${encodeURIComponent(signedIn(request))}/tokens`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json", "X-Fanfare-Service": process.env.FANFARE_SERVICE ?? "news" },
    body: JSON.stringify({ origins: [origin], lifetime: "15m" }),
  });
  const text = await answer.text();
  if (!answer.ok) console.error(`no token: ${answer.status} ${text}`);
  response.writeHead(answer.ok ? 200 : 502, { "Content-Type": "application/json", "Cache-Control": "no-store" }).end(answer.ok ? text : "{}");
}

createServer((request, response) => {
  const { pathname } = new URL(request.url, origin);
  const file = files[pathname];
  const serve = pathname === "/inbox-token" ? token(request, response) : file ? readFile(file[0]).then((text) => response.writeHead(200, { "Content-Type": file[1] }).end(text)) : response.writeHead(404).end();
  Promise.resolve(serve).catch((error) => {
    console.error(error);
    response.writeHead(500).end();
  });
}).listen(port, "127.0.0.1", () => console.log(`the page is at ${origin}`));
