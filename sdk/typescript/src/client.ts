import { clientProtocol, type ClientWelcome, exceptionsOf, type Frame, FrameError, maxAction, maxID, maxUserData, Pack, requestsFrame, requestsOf, type SentRequest, SessionResponse, token, Type } from "./frame.js";
import { type Problem, problem, ProblemError } from "./problem.js";
import { Backoff, Close, ConnectionError, mayRecover, type Server, Socket } from "./socket.js";

/** Bytes of requests that the client holds until the server has kept them. More makes send wait. */
const maxUnkept = 16 << 20;
/** The client confirms responses after so many, so many bytes, or so many milliseconds. */
const confirmCount = 1000;
const confirmBytes = 1 << 20;
const confirmMillis = 1000;
/** A server that does not close the connection within this time is not waited for. */
const closeMillis = 10_000;

export interface SendOptions {
  /**
   * An id that the program chooses, unique in the session. A request whose id was sent before with the same content
   * runs once and has one response; with different content, it is refused.
   */
  id?: string;
  /** Data that is returned with the response. */
  userData?: string | Uint8Array;
  /** An action of the worker. */
  action?: string;
  /** Timeout of each attempt in milliseconds; the default is that of the action. */
  timeout?: number;
}

/** A request that the server has refused because its id was sent before with different content. */
export interface Refusal {
  number: number;
  id: string;
  problem: Problem;
}

/** Requests were refused since the last flush or end. The other requests are stored, and the stream is still open. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";

  constructor(readonly refusals: Refusal[]) {
    const shown = refusals.slice(0, 3).map((r) => `request ${r.number} (id ${JSON.stringify(r.id)}): ${r.problem.detail}`);
    super(`${refusals.length} of the requests were refused: ${shown.join("; ")}${refusals.length > 3 ? "; ..." : ""}`);
  }
}

/** The state of the requests of a client. */
export interface Kept {
  /** Number of the last stored request. */
  requests: number;
  /** Number of these that are neither repeated nor refused: each of them gets a response. */
  accepted: number;
}

/** Requests in one frame, which stay here until the server has kept them. */
interface Segment {
  first: number;
  last: number;
  frame: Buffer;
}

/** A flush (with a token) or an end (with the frame only). */
interface Barrier {
  token: number | undefined;
  frame: Buffer;
  resolve(kept: Kept): void;
  reject(error: Error): void;
}

type Item = Segment | Barrier;
const isSegment = (item: Item): item is Segment => "first" in item;

/** @internal */
export interface ClientOptions {
  server: Server;
  session: string;
  name: string;
  worker: string;
  /** Milliseconds for which the client tries to connect again. */
  reconnectFor: number;
  from: number | undefined;
}

/**
 * A named stream of requests, and one of responses, in a session.
 *
 * If the client loses its connection, it connects again, sends the requests that
 * the server has not stored, and receives the responses that it has not received.
 * Within one process, each response arrives once.
 */
export class Client {
  private socket: Socket | undefined;
  private welcome: ClientWelcome | undefined; // of this connection
  private lastWelcome: ClientWelcome | undefined; // of this or an earlier connection
  private readonly backoff = new Backoff();
  private lostAt: number | undefined;
  private failure: Error | undefined;
  private closing = false;
  private closed: (() => void) | undefined;
  private reason: ProblemError | undefined; // that the server gave before it closes the connection

  // Requests
  private readonly pack = new Pack(Type.requests);
  private scheduled = false;
  private items: Item[] = []; // in the order of sending
  private sent = 0; // how many of the items this connection has sent
  private last = 0; // number of the last request
  private kept = 0;
  private window = 0;
  private unkept = 0; // bytes
  private tokens = 0;
  private ids = false; // since the last flush
  private exceptions = 0;
  private repetitions = 0;
  private copies = new Map<number, number>(); // number of a copy -> number of the original
  private refusals: Refusal[] = [];
  private ending = false;
  private ended: Kept | undefined;
  private wakeSenders: (() => void) | undefined;
  private capacity: Promise<void> | undefined;

