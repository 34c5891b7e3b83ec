/** The texts of the console, in the language of the browser or the one that was chosen. */
import de from "../texts/de.json";
import en from "../texts/en.json";

export type Key = keyof typeof en;
export const languages = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof languages;

// The type of the constant fails the build if a language lacks a text.
const texts: Record<Language, Record<Key, string>> = { en, de };
const stored = "fanfare-console-language";

const preferred = (): Language => {
  for (const tag of [localStorage.getItem(stored) ?? "", ...navigator.languages]) {
    const language = tag.split("-")[0]!;
    if (language in languages) return language as Language;
  }
  return "en";
};

let chosen = $state<Language>(preferred());

export const language = {
  get tag(): Language {
    return chosen;
  },
  choose(to: Language): void {
    localStorage.setItem(stored, to);
    chosen = to;
  },
};

/** Returns a text with its {values}. With the value n, KEY_one is the text for one. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  const all = texts[chosen];
  const one = `${key}_one` as Key;
  const text = values["n"] === 1 && one in all ? all[one] : all[key];
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? value.toLocaleString(chosen) : value;
  });
}

/** Returns the text of a name that the API uses, such as that of a state, or the name itself. */
export function term(kind: string, name: string): string {
  return texts[chosen][`${kind}.${name}` as Key] ?? name.replaceAll("_", " ");
}
