import type { components } from "./schema.js";

export type Problem = components["schemas"]["Problem"];

/**
 * The server refused a request. problem is the problem document (RFC 9457): code
 * identifies the kind of problem, pointer, line and column give its position,
 * hint the remedy, and errors further problems.
 */
export class ProblemError extends Error {
  override readonly name = "ProblemError";

  constructor(readonly problem: Problem) {
    const where = problem.pointer ? `${problem.pointer}: ` : "";
    const whatToDo = problem.hint ? ` (${problem.hint})` : "";
    super(`${problem.status} ${problem.code}: ${where}${problem.detail}${whatToDo}`);
  }

  get code(): Problem["code"] {
    return this.problem.code;
  }
}

export async function problemOf(response: Response): Promise<ProblemError> {
  return problemIn(await response.text(), response.status, response.statusText);
}

/** Reads the problem in the text of an answer. */
export function problemIn(text: string, status: number, statusText = ""): ProblemError {
  try {
    const problem = JSON.parse(text) as Problem;
    if (typeof problem.code === "string") return new ProblemError(problem);
  } catch {
    // Something between us and the server answered.
  }
  const title = statusText || "error";
  return new ProblemError({ type: "about:blank", title, status, code: "unavailable", detail: text.slice(0, 200) || title });
}

/** Returns a problem that this library has found before it asked the server. */
export function problem(status: number, code: string, detail: string, hint: string): ProblemError {
  return new ProblemError({ type: `/errors#${code}`, title: "error", status, code, detail, hint });
}
