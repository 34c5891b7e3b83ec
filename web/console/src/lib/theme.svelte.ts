/** The theme: that of the system, or the one that was chosen. public/theme.js sets it before the page is painted. */
export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const stored = "fanfare-console-theme";
let chosen = $state<Theme>(themes.find((theme) => theme === localStorage.getItem(stored)) ?? "system");

export const theme = {
  get name(): Theme {
    return chosen;
  },
  choose(to: Theme): void {
    chosen = to;
    localStorage.setItem(stored, to);
    document.documentElement.classList.remove("light", "dark");
    if (to !== "system") document.documentElement.classList.add(to);
  },
};
