import type { Fanfare } from "./connect.js";
import type { components } from "./schema.js";

type Schemas = components["schemas"];
export type LineError = Schemas["LineError"];
type Some<T> = Iterable<T> | AsyncIterable<T>;

/** Number of lines in one request: memory use stays small, and the server never waits for a client that does not read. */
export const blockLines = 500;

/**
 * Adds or replaces any number of subscriptions. Yields the result of each, in
 * order; the lines of LineErrors are numbered from 1, over all subscriptions.
 */
export function putSubscriptions(client: Fanfare, subscriptions: Some<Schemas["SubscriptionRequest"]>): AsyncGenerator<Schemas["Subscribed"] | LineError> {
  return send(client, "/v1/subscriptions", {}, subscriptions);
}

/**
 * Publishes any number of events to a topic. Yields the result of each, in order.
 * Each event is its data or, with format "cloudevents", a complete CloudEvent.
 */
export function publishLines(
  client: Fanfare,
  topic: string,
  events: Some<unknown>,
  query: { id?: string; time?: string; source?: string; lane?: string; format?: "data" | "cloudevents" } = {},
): AsyncGenerator<Schemas["Accepted"] | LineError> {
  return send(client, `/v1/topics/${encodeURIComponent(topic)}/events`, query, events);
}

async function* send<T>(client: Fanfare, path: string, query: Record<string, string>, items: Some<unknown>): AsyncGenerator<T | LineError> {
  let sent = 0;
  for await (const block of blocks(items)) {
    const response = await client.raw({ path, query, contentType: "application/x-ndjson", body: block.join("\n") });
    for (const text of (await response.text()).split("\n")) {
      if (text === "") continue;
      const answer = JSON.parse(text) as T | LineError;
      if (typeof answer === "object" && answer !== null && "error" in answer) answer.line += sent;
      yield answer;
    }
    sent += block.length;
  }
}

async function* blocks(items: Some<unknown>): AsyncGenerator<string[]> {
  let block: string[] = [];
  for await (const item of items) {
    block.push(JSON.stringify(item));
    if (block.length === blockLines) {
      yield block;
      block = [];
    }
  }
  if (block.length > 0) yield block;
}
