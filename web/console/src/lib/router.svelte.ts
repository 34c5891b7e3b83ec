/** The address of the page. Pages have addresses below /console/; the names of objects are in the query, because they may contain dots and slashes. */
import { queryString, type Query } from "./api.ts";

const base = import.meta.env.BASE_URL;
let url = $state.raw(new URL(location.href));

export const here = {
  /** The name of the page. */
  get page(): string {
    return url.pathname.slice(base.length).replace(/\/$/, "") || "now";
  },
  get query(): URLSearchParams {
    return url.searchParams;
  },
  get(name: string): string {
    return url.searchParams.get(name) ?? "";
  },
};

/** The address of a page. It keeps the chosen service. */
export const link = (page: string, query: Query = {}): string =>
  base + (page === "now" ? "" : page) + queryString({ ...query, service: query["service"] ?? here.get("service") });

export function go(address: string, replace = false): void {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  url = new URL(location.href);
}

/** Changes parameters of the address; an empty value removes one. */
export function setQuery(changes: Query): void {
  const all: Query = { ...Object.fromEntries(url.searchParams), ...changes };
  go(url.pathname + queryString(all), true);
}

export function startRouter(): void {
  addEventListener("popstate", () => (url = new URL(location.href)));
  document.addEventListener("click", (event) => {
    const anchor = (event.target as Element | null)?.closest("a");
    if (!anchor || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || anchor.target || anchor.hasAttribute("download")) return;
    const to = new URL(anchor.href);
    if (to.origin !== location.origin || !to.pathname.startsWith(base) || to.hash) return;
    event.preventDefault();
    if (to.href !== location.href) go(to.href);
  });
}
