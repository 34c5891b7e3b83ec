/** A gateway for text messages, to which instances of examples/workers/protocol-typescript post. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo } from "node:net";

/** The number of a person. */
export const number = (n: number) => `+4915${String(n).padStart(8, "0")}`;

/** Sends each message once by its key, and counts. The path is the name of the instance that posts. */
export class Gateway {
  readonly sent = new Map<string, { to: string; text: string }>(); // by key
  readonly posts: { from: string; key: string; to: string }[] = [];
  readonly unanswered = new Set<string>(); // keys
  readonly wrong: string[] = [];
  url = "";
  private readonly tried = new Set<string>();
  private readonly http = createServer((request, response) => void this.take(request, response));

  /** Some numbers have other replies than the rest. The instance "killed" gets no reply when leaves returns true. */
  constructor(
    private readonly numbers: { unknown: string; busy?: string; cut?: string },
    private readonly leaves: () => boolean,
  ) {}

  async start(): Promise<void> {
    await new Promise<void>((listening) => this.http.listen(0, "127.0.0.1", listening));
    this.url = `http://127.0.0.1:${(this.http.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.http.closeAllConnections();
    this.http.close();
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const part of request) body += String(part);
    const key = String(request.headers["idempotency-key"]);
    const { to, text, ...rest } = JSON.parse(body) as { to: string; text: string };
    if (request.method !== "POST" || request.headers["content-type"] !== "application/json" || Object.keys(rest).length > 0) this.wrong.push(body);
    const from = request.url!.slice(1);
    this.posts.push({ from, key, to });
    if (from === "killed" && this.leaves()) {
      // The message is sent, but the reply will be lost with the instance.
      this.sent.set(key, { to, text });
      this.unanswered.add(key);
      return;
    }
    const first = !this.tried.has(key);
    this.tried.add(key);
    if (to === this.numbers.unknown) response.writeHead(404).end("unknown number");
    else if (to === this.numbers.busy && first) response.writeHead(503, { "Retry-After": "1" }).end("busy");
    else if (to === this.numbers.cut && first) request.socket.destroy();
    else {
      const known = this.sent.get(key);
      if (known !== undefined && known.text !== text) this.wrong.push(`${key} has another text now: ${text}`);
      this.sent.set(key, { to, text });
      response.writeHead(202).end("queued");
    }
  }
}
