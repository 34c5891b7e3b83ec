/** Sends what a preview shows, as `fanfare preview --send-to` does: as data for a template that repeats it, so that it is not taken for a template again. */
import { ask } from "./api.ts";
import { filesIn } from "./mime.ts";
import type { Preview } from "./types.ts";

export async function sendPreview(shown: Preview, to: string, channel: string, service: string): Promise<{ id: string; event: string; state?: string }> {
  let { html = "" } = shown;
  const files = filesIn(shown.raw);
  const attachments = (shown.attachments ?? []).map(({ name, type, cid, sha256 }) => {
    if (!cid) return { name, type, content: files.others.shift() ?? "" };
    const id = `${sha256.slice(0, 32)}@fanfare`;
    html = html.replaceAll(`cid:${id}`, `cid:${cid}`);
    return { name, type, cid, content: files.byID.get(id) ?? "" };
  });
  const content = {
    subject: "{{ event.subject }}",
    ...(shown.text && { text: "{{ event.text }}" }),
    ...(html && { html: html.includes("cid:") ? `{% raw %}${html}{% endraw %}` : "{{ event.html | raw }}" }), // images are named by a template, and by no value
  };
  return ask("/v1/messages", { method: "POST", service, body: { channel, to, content, data: { subject: shown.subject, text: shown.text ?? "", html }, attachments, reference: "preview" } });
}
