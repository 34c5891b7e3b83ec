/** A Load is a value that is read from the server, with the time of the reading and the problem of the last attempt. */
import type { Problem } from "./api.ts";

export class Load<T> {
  value = $state.raw<T>();
  at = $state.raw<Date>();
  problem = $state.raw<Problem>();
  busy = $state(false);
  readonly #read: () => Promise<T>;

  constructor(read: () => Promise<T>) {
    this.#read = read;
    void this.again();
  }

  /** Reads the value again. The old value stays until there is a new one. */
  again = async (): Promise<void> => {
    if (this.busy) return;
    this.busy = true;
    try {
      this.value = await this.#read();
      this.at = new Date();
      this.problem = undefined;
    } catch (error) {
      this.problem = error as Problem;
    } finally {
      this.busy = false;
    }
  };
}

/** Calls a function repeatedly while the page is visible. Returns the function that ends it. */
export function every(millis: number, call: () => void): () => void {
  const timer = setInterval(() => document.visibilityState === "visible" && call(), millis);
  return () => clearInterval(timer);
}
