/** A delivery protocol: posts each message to the gateway at GATEWAY_URL, which sends it to a phone. */
import { run } from "fanfare-client/worker";

interface Message {
  id: string;
  to: string; // https://sms.example.org/NUMBER
  document: object; // from the template
}

interface Result {
  id: string;
  status: "accepted" | "retry" | "failed";
  code?: number;
  text: string;
  retry_after?: number; // seconds
}

const gateway = process.env["GATEWAY_URL"];
if (!gateway) throw new Error("the environment variable GATEWAY_URL is not set");
const timeout = 20_000; // milliseconds for one message; less than the send_timeout of the channel

await run(async (task) => {
  const { messages } = task.json<{ messages: Message[] }>();
  const results = await Promise.all(messages.map((message) => deliver(message, task.signal)));
  return JSON.stringify({ results });
});

async function deliver(message: Message, stopped: AbortSignal): Promise<Result> {
  const { id, to, document } = message;
  try {
    const response = await fetch(gateway!, {
      method: "POST",
      // The gateway sends a message with the same key only once.
      headers: { "Content-Type": "application/json", "Idempotency-Key": id },
      body: JSON.stringify({ to: decodeURIComponent(new URL(to).pathname.slice(1)), ...document }),
      redirect: "manual",
      signal: AbortSignal.any([stopped, AbortSignal.timeout(timeout)]),
    });
    return { id, ...outcome(response), code: response.status, text: (await response.text()).slice(0, 200) };
  } catch (error) {
    // The reply is missing or incomplete: it is not known whether the message was sent.
    const { message, cause } = error as Error;
    return { id, status: "retry", text: `no reply from the gateway: ${cause instanceof Error ? cause.message : message}` };
  }
}

function outcome({ ok, status, headers }: Response): Pick<Result, "status" | "retry_after"> {
  if (ok) return { status: "accepted" };
  if (status < 500 && ![408, 425, 429].includes(status)) return { status: "failed" };
  const seconds = Number(headers.get("Retry-After"));
  return seconds > 0 ? { status: "retry", retry_after: seconds } : { status: "retry" };
}
