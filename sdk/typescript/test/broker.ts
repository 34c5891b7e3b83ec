/**
 * A small broker, written from the protocol's page: it shares no code with the
 * library. It keeps everything in memory, so that it can lose connections, and
 * requests that it has not yet kept, without a process being killed.
 */
import { createServer, type IncomingMessage, type Server as HTTPServer } from "node:http";
import type { AddressInfo } from "node:net";

import { type WebSocket, WebSocketServer } from "ws";

interface Work {
  stream: Stream;
  number: number;
  id: Buffer;
  action: string;
  userData: Buffer;
  body: Buffer;
  timeout: number;
  attempts: number;
}

interface Answered {
  work: Work;
  status: number;
  body: Buffer;
}

/** The state of a client. */
class Stream {
  requests = 0; // kept
  accepted = 0;
  responses: Answered[] = [];
  received = 0;
  ended = false;
  socket: WebSocket | undefined;
  sent = 0; // number of the last response that this connection has
  pending: Buffer[] = []; // frames that are not handled yet

  constructor(
    readonly session: TestSession,
    readonly name: string,
    readonly number: number,
  ) {}
}

interface TestSession {
  id: string;
  number: number;
  worker: string;
  kind: string;
  resends: number;
  streams: Map<string, Stream>;
  contents: Map<string, string>; // by id
}

interface Connected {
  socket: WebSocket;
  instance: string;
  capacity: number;
  leaving: boolean;
  running: Map<bigint, Work>;
}

const header = (type: number, count = 0, first: number | bigint = 0): Buffer => {
  const b = Buffer.alloc(16);
  b.writeUInt8(type, 0);
  b.writeUInt32LE(count, 4);
  b.writeBigUInt64LE(BigInt(first), 8);
  return b;
};
const json = (type: number, value: unknown): Buffer => Buffer.concat([header(type), Buffer.from(JSON.stringify(value))]);
const problem = (status: number, code: string, detail: string) => ({ type: `/errors#${code}`, title: code, status, code, detail });

export class Broker {
  /** How far ahead of the kept requests a client may send. */
  window = 4096;
  messageLimit = 1000;
  prefetch = 1;
  /** While true, requests are neither kept nor answered. */
  paused = false;
  /** How many of the next WebSockets are refused with 503, as while no node of a cluster leads. */
  leaderless = 0;
  /** Names of the workers that are registered. */
  workers = new Set(["echo"]);
  /** Each request that was handed to an instance: "client number attempt". */
  readonly dispatched: string[] = [];
  readonly frames: { from: "client" | "instance"; type: number; count: number; bytes: Buffer }[] = [];
  readonly instances = new Set<Connected>();
  readonly sessions = new Map<string, TestSession>();

  private readonly queue: Work[] = [];
  private tags = 0n;
  private readonly http: HTTPServer;
  private readonly upgrades = new WebSocketServer({ noServer: true, maxPayload: 4 << 20 });

  private constructor() {
    this.http = createServer((request, response) => {
      let text = "";
      request.on("data", (part: Buffer) => (text += part.toString()));
      request.on("end", () => {
        const [status, body] = this.api(request, text);
        response.writeHead(status, { "Content-Type": "application/json" }).end(body === undefined ? "" : JSON.stringify(body));
      });
    });
    this.http.on("upgrade", (request, socket, head) => {
      const refused = this.leaderless-- > 0 ? problem(503, "unavailable", "the cluster has no leader at the moment") : this.refusal(request);
      if (refused !== undefined) {
        const body = JSON.stringify(refused);
        socket.end(`HTTP/1.1 ${refused.status} Refused\r\nContent-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`);
        return;
      }
      this.upgrades.handleUpgrade(request, socket, head, (ws) => this.accept(ws, request));
    });
  }

  static async start(): Promise<Broker> {
    const broker = new Broker();
    await new Promise<void>((listening) => broker.http.listen(0, "127.0.0.1", listening));
    return broker;
  }

