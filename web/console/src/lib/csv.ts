/** Comma-separated values (RFC 4180) that spreadsheets do not take for formulas. */

export type Cell = string | number | undefined;

export function cell(value: Cell): string {
  let text = String(value ?? "");
  if (/^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = (rows: Cell[][]): string => rows.map((row) => row.map(cell).join(",") + "\r\n").join("");

/** Lets the browser save a text as a file. */
export function save(name: string, type: string, text: string): void {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(new Blob([text], { type }));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}
