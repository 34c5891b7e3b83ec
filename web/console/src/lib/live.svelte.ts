/**
 * The status, kept current by one connection for all pages of a browser: browsers allow only six for a host. Of the visible pages that show the same service,
 * the one with the lock has the connection and passes on what it reads; when it is hidden or closed, the next one gets the lock. The connection reads
 * server-sent events with fetch instead of EventSource, because it must see the comments that show that the connection still works.
 * A server without /v1/live is asked every few seconds.
 */
import { ask, headersFor, onSignedOut, Problem, problemOf, unreachable } from "./api.ts";
import { session } from "./session.svelte.ts";
import type { Status } from "./types.ts";

const silence = 40_000; // milliseconds; the server sends a comment every 15 s
const pollEvery = 5_000;
const waits = [1_000, 2_000, 5_000, 10_000];

type State = "connecting" | "live" | "polling" | "lost";

/** Messages between pages. A page that begins to follow sends "ask"; a page that wants a new connection sends "retry". */
type Message =
  | { kind: "ask" | "retry" | "signed-out" }
  | { kind: "alive" } // the connection works, and the status is still current
  | { kind: "state"; state: State; status: Status | undefined; at: Date | undefined; problem: { status: number; code: string; detail: string; hint: string } | undefined };

class Live {
  /** live: the values are current. lost: they are from the time at. */
  state = $state<State>("connecting");
  status = $state.raw<Status>();
  at = $state.raw<Date>();
  problem = $state.raw<Problem>();
  #abort: AbortController | undefined; // of the connection
  #turn: AbortController | undefined; // of the wait for the lock, and of the time with it
  #pages: BroadcastChannel | undefined;
  #leads = false;
  #failures = 0;
  #timer = 0;
  #watch = 0;

