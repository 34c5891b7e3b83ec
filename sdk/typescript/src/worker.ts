/**
 * Workers: respond to the requests of sessions.
 *
 * An instance is one process that runs a function for each request. When it
 * loses its connection, the broker runs its tasks elsewhere; the instance
 * drops them and connects again.
 */
import { hostname } from "node:os";

import { type FaultBody, type Frame, Pack, Status, type TaskRecord, tasksOf, token, Type, type WorkerWelcome, workerProtocol } from "./frame.js";
import { type Problem, ProblemError } from "./problem.js";
import { Backoff, Close, ConnectionError, mayRecover, type Server, serverOf, setting, Socket } from "./socket.js";

export { type FaultBody } from "./frame.js";
export { type Problem, ProblemError } from "./problem.js";
export { ConnectionError, type Server } from "./socket.js";

/** After so many milliseconds of tasks without a pause, results are sent and frames are received. */
const sliceMillis = 2;

/** Thrown by a worker: the response to the request is this fault. */
export class Fault extends Error {
  override readonly name: string = "Fault";

  constructor(
    /** A code for programs, such as no_price. */
    readonly code: string,
    message: string,
    readonly detail?: string,
  ) {
    super(message);
  }
}

/** Thrown by a worker: send the request again. When its resends are used up, the response is this fault. */
export class Retry extends Fault {
  override readonly name = "Retry";

  constructor(message: string, detail?: string) {
    super("retry", message, detail);
  }
}

/** A request, in one of its attempts. */
export class Task {
  private readonly deadline: number;
  private controller: AbortController | undefined;
  private timer: NodeJS.Timeout | undefined;
  private stopped: Error | undefined;

  /** @internal */
  constructor(private readonly record: TaskRecord) {
    this.deadline = record.timeout === 0 ? Infinity : performance.now() + record.timeout;
  }

  /** The bytes of the request. */
  get body(): Buffer {
    return this.record.body;
  }

  /** The body as text in UTF-8. */
  get text(): string {
    return this.record.body.toString("utf8");
  }

  /** The body as JSON. */
  json<T = unknown>(): T {
    return JSON.parse(this.text) as T;
  }

  /** The action of the request; "" if none. */
  get action(): string {
    return this.record.action;
  }

  /** Number of the attempt, from 1. */
  get attempt(): number {
    return this.record.attempt;
  }

  /** Number of the session. */
  get session(): number {
    return this.record.session;
  }

  /** Number of the client in the session. */
  get client(): number {
    return this.record.client;
  }

  /** Number of the request in the stream of its client. */
  get request(): number {
    return this.record.request;
  }

  /** Milliseconds until the timeout of the task; Infinity if it has none. */
  get remaining(): number {
    return this.deadline - performance.now();
  }

  /** Is aborted when the broker stops the task, at its timeout, and when the connection is lost. A later result is dropped. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.stopped !== undefined) this.controller.abort(this.stopped);
      else if (this.deadline !== Infinity) {
        const late = () => this.stop(new DOMException("the timeout of the task has passed", "TimeoutError"));
        this.timer = setTimeout(late, Math.min(Math.max(this.remaining, 0), 0x7fff_ffff)).unref();
      }
    }
    return this.controller.signal;
  }

  /** @internal */
  stop(reason: Error): void {
    this.stopped ??= reason;
    this.settle();
    this.controller?.abort(this.stopped);
  }

  /** @internal The task has a result. */
  settle(): void {
    clearTimeout(this.timer);
  }
}

/** A response: text, bytes or nothing. */
export type Answer = string | Uint8Array | void;
export type Handler = (task: Task) => Answer | Promise<Answer>;

/** The default of each setting is the environment variable that `fanfare workers` sets. */
export interface WorkerOptions extends Partial<Server> {
  /** The registered worker; FANFARE_WORKER. */
  worker?: string;
  /** Name of this process, unique within the worker; FANFARE_INSTANCE or, if it is not set, host and process id. */
  instance?: string;
  /** Number of tasks that run at the same time; the default is the concurrency of the worker. */
  concurrency?: number;
  /** Stops the instance as SIGTERM does: the instance finishes its running tasks. */
  signal?: AbortSignal;
  /** Whether SIGTERM and SIGINT stop the instance; the default is true. */
  handleSignals?: boolean;
  /** Called when the connection is lost, and when it is restored; the default writes to stderr. */
  log?: (message: string) => void;
}

/**
 * Runs handle for each request, until the process gets SIGTERM or the server
 * stops the instance. Throws a ProblemError if the server
 * refuses the instance.
 */
