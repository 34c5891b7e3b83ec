/** Requests and questions about messages to uploaded lists. */
import { ask, path, Problem } from "./api.ts";
import { dialog } from "./confirm.svelte.ts";
import { number } from "./format.ts";
import { session } from "./session.svelte.ts";
import { t } from "./texts.svelte.ts";
import type { Send } from "./types.ts";

export const sendPath = (id: string): string => path`/v1/sends/${id}`;

/** The file that was uploaded last, so that it can be uploaded again without its invalid rows. */
let last: { id: string; file: File; address: string } | undefined;

export const lastFile = (id: string): File | undefined => (last?.id === id ? last.file : undefined);

/** Uploads the list of a send. */
export async function upload(id: string, file: File, address: string): Promise<Send> {
  last = { id, file, address };
  return (await ask<{ send: Send }>(`${sendPath(id)}/recipients`, { method: "PUT", query: { address }, service: session.service, file })).send;
}

/** Uploads the file of the last upload again, and skips its invalid rows. */
export async function uploadWithout(id: string): Promise<Send> {
  if (last?.id !== id) throw new Problem(0, "", t("sends.file.gone"));
  await ask(sendPath(id), { method: "PATCH", body: { skip_invalid: true }, service: session.service });
  return upload(id, last.file, last.address);
}

export const act = (id: string, action: string, body?: unknown): Promise<Send> => ask<Send>(`${sendPath(id)}/${action}`, { method: "POST", ...(body !== undefined && { body }), service: session.service });

export const nameOf = (s: Send): string => s.name || s.id;

type Verb = "pause" | "resume" | "cancel";

export function confirmSend(verb: Verb, s: Send, after: () => void): void {
  const name = nameOf(s);
  dialog.confirm({
    title: t(`sends.${verb}.title`, { name }), text: t(`sends.${verb}.text`), action: t(`sends.${verb}`), isDangerous: verb === "cancel", reason: verb !== "resume", done: t(`sends.${verb}.done`, { name }),
    run: async (reason) => {
      await act(s.id, verb, { ...(reason && { reason }) });
      after();
    },
  });
}

export function confirmSendApproval(s: Send, after: () => void): void {
  const n = s.recipients?.valid ?? 0;
  dialog.confirm({
    title: t("sends.approve.title", { name: nameOf(s) }), text: t("sends.approve.text", { n, template: s.template }), action: t("action.approve"), done: t("sends.approve.done", { name: nameOf(s) }),
    run: async () => {
      await act(s.id, "approve", { digest: s.digest });
      after();
    },
  });
}

export function confirmDeleteSend(s: Send, after: () => void): void {
  dialog.confirm({
    title: t("sends.delete.title", { name: nameOf(s) }), text: t("sends.delete.text"), action: t("action.delete"), isDangerous: true, done: t("sends.delete.done", { name: nameOf(s) }),
    run: async () => {
      await ask(sendPath(s.id), { method: "DELETE", service: session.service });
      after();
    },
  });
}

/** The value of a field for a local time. */
export function localTime(at: Date): string {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Tomorrow at eight, local time. */
export function tomorrow(): Date {
  const at = new Date();
  at.setDate(at.getDate() + 1);
  at.setHours(8, 0, 0, 0);
  return at;
}

/** A duration in seconds as a text. */
export function duration(seconds: number): string {
  if (seconds < 60) return t("sends.seconds", { n: seconds });
  if (seconds < 7200) return t("sends.minutes", { n: Math.round(seconds / 60) });
  return t("sends.hours", { n: number(seconds / 3600, 1) });
}
