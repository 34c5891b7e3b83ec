/** A filter: keeps the customers who are entitled to prices of the market of the event. */
import { run } from "fanfare-client/worker";

interface Recipient {
  id: string;
  time_zone?: string;
  attributes?: { entitlements?: unknown }; // the last day for each market: {"XETRA": "2026-12-31"}
  document: { data: { event: { data: { market: string; closed_at: string } } } };
}

type Answer = { id: string; keep: boolean } | { id: string; error: string };

const formats = new Map<string, Intl.DateTimeFormat>(); // by time zone

await run((task) => {
  const { messages } = task.json<{ messages: Recipient[] }>();
  return JSON.stringify({ messages: messages.map(decide) });
});

function decide({ id, time_zone = "UTC", attributes, document }: Recipient): Answer {
  const { market, closed_at } = document.data.event.data;
  const entitlements = attributes?.entitlements;
  if (typeof entitlements !== "object" || entitlements === null) return { id, error: "the customer has no attribute entitlements" };
  const last: unknown = new Map(Object.entries(entitlements)).get(market);
  if (last === undefined) return { id, keep: false };
  if (typeof last !== "string" || !/^\d{4}-\d\d-\d\d$/.test(last)) return { id, error: `the last day for ${market} is ${JSON.stringify(last)}, not a date such as 2026-12-31` };
  return { id, keep: day(closed_at, time_zone) <= last };
}

/** Returns the day of a time in a time zone, such as 2026-12-31. */
function day(time: string, timeZone: string): string {
  let format = formats.get(timeZone);
  if (format === undefined) formats.set(timeZone, (format = new Intl.DateTimeFormat("en-CA", { timeZone, dateStyle: "short" })));
  return format.format(new Date(time));
}
