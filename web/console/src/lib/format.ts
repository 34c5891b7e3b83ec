/** Numbers and times in the language of the page. */
import { language } from "./texts.svelte.ts";

export const number = (n: number, digits = 0): string => n.toLocaleString(language.tag, { maximumFractionDigits: digits });

export const rate = (perSecond: number): string => number(perSecond, perSecond < 10 ? 1 : 0);

/** Reports whether a time is set: Go's zero time means that it is not. */
export const isSet = (at: string | undefined): at is string => !!at && !at.startsWith("0001-");

const sameDay = (a: Date, b: Date): boolean => a.toDateString() === b.toDateString();

/** A time as short as possible: without the date if it is today. */
export function time(at: string | Date): string {
  const when = new Date(at), now = new Date();
  if (sameDay(when, now)) return when.toLocaleTimeString(language.tag, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const year = when.getFullYear() === now.getFullYear() ? {} : ({ year: "numeric" } as const);
  return when.toLocaleString(language.tag, { ...year, month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

export const fullTime = (at: string | Date): string => new Date(at).toLocaleString(language.tag, { dateStyle: "full", timeStyle: "long" });

export const minute = (at: string | Date): string => new Date(at).toLocaleTimeString(language.tag, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** The time between two times, such as 350 ms, 2.1 s or 4 min. */
export function between(from: string, to: string): string {
  const millis = new Date(to).getTime() - new Date(from).getTime();
  if (millis < 1000) return `${number(millis)} ms`;
  if (millis < 60_000) return `${number(millis / 1000, 1)} s`;
  if (millis < 3_600_000) return `${number(millis / 60_000, 1)} min`;
  return `${number(millis / 3_600_000, 1)} h`;
}

export function bytes(n: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(n, 1)) / 3));
  return `${number(n / 1000 ** power, power ? 1 : 0)}\u00a0${units[power]}`;
}

export const json = (value: unknown): string => JSON.stringify(value, null, 2);
