/** The real server with two services, a mail server that captures messages, and data with hostile texts. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const binary = process.env["FANFARE_BINARY"] ?? resolve("../../bin/fanfare");
const patience = 60_000; // milliseconds; it decides only how long a failure takes

/** A text that would run a script, or load an image, if a page took it for HTML. */
export const hostile = '<script>window.hacked=1</script><img src="https://evil.example/x.png" onerror="window.hacked=1">';

export async function eventually(what: string, condition: () => unknown): Promise<void> {
  const deadline = Date.now() + patience;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `did not come about: ${what}`);
    await new Promise((again) => setTimeout(again, 50));
  }
}

const topics = {
  story: { title: `Stories ${hostile}`, template: "story", schema: { type: "object", properties: { title: { type: "string" }, place: { type: "string" } } }, rules: [{ name: "near", when: "event.place == sub.place", params: { place: "string" } }] },
  warning: { title: "Warnings", template: "story", lane: "urgent" },
  offer: { title: "Offers", template: "story", lane: "bulk", hold_above: 3 },
  price: {},
};
const document = (service: string, relay: string) => ({
  service,
  channels: {
    email: { driver: "smtp", relay, from: `${service} <${service}@example.org>` },
    slow: { driver: "smtp", relay, from: `${service} <${service}@example.org>`, rate: "2/s" },
    hook: { driver: "webhook", allow_http: true },
  },
  topics,
  workers: { resize: { command: ["/bin/false"], version: "1" } },
  templates: { story: { subject: `{{ event.title }} ${hostile}`, text: "{{ event.title }} at {{ event.place }}" } },
});

export class Server {
  readonly #folder = mkdtempSync(join(tmpdir(), "fanfare-console-"));
  readonly #processes: ChildProcess[] = [];
  readonly captured = join(this.#folder, "captured");
  url = "";
  key = "";

  /** Starts the server. With capture, it writes all messages to the folder captured. With keep, the mail server does, and the server shows its folder. */
  static async start({ capture = false, keep = false, args = [] as string[] } = {}): Promise<Server> {
    const server = new Server();
    process.on("exit", () => server.#processes.forEach((child) => child.kill("SIGKILL"))); // also if a test failed to start
    const relay = await server.#run("sink", /takes mail at (\S+)/, "sink", "--smtp", "127.0.0.1:0", "--perm-fail", keep ? "0" : "0.2", ...(keep ? ["--folder", server.captured] : []));
    server.url = await server.#run("serve", /listens on (\S+)/, "serve", "--listen", "127.0.0.1:0", "--data-dir", join(server.#folder, "data"), "--durability", "relaxed", "--disk-floor", "0", "--allow-networks", "127.0.0.0/8", ...(capture ? ["--capture", server.captured] : []), ...(keep ? ["--capture-folders", server.captured] : []), ...args);
    server.key = readFileSync(join(server.#folder, "data", "admin.key"), "utf8").trim();
    for (const service of ["news", "weather"]) await server.ask("POST", "/v1/apply", document(service, relay), service);
    return server;
  }

  /** Starts a command, and returns the address that it prints. */
  async #run(name: string, address: RegExp, ...args: string[]): Promise<string> {
    const log = join(this.#folder, `${name}.log`);
    const out = openSync(log, "w");
    const child = spawn(binary, args, { stdio: ["ignore", out, out] });
    closeSync(out);
    this.#processes.unshift(child);
    let found = "";
    await eventually(`${name} listens`, () => {
      const text = readFileSync(log, "utf8");
      assert.equal(child.exitCode, null, text);
      return (found = address.exec(text)?.[1] ?? "");
    });
    return found;
  }

  async stop(): Promise<void> {
    for (const child of this.#processes) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    rmSync(this.#folder, { recursive: true });
  }

  /** Sends a request of the API, and returns its response. */
  async ask(method: string, path: string, body?: unknown, service = "news", type = "application/json"): Promise<any> {
    const response = await fetch(this.url + path, {
      method, headers: { "Authorization": `Bearer ${this.key}`, "Content-Type": type, ...(service && { "X-Fanfare-Service": service }) },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return text && type === "application/json" ? JSON.parse(text) : undefined;
  }

  /** Subscribes people to a topic. */
  async subscribe(n: number, topic: string, channel = "email", service = "news"): Promise<void> {
    const lines = Array.from({ length: n }, (_, i) => JSON.stringify({ topic, channel, to: `${topic}${i}@example.org`, locale: "en", attributes: { name: hostile } }));
    await this.ask("POST", "/v1/subscriptions?quiet=true", lines.join("\n"), service, "application/x-ndjson");
  }

  /** Publishes an event, and returns its id. */
  async publish(topic: string, title: string, service = "news"): Promise<string> {
    return (await this.ask("POST", `/v1/topics/${topic}/events`, { title, place: "Dover" }, service)).events[0].id;
  }

  /** Waits until an event has a state. */
  reaches(event: string, ...states: string[]): Promise<void> {
    return eventually(`${event} is ${states}`, async () => states.includes((await this.event(event))?.state));
  }

  event(id: string): Promise<any> {
    return this.ask("GET", `/v1/events/${id}`).catch(() => undefined);
  }

  /** Cancels a broadcast, unless it has completed already. */
  cancel(event: string): Promise<void> {
    return this.ask("POST", "/v1/cancel", { scope: { kind: "broadcast", name: event } }).catch(() => {});
  }

  /** Creates a key, and returns its secret. */
  async createKey(name: string, scopes: string[], service = "news"): Promise<string> {
    return (await this.ask("POST", "/v1/keys", { name, scopes, service }, "")).key;
  }
}
