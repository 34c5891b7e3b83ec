/**
 * The frames of sessions: docs/reference/session-protocol.md describes them.
 *
 * A frame is one binary message: a header of 16 bytes, then records or a
 * payload. All numbers are little-endian.
 */

export const headerSize = 16;
/** Bytes of a frame. */
export const maxFrame = 4 << 20;
export const maxRecords = 1 << 16;
/** Bytes of a body. */
export const maxBody = 1 << 20;
export const maxID = 64;
export const maxAction = 64;
export const maxUserData = 1 << 10;

/** A pack of records is sent when it has this many bytes, or earlier when the program waits. */
export const packSize = 32 << 10;

export const clientProtocol = "fanfare.session.v1";
export const workerProtocol = "fanfare.worker.v1";

export const Type = {
  requests: 1,
  flush: 2,
  end: 3,
  close: 4,
  received: 5,
  welcome: 64,
  accepted: 65,
  responses: 66,
  flushed: 67,
  ended: 68,
  done: 69,
  closed: 70,
  problem: 71,
  window: 72,
  results: 128,
  leaving: 129,
  tasks: 192,
  cancel: 193,
  drain: 194,
} as const;

export const Status = { ok: 0, fault: 1, retry: 2, returned: 3 } as const;

/** The body of a fault. */
export interface FaultBody {
  /** fault, timeout, lost, cancelled or a code that the worker set. */
  code: string;
  message: string;
  /** Such as a stack trace. */
  detail?: string;
}

export interface ClientWelcome {
  session: string;
  client: string;
  kind: string;
  requests: number;
  accepted: number;
  responses: number;
  first_response: number;
  from: number;
  ended: boolean;
  window: number;
  message_limit: number;
  heartbeat_seconds: number;
}

export interface WorkerWelcome {
  worker: string;
  instance: string;
  capacity: number;
  message_limit: number;
  heartbeat_seconds: number;
}

/** The bytes of a frame do not follow the protocol. */
export class FrameError extends Error {
  override readonly name = "FrameError";
}

const short = () => new FrameError("the frame is too short for its number of records");

/** Reads a number of 8 bytes. Numbers of 2^53 and above have no exact value in JavaScript. */
function uint64(view: DataView, at: number): number {
  const high = view.getUint32(at + 4, true);
  if (high > 0x1fffff) throw new FrameError(`the frame has the number ${view.getBigUint64(at, true)}: this library reads numbers below 2^53`);
  return high * 0x1_0000_0000 + view.getUint32(at, true);
}

function setUint64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true);
  view.setUint32(at + 4, Math.floor(value / 0x1_0000_0000), true);
}

const checked = (value: number): number => {
  if (!Number.isSafeInteger(value) || value < 0) throw new FrameError(`${value} is not a number from 0 to 2^53 - 1`);
  return value;
};

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** A received frame. The fields of its records share its memory. */
export class Frame {
  readonly type: number;
  readonly count: number;
  readonly view: DataView;

  constructor(readonly bytes: Buffer) {
    if (bytes.length < headerSize) throw new FrameError(`a frame has ${bytes.length} bytes, but its header alone needs ${headerSize}`);
    this.view = viewOf(bytes);
    this.type = bytes[0]!;
    this.count = this.view.getUint32(4, true);
    if (this.count > maxRecords) throw new FrameError(`a frame has ${this.count} records; at most ${maxRecords} are allowed`);
  }

  get first(): number {
    return uint64(this.view, 8);
  }

  json<T>(): T {
    return JSON.parse(this.bytes.toString("utf8", headerSize)) as T;
  }

  /** A number of 8 bytes in the payload. */
  number(index: number): number {
    const at = headerSize + 8 * index;
    if (at + 8 > this.bytes.length) throw short();
    return uint64(this.view, at);
  }
}

/** Returns a frame without records. */
export function token(type: number, count = 0, first: number | "any" = 0): Buffer {
  const b = Buffer.alloc(headerSize);
  const view = viewOf(b);
  b[0] = type;
  view.setUint32(4, count, true);
  if (first === "any") view.setBigUint64(8, 0xffff_ffff_ffff_ffffn, true);
  else setUint64(view, 8, checked(first));
  return b;
}

/** Collects records of one type. The records are copied once more when they are taken. */
export class Pack {
  count = 0;
  length = headerSize;
  private bytes = Buffer.allocUnsafe(2 * packSize);
  private view = viewOf(this.bytes);