  get server(): { url: string; key: string } {
    return { url: `http://127.0.0.1:${(this.http.address() as AddressInfo).port}`, key: "secret" };
  }

  async stop(): Promise<void> {
    this.dropConnections();
    this.http.closeAllConnections();
    await new Promise((closed) => this.http.close(closed));
  }

  /** Drops all connections, with the requests that are not kept. */
  dropConnections(): void {
    for (const session of this.sessions.values()) for (const stream of session.streams.values()) stream.socket?.terminate();
    for (const instance of this.instances) instance.socket.terminate();
  }

  resume(): void {
    this.paused = false;
    for (const session of this.sessions.values()) {
      for (const stream of session.streams.values()) for (const frame of stream.pending.splice(0)) this.fromClient(stream, frame);
    }
  }

  stream(session: string, client: string): Stream {
    return this.sessions.get(session)!.streams.get(client)!;
  }

  private refusal(request: IncomingMessage) {
    if (request.headers.authorization !== "Bearer secret") return problem(401, "unauthenticated", "unknown or revoked API key");
    const [, , kind, name] = new URL(request.url!, "http://x").pathname.split("/");
    if (kind === "workers" && !this.workers.has(name!)) return problem(404, "not_found", `worker ${name} does not exist`);
    if (kind === "sessions" && name !== undefined && !this.sessions.has(name)) return problem(404, "not_found", `session ${name} does not exist`);
    return undefined;
  }

  private api(request: IncomingMessage, text: string): [number, unknown] {
    const refused = this.refusal(request);
    if (refused !== undefined) return [refused.status, refused];
    const [, , , id] = new URL(request.url!, "http://x").pathname.split("/");
    const view = (s: TestSession) => ({ id: s.id, worker: s.worker, kind: s.kind, state: "open" });
    if (request.method === "POST") {
      const asked = JSON.parse(text) as { worker: string; kind?: string; resends?: number };
      if (!this.workers.has(asked.worker)) {
        const unknown = problem(404, "not_found", `worker ${asked.worker} does not exist`);
        return [404, unknown];
      }
      const number = this.sessions.size + 1;
      const session = { id: `ses-${number}`, number, worker: asked.worker, kind: asked.kind ?? "interactive", resends: asked.resends ?? 3, streams: new Map(), contents: new Map() };
      this.sessions.set(session.id, session);
      return [201, view(session)];
    }
    const session = this.sessions.get(id!)!;
    if (request.method === "GET") return [200, view(session)];
    this.sessions.delete(session.id);
    for (const { socket } of session.streams.values()) {
      socket?.send(json(70, problem(410, "conflict", "the session was closed by a client")));
      socket?.close(4002);
    }
    return [204, undefined];
  }

  private accept(ws: WebSocket, request: IncomingMessage): void {
    const url = new URL(request.url!, "http://x");
    const parts = url.pathname.split("/");
    if (parts[2] === "sessions") this.acceptClient(ws, this.sessions.get(parts[3]!)!, parts[5]!, url.searchParams.get("from"));
    else this.acceptInstance(ws, parts[3]!, url.searchParams.get("instance")!, Number(url.searchParams.get("capacity") ?? 1));
  }

  // Clients

  private acceptClient(ws: WebSocket, session: TestSession, name: string, from: string | null): void {
    const stream = session.streams.get(name) ?? new Stream(session, name, session.streams.size + 1);
    session.streams.set(name, stream);
    stream.socket?.close(4001);
    stream.socket = ws;
    stream.sent = from === null ? stream.received : Number(from) - 1;
    stream.pending = [];
    ws.send(json(64, {
      session: session.id, client: name, kind: session.kind, requests: stream.requests, accepted: stream.accepted, responses: stream.responses.length,
      first_response: 1, from: stream.sent + 1, ended: stream.ended, window: stream.requests + this.window, message_limit: this.messageLimit, heartbeat_seconds: 20,
    }));
    ws.on("close", () => {
      if (stream.socket === ws) stream.socket = undefined;
    });
    ws.on("message", (bytes: Buffer) => {
      this.frames.push({ from: "client", type: bytes[0]!, count: bytes.readUInt32LE(4), bytes });
      if (stream.socket !== ws) return;
      if (this.paused) stream.pending.push(bytes);
      else this.fromClient(stream, bytes);
    });
    this.sendResponses(stream);
  }

