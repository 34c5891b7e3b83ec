/** The person who is signed in, and the service that the pages are about. */
import { ask, implied, onSignedOut, Problem } from "./api.ts";
import { here, setQuery } from "./router.svelte.ts";
import { t } from "./texts.svelte.ts";
import type { Scope, SignIn, SignInRole } from "./types.ts";

const signInPath = "/console/sign-in";

class Session {
  /** undefined until it is known, null if nobody is signed in. */
  signIn = $state.raw<SignIn | null>();
  services = $state.raw<string[]>([]);
  /** The key or the person is for all services. */
  isForAll = $state(false);
  /** The sign-in ended while the console was open. */
  hasEnded = $state(false);
  problem = $state.raw<Problem>();

  constructor() {
    onSignedOut.call = () => {
      if (this.signIn) this.hasEnded = true;
      this.signIn = null;
    };
    // Each request of a person names the service in which they have a role, unless their roles in all services suffice.
    implied.service = (method) => (this.signIn?.roles && (!this.isForAll || method !== "GET") ? this.service : "");
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
    const isForAll = signIn.roles ? signIn.roles.some(({ service }) => !service) : !signIn.service;
    this.services = signIn.roles?.flatMap(({ service }) => service ?? []) ?? (signIn.service ? [signIn.service] : []);
    if (isForAll) {
      const may = signIn.scopes.includes("read") || signIn.scopes.includes("admin");
      if (may) this.services = (await ask<{ services: { name: string }[] }>("/v1/services", { query: { limit: 1000 } })).services.map(({ name }) => name);
    }
    this.hasEnded = false;
    this.isForAll = isForAll;
    this.signIn = signIn;
  }

  async end(): Promise<void> {
    await ask(signInPath, { method: "DELETE" });
    this.signIn = null;
  }

  /** The service of the pages; "" for all services. */
  get service(): string {
    if (this.signIn?.service) return this.signIn.service;
    if (this.services.length === 1) return this.services[0]!;
    const chosen = here.get("service");
    return this.isForAll || this.services.includes(chosen) ? chosen : (this.services[0] ?? "");
  }

  choose(service: string): void {
    setQuery({ service });
  }

  /** The roles of a person of OpenID Connect for the service of the pages. */
  get roles(): SignInRole[] {
    return this.signIn?.roles?.filter(({ service }) => !service || service === this.service) ?? [];
  }

  /** Reports whether the person has one of the scopes. The scope admin includes the others. */
  can(...scopes: Scope[]): boolean {
    const has = this.signIn?.roles ? this.roles.flatMap((one) => one.scopes) : (this.signIn?.scopes ?? []);
    return has.includes("admin") || scopes.some((scope) => has.includes(scope));
  }

  /** The name of the person, or of their key. */
  get name(): string {
    return nameOf(this.signIn);
  }
}

/** The names of the roles of a person in one service, or in all. */
export const rolesText = ({ service, roles }: SignInRole): string => `${service ?? t("service.all")}: ${roles.map((role) => t(`oidc.role.${role}`)).join(", ")}`;

/** The name of who has a sign-in. */
export const nameOf = (signIn?: SignIn | null): string => signIn?.person || signIn?.mail || signIn?.subject || signIn?.key_name || signIn?.key_id || "";

export const session = new Session();
