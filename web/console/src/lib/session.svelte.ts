/** The person who is signed in, and the service that the pages are about. */
import { ask, onSignedOut, Problem } from "./api.ts";
import { here, setQuery } from "./router.svelte.ts";
import type { Scope, SignIn } from "./types.ts";

const signInPath = "/console/sign-in";

class Session {
  /** undefined until it is known, null if nobody is signed in. */
  signIn = $state.raw<SignIn | null>();
  services = $state.raw<string[]>([]);
  /** The sign-in ended while the console was open. */
  hasEnded = $state(false);
  problem = $state.raw<Problem>();

  constructor() {
    onSignedOut.call = () => {
      if (this.signIn) this.hasEnded = true;
      this.signIn = null;
    };
  }

  /** Reads the sign-in of the cookie. */
  async start(): Promise<void> {
    this.problem = undefined;
    try {
      await this.#begin(await ask<SignIn>(signInPath));
    } catch (error) {
      if ((error as Problem).status === 401) this.signIn = null;
      else this.problem = error as Problem;
    }
  }

  async begin(key: string): Promise<void> {
    await this.#begin(await ask<SignIn>(signInPath, { method: "POST", body: { key } }));
  }

  async #begin(signIn: SignIn): Promise<void> {
    this.services = signIn.service ? [signIn.service] : [];
    if (!signIn.service) {
      const may = signIn.scopes.includes("read") || signIn.scopes.includes("admin");
      if (may) this.services = (await ask<{ services: { name: string }[] }>("/v1/services", { query: { limit: 1000 } })).services.map(({ name }) => name);
    }
    this.hasEnded = false;
    this.signIn = signIn;
  }

  async end(): Promise<void> {
    await ask(signInPath, { method: "DELETE" });
    this.signIn = null;
  }

  /** The service of the pages; "" for all services. */
  get service(): string {
    return this.signIn?.service ?? (this.services.length === 1 ? this.services[0]! : here.get("service"));
  }

  choose(service: string): void {
    setQuery({ service });
  }

  /** Reports whether the key has one of the scopes. The scope admin includes the others. */
  can(...scopes: Scope[]): boolean {
    const has = this.signIn?.scopes ?? [];
    return has.includes("admin") || scopes.some((scope) => has.includes(scope));
  }

  /** Reports whether the key is for all services. */
  get isForAll(): boolean {
    return !!this.signIn && !this.signIn.service;
  }
}

export const session = new Session();
