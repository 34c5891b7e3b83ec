/** Tasks act on all objects that match the filters of a list. */
import { ask } from "./api.ts";
import { dialog } from "./confirm.svelte.ts";
import { go, link } from "./router.svelte.ts";
import { session } from "./session.svelte.ts";
import { t, term } from "./texts.svelte.ts";
import type { Scope, Task, TaskAction } from "./types.ts";

interface Kind {
  scopes: Scope[]; // one of them is enough; none: the scope admin
  isDangerous: boolean;
  filters: string[]; // of the list, which the task has too
  without?: Record<string, string>; // values of filters with which there is nothing to do
}

export const kinds: Record<TaskAction, Kind> = {
  "retry-parked": { scopes: [], isDangerous: false, filters: [] },
  "drop-parked": { scopes: [], isDangerous: true, filters: [] },
  "approve-broadcasts": { scopes: ["approve"], isDangerous: false, filters: ["topic"] },
  "cancel-broadcasts": { scopes: [], isDangerous: true, filters: ["topic"] },
  "remove-suppressions": { scopes: ["subscribe"], isDangerous: true, filters: ["reason"], without: { reason: "erased" } },
  "end-subscriptions": { scopes: ["subscribe"], isDangerous: true, filters: ["topic", "channel", "subscriber", "state"], without: { state: "ended" } },
};

/** What a list shows: its filters with their values as people read them, and the number of its rows. */
export interface Matches {
  filter: Record<string, string>;
  shown: string[];
  n: number;
  isMore: boolean; // there are more rows than n
}

/** Reports whether the key may do it, and there is something to do. */
export function mayAct(action: TaskAction, { filter, n }: Matches): boolean {
  const { scopes, filters, without = {} } = kinds[action];
  return n > 0 && session.can(...scopes) && Object.entries(filter).every(([name, value]) => filters.includes(name) && without[name] !== value);
}

const countOf = ({ n, isMore }: Matches): string => t(isMore ? "tasks.more" : "tasks.exactly", { n });

export const labelOf = (action: TaskAction, matches: Matches): string => t(`tasks.all.${action}`, { count: countOf(matches) });

/** Asks whether to start a task, and then shows it. */
export function confirmTask(action: TaskAction, matches: Matches): void {
  const filter = matches.shown.length ? t("tasks.filter", { filter: matches.shown.join(", ") }) : t("tasks.unfiltered");
  dialog.confirm({
    title: t(`tasks.ask.${action}`), text: `${filter} ${t("tasks.matches", { count: countOf(matches) })} ${t(`tasks.text.${action}`)}`, action: t(`tasks.do.${action}`),
    isDangerous: kinds[action].isDangerous, reason: true, done: t("tasks.started"),
    run: async (reason) => {
      const task = await ask<Task>("/v1/tasks", { method: "POST", body: { action, filter: matches.filter, ...(reason && { reason }) }, service: session.service });
      go(link("task", { id: task.id }));
    },
  });
}

export function confirmCancelTask(task: Task, after: () => void): void {
  dialog.confirm({
    title: t("tasks.cancel.title"), text: t("tasks.cancel.text", { n: task.done }), action: t("tasks.cancel"), isDangerous: true, done: t("tasks.cancelled"),
    run: async () => {
      await ask(`/v1/tasks/${encodeURIComponent(task.id)}/cancel`, { method: "POST", service: session.service });
      after();
    },
  });
}

/** The filter of a task, as people read it. */
export const filterOf = ({ filter: f }: Task): string =>
  [
    f.topic && `${t("col.topic")}: ${f.topic}`, f.channel && `${t("col.channel")}: ${f.channel}`, f.subscriber && `${t("subscriptions.subscriber")}: ${f.subscriber}`,
    f.state && `${t("col.state")}: ${term("state", f.state)}`, f.reason && `${t("col.reason")}: ${term("suppression", f.reason)}`, f.all_services && t("service.all"),
  ].filter(Boolean).join(", ") || t("list.any");
