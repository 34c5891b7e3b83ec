/**
 * Sessions: send requests to the instances of a worker, and receive their
 * responses.
 *
 * A session is open at the server until it is closed; the programs that use it
 * attach to it by its id. Each client is a named stream of requests, and one
 * of responses, over a separate WebSocket.
 */
import { Client, type Kept, type SendOptions } from "./client.js";
import type { SessionResponse } from "./frame.js";
import { problem, problemOf } from "./problem.js";
import { baseOf, ConnectionError, headersOf, type Server, serverOf } from "./socket.js";

export { Client, type Kept, type Refusal, RefusedError, type SendOptions } from "./client.js";
export { type FaultBody, FrameError, SessionResponse } from "./frame.js";
export { type Problem, ProblemError } from "./problem.js";
export { ConnectionError, type Server } from "./socket.js";

const defaultReconnectMillis = 10 * 60_000;

export type Kind = "interactive" | "durable";

/** The defaults of url, key and service are FANFARE_URL, FANFARE_KEY and FANFARE_SERVICE. */
export interface AttachOptions extends Partial<Server> {
  /** Milliseconds for which clients try to connect, at first and when a connection is lost; the default is 10 minutes. */
  reconnectFor?: number;
}

export interface OpenOptions extends AttachOptions {
  /** The worker that runs the requests. */
  worker: string;
  /** An interactive session ends with its broker; a durable one is stored in the database. The default is interactive. */
  kind?: Kind;
  /** A name, unique among the open sessions of the service. */
  name?: string;
  /** Number of instances that agents keep ready while the session is open. */
  minInstances?: number;
  /** Maximum number of instances that work for the session at the same time; 0: no limit. */
  maxInstances?: number;
  /** 1 to 100: the weight of its share of the instances; the default is 50. */
  priority?: number;
  /** How often a request is sent again after a retry or a timeout; the default is 3. With 0, a request runs at most once. */
  resends?: number;
  /** The session ends after this time without clients and work, such as "10m". */
  idleTimeout?: string;
  /** The session ends this long after it was opened, such as "12h". */
  totalTimeout?: string;
}

/** A session as the API shows it. */
export interface SessionInfo {
  id: string;
  worker: string;
  kind: Kind;
  [field: string]: unknown;
}