  /** Follows the status of the chosen service; returns the function that ends it. */
  start(): () => void {
    this.status = undefined;
    this.at = undefined;
    this.state = "connecting";
    this.#failures = 0;
    const name = `fanfare live ${session.service ?? ""}`;
    this.#pages = new BroadcastChannel(name);
    this.#pages.onmessage = ({ data }: MessageEvent<Message>) => this.#hear(data, name);
    const visibility = (): void => (document.visibilityState === "visible" ? this.#enter(name) : this.#leave());
    document.addEventListener("visibilitychange", visibility);
    // An open connection does not notice that the network is gone; a new one does. A server on the same machine still answers.
    for (const change of ["online", "offline"]) addEventListener(change, this.retry);
    visibility();
    return () => {
      document.removeEventListener("visibilitychange", visibility);
      for (const change of ["online", "offline"]) removeEventListener(change, this.retry);
      this.#leave();
      this.#pages?.close();
      this.#pages = undefined;
    };
  }

  /** Connects now. */
  retry = (): void => {
    if (!this.#leads) {
      this.#tell({ kind: "retry" });
      return;
    }
    this.#disconnect();
    this.#abort = new AbortController();
    void this.#run(this.#abort);
  };

  /** Waits for the lock, and connects when this page has it. Over HTTP to another machine, browsers have no locks: then each page connects. */
  #enter(name: string, steal = false): void {
    this.#leave();
    const turn = new AbortController();
    this.#turn = turn;
    const lead = (): Promise<void> => {
      if (turn.signal.aborted) return Promise.resolve();
      clearTimeout(this.#watch);
      this.#leads = true;
      this.retry();
      return new Promise((end) => turn.signal.addEventListener("abort", () => end()));
    };
    if (!("locks" in navigator)) {
      void lead();
      return;
    }
    this.#tell({ kind: "ask" });
    this.#expect(name);
    navigator.locks.request(name, steal ? { steal } : { signal: turn.signal }, lead).catch(() => {
      if (this.#turn === turn && !turn.signal.aborted) this.#enter(name); // another page took the lock
    });
  }

  #leave(): void {
    this.#disconnect();
    clearTimeout(this.#watch);
    this.#turn?.abort();
    this.#leads = false;
  }

  /** Takes the lock from a page that has become silent, such as one that the browser has suspended. */
  #expect(name: string): void {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => {
      this.state = "lost";
      this.#enter(name, true);
    }, silence) as unknown as number;
  }

  #tell(message: Message): void {
    this.#pages?.postMessage(message);
  }

  #tellState(): void {
    const { problem } = this;
    this.#tell({
      kind: "state", state: this.state, status: this.status, at: this.at,
      problem: problem && { status: problem.status, code: problem.code, detail: problem.message, hint: problem.hint },
    });
  }

  #hear(message: Message, name: string): void {
    if (message.kind === "signed-out") onSignedOut.call();
    if (this.#leads) {
      if (message.kind === "ask") this.#tellState();
      if (message.kind === "retry") this.retry();
      return;
    }
    if (document.visibilityState !== "visible") return;
    if (message.kind === "alive") {
      this.#expect(name);
      if (this.state === "live") this.at = new Date();
    }
    if (message.kind !== "state") return;
    this.#expect(name);
    this.state = message.state;
    this.status = message.status;
    this.at = message.at;
    this.problem = message.problem && new Problem(message.problem.status, message.problem.code, message.problem.detail, message.problem.hint);
  }

  #disconnect(): void {
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  #set(status: Status, state: "live" | "polling"): void {
    this.status = status;
    this.at = new Date();
    this.state = state;
    this.problem = undefined;
    this.#failures = 0;
    this.#tellState();
  }

  #lose(problem: Problem): void {
    this.state = "lost";
    this.problem = problem;
    this.#tellState();
  }

  async #run(abort: AbortController): Promise<void> {
    let next = 0;
    try {
      const response = await fetch("/v1/live", { headers: { Accept: "text/event-stream", ...headersFor(session.service) }, cache: "no-store", signal: abort.signal });
      if (response.status === 404) {
        this.#set(await ask<Status>("/v1/status", { service: session.service, signal: abort.signal }), "polling");
        next = pollEvery;
      } else if (!response.ok) {
        if (response.status === 401) {
          this.#tell({ kind: "signed-out" });
          onSignedOut.call();
        }
        throw await problemOf(response);
      } else {
        await this.#read(response.body!, abort);
        throw unreachable();
      }
    } catch (error) {
      if (abort !== this.#abort || (abort.signal.aborted && abort.signal.reason !== silence)) return;
      this.#lose((error as Problem).code === undefined ? unreachable() : (error as Problem));
      next = waits[Math.min(this.#failures++, waits.length - 1)]!;
    }
    if (abort === this.#abort && !abort.signal.aborted || abort.signal.reason === silence) this.#timer = setTimeout(this.retry, next) as unknown as number;
  }

  async #read(body: ReadableStream<Uint8Array>, abort: AbortController): Promise<void> {
    let text = "", watch = 0;
    const alive = (): void => {
      clearTimeout(watch);
      watch = setTimeout(() => abort.abort(silence), silence) as unknown as number;
      if (this.state === "live") this.at = new Date();
      this.#tell({ kind: "alive" });
    };
    alive();
    try {
      const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        alive();
        text += value;
        const events = text.split(/\r?\n\r?\n/);
        text = events.pop()!;
        for (const event of events) this.#take(event);
      }
    } finally {
      clearTimeout(watch);
    }
  }

  #take(event: string): void {
    let name = "message", data = "";
    for (const line of event.split(/\r?\n/)) {
      if (line.startsWith("event:")) name = line.slice(6).trim();
      if (line.startsWith("data:")) data += line.slice(5);
    }
    if (name === "status" && data) this.#set(JSON.parse(data) as Status, "live");
    if (name === "unavailable" && data) {
      const { code, detail, hint } = JSON.parse(data) as { code: string; detail: string; hint?: string };
      this.#lose(new Problem(503, code, detail, hint));
    }
  }
}

export const live = new Live();
