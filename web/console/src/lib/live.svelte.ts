/**
 * The one connection that keeps the status current. It reads server-sent events with fetch instead of EventSource, because it must see the comments
 * that show that the connection still works. While the page is hidden, there is no connection: browsers allow only six for a host.
 * A server without /v1/live is asked every few seconds.
 */
import { ask, headersFor, onSignedOut, Problem, problemOf, unreachable } from "./api.ts";
import { session } from "./session.svelte.ts";
import type { Status } from "./types.ts";

const silence = 40_000; // milliseconds; the server sends a comment every 15 s
const pollEvery = 5_000;
const waits = [1_000, 2_000, 5_000, 10_000];

class Live {
  /** live: the values are current. lost: they are from the time at. */
  state = $state<"connecting" | "live" | "polling" | "lost">("connecting");
  status = $state.raw<Status>();
  at = $state.raw<Date>();
  problem = $state.raw<Problem>();
  #abort: AbortController | undefined;
  #failures = 0;
  #timer = 0;

  /** Connects for the chosen service; returns the function that ends the connection. */
  start(): () => void {
    this.status = undefined;
    this.at = undefined;
    this.state = "connecting";
    this.#failures = 0;
    const visibility = (): void => (document.visibilityState === "visible" ? this.retry() : this.#stop());
    document.addEventListener("visibilitychange", visibility);
    // An open connection does not notice that the network is gone; a new one does. A server on the same machine still answers.
    for (const change of ["online", "offline"]) addEventListener(change, this.retry);
    this.retry();
    return () => {
      document.removeEventListener("visibilitychange", visibility);
      for (const change of ["online", "offline"]) removeEventListener(change, this.retry);
      this.#stop();
    };
  }

  /** Connects now. */
  retry = (): void => {
    this.#stop();
    this.#abort = new AbortController();
    void this.#run(this.#abort);
  };

  #stop(): void {
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  #set(status: Status, state: "live" | "polling"): void {
    this.status = status;
    this.at = new Date();
    this.state = state;
    this.problem = undefined;
    this.#failures = 0;
  }

  async #run(abort: AbortController): Promise<void> {
    let next = 0;
    try {
      const response = await fetch("/v1/live", { headers: { Accept: "text/event-stream", ...headersFor(session.service) }, cache: "no-store", signal: abort.signal });
      if (response.status === 404) {
        this.#set(await ask<Status>("/v1/status", { service: session.service, signal: abort.signal }), "polling");
        next = pollEvery;
      } else if (!response.ok) {
        if (response.status === 401) onSignedOut.call();
        throw await problemOf(response);
      } else {
        await this.#read(response.body!, abort);
        throw unreachable();
      }
    } catch (error) {
      if (abort !== this.#abort || (abort.signal.aborted && abort.signal.reason !== silence)) return;
      this.state = "lost";
      this.problem = (error as Problem).code === undefined ? unreachable() : (error as Problem);
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
      this.state = "lost";
      this.problem = new Problem(503, code, detail, hint);
    }
  }
}

export const live = new Live();