  constructor(private readonly type: number) {}

  /** Whether the records should be sent now. */
  get full(): boolean {
    return this.length >= packSize || this.count >= 4096;
  }

  /** Returns a frame with the records, and begins the next one. */
  take(first: number): Buffer {
    this.bytes.fill(0, 0, headerSize);
    this.bytes[0] = this.type;
    this.view.setUint32(4, this.count, true);
    setUint64(this.view, 8, first);
    const frame = Buffer.from(this.bytes.subarray(0, this.length));
    this.count = 0;
    this.length = headerSize;
    if (this.bytes.length > 64 * packSize) this.resize(2 * packSize);
    return frame;
  }

  request(id: Buffer | undefined, action: Buffer | undefined, userData: Buffer | undefined, body: Uint8Array, timeout: number): void {
    const at = this.grow(16 + (id?.length ?? 0) + (action?.length ?? 0) + (userData?.length ?? 0) + body.length);
    const view = this.view;
    view.setUint32(at, body.length, true);
    view.setUint32(at + 4, timeout, true);
    view.setUint16(at + 8, id?.length ?? 0, true);
    view.setUint16(at + 10, action?.length ?? 0, true);
    view.setUint16(at + 12, userData?.length ?? 0, true);
    view.setUint16(at + 14, 0, true);
    let to = at + 16;
    for (const part of [id, action, userData]) {
      if (part === undefined) continue;
      this.bytes.set(part, to);
      to += part.length;
    }
    this.put(body, to);
  }

  result(tag: number, status: number, micros: number, body: Uint8Array): void {
    const at = this.grow(24 + body.length);
    const view = this.view;
    setUint64(view, at, tag);
    view.setUint32(at + 8, body.length, true);
    view.setUint32(at + 12, Math.min(micros, 0xffff_ffff), true);
    view.setUint32(at + 16, status, true);
    view.setUint32(at + 20, 0, true);
    this.put(body, at + 24);
  }

  /** Makes room for a record and returns where it begins. */
  private grow(size: number): number {
    const at = this.length;
    const end = at + size;
    if (end > this.bytes.length) this.resize(Math.max(2 * this.bytes.length, end));
    this.length = end;
    this.count++;
    return at;
  }

  private resize(size: number): void {
    const old = this.bytes;
    this.bytes = Buffer.allocUnsafe(size);
    this.view = viewOf(this.bytes);
    this.bytes.set(old.subarray(0, this.length));
  }

  private put(body: Uint8Array, at: number): void {
    // A loop is faster than set for a few bytes.
    if (body.length > 32) this.bytes.set(body, at);
    else for (let n = 0; n < body.length; n++) this.bytes[at + n] = body[n]!;
  }
}

/** A record of a frame with requests, as the client needs it once more. */
export interface SentRequest {
  number: number;
  id: string;
  /** The whole record. */
  record: Buffer;
}

/** Returns the requests of a frame. */
export function requestsOf(bytes: Buffer): SentRequest[] {
  const { view, count, first } = new Frame(bytes);
  const all: SentRequest[] = [];
  let at = headerSize;
  for (let n = 0; n < count; n++) {
    const id = view.getUint16(at + 8, true);
    const end = at + 16 + view.getUint32(at, true) + id + view.getUint16(at + 10, true) + view.getUint16(at + 12, true);
    all.push({ number: first + n, id: bytes.toString("utf8", at + 16, at + 16 + id), record: bytes.subarray(at, end) });
    at = end;
  }
  return all;
}

/** Returns a frame with requests that were taken from others. */
export function requestsFrame(first: number, requests: SentRequest[]): Buffer {
  return Buffer.concat([token(Type.requests, requests.length, first), ...requests.map((r) => r.record)]);
}

/** A record of the frame accepted: a request that has no response, because its id was sent before. */
export interface Exception {
  number: number;
  /** The content differs from the first one; otherwise the request is a repetition. */
  refused: boolean;
  problem: Buffer;
}

export function exceptionsOf(frame: Frame): Exception[] {
  const all: Exception[] = [];
  let at = headerSize;
  for (let n = 0; n < frame.count; n++) {
    if (at + 16 > frame.bytes.length) throw short();
    const end = at + 16 + frame.view.getUint32(at + 8, true);
    if (end > frame.bytes.length) throw short();
    all.push({ number: uint64(frame.view, at), refused: frame.bytes[at + 12] !== 0, problem: frame.bytes.subarray(at + 16, end) });
    at = end;
  }
  return all;
}

