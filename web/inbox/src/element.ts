/** The custom element: a list of messages and the message that is open. All that senders wrote is set as text. */
import { frameDocument, sanitize, textNodes } from "./html.ts";
import { type Attachment, type Content, Inbox, type Message } from "./inbox.ts";
import { type FailureKind, InboxError, type TokenProvider } from "./jmap.ts";
import { style } from "./style.ts";
import { fill, plural, type Texts, textsFor } from "./texts.ts";

const icons = {
  back: "M15 5l-7 7 7 7", remove: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5", unread: "M4 6h16v12H4zM4 7l8 6 8-6",
};

const failureTexts: Record<FailureKind, "offline" | "expired" | "forbidden" | "failed"> = {
  network: "offline", token: "expired", forbidden: "forbidden", busy: "failed", server: "failed",
};

// Longer subjects and previews are cut, so that a row stays a row.
const maxRowText = 200;
const maxSubject = 1000;
const toastMillis = 10_000;
const dayMillis = 86_400_000;

type Properties = Record<string, string | boolean | ((event: any) => void)>;

/** Makes an element. Properties that are functions are listeners, and `true` and `false` are attributes that are there or not. */
function h<K extends keyof HTMLElementTagNameMap>(name: K, properties: Properties = {}, ...children: (Node | string)[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

function icon(path: string): SVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const drawn = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
  drawn.setAttribute("d", path);
  return svg;
}

/** The language of a node, from the nearest element that has one, also outside of shadow roots. */
function languageOf(node: Node | null): string {
  for (; node; node = node.parentNode ?? (node instanceof ShadowRoot ? node.host : null)) {
    const tag = node instanceof Element && node.getAttribute("lang");
    if (!tag) continue;
    try {
      return Intl.getCanonicalLocales(tag)[0]!;
    } catch {
      return "en";
    }
  }
  return "en";
}

interface Row {
  item: HTMLLIElement;
  row: HTMLButtonElement;
  remove: HTMLButtonElement;
  unread: HTMLElement;
  sender: HTMLElement;
  subject: HTMLElement;
  preview: HTMLElement;
  time: HTMLTimeElement;
}

/** `<fanfare-inbox server="https://fanfare.example.org">`. It starts as soon as it is on the page and has a tokenProvider. */
export class FanfareInbox extends HTMLElement {
  static readonly observedAttributes = ["server", "page-size", "lang"];

  static #languages: Readonly<Record<string, Texts>> = {};
  static readonly #onPage = new Set<FanfareInbox>();

  /** Texts of other languages than English by primary language subtag. */
  static get languages(): Readonly<Record<string, Texts>> {
    return FanfareInbox.#languages;
  }
  static set languages(value: Readonly<Record<string, Texts>>) {
    FanfareInbox.#languages = value;
    for (const element of FanfareInbox.#onPage) element.attributeChangedCallback("lang");
  }

  #inbox: Inbox | undefined;
  #provider: TokenProvider | null = null;
  #ownTexts: Partial<Texts> = {};
  #texts!: Texts;
  #language = "en";
  #rows = new Map<string, Row>();
  #active: string | undefined; // the row that Tab reaches
  #openId: string | undefined;
  #lastUnread = -1;
  #loaded = false;
  #minutes: ReturnType<typeof setInterval> | undefined;
  #toastTimer: ReturnType<typeof setTimeout> | undefined;
  #undo: (() => Promise<void>) | undefined;
  #pageLanguage: MutationObserver | undefined;

  readonly #title = h("h2", { part: "title" });
  readonly #badge = h("span", { part: "badge", class: "badge", "aria-hidden": "true" });
  readonly #badgeText = h("span", { class: "hidden" });
  readonly #readAll = h("button", { part: "button read-all", class: "button", type: "button", click: () => this.#try(() => this.#inbox!.setAllRead()) });
  readonly #notice = h("p");
  readonly #retry = h("button", { part: "button retry", class: "button", type: "button", click: () => this.#again() });
  readonly #noticeBar = h("div", { part: "notice", class: "notice", hidden: true }, this.#notice, this.#retry);
  readonly #list = h("ul", { part: "list", role: "list", keydown: (event: KeyboardEvent) => this.#key(event) });
  readonly #emptyText = h("span");
  readonly #empty = h("div", { part: "empty", class: "note", hidden: true }, h("slot", { name: "empty" }, this.#emptyText));
  readonly #loading = h("p", { part: "loading", class: "note" });
  readonly #more = h("button", { part: "button more", class: "button more", type: "button", hidden: true, click: () => void this.#loadMore() });
  readonly #pane = h("div", { part: "messages", class: "pane" }, this.#list, this.#empty, this.#loading, this.#more);
  readonly #article = h("article", { part: "message", "aria-labelledby": "subject", keydown: (event: KeyboardEvent) => event.key === "Escape" && this.#close(event) });
  readonly #choose = h("p", { part: "placeholder", class: "note choose" });
  readonly #toastText = h("span");
  readonly #undoButton = h("button", { part: "button undo", class: "button", type: "button", click: () => this.#takeBack() });
  readonly #toast = h("div", { part: "toast", class: "toast", hidden: true }, h("div", {}, this.#toastText, this.#undoButton));
  readonly #status = h("div", { class: "hidden", role: "status" });
  readonly #alert = h("div", { class: "hidden", role: "alert" });
  readonly #panel = h("section", { part: "panel", class: "panel" },
    h("header", { part: "header" }, h("div", { class: "title" }, h("slot", { name: "header" }, this.#title), this.#badge, this.#badgeText), h("slot", { name: "actions" }), this.#readAll),
    this.#noticeBar, h("div", { class: "body" }, this.#pane, this.#choose, this.#article), this.#toast, this.#status, this.#alert);

  constructor() {
    super();
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    const root = this.attachShadow({ mode: "open", delegatesFocus: true });
    root.adoptedStyleSheets = [sheet];
    root.append(this.#panel);
    this.#speak();
  }

  /** URL of the server, without /jmap. */
  get server(): string {
    return this.getAttribute("server") ?? "";
  }
  set server(value: string) {
    this.setAttribute("server", value);
  }

  /** Returns a token for the page, asked from its backend. */
  get tokenProvider(): TokenProvider | null {
    return this.#provider;
  }
  set tokenProvider(value: TokenProvider | null) {
    this.#provider = value;
    this.#restart();
  }

  /** Texts in place of those of the language. Those that are not set stay. */
  get texts(): Partial<Texts> {
    return this.#ownTexts;
  }
  set texts(value: Partial<Texts>) {
    this.#ownTexts = value;
    this.#speak();
    this.#render();
  }

  /** The inbox behind the element; undefined until it has a server and a token provider. */
  get inbox(): Inbox | undefined {
    return this.#inbox;
  }

  /** Number of unread messages. */
  get unread(): number {
    return this.#inbox?.unread ?? 0;
  }

  connectedCallback(): void {
    // Properties that a page set before the element was defined hide the accessors.
    for (const name of ["server", "tokenProvider", "texts"] as const) {
      if (!Object.hasOwn(this, name)) continue;
      const value = this[name];
      delete (this as Record<string, unknown>)[name];
      (this as Record<string, unknown>)[name] = value;
    }
    FanfareInbox.#onPage.add(this);
    this.#pageLanguage = new MutationObserver(() => this.attributeChangedCallback("lang"));
    this.#pageLanguage.observe(document.documentElement, { attributeFilter: ["lang"] });
    this.#minutes = setInterval(() => this.#render(), 60_000);
    this.attributeChangedCallback("lang");
    this.#restart();
  }

  disconnectedCallback(): void {
    FanfareInbox.#onPage.delete(this);
    this.#inbox?.stop();
    this.#inbox = undefined;
    this.#pageLanguage?.disconnect();
    clearInterval(this.#minutes);
  }

  attributeChangedCallback(name: string): void {
    if (!this.isConnected) return;
    if (name === "lang") {
      this.#speak();
      this.#render();
    } else this.#restart();
  }

  #restart(): void {
    this.#inbox?.stop();
    this.#inbox = undefined;
    this.#loaded = false;
    this.#close();
    if (!this.isConnected || !this.server || !this.#provider) return this.#render();
    const inbox = new Inbox({ server: new URL(this.server, document.baseURI).href, token: this.#provider, pageSize: Number(this.getAttribute("page-size")) || 25 });
    this.#inbox = inbox;
    const current = (step: (event: any) => void) => (event: Event) => this.#inbox === inbox && step(event);
    inbox.addEventListener("change", current(() => {
      this.#loaded = true;
      if (inbox.connection === "live") this.#noticeBar.hidden = true;
      this.#render();
    }));
    inbox.addEventListener("arrive", current((event: CustomEvent<Message[]>) => {
      const subject = this.#subject(event.detail[0]!, maxRowText);
      this.#status.textContent = plural(this.#texts.arrived, event.detail.length, this.#language, { subject });
    }));
    inbox.addEventListener("failure", current((event: CustomEvent<InboxError>) => this.#fail(event.detail)));
    this.#render();
    this.#try(() => inbox.start());
  }

  #again(): void {
    const inbox = this.#inbox;
    if (!inbox) return;
    this.#try(async () => {
      await inbox.start();
      await inbox.refresh();
      this.#noticeBar.hidden = true;
      this.#alert.textContent = "";
    });
  }

  /** Runs a step, and shows its failure. */
  #try(step: () => Promise<unknown>): void {
    const inbox = this.#inbox;
    void step().catch((error: unknown) => this.#inbox === inbox && this.#fail(error));
  }

  #fail(error: unknown): void {
    const failure = error instanceof InboxError ? error : new InboxError("server", String(error), "see the cause", 0, error);
    this.#notice.textContent = this.#texts[failureTexts[failure.kind]];
    this.#alert.textContent = this.#notice.textContent;
    this.#noticeBar.hidden = false;
    this.#loading.hidden = true;
    this.dispatchEvent(new CustomEvent("fanfare-error", { detail: failure, bubbles: true, composed: true }));
  }

  /** Takes the texts of the language, and sets those that do not depend on messages. */
  #speak(): void {
    const { texts, language } = textsFor(languageOf(this), FanfareInbox.languages);
    const t = { ...texts, ...this.#ownTexts };
    this.#texts = t;
    this.#language = language;
    this.#panel.lang = language;
    this.#panel.setAttribute("aria-label", t.title);
    this.#title.textContent = t.title;
    this.#readAll.textContent = t.readAll;
    this.#retry.textContent = t.retry;
    this.#list.setAttribute("aria-label", t.messages);
    this.#emptyText.textContent = t.empty;
    this.#loading.textContent = t.loading;
    this.#more.textContent = t.more;
    this.#choose.textContent = t.choose;
    this.#undoButton.textContent = t.undo;
  }

  #subject(message: Message, length: number): string {
    return message.subject.slice(0, length) || this.#texts.noSubject;
  }

  #sender(message: Message): string {
    const from = message.from[0];
    return (from?.name || from?.email || "").slice(0, maxRowText);
  }

  #render(): void {
    const inbox = this.#inbox;
    const focused = this.shadowRoot!.activeElement;
    const messages = inbox?.messages ?? [];
    const unread = inbox?.unread ?? 0;
    const counted = plural(this.#texts.unreadCount, unread, this.#language);
    this.#badge.textContent = unread > 999 ? "999+" : new Intl.NumberFormat(this.#language).format(unread);
    this.#badge.title = counted;
    this.#badgeText.textContent = counted;
    this.#badge.hidden = this.#badgeText.hidden = unread === 0;
    this.#readAll.hidden = unread === 0;
    if (this.#loaded) this.#loading.hidden = true;
    else if (this.#noticeBar.hidden) this.#loading.hidden = !inbox;
    this.#empty.hidden = !this.#loaded || messages.length > 0;
    this.#list.hidden = messages.length === 0;
    this.#more.hidden = !inbox?.hasMore || messages.length === 0;
    if (!messages.some((message) => message.id === this.#active)) this.#active = messages[0]?.id;

    for (const [id, row] of this.#rows) {
      if (messages.some((message) => message.id === id)) continue;
      row.item.remove();
      this.#rows.delete(id);
    }
    messages.forEach((message, n) => {
      let row = this.#rows.get(message.id);
      if (!row) this.#rows.set(message.id, (row = this.#newRow(message.id)));
      this.#fillRow(row, message);
      if (this.#list.children[n] !== row.item) this.#list.insertBefore(row.item, this.#list.children[n] ?? null);
    });
    // A row that had to move has lost its focus.
    if (focused instanceof HTMLElement && focused.isConnected && this.shadowRoot!.activeElement !== focused) focused.focus();
    // A button that is hidden loses its focus.
    if (focused === this.#readAll && unread === 0) this.#focusRow(this.#active);

    if (inbox && this.#loaded && unread !== this.#lastUnread) {
      this.#lastUnread = unread;
      this.dispatchEvent(new CustomEvent("fanfare-unread", { detail: { unread, total: inbox.total }, bubbles: true, composed: true }));
    }
  }

  #newRow(id: string): Row {
    const unread = h("span", { class: "hidden" });
    const sender = h("span", { part: "sender", class: "sender", dir: "auto" });
    const subject = h("span", { part: "subject", class: "subject", dir: "auto" });
    const preview = h("span", { part: "preview", class: "preview", dir: "auto" });
    const time = h("time", { part: "time", class: "time" });
    const row = h("button", { part: "row", class: "row", type: "button", click: () => void this.open(id), focus: () => this.#activate(id) },
      h("span", { part: "dot", class: "dot", "aria-hidden": "true" }), unread, " ", sender, " ", subject, " ", preview, " ", time);
    const remove = h("button", { part: "delete", class: "icon delete", type: "button", click: () => this.#remove(id), focus: () => this.#activate(id) }, icon(icons.remove));
    return { item: h("li", { class: "item" }, row, remove), row, remove, unread, sender, subject, preview, time };
  }

  #fillRow(row: Row, message: Message): void {
    const opened = message.id === this.#openId;
    row.item.className = `item${message.unread ? " unread" : ""}${opened ? " open" : ""}`;
    row.item.setAttribute("part", `item${message.unread ? " unread" : ""}${opened ? " selected" : ""}`);
    if (opened) row.row.setAttribute("aria-current", "true");
    else row.row.removeAttribute("aria-current");
    row.row.tabIndex = row.remove.tabIndex = message.id === this.#active ? 0 : -1;
    const subject = this.#subject(message, maxRowText);
    const remove = `${this.#texts.remove}: ${subject}`;
    row.unread.textContent = message.unread ? this.#texts.unread : "";
    row.sender.textContent = this.#sender(message);
    row.subject.textContent = subject;
    row.preview.textContent = message.preview.slice(0, maxRowText);
    row.time.textContent = this.#since(message.receivedAt);
    row.time.dateTime = message.receivedAt.toISOString();
    row.time.title = this.#date(message.receivedAt);
    row.remove.setAttribute("aria-label", remove);
    row.remove.title = this.#texts.remove;
  }

  #date(date: Date): string {
    return new Intl.DateTimeFormat(this.#language, { dateStyle: "full", timeStyle: "short" }).format(date);
  }

  /** How long ago it was: in minutes and hours, from yesterday on in days, and after a week as a date. */
  #since(date: Date): string {
    const seconds = Math.max(0, (Date.now() - date.getTime()) / 1000);
    const format = new Intl.RelativeTimeFormat(this.#language, { numeric: "auto", style: "short" });
    if (seconds < 60) return format.format(0, "second");
    if (seconds < 3600) return format.format(-Math.floor(seconds / 60), "minute");
    const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / dayMillis);
    if (days === 0) return format.format(-Math.floor(seconds / 3600), "hour");
    if (days < 7) return format.format(-days, "day");
    const year = date.getFullYear() === new Date().getFullYear() ? {} : ({ year: "numeric" } as const);
    return new Intl.DateTimeFormat(this.#language, { day: "numeric", month: "short", ...year }).format(date);
  }

  #activate(id: string): void {
    if (this.#active === id) return;
    this.#active = id;
    for (const [other, row] of this.#rows) row.row.tabIndex = row.remove.tabIndex = other === id ? 0 : -1;
  }

  #focusRow(id: string | undefined): boolean {
    const row = id === undefined ? undefined : this.#rows.get(id);
    row?.row.focus();
    return row !== undefined;
  }

  /** The keys of a list with one tab stop (ARIA Authoring Practices, roving tabindex). */
  #key(event: KeyboardEvent): void {
    const ids = (this.#inbox?.messages ?? []).map((message) => message.id);
    const at = ids.indexOf(this.#active ?? "");
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: ids.length - 1 }[event.key];
    if (event.key === "Delete") this.#remove(ids[at]!);
    else if (to === undefined) return;
    else this.#focusRow(ids[Math.max(0, Math.min(ids.length - 1, to))]);
    event.preventDefault();
  }

  async #loadMore(): Promise<void> {
    const count = this.#inbox!.messages.length;
    this.#more.disabled = true;
    try {
      await this.#inbox!.loadMore();
      this.#focusRow(this.#inbox!.messages[count]?.id);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#more.disabled = false;
    }
  }

  #remove(id: string): void {
    const inbox = this.#inbox!;
    const ids = inbox.messages.map((message) => message.id);
    const at = ids.indexOf(id);
    const next = ids[at + 1] ?? ids[at - 1];
    const wasInside = this.shadowRoot!.activeElement !== null;
    if (this.#openId === id) this.#close();
    this.#try(async () => {
      const removed = inbox.remove(id); // the list is without it at once
      if (wasInside && !this.#focusRow(next)) this.focus();
      this.#undo = await removed;
      this.#showToast();
    });
  }

  #showToast(): void {
    this.#toastText.textContent = this.#texts.removed;
    this.#status.textContent = this.#texts.removed;
    this.#undoButton.hidden = this.#undo === undefined;
    this.#toast.hidden = false;
    clearTimeout(this.#toastTimer);
    this.#toastTimer = setTimeout(() => {
      // A button that has the focus stays.
      if (this.shadowRoot!.activeElement !== this.#undoButton) this.#toast.hidden = true;
    }, toastMillis);
  }

  #takeBack(): void {
    const undo = this.#undo;
    this.#undo = undefined;
    this.#toast.hidden = true;
    if (!this.#focusRow(this.#active)) this.focus();
    if (undo) this.#try(undo);
  }

  /** Opens a message and marks it as read, unless the page prevents it in a listener of fanfare-open. */
  async open(id: string): Promise<void> {
    const inbox = this.#inbox;
    const message = inbox?.messages.find((one) => one.id === id);
    if (!inbox || !message) return;
    this.#active = id;
    const allowed = this.dispatchEvent(new CustomEvent("fanfare-open", { detail: { id, subject: message.subject }, bubbles: true, composed: true, cancelable: true }));
    this.#try(() => inbox.setRead(id));
    if (!allowed) return;
    this.#openId = id;
    this.#panel.classList.add("reading");
    const heading = h("h3", { id: "subject", part: "heading", tabindex: "-1", dir: "auto" }, this.#subject(message, maxSubject));
    const from = message.from[0];
    const content = h("p", { class: "note" }, this.#texts.loading);
    this.#article.replaceChildren(
      h("div", { part: "toolbar", class: "toolbar" }, this.#tool("back", this.#texts.back, () => this.#close(undefined, true)), h("span", { class: "spacer" }),
        this.#tool("unread", this.#texts.markUnread, () => {
          this.#try(() => inbox.setRead(id, false));
          this.#close(undefined, true);
        }),
        this.#tool("remove", this.#texts.remove, () => this.#remove(id))),
      h("div", { part: "head", class: "head" }, heading, h("p", { part: "meta", class: "meta" },
        h("bdi", {}, this.#sender(message)), ...(from?.name ? [h("bdi", {}, `<${from.email.slice(0, maxRowText)}>`)] : []),
        h("time", { datetime: message.receivedAt.toISOString() }, this.#date(message.receivedAt)))),
      content);
    this.#article.scrollTop = 0;
    this.#render();
    heading.focus({ preventScroll: true });
    try {
      const loaded = await inbox.content(id);
      const images = await this.#inlineImages(inbox, loaded);
      if (this.#openId === id && content.isConnected) content.replaceWith(...this.#contents(message, loaded, images));
    } catch (error) {
      if (this.#openId !== id || !content.isConnected) return;
      this.#fail(error);
      content.textContent = this.#notice.textContent;
    }
  }

  #tool(name: keyof typeof icons, label: string, click: () => void): HTMLButtonElement {
    return h("button", { part: `tool ${name}`, class: `icon ${name}`, type: "button", "aria-label": label, title: label, click }, icon(icons[name]));
  }

  #close(event?: KeyboardEvent, focus = event !== undefined): void {
    const id = this.#openId;
    if (id === undefined) return;
    event?.stopPropagation();
    this.#openId = undefined;
    this.#panel.classList.remove("reading");
    this.#article.replaceChildren();
    this.#render();
    if (focus && !this.#focusRow(id)) this.#focusRow(this.#active);
  }

  /** Loads the images that the HTML shows from its own message, as data URLs: the frame may load nothing else. */
  async #inlineImages(inbox: Inbox, content: Content): Promise<Map<string, string>> {
    const images = new Map<string, string>();
    for (const image of content.html === undefined ? [] : content.images) {
      const blob = await inbox.download(image);
      const url = await new Promise<string>((resolve, reject) => {
        const reader = new FileReader();
        reader.onload = () => resolve(reader.result as string);
        reader.onerror = () => reject(reader.error);
        reader.readAsDataURL(blob);
      });
      images.set(image.cid!, url);
    }
    return images;
  }

  #contents(message: Message, content: Content, images: Map<string, string>): Node[] {
    const nodes: Node[] = [];
    if (content.html === undefined) nodes.push(h("div", { part: "text", class: "text", dir: "auto" }, ...textNodes(content.text)));
    else nodes.push(...this.#frame(message, content.html, images));
    if (content.truncated) nodes.unshift(h("div", { part: "bar", class: "bar" }, h("p", {}, this.#texts.truncated)));
    if (content.attachments.length) {
      nodes.push(h("div", { part: "attachments", class: "attachments" }, h("ul", { "aria-label": this.#texts.attachments },
        ...content.attachments.map((part) => h("li", {}, h("button", { part: "button attachment", class: "button", type: "button", dir: "auto", click: () => this.#save(part) }, this.#attachment(part)))))));
    }
    return nodes;
  }

  #attachment(part: Attachment): string {
    const [size, unit] = part.size < 1e6 ? [Math.ceil(part.size / 1000), "kilobyte"] : [part.size / 1e6, "megabyte"];
    return `${part.name.slice(0, maxRowText)} (${new Intl.NumberFormat(this.#language, { style: "unit", unit, maximumFractionDigits: 1 }).format(size)})`;
  }

  #frame(message: Message, html: string, images: Map<string, string>): Node[] {
    // No scripts, no origin, no forms, and no way to navigate the page. Links open in a new tab, which cannot reach this one.
    const frame = h("iframe", { part: "frame", sandbox: "allow-popups allow-popups-to-escape-sandbox", referrerpolicy: "no-referrer", tabindex: "0",
      title: fill(this.#texts.message, { subject: this.#subject(message, maxRowText) }) });
    const show = (allowRemote: boolean): boolean => {
      const safe = sanitize(html, images, allowRemote);
      frame.srcdoc = frameDocument(safe.html, allowRemote);
      return safe.hasRemote;
    };
    if (!show(false)) return [frame];
    const bar = h("div", { part: "bar images", class: "bar" }, h("p", {}, this.#texts.imagesBlocked), h("button", { part: "button show-images", class: "button", type: "button", click: () => {
      show(true);
      bar.remove();
      frame.focus();
    } }, this.#texts.showImages));
    return [bar, frame];
  }

  /** Saves a part as a file. It is never opened in the page, whose origin it would have. */
  #save(part: Attachment): void {
    const inbox = this.#inbox!;
    this.#try(async () => {
      const url = URL.createObjectURL(await inbox.download(part));
      h("a", { href: url, download: part.name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    });
  }
}
