/**
 * Returns what a call answered. The client throws a ProblemError where the
 * server refused, so that nothing else is left.
 */
export async function ok<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  return (await call).data as T;
}

/** Calls fetch with the cursor of each page until there are no more pages. */
export async function* pages<P extends { next?: string }>(fetch: (cursor: string | undefined) => Promise<P>): AsyncGenerator<P> {
  let cursor: string | undefined;
  do {
    const page = await fetch(cursor);
    yield page;
    cursor = page.next;
  } while (cursor);
}
