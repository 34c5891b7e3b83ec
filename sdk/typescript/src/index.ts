/**
 * Client of the HTTP API of Fanfare.
 *
 * schema.ts is generated from the OpenAPI document, and openapi-fetch sends the
 * requests. The other files add the key, errors, bulk requests and paging.
 */
export { connect, type Fanfare, type Options } from "./connect.js";
export { ok, pages } from "./answers.js";
export { type LineError, publishLines, putSubscriptions } from "./lines.js";
export { type Problem, ProblemError } from "./problem.js";
export type { components, operations, paths } from "./schema.js";
