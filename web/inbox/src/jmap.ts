/** The requests of JMAP (RFC 8620) with a token that expires. */

/** What a token provider returns: the token, or the response of `POST /v1/mailboxes/{address}/tokens` as it is. */
export type Token = string | { token: string; expires_at?: string };

/** Asks the backend of the page for a new token. It is called before the first request, and again when the token has expired. */
export type TokenProvider = () => Token | Promise<Token>;

/**
 * The kinds of failures:
 * - `network`: no response. The server cannot be reached, or the token does not name the origin of the page, so that CORS hides the response.
 * - `token`: the token provider failed, or the server refused a token that it had just returned.
 * - `forbidden`: the token is not for pages of this origin.
 * - `busy`: too many requests, or the server is not ready (429 and 503).
 * - `server`: any other failure.
 */
export type FailureKind = "network" | "token" | "forbidden" | "busy" | "server";

/** A failure of a request. `message` and `hint` are for developers; the texts of the element are for readers. */
export class InboxError extends Error {
  override name = "InboxError";
  readonly kind: FailureKind;
  readonly hint: string;
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;

  constructor(kind: FailureKind, message: string, hint: string, status = 0, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
    this.hint = hint;
    this.status = status;
  }
}

export interface Session {
  apiUrl: string;
  downloadUrl: string;
  eventSourceUrl: string;
  primaryAccounts: Record<string, string>;
}

/** An invocation: the method, its arguments and an id (RFC 8620, section 3.2). */
export type Call = [method: string, args: Record<string, unknown>, id: string];

const mail = "urn:ietf:params:jmap:mail";
const using = ["urn:ietf:params:jmap:core", mail];

// A token that is about to expire is replaced first, so that a request does not fail on its way.
const earlyMillis = 15_000;

// How often, and how long at most, a request waits for a server that is busy.
const maxRepeats = 2;
const maxWaitMillis = 10_000;

export class Jmap {
  readonly #server: string;
  readonly #provider: TokenProvider;
  #token: Promise<{ text: string; until: number }> | undefined;
  #session: Promise<Session> | undefined;

  /** server is the URL of the server, without /jmap. */
  constructor(server: string, provider: TokenProvider) {
    this.#server = server.replace(/\/+$/, "");
    this.#provider = provider;
  }

  /** Returns the session object, which is asked for once (RFC 8620, section 2). */
  session(): Promise<Session> {
    this.#session ??= this.fetch(`${this.#server}/jmap/session`).then((response) => response.json() as Promise<Session>);
    this.#session.catch(() => (this.#session = undefined));
    return this.#session;
  }

  /** Returns the account that the token opens. */
  async account(): Promise<string> {
    return (await this.session()).primaryAccounts[mail] ?? "";
  }

  /** Makes calls in one request, and returns the arguments of the responses by the ids of the calls. A method that fails is an error with its type. */
  async call(calls: Call[], signal?: AbortSignal): Promise<Record<string, any>> {
    const { apiUrl } = await this.session();
    const response = await this.fetch(apiUrl, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ using, methodCalls: calls }), signal: signal ?? null,
    });
    const { methodResponses } = (await response.json()) as { methodResponses: Call[] };
    const results: Record<string, any> = {};
    for (const [method, args, id] of methodResponses) {
      if (method === "error") throw new MethodError(String(args["type"]), String(args["description"] ?? ""));
      results[id] = args;
    }
    return results;
  }

  /** Sends a request with the token, and repeats it with a new one if the server refuses the token. The token is only in the header. */
  async fetch(url: string, init: RequestInit = {}): Promise<Response> {
    let renewed = false;
    for (let repeats = 0; ;) {
      const token = await this.#current();
      let response: Response;
      try {
        response = await fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${token}` }, credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer" });
      } catch (error) {
        if (init.signal?.aborted) throw error;
        throw new InboxError("network", `${new URL(url).origin} cannot be reached`, "check the connection, the URL of the server, and that the origins of the token name this page", 0, error);
      }
      if (response.ok) return response;
      void response.body?.cancel();
      const { status } = response;
      if (status === 401 && !renewed) {
        renewed = true;
        this.#token = undefined;
      } else if (status === 401) {
        throw new InboxError("token", "the server refused the token", "let the token provider return a new token of POST /v1/mailboxes/{address}/tokens", status);
      } else if (status === 403) {
        throw new InboxError("forbidden", "the token is not for pages of this origin", "name the origin of the page when the backend asks for the token", status);
      } else if (status !== 429 && status !== 503) {
        throw new InboxError("server", `the server responded with ${status}`, "try again later; the log of the server says more", status);
      } else if (repeats++ >= maxRepeats) {
        throw new InboxError("busy", `the server responded with ${status}`, "try again later", status);
      } else {
        const seconds = Number(response.headers.get("Retry-After") ?? 1) || 1;
        await new Promise((wait) => setTimeout(wait, Math.min(seconds * 1000, maxWaitMillis)));
      }
    }
  }

  /** Returns the token, or a new one. Requests that run at the same time wait for the same answer of the provider. */
  async #current(): Promise<string> {
    const known = this.#token && (await this.#token);
    if (known && Date.now() < known.until - earlyMillis) return known.text;
    const asked = (async () => {
      try {
        const token = await this.#provider();
        const { token: text, expires_at } = typeof token === "string" ? { token, expires_at: undefined } : token;
        if (!text) throw new Error("the token provider returned nothing");
        const until = expires_at ? Date.parse(expires_at) : NaN;
        return { text, until: Number.isNaN(until) ? Infinity : until };
      } catch (error) {
        throw new InboxError("token", "the token provider failed", "see the cause", 0, error);
      }
    })();
    this.#token = asked;
    asked.catch(() => this.#token === asked && (this.#token = undefined));
    return (await asked).text;
  }
}

/** A method failed (RFC 8620, section 3.6.2). */
export class MethodError extends InboxError {
  readonly type: string;

  constructor(type: string, description: string) {
    super("server", `the server refused the request: ${type} ${description}`.trim(), "try again; if it fails again, reload the messages", 200);
    this.type = type;
  }
}
