/** Requests to the API of the server. The cookie of the sign-in authenticates them. */

export type Query = Record<string, string | number | boolean | undefined>;

/** A Problem is an error of the API (RFC 9457), or one of the connection. */
export class Problem extends Error {
  constructor(
    readonly status: number, // 0 if there was no response
    readonly code: string,
    detail: string,
    readonly hint = "",
    readonly requestID = "",
    readonly others: string[] = [],
    readonly pointer = "", // member of the request
    readonly line = 0, // in that member, from 1
    readonly column = 0,
  ) {
    super(detail);
  }
}

/** The session sets this function, to learn that the sign-in has ended. */
export const onSignedOut: { call: () => void } = { call: () => {} };

/** The session sets this function: it names the service of a request that does not. */
export const implied: { service: (method: string) => string } = { service: () => "" };

const patience = 120_000; // milliseconds; pausing a busy broadcast takes its time

interface Options {
  method?: string;
  query?: Query;
  body?: unknown;
  service?: string | undefined; // the service of the request; only people who may access several services need it
  signal?: AbortSignal | undefined;
  file?: Blob; // instead of body
}

export const queryString = (query: Query = {}): string => {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== "") parameters.set(name, String(value));
  const text = parameters.toString();
  return text && "?" + text;
};

/** The headers of a request for a service. */
export const headersFor = (service?: string): Record<string, string> => (service ? { "X-Fanfare-Service": service } : {});

export async function problemOf(response: Response): Promise<Problem> {
  const body = await response.json().catch(() => ({}));
  const others = (body.errors ?? []).map((one: { pointer?: string; detail: string }) => (one.pointer ? `${one.pointer}: ${one.detail}` : one.detail));
  return new Problem(response.status, body.code ?? "", body.detail ?? `${response.status} ${response.statusText}`, body.hint ?? "", body.request_id ?? "", others, body.pointer ?? "", body.line ?? 0, body.column ?? 0);
}

export const unreachable = (): Problem => new Problem(0, "unreachable", "");

async function send(path: string, { method = "GET", query, body, service, signal, file }: Options): Promise<Response> {
  const headers = headersFor(service || (path.startsWith("/v1/") ? implied.service(method) : ""));
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (file) headers["Content-Type"] = "text/csv";
  const limit = AbortSignal.timeout(file ? 10 * patience : patience);
  let response: Response;
  try {
    response = await fetch(path + queryString(query), {
      method, headers, credentials: "same-origin", cache: "no-store", signal: signal ? AbortSignal.any([signal, limit]) : limit,
      ...(body !== undefined && { body: JSON.stringify(body) }), ...(file && { body: file }),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw unreachable();
  }
  if (!response.ok) {
    if (response.status === 401 && !path.startsWith("/console/sign-in")) onSignedOut.call();
    throw await problemOf(response);
  }
  return response;
}

export async function ask<T>(path: string, options: Options = {}): Promise<T> {
  const response = await send(path, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export const askText = async (path: string, options: Options = {}): Promise<string> => (await send(path, options)).text();

/** A path with its parts encoded: path`/v1/events/${id}`. */
export const path = (texts: TemplateStringsArray, ...parts: string[]): string =>
  texts.reduce((all, text, n) => all + encodeURIComponent(parts[n - 1]!) + text);
