import { WebSocket } from "ws";

import { Frame, FrameError, maxFrame } from "./frame.js";
import { problem, ProblemError, problemIn } from "./problem.js";

/** The close codes of the protocol. */
export const Close = { normal: 1000, goingAway: 1001, invalid: 4000, replaced: 4001, ended: 4002, slow: 4003 } as const;

const silenceMillis = 60_000;
/** While no node of a cluster leads, a node answers only after up to 25 s. */
const handshakeMillis = 30_000;
const firstDelayMillis = 1_000;
const maxDelayMillis = 60_000;

/** The address of a server, and the key for it. */
export interface Server {
  /** Address of the API, such as https://fanfare.example.org. */
  url: string;
  key: string;
  /** The service to use, if the key is valid for all services. */
  service?: string;
}

/** Returns the settings of a server; the default of each is an environment variable. */
export function serverOf(options: Partial<Server>): Server {
  const service = options.service ?? process.env["FANFARE_SERVICE"];
  return {
    url: setting(options.url, "FANFARE_URL", "the address of the server"),
    key: setting(options.key, "FANFARE_KEY", "the key"),
    ...(service && { service }),
  };
}

/** Returns a value, or else that of an environment variable. */
export function setting(value: string | undefined, variable: string, what: string): string {
  const found = value ?? process.env[variable];
  if (found) return found;
  throw problem(422, "invalid", `${what} is not set`, `set the environment variable ${variable}, or pass the option`);
}

export function headersOf(server: Server): Record<string, string> {
  return { Authorization: `Bearer ${server.key}`, ...(server.service && { "X-Fanfare-Service": server.service }) };
}

export const baseOf = (server: Server): string => server.url.replace(/\/+$/, "");

/** A connection was lost. The program can connect again, unless final is set. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";

  constructor(
    message: string,
    /** The close code of the WebSocket; 0: none. */
    readonly code: number,
    readonly final = false,
  ) {
    super(message);
  }
}

/** The server, or something before it, may accept the same connection later. */
export function mayRecover(error: Error): boolean {
  if (error instanceof ConnectionError) return !error.final;
  if (error instanceof ProblemError) return error.problem.status >= 500 || error.problem.status === 408 || error.problem.status === 429;
  return false;
}

/**
 * A WebSocket that carries frames. It connects at once: the frame welcome says
 * that it is connected. onClose is called once, with the reason.
 */
export class Socket {
  private readonly ws: WebSocket;
  private readonly guard: NodeJS.Timeout;
  private heard = Date.now();
  private silent = false;
  private broken: Error | undefined;

  constructor(
    private readonly server: Server,
    path: string,
    protocol: string,
    onFrame: (frame: Frame) => void,
    onClose: (error: Error) => void,
  ) {
    const ws = new WebSocket(baseOf(server).replace(/^http/, "ws") + path, [protocol], {
      headers: headersOf(server),
      perMessageDeflate: false,
      maxPayload: maxFrame,
      handshakeTimeout: handshakeMillis,
    });
    this.ws = ws;
    this.guard = setInterval(() => this.checkSilence(), silenceMillis / 6);
    this.guard.unref();
    const heard = () => (this.heard = Date.now());
    ws.on("ping", heard);
    ws.on("pong", heard);
    ws.on("message", (data: Buffer, binary) => {
      heard();
      if (this.broken !== undefined) return;
      try {
        if (!binary) throw new FrameError("the server sent text: a frame is a binary message");
        onFrame(new Frame(data));
      } catch (error) {
        this.broken = error as Error;
        ws.close(Close.invalid, this.broken.message.slice(0, 100));
      }
    });
    ws.on("unexpected-response", (request, response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("close", () => {
        const text = Buffer.concat(parts).toString("utf8");
        this.broken = problemIn(text, response.statusCode ?? 500, response.statusMessage ?? "");
        ws.terminate();
        request.destroy();
      });
    });
    // After terminate, ws also reports that the connection was not made.
    ws.on("error", (error) => (this.broken ??= error));
    ws.once("close", (code, reason) => {
      clearInterval(this.guard);
      const { broken } = this;
      onClose(broken instanceof FrameError || broken instanceof ProblemError ? broken : this.lost(code, reason.toString()));
    });
  }

  /** Bytes that wait for the network. */
  get buffered(): number {
    return this.ws.bufferedAmount;
  }

  send(frame: Buffer): void {
    if (this.ws.readyState === WebSocket.OPEN) this.ws.send(frame, { binary: true });
  }

  close(code: number): void {
    this.ws.close(code);
  }

  /** Drops the connection at once. */
  terminate(): void {
    this.ws.terminate();
  }

  private checkSilence(): void {
    if (Date.now() - this.heard < silenceMillis) return;
    this.silent = true;
    this.ws.terminate();
  }

  private lost(code: number, reason: string): ConnectionError {
    if (code === Close.replaced) {
      return new ConnectionError("a newer connection has the same name: give each process a different name", code, true);
    }
    const failure = this.broken as NodeJS.ErrnoException | undefined;
    let why = reason || `it was closed with code ${code}`;
    if (failure !== undefined) why = failure.message || failure.code || "unknown error";
    if (this.silent) why = `the server sent nothing for ${silenceMillis / 1000} s`;
    return new ConnectionError(`no connection to ${this.server.url}: ${why}`, code, code === Close.invalid || code === Close.ended);
  }
}

/** The delays between attempts to connect: 1 s, doubling to 60 s, with a random part so that not all processes come at once. */
export class Backoff {
  private next = firstDelayMillis;
  private timer: NodeJS.Timeout | undefined;
  private wake: (() => void) | undefined;

  reset(): void {
    this.next = firstDelayMillis;
  }

  wait(): Promise<void> {
    const delay = this.next * (0.75 + Math.random() / 2);
    this.next = Math.min(2 * this.next, maxDelayMillis);
    return new Promise((resolve) => {
      this.wake = resolve;
      this.timer = setTimeout(resolve, delay);
    });
  }

  /** Ends the wait. */
  stop(): void {
    clearTimeout(this.timer);
    this.wake?.();
  }
}