  // Responses
  private batches: SessionResponse[][] = [];
  private position = 0; // in the first batch
  private arrived = 0; // number of the last response that has arrived
  private processed = 0;
  private confirmed = 0;
  private processedBytes = 0;
  private timer: NodeJS.Timeout | undefined;
  private done = false;
  private consumed = false; // by an iterator or a handler
  private wakeReader: (() => void) | undefined;
  private from: number | undefined;

  private ready!: { resolve(): void; reject(error: Error): void };

  private constructor(private readonly options: ClientOptions) {
    this.from = options.from;
  }

  /** @internal */
  static async open(options: ClientOptions): Promise<Client> {
    const client = new Client(options);
    await client.connect();
    return client;
  }

  get name(): string {
    return this.options.name;
  }

  /**
   * Number of the last request of the stream. After the client is opened, it is the last one that the server has stored: a
   * program that numbers its requests in the same way continues after it.
   */
  get lastRequest(): number {
    return this.last;
  }

  /** Number of requests of this process that did not run because their id was sent before with the same content. */
  get repeated(): number {
    return this.repetitions;
  }

  /** Number of responses that exist, or existed when the client connected. */
  get responseCount(): number {
    return Math.max(this.lastWelcome?.responses ?? 0, this.arrived);
  }

  // Requests

  /**
   * Adds a request to the stream and returns its number. The promise is
   * resolved when the client can send the next request, not when this one is
   * stored: flush waits for that.
   */
  async send(body: string | Uint8Array, options?: SendOptions): Promise<number> {
    this.check();
    if (this.ending || this.ended) throw problem(409, "conflict", `the stream of client ${this.name} has ended`, "send all requests before end, or use another client");
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const limit = this.lastWelcome!.message_limit;
    if (bytes.length > limit) {
      throw problem(413, "too_large", `the body has ${bytes.length} bytes; the message limit of worker ${this.options.worker} is ${limit}`, "send less, or raise the message_limit of the worker");
    }
    if (options === undefined) this.pack.request(undefined, undefined, undefined, bytes, 0);
    else this.addWithOptions(bytes, options);
    const number = ++this.last;
    if (this.pack.full) {
      this.seal();
      this.pump();
      // Other work, such as receiving responses, has its turn.
      await new Promise(setImmediate);
    } else if (!this.scheduled) {
      this.scheduled = true;
      setImmediate(() => {
        this.scheduled = false;
        this.seal();
        this.pump();
      });
    }
    if (number > this.window || this.unkept > maxUnkept) await this.waitForCapacity(number);
    return number;
  }

  private addWithOptions(body: Uint8Array, { id, action, userData, timeout = 0 }: SendOptions): void {
    const field = (name: string, value: string | Uint8Array | undefined, limit: number): Buffer | undefined => {
      if (value === undefined || value.length === 0) return undefined;
      const bytes = typeof value === "string" ? Buffer.from(value) : Buffer.from(value.buffer, value.byteOffset, value.length);
      if (bytes.length > limit) throw problem(422, "invalid", `${name} has ${bytes.length} bytes; at most ${limit} are allowed`, `use a shorter ${name}`);
      return bytes;
    };
    const ms = Math.ceil(timeout);
    if (!(ms >= 0 && ms <= 0xffff_ffff)) throw problem(422, "invalid", `the timeout ${timeout} is not a number of milliseconds from 0 to 2^32 - 1`, "omit it for the timeout of the action");
    this.pack.request(field("id", id, maxID), field("action", action, maxAction), field("userData", userData, maxUserData), body, ms);
    if (id) this.ids = true;
  }

