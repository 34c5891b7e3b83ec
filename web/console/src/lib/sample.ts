/** Sample data that fit a JSON Schema of a topic, as far as simple schemas go. The server checks them. */
interface Schema {
  type?: string | string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  format?: string;
  minimum?: number;
}

const mostDeep = 8;

export function sampleOf(schema: unknown, depth = 0): unknown {
  const s = (schema ?? {}) as Schema;
  if (depth > mostDeep) return null;
  if (s.const !== undefined) return s.const;
  if (s.default !== undefined) return s.default;
  if (s.examples?.length) return s.examples[0];
  if (s.enum?.length) return s.enum[0];
  const type = Array.isArray(s.type) ? s.type[0] : (s.type ?? (s.properties ? "object" : ""));
  switch (type) {
    case "object": return Object.fromEntries(Object.entries(s.properties ?? {}).map(([name, of]) => [name, sampleOf(of, depth + 1)]));
    case "array": return s.items ? [sampleOf(s.items, depth + 1)] : [];
    case "number": case "integer": return s.minimum ?? 1;
    case "boolean": return true;
    case "null": return null;
    case "string": return s.format === "date-time" ? "2026-01-01T12:00:00Z" : s.format === "date" ? "2026-01-01" : "text";
    default: return {};
  }
}