  private fromClient(stream: Stream, bytes: Buffer): void {
    const first = bytes.readBigUInt64LE(8);
    const send = (frame: Buffer) => stream.socket?.send(frame);
    switch (bytes[0]) {
      case 1:
        this.keep(stream, Number(first), bytes);
        return;
      case 2: {
        const b = Buffer.concat([header(67, 0, first), Buffer.alloc(16)]);
        b.writeBigUInt64LE(BigInt(stream.requests), 16);
        b.writeBigUInt64LE(BigInt(stream.accepted), 24);
        send(b);
        return;
      }
      case 3:
        if (first !== 0xffff_ffff_ffff_ffffn && first !== BigInt(stream.accepted)) {
          send(json(71, problem(409, "conflict", `${stream.accepted} requests were accepted: the client expected ${first}`)));
          return;
        }
        stream.ended = true;
        send(header(68, 0, stream.accepted));
        this.sendDone(stream);
        return;
      case 4:
        stream.session.streams.delete(stream.name);
        send(json(70, problem(410, "conflict", "the client has closed its stream")));
        stream.socket?.close(1000);
        return;
      case 5:
        stream.received = Math.max(stream.received, Number(first));
        return;
    }
  }

  private keep(stream: Stream, first: number, bytes: Buffer): void {
    const exceptions: Buffer[] = [];
    const count = bytes.readUInt32LE(4);
    if (first > stream.requests + 1) {
      stream.socket?.send(json(71, problem(422, "invalid", `request ${first} came after ${stream.requests}`)));
      stream.socket?.close(4000);
      return;
    }
    for (let n = 0, at = 16; n < count; n++) {
      const sizes = [bytes.readUInt16LE(at + 8), bytes.readUInt16LE(at + 10), bytes.readUInt16LE(at + 12), bytes.readUInt32LE(at)];
      const timeout = bytes.readUInt32LE(at + 4);
      at += 16;
      const [id, action, userData, body] = sizes.map((size) => bytes.subarray(at, (at += size))) as [Buffer, Buffer, Buffer, Buffer];
      const number = first + n;
      if (number <= stream.requests) continue;
      stream.requests = number;
      const known = stream.session.contents.get(id.toString());
      if (id.length > 0 && known !== undefined) {
        const refused = known !== body.toString("hex");
        const why = refused ? Buffer.from(JSON.stringify(problem(409, "conflict", "the id was sent before with different content"))) : Buffer.alloc(0);
        const e = Buffer.alloc(16);
        e.writeBigUInt64LE(BigInt(number), 0);
        e.writeUInt32LE(why.length, 8);
        e[12] = refused ? 1 : 0;
        exceptions.push(e, why);
        continue;
      }
      if (id.length > 0) stream.session.contents.set(id.toString(), body.toString("hex"));
      stream.accepted++;
      this.queue.push({ stream, number, id, action: action.toString(), userData, body, timeout, attempts: 0 });
    }
    stream.socket?.send(Buffer.concat([header(65, exceptions.length / 2, stream.requests), ...exceptions]));
    stream.socket?.send(header(72, 0, stream.requests + this.window));
    this.dispatch();
  }

  private answer(work: Work, status: number, body: Buffer): void {
    work.stream.responses.push({ work, status, body });
    this.sendResponses(work.stream);
  }

