/** The event stream of a JMAP server, read with fetch: EventSource cannot send a header, and a token must not be part of a URL. */

export interface StreamEvent {
  type: string;
  data: string;
}

/**
 * Yields the events of a stream of text/event-stream (HTML, section 9.2.6) until it ends. A line can end with CR LF, LF or CR. seen is
 * called for each part that arrives, also if it has no event.
 */
export async function* events(body: ReadableStream<Uint8Array>, seen: () => void = () => {}): AsyncGenerator<StreamEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let type = "";
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      seen();
      rest += decoder.decode(value, { stream: true });
      // A CR at the end can be the first half of CR LF: it waits for what follows.
      const held = rest.endsWith("\r") ? "\r" : "";
      const lines = rest.slice(0, rest.length - held.length).split(/\r\n|\r|\n/);
      rest = lines.pop()! + held;
      for (const line of lines) {
        if (line === "") {
          if (data.length) yield { type: type || "message", data: data.join("\n") };
          type = "";
          data = [];
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "event") type = text;
        if (field === "data") data.push(text);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
