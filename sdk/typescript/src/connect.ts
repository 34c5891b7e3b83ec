import createClient, { type Client } from "openapi-fetch";

import { problemOf } from "./problem.js";
import type { paths } from "./schema.js";

export interface Options {
  url: string;
  key: string;
  /** The service to use, if the key is valid for all services. */
  service?: string;
  /** A function to use instead of the global fetch. */
  fetch?: (request: Request) => Promise<Response>;
}

/** All operations of the API, by method and path, and raw, which sends bodies that are not JSON. */
export type Fanfare = Client<paths> & { raw(request: RawRequest): Promise<Response> };

export interface RawRequest {
  path: string;
  query?: Record<string, string>;
  contentType: string;
  body: string;
}

/** Returns a client of a server. Responses with a status of 400 or above throw a ProblemError. */
export function connect(options: Options): Fanfare {
  const url = options.url.replace(/\/+$/, "");
  const headers: Record<string, string> = { Authorization: `Bearer ${options.key}` };
  if (options.service !== undefined) headers["X-Fanfare-Service"] = options.service;
  const send = options.fetch ?? ((request: Request) => fetch(request));

  const client = createClient<paths>({ baseUrl: url, headers, fetch: send });
  client.use({
    onResponse: async ({ response }) => {
      if (!response.ok) throw await problemOf(response);
    },
  });
  const raw = async ({ path, query, contentType, body }: RawRequest): Promise<Response> => {
    const at = new URL(url + path);
    for (const [name, value] of Object.entries(query ?? {})) at.searchParams.set(name, value);
    const response = await send(new Request(at, { method: "POST", headers: { ...headers, "Content-Type": contentType }, body }));
    if (!response.ok) throw await problemOf(response);
    return response;
  };
  return Object.assign(client, { raw });
}