  private sendResponses(stream: Stream): void {
    if (stream.socket === undefined || stream.sent > stream.responses.length) return;
    const parts: Buffer[] = [];
    const first = stream.sent + 1;
    for (; stream.sent < stream.responses.length; stream.sent++) {
      const { work, status, body } = stream.responses[stream.sent]!;
      const b = Buffer.alloc(24);
      b.writeBigUInt64LE(BigInt(work.number), 0);
      b.writeUInt32LE(body.length, 8);
      b.writeUInt16LE(work.id.length, 12);
      b.writeUInt16LE(work.userData.length, 14);
      b[16] = status;
      b[17] = stream.ended && stream.sent + 1 === stream.accepted ? 1 : 0;
      b.writeUInt16LE(work.attempts, 18);
      parts.push(Buffer.concat([b, work.id, work.userData, body]));
    }
    if (parts.length > 0) stream.socket.send(Buffer.concat([header(66, parts.length, first), ...parts]));
    this.sendDone(stream);
  }

  private sendDone(stream: Stream): void {
    if (stream.ended && stream.responses.length === stream.accepted) stream.socket?.send(header(69, 0, stream.accepted));
  }

  // Instances

  private acceptInstance(ws: WebSocket, worker: string, instance: string, capacity: number): void {
    for (const other of this.instances) if (other.instance === instance) other.socket.close(4001);
    const connected: Connected = { socket: ws, instance, capacity, leaving: false, running: new Map() };
    this.instances.add(connected);
    ws.send(json(64, { worker, instance, capacity, message_limit: this.messageLimit, heartbeat_seconds: 20 }));
    ws.on("message", (bytes: Buffer) => {
      this.frames.push({ from: "instance", type: bytes[0]!, count: bytes.readUInt32LE(4), bytes });
      if (bytes[0] === 129) connected.leaving = true;
      else this.results(connected, bytes);
    });
    ws.on("close", () => {
      this.instances.delete(connected);
      this.queue.unshift(...connected.running.values());
      this.dispatch();
    });
    this.dispatch();
  }

  drain(instance: Connected): void {
    instance.socket.send(json(194, problem(503, "unavailable", "the worker has a new version")));
  }

  cancel(instance: Connected): void {
    const tags = [...instance.running.keys()];
    const b = Buffer.concat([header(193, tags.length), Buffer.alloc(8 * tags.length)]);
    tags.forEach((tag, n) => b.writeBigUInt64LE(tag, 16 + 8 * n));
    instance.socket.send(b);
  }

  private results(instance: Connected, bytes: Buffer): void {
    for (let n = 0, at = 16; n < bytes.readUInt32LE(4); n++) {
      const tag = bytes.readBigUInt64LE(at);
      const size = bytes.readUInt32LE(at + 8);
      const status = bytes[at + 16]!;
      const body = bytes.subarray(at + 24, at + 24 + size);
      at += 24 + size;
      const work = instance.running.get(tag);
      if (work === undefined) continue;
      instance.running.delete(tag);
      if (status === 3) {
        work.attempts--;
        this.queue.unshift(work);
      } else if (status === 2 && work.attempts <= work.stream.session.resends) this.queue.push(work);
      else this.answer(work, status === 0 ? 0 : 1, body);
    }
    this.dispatch();
  }

  private dispatch(): void {
    for (const instance of this.instances) {
      const tasks: Buffer[] = [];
      while (!instance.leaving && this.queue.length > 0 && instance.running.size < instance.capacity * (1 + this.prefetch)) {
        const work = this.queue.shift()!;
        const tag = ++this.tags;
        instance.running.set(tag, work);
        work.attempts++;
        this.dispatched.push(`${work.stream.name} ${work.number} ${work.attempts}`);
        const b = Buffer.alloc(40);
        b.writeBigUInt64LE(tag, 0);
        b.writeBigUInt64LE(BigInt(work.stream.session.number), 8);
        b.writeBigUInt64LE(BigInt(work.number), 16);
        b.writeUInt32LE(work.stream.number, 24);
        b.writeUInt32LE(work.body.length, 28);
        b.writeUInt32LE(work.timeout, 32);
        b.writeUInt16LE(work.action.length, 36);
        b.writeUInt16LE(work.attempts, 38);
        tasks.push(Buffer.concat([b, Buffer.from(work.action), work.body]));
      }
      if (tasks.length > 0) instance.socket.send(Buffer.concat([header(192, tasks.length), ...tasks]));
    }
  }
}
