/** The pages of the navigation: those that the key may see, and whose requests the server answers. */
import { ask, type Problem } from "./api.ts";
import { pages, type Page } from "./pages.ts";
import { session } from "./session.svelte.ts";

let answered = $state.raw<string[]>([]);

export const offered = (): Page[] => pages.filter(({ key, scopes, route }) => key && session.can(...scopes) && (!route || answered.includes(route)));

/** Asks the server which requests it answers. A request that lacks a service is answered too. */
export function findOffered(): void {
  answered = [];
  for (const { route, member, scopes } of pages) {
    if (!route || !session.can(...scopes)) continue;
    const add = (): void => void (answered = [...answered, route]);
    const isUseful = (body: Record<string, unknown>): boolean => !member || body[member] === true;
    ask<Record<string, unknown>>(route, { service: session.service }).then((body) => isUseful(body) && add(), (problem: Problem) => [400, 422].includes(problem.status) && add());
  }
}