export async function run(handle: Handler, options: WorkerOptions = {}): Promise<void> {
  const server = serverOf(options);
  const worker = setting(options.worker, "FANFARE_WORKER", "the name of the worker");
  const named = options.instance ?? process.env["FANFARE_INSTANCE"];
  const instance = named || `${hostname().slice(0, 40).replace(/[^A-Za-z0-9._-]/g, "-")}-${process.pid}`;
  const query = new URLSearchParams({ instance, ...(options.concurrency !== undefined && { capacity: String(options.concurrency) }) });
  const path = `/v1/workers/${encodeURIComponent(worker)}/stream?${query}`;
  const log = options.log ?? ((message) => console.error(message));

  const running = new Instance(handle, server, path, worker, log);
  const leave = () => running.leave();
  if (options.handleSignals !== false) for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, leave);
  options.signal?.addEventListener("abort", leave);
  if (options.signal?.aborted) leave();
  try {
    await running.finished;
  } finally {
    process.off("SIGTERM", leave);
    process.off("SIGINT", leave);
    options.signal?.removeEventListener("abort", leave);
  }
}

class Instance {
  readonly finished: Promise<void>;
  private finish!: { resolve(): void; reject(error: Error): void };
  private socket: Socket | undefined;
  private welcome: WorkerWelcome | undefined;
  private readonly backoff = new Backoff();
  private reason: ProblemError | undefined;
  private leaving = false;
  private wasConnected = false;

  private waiting: TaskRecord[] = [];
  private next = 0; // index of the first waiting task
  private tasks = new Map<number, Task>(); // that run, by tag
  private results = new Pack(Type.results);
  private scheduled = false; // results will be sent
  private scheduledWork = false; // tasks will be started

  constructor(
    private readonly handle: Handler,
    private readonly server: Server,
    private readonly path: string,
    private readonly worker: string,
    private readonly log: (message: string) => void,
  ) {
    this.finished = new Promise((resolve, reject) => (this.finish = { resolve, reject }));
    this.connect();
  }

  // Connection

  private connect(): void {
    const socket: Socket = new Socket(
      this.server,
      this.path,
      workerProtocol,
      (frame) => socket === this.socket && this.onFrame(frame),
      (error) => socket === this.socket && this.onClose(error),
    );
    this.socket = socket;
  }

  private onFrame(frame: Frame): void {
    switch (frame.type) {
      case Type.welcome:
        this.welcome = frame.json<WorkerWelcome>();
        this.backoff.reset();
        if (this.wasConnected) this.log(`worker ${this.worker}: connected again`);
        this.wasConnected = true;
        if (this.leaving) this.sendLeaving();
        break;
      case Type.tasks:
        for (const record of tasksOf(frame)) {
          if (record.timeout !== 0) record.timeout += performance.now();
          this.waiting.push(record);
        }
        this.work();
        break;
      case Type.cancel:
        for (let n = 0; n < frame.count; n++) this.cancel(frame.number(n));
        break;
      case Type.drain:
        this.log(`worker ${this.worker}: the server asks this instance to leave: ${frame.json<Problem>().detail}`);
        this.leave();
        break;
      case Type.problem:
        this.reason = new ProblemError(frame.json<Problem>());
        break;
    }
  }

  private onClose(error: Error): void {
    this.socket = this.welcome = undefined;
    // The broker runs these tasks elsewhere.
    const lost = new ConnectionError("the connection to the server was lost", 0);
    for (const task of this.tasks.values()) task.stop(lost);
    this.tasks = new Map();
    this.waiting = [];
    this.next = 0;
    this.results = new Pack(Type.results);
    if (this.leaving) {
      this.finish.resolve();
      return;
    }
    const code = error instanceof ConnectionError ? error.code : 0;
    if (this.reason !== undefined && code === Close.invalid) error = this.reason;
    this.reason = undefined;
    if (!mayRecover(error)) {
      this.finish.reject(error);
      return;
    }
    this.log(`worker ${this.worker}: ${error.message}; the instance connects again`);
    void this.backoff.wait().then(() => {
      if (this.leaving) this.finish.resolve();
      else this.connect();
    });
  }

  /** Returns the tasks that have not started, finishes the others, and closes the connection. */
  leave(): void {
    if (this.leaving) return;
    this.leaving = true;
    this.backoff.stop();
    if (this.welcome !== undefined) this.sendLeaving();
    else if (this.socket === undefined) this.finish.resolve();
    else this.socket.terminate();
  }

  private sendLeaving(): void {
    this.send();
    this.socket!.send(token(Type.leaving));
    this.returnWaiting();
    this.closeIfDone();
  }

  private returnWaiting(): void {
    for (; this.next < this.waiting.length; this.next++) this.add(this.waiting[this.next]!.tag, Status.returned, 0, noBytes);
    this.send();
  }

  private closeIfDone(): void {
    if (!this.leaving || this.welcome === undefined || this.tasks.size > 0 || this.next < this.waiting.length) return;
    this.send();
    this.socket!.close(Close.normal);
  }

