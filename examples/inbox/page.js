import { FanfareInbox } from "/fanfare-inbox.js";
import { languages } from "/languages.js";

FanfareInbox.languages = languages;
const inbox = document.querySelector("fanfare-inbox");
inbox.addEventListener("fanfare-unread", ({ detail }) => (document.title = detail.unread ? `(${detail.unread}) My account` : "My account"));
inbox.addEventListener("fanfare-error", ({ detail }) => console.warn(detail.message, detail.hint));
inbox.tokenProvider = async () => {
  const response = await fetch("/inbox-token", { method: "POST" });
  if (!response.ok) throw new Error(`no token: ${response.status}`);
  return response.json();
};
