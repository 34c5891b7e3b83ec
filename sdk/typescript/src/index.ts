/**
 * Client of the HTTP API of Fanfare.
 *
 * schema.ts is generated from the OpenAPI document; openapi-fetch sends what it
 * describes. Here stand the key, errors, bulk lines and paging.
 */
export { connect, type Fanfare, type Options } from "./connect.js";
export { ok, pages } from "./answers.js";
export { type LineError, publishLines, putSubscriptions } from "./lines.js";
export { type Problem, ProblemError } from "./problem.js";
export type { components, operations, paths } from "./schema.js";