  // Tasks

  /** Starts waiting tasks, as many as may run at the same time. */
  private work(): void {
    if (this.leaving) this.returnWaiting();
    const until = performance.now() + sliceMillis;
    while (this.welcome !== undefined && this.next < this.waiting.length && this.tasks.size < this.welcome.capacity) {
      if (this.scheduledWork) return;
      const started = performance.now();
      if (started > until) {
        // Tasks that take long without a pause must not hold back results and cancellations.
        this.send();
        this.scheduledWork = true;
        setImmediate(() => {
          this.scheduledWork = false;
          this.work();
        });
        return;
      }
      this.start(this.waiting[this.next++]!, started);
    }
    if (this.next === this.waiting.length && this.next > 0) {
      this.waiting = [];
      this.next = 0;
    }
    this.closeIfDone();
  }

  private start(record: TaskRecord, started: number): void {
    const { tag } = record;
    if (record.timeout !== 0) {
      // Until now, it was the time of the timeout.
      record.timeout -= started;
      if (record.timeout <= 0) {
        this.fault(tag, 0, Status.fault, { code: "timeout", message: "the timeout of the task passed before it started" });
        return;
      }
    }
    const task = new Task(record);
    this.tasks.set(tag, task);
    let pending: Answer | Promise<Answer>;
    try {
      pending = this.handle(task);
    } catch (error) {
      this.settle(task, tag, started, undefined, error);
      return;
    }
    if (!(pending instanceof Promise)) {
      this.settle(task, tag, started, pending);
      return;
    }
    pending.then(
      (answer) => {
        this.settle(task, tag, started, answer);
        this.work();
      },
      (error: unknown) => {
        this.settle(task, tag, started, undefined, error ?? new Error("the worker rejected without a reason"));
        this.work();
      },
    );
  }

  private settle(task: Task, tag: number, started: number, answer: Answer, error?: unknown): void {
    task.settle();
    // The tag belongs to another task after the connection was lost.
    if (this.tasks.get(tag) !== task) return;
    this.tasks.delete(tag);
    const micros = Math.round(1000 * (performance.now() - started));
    if (error !== undefined) {
      this.fault(tag, micros, error instanceof Retry ? Status.retry : Status.fault, faultOf(error));
      return;
    }
    const body = answer === undefined ? noBytes : typeof answer === "string" ? Buffer.from(answer) : answer;
    const limit = this.welcome!.message_limit;
    if (!(body instanceof Uint8Array)) {
      this.fault(tag, micros, Status.fault, { code: "fault", message: `the worker returned ${typeof answer}: it must return text, a Uint8Array or nothing` });
    } else if (body.length > limit) {
      this.fault(tag, micros, Status.fault, { code: "too_large", message: `the response has ${body.length} bytes; the message limit of worker ${this.worker} is ${limit}` });
    } else {
      this.add(tag, Status.ok, micros, body);
    }
  }

  private cancel(tag: number): void {
    const task = this.tasks.get(tag);
    if (task !== undefined) {
      // It still occupies its place until the function returns.
      task.stop(new DOMException("the broker has stopped the task", "AbortError"));
      return;
    }
    const index = this.waiting.findIndex((record, n) => n >= this.next && record.tag === tag);
    if (index >= 0) this.waiting.splice(index, 1);
  }

  private fault(tag: number, micros: number, status: number, body: FaultBody): void {
    const limit = this.welcome!.message_limit;
    let bytes = Buffer.from(JSON.stringify(body));
    if (bytes.length > limit) {
      const limitOfText = Math.max(0, Math.floor(limit / 8));
      const cut = (text: string) => (text.length > limitOfText ? `${text.slice(0, limitOfText)}...` : text);
      bytes = Buffer.from(JSON.stringify({ code: cut(body.code), message: cut(body.message), ...(body.detail !== undefined && { detail: cut(body.detail) }) }));
    }
    this.add(tag, status, micros, bytes);
  }

  private add(tag: number, status: number, micros: number, body: Uint8Array): void {
    this.results.result(tag, status, micros, body);
    if (this.results.full) this.send();
    else if (!this.scheduled) {
      this.scheduled = true;
      setImmediate(() => {
        this.scheduled = false;
        this.send();
        this.closeIfDone();
      });
    }
  }

  private send(): void {
    if (this.results.count > 0) this.socket?.send(this.results.take(0));
  }
}

const noBytes = new Uint8Array(0);

function faultOf(error: unknown): FaultBody {
  if (error instanceof Fault) return { code: error.code, message: error.message, ...(error.detail !== undefined && { detail: error.detail }) };
  if (error instanceof Error) return { code: "fault", message: error.message || error.name, ...(error.stack !== undefined && { detail: error.stack }) };
  return { code: "fault", message: String(error) };
}
