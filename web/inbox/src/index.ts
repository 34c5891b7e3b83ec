/** Defines the custom element `<fanfare-inbox>`. */
import { FanfareInbox } from "./element.ts";

if (!customElements.get("fanfare-inbox")) customElements.define("fanfare-inbox", FanfareInbox);

declare global {
  interface HTMLElementTagNameMap {
    "fanfare-inbox": FanfareInbox;
  }
  interface HTMLElementEventMap {
    "fanfare-unread": CustomEvent<{ unread: number; total: number }>;
    "fanfare-open": CustomEvent<{ id: string; subject: string }>;
  }
}

export { FanfareInbox };
export type { Plural, Texts } from "./texts.ts";
export * from "./headless.ts";
