import type { components } from "./schema.js";

export type Problem = components["schemas"]["Problem"];

/**
 * The server refused a request, and says why (RFC 9457): problem.code tells
 * problems apart, pointer, line and column say where, hint what to do, errors
 * what else is wrong.
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
  const text = await response.text();
  try {
    const problem = JSON.parse(text) as Problem;
    if (typeof problem.code === "string") return new ProblemError(problem);
  } catch {
    // Something between us and the server answered.
  }
  const title = response.statusText || "error";
  return new ProblemError({ type: "about:blank", title, status: response.status, code: "unavailable", detail: text.slice(0, 200) || title });
}