/**
 * The response to a request. Its bytes share the memory of the frame in which
 * it arrived: a program that stores small parts of many responses should copy them.
 */
export class SessionResponse {
  private constructor(
    /** Number of the response in the stream of its client, from 1. */
    readonly number: number,
    private readonly frame: Frame,
    private readonly at: number,
  ) {}

  /** @internal */
  static all(frame: Frame): SessionResponse[] {
    const first = frame.first;
    const all = new Array<SessionResponse>(frame.count);
    const { view, bytes } = frame;
    let at = headerSize;
    for (let n = 0; n < frame.count; n++) {
      if (at + 24 > bytes.length) throw short();
      all[n] = new SessionResponse(first + n, frame, at);
      at += 24 + view.getUint32(at + 8, true) + view.getUint16(at + 12, true) + view.getUint16(at + 14, true);
    }
    if (at > bytes.length) throw short();
    return all;
  }

  /** Number of the request in the stream of its client. */
  get request(): number {
    return uint64(this.frame.view, this.at);
  }

  /** The id that the client gave the request; "" if none. */
  get id(): string {
    return this.frame.bytes.toString("utf8", this.at + 24, this.at + 24 + this.lengthOfID);
  }

  /** The user data of the request. */
  get userData(): Buffer {
    const from = this.at + 24 + this.lengthOfID;
    return this.frame.bytes.subarray(from, from + this.lengthOfUserData);
  }

  /** The body of the response. The body of a fault is JSON; `fault` decodes it. */
  get body(): Buffer {
    const from = this.at + 24 + this.lengthOfID + this.lengthOfUserData;
    return this.frame.bytes.subarray(from, from + this.frame.view.getUint32(this.at + 8, true));
  }

  /** The body as text in UTF-8. */
  get text(): string {
    return this.body.toString("utf8");
  }

  /** The body as JSON. */
  json<T = unknown>(): T {
    return JSON.parse(this.text) as T;
  }

  /** Whether the response is a result; otherwise it is a fault. */
  get ok(): boolean {
    return this.frame.bytes[this.at + 16] === Status.ok;
  }

  get fault(): FaultBody | undefined {
    return this.ok ? undefined : this.json<FaultBody>();
  }

  /** Whether no response of this client follows. It is false for the last response if that arrived before the stream of requests ended. */
  get last(): boolean {
    return this.frame.bytes[this.at + 17] !== 0;
  }

  /** Number of times that the request was sent to an instance. */
  get attempts(): number {
    return this.frame.view.getUint16(this.at + 18, true);
  }

  /** @internal Bytes of the record. */
  get size(): number {
    return 24 + this.lengthOfID + this.lengthOfUserData + this.frame.view.getUint32(this.at + 8, true);
  }

  private get lengthOfID(): number {
    return this.frame.view.getUint16(this.at + 12, true);
  }

  private get lengthOfUserData(): number {
    return this.frame.view.getUint16(this.at + 14, true);
  }
}

/** A record of the frame tasks. */
export interface TaskRecord {
  tag: number;
  session: number;
  request: number;
  client: number;
  /** Milliseconds that are left; 0: no limit. */
  timeout: number;
  attempt: number;
  action: string;
  body: Buffer;
}

export function tasksOf(frame: Frame): TaskRecord[] {
  const all = new Array<TaskRecord>(frame.count);
  const { view, bytes } = frame;
  let at = headerSize;
  for (let n = 0; n < frame.count; n++) {
    if (at + 40 > bytes.length) throw short();
    const body = at + 40 + view.getUint16(at + 36, true);
    const end = body + view.getUint32(at + 28, true);
    if (end > bytes.length) throw short();
    all[n] = {
      tag: uint64(view, at),
      session: uint64(view, at + 8),
      request: uint64(view, at + 16),
      client: view.getUint32(at + 24, true),
      timeout: view.getUint32(at + 32, true),
      attempt: view.getUint16(at + 38, true),
      action: body === at + 40 ? "" : bytes.toString("utf8", at + 40, body),
      body: bytes.subarray(body, end),
    };
    at = end;
  }
  return all;
}