  private async waitForCapacity(number: number): Promise<void> {
    while (number > this.window || this.unkept > maxUnkept) {
      this.check();
      this.capacity ??= new Promise((resolve) => (this.wakeSenders = resolve));
      await this.capacity;
    }
  }

  private wakeWaiting(): void {
    const wake = this.wakeSenders;
    this.capacity = this.wakeSenders = undefined;
    wake?.();
  }

  /**
   * Waits until all requests are stored, in the database if the session is
   * durable. Throws a RefusedError if requests were refused since the last flush.
   */
  async flush(): Promise<Kept> {
    this.check();
    const number = ++this.tokens;
    const kept = await this.barrier(number, token(Type.flush, 0, number));
    const { refusals } = this;
    this.refusals = [];
    if (refusals.length > 0) throw new RefusedError(refusals);
    return kept;
  }

  /**
   * Ends the stream of requests and returns the number of accepted requests.
   * With count, throws a ProblemError if a different number was accepted; the
   * stream then stays open, as after a RefusedError.
   */
  async end(count?: number): Promise<number> {
    this.check();
    if (this.ids || this.refusals.length > 0) await this.flush();
    if (this.ended) {
      const { accepted } = this.ended;
      if (count === undefined || count === accepted) return accepted;
      throw problem(409, "conflict", `the stream of client ${this.name} has ended with ${accepted} accepted requests instead of ${count}`, "compare the requests with those that were meant to be sent");
    }
    const frame = token(Type.end, 0, count ?? "any");
    this.ending = true;
    try {
      return (await this.barrier(undefined, frame)).accepted;
    } finally {
      this.ending = false;
    }
  }

  private barrier(number: number | undefined, frame: Buffer): Promise<Kept> {
    this.seal();
    if (number !== undefined) this.ids = false;
    return new Promise((resolve, reject) => {
      this.items.push({ token: number, frame, resolve, reject });
      this.pump();
    });
  }

  /** Takes the barrier with a token, or the end, from the items. */
  private takeBarrier(number: number | undefined): Barrier | undefined {
    const index = this.items.findIndex((item) => !isSegment(item) && item.token === number);
    if (index < 0) return undefined;
    if (index < this.sent) this.sent--;
    return this.items.splice(index, 1)[0] as Barrier;
  }

  /** Makes an item of the requests that were added since the last one. */
  private seal(): void {
    const { count } = this.pack;
    if (count === 0) return;
    this.add({ first: this.last - count + 1, last: this.last, frame: this.pack.take(this.last - count + 1) });
  }

  private add(segment: Segment): void {
    this.items.push(segment);
    this.unkept += segment.frame.length;
  }

  /** Sends as many items as the window allows. */
  private pump(): void {
    if (this.socket === undefined || this.welcome === undefined) return;
    while (this.sent < this.items.length) {
      const item = this.items[this.sent]!;
      if (isSegment(item)) {
        if (item.first > this.window) return;
        if (item.last > this.window) this.split(item);
      }
      this.socket.send(this.items[this.sent]!.frame);
      this.sent++;
    }
  }

  /** Replaces the item that is sent next by two: the first one ends at the window. */
  private split(item: Segment): void {
    const all = requestsOf(item.frame);
    const size = this.window - item.first + 1;
    const head = requestsFrame(item.first, all.slice(0, size));
    const tail = requestsFrame(this.window + 1, all.slice(size));
    this.items.splice(this.sent, 1, { first: item.first, last: this.window, frame: head }, { first: this.window + 1, last: item.last, frame: tail });
    this.unkept += head.length + tail.length - item.frame.length;
  }

  /** Drops the requests that are kept. */
  private dropKept(until: number): void {
    this.kept = Math.max(this.kept, until);
    for (let n = 0; n < this.items.length; ) {
      const item = this.items[n]!;
      if (!isSegment(item)) {
        n++;
        continue;
      }
      if (item.last > until) break;
      this.items.splice(n, 1);
      if (n < this.sent) this.sent--;
      this.unkept -= item.frame.length;
    }
  }

