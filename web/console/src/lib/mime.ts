/** The files in the source of an email, as base64: those with a Content-ID by it, and the others in their order. */
export interface Files {
  byID: Map<string, string>;
  others: string[];
}

const headerOf = (head: string, name: string): string => new RegExp(`^${name}:[ \\t]*((?:.|\\r?\\n[ \\t])*)`, "im").exec(head)?.[1]?.replace(/\r?\n[ \t]+/g, " ") ?? "";

export function filesIn(source: string, found: Files = { byID: new Map(), others: [] }): Files {
  const end = /\r?\n\r?\n/.exec(source);
  const head = end ? source.slice(0, end.index) : source;
  const body = end ? source.slice(end.index + end[0].length) : "";
  const boundary = /boundary="?([^";]+)"?/i.exec(headerOf(head, "Content-Type"))?.[1];
  if (boundary) {
    const parts = `\n${body}`.split(`\n--${boundary}`).slice(1);
    for (const part of parts) if (!part.startsWith("--")) filesIn(part.replace(/^[ \t]*\r?\n/, ""), found);
    return found;
  }
  if (!/base64/i.test(headerOf(head, "Content-Transfer-Encoding"))) return found;
  const id = /<([^>]+)>/.exec(headerOf(head, "Content-ID"))?.[1];
  const content = body.replace(/\s+/g, "");
  if (id) found.byID.set(id, content);
  else if (/attachment/i.test(headerOf(head, "Content-Disposition"))) found.others.push(content);
  return found;
}
