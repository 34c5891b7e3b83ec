/** The real server, with a service that stores messages in inboxes. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const binary = process.env["FANFARE_BINARY"] ?? resolve("../../../bin/fanfare");
const patience = 120_000; // milliseconds; it decides only how long a failure takes

export async function eventually(what: string, condition: () => unknown): Promise<void> {
  const deadline = Date.now() + patience;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `did not come about: ${what}`);
    await new Promise((again) => setTimeout(again, 20));
  }
}

const service = {
  service: "news",
  channels: { inbox: { driver: "inbox", from: "News <news@example.org>" } },
  topics: { story: { template: "story", schema: { type: "object", properties: { title: { type: "string" }, text: { type: "string" } } } } },
  templates: { story: { subject: "{{ event.title }}", text: "{{ event.text }}" } },
};

export class Server {
  readonly #folder = mkdtempSync(join(tmpdir(), "fanfare-inbox-"));
  #process: ChildProcess | undefined;
  url = "";
  key = "";

  /** Starts a server. */
  static async start(): Promise<Server> {
    const server = new Server();
    await server.#serve("127.0.0.1:0");
    server.key = readFileSync(join(server.#folder, "data", "admin.key"), "utf8").trim();
    await server.ask("POST", "/v1/apply", service);
    return server;
  }

  async #serve(address: string): Promise<void> {
    const log = join(this.#folder, "log");
    const out = openSync(log, "w");
    const child = spawn(binary, ["serve", "--listen", address, "--data-dir", join(this.#folder, "data"), "--durability", "relaxed", "--disk-floor", "0"], { stdio: ["ignore", out, out] });
    closeSync(out);
    this.#process = child;
    await eventually("the server listens", () => {
      const text = readFileSync(log, "utf8");
      assert.equal(child.exitCode, null, text);
      this.url = /listens on (\S+)/.exec(text)?.[1] ?? "";
      return this.url;
    });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, "exit");
  }

  /** Kills the server, and starts it again with the same data and address after the step. */
  async restart(step: () => Promise<void> = async () => {}): Promise<void> {
    const { host } = new URL(this.url);
    await this.#end("SIGKILL");
    await step();
    await this.#serve(host);
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    rmSync(this.#folder, { recursive: true });
  }

  /** Sends a request of the API, and returns its response. */
  async ask(method: string, path: string, body?: unknown): Promise<any> {
    const response = await fetch(this.url + path, {
      method, headers: { "Authorization": `Bearer ${this.key}`, "Content-Type": "application/json", "X-Fanfare-Service": "news" }, ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  /** Returns the response with a token for a mailbox. */
  token(address: string, ...origins: string[]): Promise<{ token: string; expires_at: string }> {
    return this.ask("POST", `/v1/mailboxes/${address}/tokens`, { origins, lifetime: "10m" });
  }

  /** Subscribes an address to the inbox, and makes its mailbox. */
  async person(address: string): Promise<void> {
    await this.ask("POST", "/v1/subscriptions", { topic: "story", channel: "inbox", to: address });
    await this.mailbox(address);
  }

  /** Creates a mailbox, and a person who has it. */
  async mailbox(address: string): Promise<void> {
    await this.ask("PUT", `/v1/mailboxes/${address}`, {});
  }

  /** Publishes a message to all who are subscribed, and returns the id of its event. */
  async publish(title: string, text: string): Promise<string> {
    return (await this.ask("POST", "/v1/topics/story/events", { title, text })).events[0].id;
  }

  /** Stores messages in an inbox as they are, the last at the top. */
  async store(address: string, ...messages: string[]): Promise<void> {
    await this.mailbox(address);
    const { token } = await this.token(address);
    const request = async (path: string, type: string, body: string): Promise<any> => {
      const response = await fetch(this.url + path, { method: "POST", headers: { "Authorization": `Bearer ${token}`, "Content-Type": type }, body });
      assert.ok(response.ok, `${path}: ${response.status}`);
      return response.json();
    };
    const session: any = await (await fetch(`${this.url}/jmap/session`, { headers: { Authorization: `Bearer ${token}` } })).json();
    const accountId = Object.keys(session.accounts)[0]!;
    const call = async (name: string, args: object): Promise<any> => {
      const { methodResponses } = await request("/jmap/api", "application/json", JSON.stringify({ using: ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"], methodCalls: [[name, { accountId, ...args }, "0"]] }));
      return methodResponses[0][1];
    };
    const inbox = (await call("Mailbox/query", { filter: { role: "inbox" } })).ids[0];
    const emails: Record<string, object> = {};
    for (const [n, message] of messages.entries()) {
      const { blobId } = await request(`/jmap/upload/${accountId}/`, "message/rfc822", message.replace(/\r?\n/g, "\r\n"));
      const receivedAt = new Date(Date.now() - (messages.length - n) * 3 * 3_600_000).toISOString();
      emails[`m${n}`] = { blobId, mailboxIds: { [inbox]: true }, receivedAt };
    }
    const { notCreated } = await call("Email/import", { emails });
    assert.deepEqual(notCreated ?? {}, {});
  }
}

/** A plain message. */
export const plain = (subject: string, text = "Text."): string => `From: Ada <ada@example.org>\nSubject: ${subject}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n${text}\n`;