  private onAccepted(frame: Frame): void {
    for (const { number, refused, problem: text } of exceptionsOf(frame)) {
      this.exceptions++;
      const original = this.copies.get(number) ?? number;
      if (!refused) {
        // A copy does not tell whether the original was one.
        if (!this.copies.delete(number)) this.repetitions++;
        continue;
      }
      this.copies.delete(number);
      const segment = this.items.find((item): item is Segment => isSegment(item) && item.first <= number && number <= item.last);
      const id = segment ? requestsOf(segment.frame)[number - segment.first]!.id : "";
      this.refusals.push({ number: original, id, problem: JSON.parse(text.toString("utf8")) as Problem });
    }
    this.dropKept(frame.first);
    this.wakeWaiting();
  }

  // Responses

  /**
   * Iterates over the responses, in their order, until the stream has ended
   * and all responses have arrived. A response counts as processed when the loop
   * requests the next one. With from, begins with the response of this number.
   */
  responses(options: { from?: number } = {}): AsyncIterableIterator<SessionResponse> {
    this.consume();
    let { from } = options;
    let previous: SessionResponse | undefined;
    const settle = () => {
      if (previous !== undefined) this.process(previous);
      previous = undefined;
    };
    const finish = (): IteratorReturnResult<undefined> => {
      this.consumed = false;
      return { done: true, value: undefined };
    };
    const wait = async (): Promise<IteratorResult<SessionResponse>> => {
      if (from !== undefined && from !== this.processed + 1) await this.seek(from);
      from = undefined;
      try {
        for (;;) {
          if ((previous = this.take()) !== undefined) return { done: false, value: previous };
          if (this.done || this.closing) return finish();
          this.check();
          await new Promise<void>((resolve) => (this.wakeReader = resolve));
        }
      } catch (error) {
        this.consumed = false;
        throw error;
      }
    };
    return {
      next: () => {
        settle();
        if (from === undefined && (previous = this.take()) !== undefined) return Promise.resolve({ done: false, value: previous });
        return wait();
      },
      return: () => {
        settle();
        return Promise.resolve(finish());
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /**
   * Calls handle for each response, in their order; the next call waits for
   * the promise of the previous one. The returned promise is resolved when the
   * stream has ended and all responses have been handled.
   */
  onResponse(handle: (response: SessionResponse) => void | Promise<void>): Promise<void> {
    this.consume();
    const run = async (): Promise<void> => {
      for (;;) {
        const response = this.take();
        if (response !== undefined) {
          const pending = handle(response);
          if (pending !== undefined) await pending;
          this.process(response);
        } else if (this.done || this.closing) {
          return;
        } else {
          this.check();
          await new Promise<void>((resolve) => (this.wakeReader = resolve));
        }
      }
    };
    const running = run().catch((error: unknown) => {
      this.fail(error as Error);
      throw error;
    });
    // A program that does not wait for the promise sees the error in flush and end.
    running.catch(() => undefined);
    return running;
  }

  private consume(): void {
    if (this.consumed) throw problem(409, "conflict", `client ${this.name} already has a reader of its responses`, "end the first loop, or use another client");
    this.consumed = true;
  }

  private take(): SessionResponse | undefined {
    const batch = this.batches[0];
    if (batch === undefined) return undefined;
    const response = batch[this.position++];
    if (this.position === batch.length) {
      this.batches.shift();
      this.position = 0;
    }
    return response;
  }

  private process(response: SessionResponse): void {
    this.processed = response.number;
    this.processedBytes += response.size;
    if (this.processed - this.confirmed >= confirmCount || this.processedBytes >= confirmBytes) this.confirm();
    else this.timer ??= setTimeout(() => this.confirm(), confirmMillis).unref();
  }

  private confirm(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.welcome === undefined || this.processed <= this.confirmed) return;
    this.socket?.send(token(Type.received, 0, this.processed));
    this.confirmed = this.processed;
    this.processedBytes = 0;
  }

  private onResponses(frame: Frame): void {
    let batch = SessionResponse.all(frame);
    if (batch.length === 0) return;
    const first = batch[0]!.number;
    if (first > this.arrived + 1) throw new FrameError(`response ${first} came after response ${this.arrived}`);
    if (first <= this.arrived) batch = batch.slice(this.arrived + 1 - first);
    if (batch.length === 0) return;
    this.arrived = batch[batch.length - 1]!.number;
    this.batches.push(batch);
    this.wake();
  }

  private wake(): void {
    const wake = this.wakeReader;
    this.wakeReader = undefined;
    wake?.();
  }

  /** Connects again, to receive the responses from a number on. */
  private async seek(from: number): Promise<void> {
    this.check();
    this.batches = [];
    this.position = 0;
    this.done = false;
    this.arrived = this.processed = this.confirmed = from - 1;
    const { socket } = this;
    this.disconnect();
    socket?.terminate();
    this.from = from;
    await this.connect();
  }

  // Connection

  private connect(): Promise<void> {
    const { server, session, name } = this.options;
    const query = this.from === undefined ? "" : `?from=${this.from}`;
    const socket: Socket = new Socket(
      server,
      `/v1/sessions/${encodeURIComponent(session)}/clients/${encodeURIComponent(name)}/stream${query}`,
      clientProtocol,
      (frame) => socket === this.socket && this.onFrame(frame),
      (error) => socket === this.socket && this.onClose(error),
    );
    this.socket = socket;
    return new Promise((resolve, reject) => (this.ready = { resolve, reject }));
  }

  private onFrame(frame: Frame): void {
    switch (frame.type) {
      case Type.welcome:
        this.onWelcome(frame.json<ClientWelcome>());
        break;
      case Type.accepted:
        this.onAccepted(frame);
        break;
      case Type.responses:
        this.onResponses(frame);
        break;
      case Type.flushed:
        this.dropKept(frame.number(0));
        this.takeBarrier(frame.first)?.resolve({ requests: frame.number(0), accepted: frame.number(1) });
        break;
      case Type.ended:
        this.onEnded({ requests: this.last, accepted: frame.first });
        break;
      case Type.done:
        this.done = true;
        this.wake();
        break;
      case Type.closed:
        this.reason = new ProblemError(frame.json<Problem>());
        break;
      case Type.problem:
        this.onProblem(new ProblemError(frame.json<Problem>()));
        break;
      case Type.window:
        this.window = frame.first;
        this.pump();
        this.wakeWaiting();
        break;
    }
  }

  private onProblem(error: ProblemError): void {
    const end = this.takeBarrier(undefined);
    if (end === undefined) this.reason = error; // the connection closes
    else end.reject(error);
  }

  private onEnded(kept: Kept): void {
    this.ended = kept;
    this.takeBarrier(undefined)?.resolve(kept);
  }

  private onWelcome(welcome: ClientWelcome): void {
    const again = this.lastWelcome;
    this.welcome = this.lastWelcome = welcome;
    if (again === undefined) {
      this.last = welcome.requests;
      this.exceptions = welcome.requests - welcome.accepted;
      this.arrived = this.processed = this.confirmed = welcome.from - 1;
    } else if (welcome.requests < this.kept || welcome.requests > this.last) {
      throw new FrameError(
        welcome.requests > this.last
          ? `the server has request ${welcome.requests}, but the last one of this process is ${this.last}: another process uses the client name ${this.name}`
          : `the server has the requests up to ${welcome.requests}, but had confirmed those up to ${this.kept}`,
      );
    }
    if (this.from !== undefined && welcome.from !== this.from) {
      throw new FrameError(`response ${this.from} does not exist: the first one that the server still has is ${welcome.first_response}`);
    }
    this.from = this.arrived + 1;
    this.window = welcome.window;
    this.resume(welcome);
    this.backoff.reset();
    this.lostAt = undefined;
    if (welcome.ended) this.onEnded(welcome);
    this.pump();
    this.wakeWaiting();
    this.ready.resolve();
  }

  /** Prepares the items for a new connection. */
  private resume({ requests, accepted }: ClientWelcome): void {
    this.seal();
    this.sent = 0;
    // The exceptions in these requests were not reported before the connection was lost. A copy of a request with an
    // id reports its exception again: it is a repetition, or it is refused as the original was.
    const unreported: SentRequest[] = [];
    const lost = requests - accepted > this.exceptions;
    for (const item of this.items) {
      if (!isSegment(item) || item.first > requests) continue;
      const all = requestsOf(item.frame);
      if (lost) unreported.push(...all.filter((r) => r.number <= requests && r.id !== ""));
      if (item.last <= requests) continue;
      this.unkept -= item.frame.length;
      item.frame = requestsFrame(requests + 1, all.slice(requests + 1 - item.first));
      item.first = requests + 1;
      this.unkept += item.frame.length;
    }
    this.dropKept(requests);
    this.exceptions = requests - accepted;
    if (unreported.length === 0) return;
    for (const copy of unreported) this.copies.set(++this.last, this.copies.get(copy.number) ?? copy.number);
    const barriers = this.items.filter((item) => !isSegment(item));
    this.items = this.items.filter(isSegment);
    const first = this.last - unreported.length + 1;
    this.add({ first, last: this.last, frame: requestsFrame(first, unreported) });
    this.items.push(...barriers);
  }

  private disconnect(): void {
    this.socket = this.welcome = undefined;
    this.window = 0;
    this.sent = 0;
  }

  private onClose(error: Error): void {
    this.disconnect();
    this.closed?.();
    if (this.closing) return;
    const { reason } = this;
    this.reason = undefined;
    const code = error instanceof ConnectionError ? error.code : 0;
    if (reason !== undefined && code !== Close.goingAway) error = reason;
    this.lostAt ??= Date.now();
    if (!mayRecover(error) || code === Close.normal || Date.now() - this.lostAt > this.options.reconnectFor) {
      this.ready.reject(error);
      this.fail(error);
      return;
    }
    const { ready } = this;
    void this.backoff.wait().then(() => {
      if (this.closing || this.failure || this.socket) return;
      this.from = this.arrived + 1;
      this.connect().then(ready.resolve, ready.reject);
    });
  }

  private check(): void {
    if (this.failure !== undefined) throw this.failure;
    if (this.closing) throw problem(409, "conflict", `client ${this.name} is closed`, "open it again with session.client");
  }

  private fail(error: Error): void {
    this.failure ??= error;
    this.backoff.stop();
    for (const item of this.items) if (!isSegment(item)) item.reject(error);
    this.items = [];
    this.sent = 0;
    this.wakeWaiting();
    this.wake();
    const { socket } = this;
    this.disconnect();
    socket?.terminate();
  }

  /**
   * Closes the connection after all requests are stored and the processed
   * responses are confirmed. With purge, removes the requests and responses of
   * the client.
   */
  async close(options: { purge?: boolean } = {}): Promise<void> {
    if (this.closing) return;
    try {
      this.seal();
      if (this.failure === undefined && !options.purge && this.items.length > 0) await this.flush();
    } finally {
      this.confirm();
      this.closing = true;
      this.backoff.stop();
      this.wakeWaiting();
      this.wake();
      const { socket } = this;
      if (socket !== undefined) {
        const closed = new Promise<void>((resolve) => (this.closed = resolve));
        if (options.purge) socket.send(token(Type.close, 1));
        else socket.close(Close.normal);
        const late = setTimeout(() => socket.terminate(), closeMillis);
        await closed;
        clearTimeout(late);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
