/** The inbox without a user interface. */
export { type Address, type Attachment, type Connection, type Content, Inbox, type InboxOptions, type Message } from "./inbox.ts";
export { type FailureKind, InboxError, MethodError, type Token, type TokenProvider } from "./jmap.ts";
