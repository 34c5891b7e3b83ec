// Sets the chosen theme before the page is painted. src/lib/theme.svelte.ts changes it.
{
  const theme = localStorage.getItem("fanfare-console-theme");
  if (theme === "light" || theme === "dark") document.documentElement.classList.add(theme);
}
