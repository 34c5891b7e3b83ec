/** The texts of the element. */

/** A text for each plural category of the language (Intl.PluralRules); `other` is used where one is missing. */
export type Plural = { other: string } & Partial<Record<Intl.LDMLPluralRule, string>>;

/** The texts that readers see or hear. `{count}`, `{subject}` and `{sender}` are replaced. */
export interface Texts {
  title: string;
  unread: string;
  unreadCount: Plural;
  arrived: Plural;
  messages: string;
  message: string;
  empty: string;
  choose: string;
  loading: string;
  noSubject: string;
  readAll: string;
  markUnread: string;
  remove: string;
  removed: string;
  undo: string;
  back: string;
  more: string;
  attachments: string;
  imagesBlocked: string;
  showImages: string;
  truncated: string;
  retry: string;
  offline: string;
  expired: string;
  forbidden: string;
  failed: string;
}

const en: Texts = {
  title: "Inbox", unread: "Unread", unreadCount: { one: "{count} unread message", other: "{count} unread messages" },
  arrived: { one: "New message: {subject}", other: "{count} new messages" }, messages: "Messages", message: "Message: {subject}",
  empty: "You have no messages.", choose: "Select a message to read it.", loading: "Loading messages…", noSubject: "(no subject)",
  readAll: "Mark all as read", markUnread: "Mark as unread", remove: "Delete", removed: "Message deleted.", undo: "Undo", back: "Back", more: "Load more", attachments: "Attachments",
  imagesBlocked: "Images from other sites are blocked, because they can tell the sender that you read the message.", showImages: "Show images",
  truncated: "This message is too long to be shown in full.", retry: "Try again",
  offline: "The inbox cannot be reached. Check your connection, and try again.", expired: "Your session has expired. Try again, or sign in again.",
  forbidden: "This page is not allowed to open the inbox. Please tell its operator.", failed: "Something went wrong on the server. Try again in a moment.",
};

/** Returns the texts of a language, or those of English, with the language that they are in. */
export function textsFor(tag: string, languages: Readonly<Record<string, Texts>>): { texts: Texts; language: string } {
  const primary = tag.toLowerCase().split("-")[0]!;
  const found = primary === "en" ? en : languages[primary];
  return found ? { texts: found, language: tag } : { texts: en, language: "en" };
}

/** Puts values into a text. */
export function fill(text: string, values: Record<string, string>): string {
  return text.replace(/\{(\w+)\}/g, (all, name: string) => values[name] ?? all);
}

/** Chooses the text for a count, and puts values into it. */
export function plural(text: Plural, count: number, language: string, values: Record<string, string> = {}): string {
  const rule = new Intl.PluralRules(language).select(count);
  return fill(text[rule] ?? text.other, { count: new Intl.NumberFormat(language).format(count), ...values });
}