async function call<T>(server: Server, method: string, path: string, body?: unknown): Promise<T> {
  let response: Response;
  try {
    response = await fetch(baseOf(server) + path, {
      method,
      headers: { ...headersOf(server), ...(body !== undefined && { "Content-Type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  } catch (error) {
    const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
    throw new ConnectionError(`no connection to ${server.url}: ${cause?.message || cause?.code || (error as Error).message}`, 0);
  }
  if (!response.ok) throw await problemOf(response);
  const text = await response.text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

export class Session {
  private readonly clients = new Set<Client>();

  private constructor(
    private readonly server: Server,
    private readonly reconnectFor: number | undefined,
    readonly id: string,
    /** The session as it was opened, or when this program attached. */
    readonly info: SessionInfo,
    private readonly opened: boolean,
  ) {}

  /** Opens a session. */
  static async open(options: OpenOptions): Promise<Session> {
    const server = serverOf(options);
    const info = await call<SessionInfo>(server, "POST", "/v1/sessions", {
      worker: options.worker,
      kind: options.kind,
      name: options.name,
      min_instances: options.minInstances,
      max_instances: options.maxInstances,
      priority: options.priority,
      resends: options.resends,
      idle_timeout: options.idleTimeout,
      total_timeout: options.totalTimeout,
    });
    return new Session(server, options.reconnectFor, info.id, info, true);
  }

  /** Attaches to a session that this or another program has opened. */
  static async attach(options: AttachOptions & { id: string }): Promise<Session> {
    const server = serverOf(options);
    const info = await call<SessionInfo>(server, "GET", `/v1/sessions/${encodeURIComponent(options.id)}`);
    return new Session(server, options.reconnectFor, info.id, info, false);
  }

  /** Reads the state of the session. */
  status(): Promise<SessionInfo> {
    return call(this.server, "GET", `/v1/sessions/${encodeURIComponent(this.id)}`);
  }

  /**
   * Opens the client with a name: 1 to 64 letters, digits, "-", "_" and ".".
   * A client that existed before continues where it stopped. The responses begin
   * with the number from or, without it, with the first one that was not processed.
   */
  async client(name: string, options: { from?: number } = {}): Promise<Client> {
    const { worker } = this.info;
    const reconnectFor = this.reconnectFor ?? defaultReconnectMillis;
    const client = await Client.open({ server: this.server, session: this.id, name, worker, reconnectFor, from: options.from });
    this.clients.add(client);
    return client;
  }

  /** Closes the clients of this program. The session stays open. */
  async detach(): Promise<void> {
    const clients = [...this.clients];
    this.clients.clear();
    await Promise.all(clients.map((client) => client.close()));
  }

  /** Closes the session for all programs. With purge, removes its requests and responses. */
  async close(options: { purge?: boolean } = {}): Promise<void> {
    const clients = [...this.clients];
    this.clients.clear();
    await Promise.allSettled(clients.map((client) => client.close()));
    await call(this.server, "DELETE", `/v1/sessions/${encodeURIComponent(this.id)}${options.purge ? "?purge=true" : ""}`);
  }

  /** Closes an interactive session that this program has opened; only detaches from all others. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.opened && this.info.kind === "interactive") await this.close();
    else await this.detach();
  }
}

/** Several sessions of a worker, which get requests in turn. */
export class Pool {
  constructor(readonly sessions: Session[]) {
    if (sessions.length === 0) throw problem(422, "invalid", "the pool has no session", "pass at least one session");
  }

  /** Opens a number of sessions. */
  static async open(options: OpenOptions & { sessions: number }): Promise<Pool> {
    const { sessions, name, ...rest } = options;
    const open = (n: number) => Session.open({ ...rest, ...(name !== undefined && { name: `${name}-${n + 1}` }) });
    const results = await Promise.allSettled(Array.from({ length: sessions }, (_, n) => open(n)));
    const opened = results.flatMap((r) => (r.status === "fulfilled" ? [r.value] : []));
    const failed = results.find((r) => r.status === "rejected");
    if (failed === undefined) return new Pool(opened);
    await Promise.allSettled(opened.map((session) => session.close({ purge: true })));
    throw failed.reason;
  }

  /** Opens the client with a name in each session. */
  async client(name: string): Promise<PoolClient> {
    return new PoolClient(await Promise.all(this.sessions.map((session) => session.client(name))));
  }

  async detach(): Promise<void> {
    await Promise.all(this.sessions.map((session) => session.detach()));
  }

  async close(options: { purge?: boolean } = {}): Promise<void> {
    await Promise.all(this.sessions.map((session) => session.close(options)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.sessions.map((session) => session[Symbol.asyncDispose]()));
  }
}

/** A client in each session of a pool. */
export class PoolClient {
  private next = 0;

  constructor(readonly clients: Client[]) {}

  /** Sends a request to the next session in turn. Ids are not supported, because an id is unique only within one session. */
  async send(body: string | Uint8Array, options?: Omit<SendOptions, "id">): Promise<{ client: Client; number: number }> {
    const client = this.clients[this.next++ % this.clients.length]!;
    return { client, number: await client.send(body, options) };
  }

  /** Does the same as Client.flush, for all sessions. */
  async flush(): Promise<Kept> {
    const all = await Promise.all(this.clients.map((client) => client.flush()));
    return { requests: all.reduce((sum, k) => sum + k.requests, 0), accepted: all.reduce((sum, k) => sum + k.accepted, 0) };
  }

  /** Does the same as Client.end: count is the number of requests of all sessions together. */
  async end(count?: number): Promise<number> {
    const { accepted } = await this.flush();
    if (count !== undefined && count !== accepted) {
      throw problem(409, "conflict", `the pool has ${accepted} accepted requests instead of ${count}`, "compare the requests with those that were meant to be sent");
    }
    const all = await Promise.all(this.clients.map((client) => client.end()));
    return all.reduce((sum, n) => sum + n, 0);
  }

  /** Calls handle for each response of each session, in the order in which they arrive. */
  async onResponse(handle: (response: SessionResponse, client: Client) => void | Promise<void>): Promise<void> {
    await Promise.all(this.clients.map((client) => client.onResponse((response) => handle(response, client))));
  }

  /** Iterates over the responses of all sessions, in the order in which they arrive. */
  async *responses(): AsyncGenerator<SessionResponse, void, void> {
    const readers = this.clients.map((client) => client.responses());
    const pull = (n: number) => readers[n]!.next().then((result) => ({ n, result }));
    const pending = new Map(readers.map((_, n) => [n, pull(n)]));
    try {
      while (pending.size > 0) {
        const { n, result } = await Promise.race(pending.values());
        if (result.done) {
          pending.delete(n);
          continue;
        }
        yield result.value;
        pending.set(n, pull(n));
      }
    } finally {
      for (const reader of readers) void reader.return?.();
    }
  }

  async close(options: { purge?: boolean } = {}): Promise<void> {
    await Promise.all(this.clients.map((client) => client.close(options)));
  }
}
