/** The inbox of a subscriber: its messages, kept up to date by the event stream. It needs no page. */
import { events } from "./events.ts";
import { type Call, InboxError, Jmap, MethodError, type TokenProvider } from "./jmap.ts";

export interface Address {
  name: string | null;
  email: string;
}

/** A message as the list shows it. Subject, sender and preview are text of the sender: never use them as HTML. */
export interface Message {
  readonly id: string;
  readonly subject: string;
  readonly from: readonly Address[];
  readonly receivedAt: Date;
  readonly preview: string;
  readonly unread: boolean;
  readonly hasAttachment: boolean;
}

/** A part of a message that is not part of its text. */
export interface Attachment {
  readonly blobId: string;
  readonly name: string;
  readonly type: string;
  /** In bytes. */
  readonly size: number;
  /** The id by which the HTML refers to it as `cid:`, or null. */
  readonly cid: string | null;
}

/** The contents of a message. html is as the sender wrote it: show it only in a sandbox without scripts. */
export interface Content {
  readonly text: string;
  readonly html: string | undefined;
  readonly attachments: readonly Attachment[];
  readonly images: readonly Attachment[];
  /** Whether text or html is longer than 1 MiB, and was cut. */
  readonly truncated: boolean;
}

export interface InboxOptions {
  /** URL of the server, without /jmap: `https://fanfare.example.org`. */
  server: string;
  token: TokenProvider;
  /** Messages that a page of the list has; 25 by default, at most 500. */
  pageSize?: number;
}

/** `loading` until the first page is there, `live` while the event stream is open, and `waiting` before the next attempt to open it. */
export type Connection = "loading" | "live" | "waiting";

const listed = ["id", "subject", "from", "receivedAt", "preview", "keywords", "hasAttachment", "mailboxIds"];
const maxBodyBytes = 1 << 20;
const maxPage = 500;
const changesAtOnce = 200;

// The server sends a ping after this time; the stream is dead if nothing comes for longer.
const pingSeconds = 30;
const silenceMillis = 80_000;

// Waiting times between attempts to open the stream. Each is shortened at random, so that pages do not come back at the same moment.
const firstWaitMillis = 1000;
const longestWaitMillis = 30_000;

interface ListedEmail {
  message: Message;
  inInbox: boolean;
}

/**
 * An Inbox loads the messages of the inbox, newest first, and follows its changes. Its events:
 * - `change`: something of it has changed.
 * - `arrive`: messages have arrived, a CustomEvent with the array of them.
 * - `failure`: something failed in the background, a CustomEvent with an InboxError.
 */
export class Inbox extends EventTarget {
  readonly #jmap: Jmap;
  readonly #pageSize: number;
  #messages: Message[] = [];
  #unread = 0;
  #total = 0;
  #more = false;
  #connection: Connection = "loading";
  #account = "";
  #inboxId = "";
  #trashId: string | undefined;
  #state = "";
  #tail: Promise<unknown> = Promise.resolve();
  #stopped: AbortController | undefined;
  #wake: (() => void) | undefined;
  // Changes that the server has not confirmed yet. They hide what it said before.
  readonly #pendingUnread = new Map<string, boolean>();
  readonly #pendingRemoval = new Set<string>();

  constructor(options: InboxOptions) {
    super();
    this.#jmap = new Jmap(options.server, options.token);
    this.#pageSize = Math.max(1, Math.min(maxPage, Math.floor(options.pageSize ?? 25)));
  }

  /** The messages that are loaded, newest first. The array is a new one after each change. */
  get messages(): readonly Message[] {
    return this.#messages;
  }

  /** Number of unread messages in the inbox, loaded or not. */
  get unread(): number {
    return this.#unread;
  }

  /** Number of messages in the inbox, loaded or not. */
  get total(): number {
    return this.#total;
  }

  /** Whether there are older messages than those that are loaded. */
  get hasMore(): boolean {
    return this.#more;
  }

  get connection(): Connection {
    return this.#connection;
  }

  /** Loads the first page and follows the changes until stop. It fails with an InboxError if the first page cannot be loaded; call it again then. */
  async start(): Promise<void> {
    if (this.#stopped) return;
    const stopped = new AbortController();
    this.#stopped = stopped;
    try {
      await this.#inTurn(() => this.#load());
    } catch (error) {
      if (this.#stopped === stopped) this.#stopped = undefined;
      throw error;
    }
    if (!stopped.signal.aborted) void this.#follow(stopped.signal);
  }

  /** Ends the event stream. start continues. It can be called twice. */
  stop(): void {
    this.#stopped?.abort();
    this.#stopped = undefined;
    this.#wake?.();
  }

  /** Asks for the changes at once, and opens the event stream if it waits for its next attempt. */
  async refresh(): Promise<void> {
    this.#wake?.();
    await this.#inTurn(() => (this.#state ? this.#sync() : this.#load()));
  }

  /** Loads the next page. */
  async loadMore(): Promise<void> {
    await this.#inTurn(async () => {
      const last = this.#messages.at(-1);
      if (!last) return this.#load();
      let results;
      try {
        results = await this.#jmap.call([...this.#page({ anchor: last.id, anchorOffset: 1 })]);
      } catch (error) {
        // The last message was removed meanwhile by another program.
        if (error instanceof MethodError && error.type === "anchorNotFound") return this.#load();
        throw error;
      }
      const known = new Set(this.#messages.map((message) => message.id));
      const next = this.#inOrder(results["list"].ids, results["get"].list).filter((message) => !known.has(message.id));
      this.#messages = [...this.#messages, ...next];
      this.#more = results["list"].ids.length >= this.#pageSize && this.#messages.length < this.#total;
      this.#changed();
    });
  }

  /** Marks a message as read, or as unread. The change shows at once, and is taken back if the server refuses it. */
  async setRead(id: string, read = true): Promise<void> {
    const message = this.#messages.find((one) => one.id === id);
    if (!message || message.unread === !read) return;
    this.#show(id, !read);
    this.#unread = Math.max(0, this.#unread + (read ? -1 : 1));
    this.#pendingUnread.set(id, !read);
    this.#changed();
    try {
      await this.#set({ update: { [id]: { "keywords/$seen": read ? true : null } } });
    } catch (error) {
      this.#show(id, read);
      this.#unread = Math.max(0, this.#unread + (read ? 1 : -1));
      throw error;
    } finally {
      this.#pendingUnread.delete(id);
      this.#changed();
    }
  }

  /** Marks all messages in the inbox as read, also those that are not loaded. */
  async setAllRead(): Promise<void> {
    const before = this.#messages.filter((message) => message.unread).map((message) => message.id);
    const unread = this.#unread;
    for (const id of before) {
      this.#show(id, false);
      this.#pendingUnread.set(id, false);
    }
    this.#unread = 0;
    this.#changed();
    try {
      await this.#inTurn(async () => {
        for (let length = maxPage; length === maxPage;) {
          const list: Call = ["Email/query", { accountId: this.#account, filter: { inMailbox: this.#inboxId, notKeyword: "$seen" }, limit: maxPage }, "list"];
          const { ids } = (await this.#jmap.call([list]))["list"] as { ids: string[] };
          length = ids.length;
          if (length) await this.#update({ update: Object.fromEntries(ids.map((id) => [id, { "keywords/$seen": true }])) });
        }
      });
    } catch (error) {
      for (const id of before) this.#show(id, true);
      this.#unread = unread;
      throw error;
    } finally {
      for (const id of before) this.#pendingUnread.delete(id);
      this.#changed();
    }
  }

  /**
   * Removes a message from the inbox: it moves to the trash, or is destroyed if the account has none. It returns a function that moves it
   * back; undefined if it was destroyed. The change shows at once, and is taken back if the server refuses it.
   */
  async remove(id: string): Promise<(() => Promise<void>) | undefined> {
    const message = this.#messages.find((one) => one.id === id);
    if (!message) return undefined;
    this.#pendingRemoval.add(id);
    this.#messages = this.#messages.filter((one) => one.id !== id);
    this.#count(-1, message);
    this.#changed();
    const move = (to: string) => this.#set({ update: { [id]: { mailboxIds: { [to]: true } } } });
    try {
      await (this.#trashId ? move(this.#trashId) : this.#set({ destroy: [id] }));
    } catch (error) {
      this.#pendingRemoval.delete(id);
      this.#insert(message);
      this.#count(1, message);
      this.#changed();
      throw error;
    }
    this.#pendingRemoval.delete(id);
    return this.#trashId ? () => move(this.#inboxId) : undefined;
  }

  /** Returns the contents of a message. It does not mark the message as read. */
  async content(id: string): Promise<Content> {
    const args = {
      accountId: this.#account, ids: [id], properties: ["textBody", "htmlBody", "attachments", "bodyValues"],
      bodyProperties: ["partId", "blobId", "type", "name", "size", "cid", "disposition"],
      fetchTextBodyValues: true, fetchHTMLBodyValues: true, maxBodyValueBytes: maxBodyBytes,
    };
    const email = (await this.#jmap.call([["Email/get", args, "get"]]))["get"].list[0];
    if (!email) throw new InboxError("server", `the message ${id} does not exist any more`, "refresh the list", 200);
    return contentOf(email);
  }

  /** Downloads a part of a message. Its type is never one that a browser runs. */
  async download(part: Attachment): Promise<Blob> {
    const { downloadUrl } = await this.#jmap.session();
    const type = part.type.startsWith("image/") && part.type !== "image/svg+xml" ? part.type : "application/octet-stream";
    const values: Record<string, string> = { accountId: this.#account, blobId: part.blobId, name: part.name, type };
    const response = await this.#jmap.fetch(downloadUrl.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? "")));
    return new Blob([await response.arrayBuffer()], { type });
  }

  /** Runs steps one after the other, so that an older answer never replaces a newer one. */
  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const run = this.#tail.then(step, step);
    this.#tail = run.catch(() => {});
    return run;
  }

  #changed(): void {
    this.dispatchEvent(new Event("change"));
  }

  #page(from: Record<string, unknown>): Call[] {
    const accountId = this.#account;
    return [
      ["Email/query", { accountId, filter: { inMailbox: this.#inboxId }, sort: [{ property: "receivedAt", isAscending: false }], limit: this.#pageSize, ...from }, "list"],
      ["Email/get", { accountId, "#ids": { resultOf: "list", name: "Email/query", path: "/ids" }, properties: listed }, "get"],
    ];
  }

  /** Loads the first page. The state is older than the list, so that no change falls between them. */
  async #load(): Promise<void> {
    this.#account = await this.#jmap.account();
    const accountId = this.#account;
    if (!this.#inboxId) {
      const boxes = (await this.#jmap.call([["Mailbox/get", { accountId, properties: ["id", "role"] }, "boxes"]]))["boxes"].list as { id: string; role: string | null }[];
      this.#inboxId = boxes.find((box) => box.role === "inbox")?.id ?? "";
      this.#trashId = boxes.find((box) => box.role === "trash")?.id;
    }
    const results = await this.#jmap.call([["Email/get", { accountId, ids: [], properties: ["id"] }, "state"], ...this.#page({}), this.#counts()]);
    this.#state = results["state"].state;
    this.#takeCounts(results);
    this.#messages = this.#inOrder(results["list"].ids, results["get"].list);
    this.#more = results["list"].ids.length >= this.#pageSize && this.#messages.length < this.#total;
    this.#changed();
  }

  #counts(): Call {
    return ["Mailbox/get", { accountId: this.#account, ids: [this.#inboxId], properties: ["totalEmails", "unreadEmails"] }, "counts"];
  }

  #takeCounts(results: Record<string, any>): void {
    const box = results["counts"].list[0];
    if (!box) return;
    this.#total = box.totalEmails;
    this.#unread = box.unreadEmails;
  }

  /** Asks for the changes since the state, and reloads if the server does not know them any more. */
  async #sync(): Promise<void> {
    const arrived: Message[] = [];
    const accountId = this.#account;
    for (let more = true; more;) {
      const get = (path: string, id: string): Call => ["Email/get", { accountId, "#ids": { resultOf: "changes", name: "Email/changes", path }, properties: listed }, id];
      let results;
      try {
        results = await this.#jmap.call([["Email/changes", { accountId, sinceState: this.#state, maxChanges: changesAtOnce }, "changes"], get("/created", "created"), get("/updated", "updated"), this.#counts()]);
      } catch (error) {
        if (error instanceof MethodError && error.type === "cannotCalculateChanges") return this.#load();
        throw error;
      }
      const changes = results["changes"] as { newState: string; hasMoreChanges: boolean; destroyed: string[] };
      for (const id of changes.destroyed) this.#forget(id);
      for (const email of [...results["created"].list, ...results["updated"].list]) {
        const { message, inInbox } = this.#read(email);
        const known = this.#messages.some((one) => one.id === message.id);
        this.#forget(message.id);
        if (!inInbox || this.#pendingRemoval.has(message.id)) continue;
        this.#insert(message);
        if (!known && message.unread && results["created"].list.includes(email)) arrived.push(message);
      }
      this.#takeCounts(results);
      this.#state = changes.newState;
      more = changes.hasMoreChanges;
    }
    this.#more = this.#messages.length < this.#total;
    this.#changed();
    if (arrived.length) this.dispatchEvent(new CustomEvent("arrive", { detail: arrived }));
  }

  #forget(id: string): void {
    this.#messages = this.#messages.filter((message) => message.id !== id);
  }

  /** Inserts a message at its place. Messages older than those that are loaded wait for their page. */
  #insert(message: Message): void {
    const at = this.#messages.findIndex((one) => one.receivedAt <= message.receivedAt);
    if (at < 0 && this.#more) return;
    const place = at < 0 ? this.#messages.length : at;
    this.#messages = [...this.#messages.slice(0, place), message, ...this.#messages.slice(place)];
  }

  #show(id: string, unread: boolean): void {
    this.#messages = this.#messages.map((message) => (message.id === id ? { ...message, unread } : message));
  }

  #count(by: number, message: Message): void {
    this.#total = Math.max(0, this.#total + by);
    if (message.unread) this.#unread = Math.max(0, this.#unread + by);
  }

  #inOrder(ids: string[], list: any[]): Message[] {
    const byId = new Map(list.map((email) => [email.id as string, this.#read(email).message]));
    return ids.flatMap((id) => byId.get(id) ?? []).filter((message) => !this.#pendingRemoval.has(message.id));
  }

  #read(email: any): ListedEmail {
    const message: Message = {
      id: email.id, subject: email.subject ?? "", from: email.from ?? [], receivedAt: new Date(email.receivedAt), preview: email.preview ?? "",
      unread: this.#pendingUnread.get(email.id) ?? !email.keywords["$seen"], hasAttachment: email.hasAttachment,
    };
    return { message, inInbox: email.mailboxIds[this.#inboxId] === true };
  }

  #set(change: Record<string, unknown>): Promise<void> {
    return this.#inTurn(() => this.#update(change));
  }

  /** Changes messages, and then takes the changes from the server: those of this program and of all others. */
  async #update(change: Record<string, unknown>): Promise<void> {
    const result = (await this.#jmap.call([["Email/set", { accountId: this.#account, ...change }, "set"]]))["set"];
    const refused = Object.values({ ...result.notUpdated, ...result.notDestroyed })[0] as { type: string; description?: string } | undefined;
    if (refused && refused.type !== "notFound") throw new MethodError(refused.type, refused.description ?? "");
    await this.#sync();
  }

  /** Reads the event stream, and opens it again when it ends. */
  async #follow(stopped: AbortSignal): Promise<void> {
    const online = () => this.#wake?.();
    globalThis.addEventListener?.("online", online);
    stopped.addEventListener("abort", () => globalThis.removeEventListener?.("online", online));
    let failures = 0;
    while (!stopped.aborted) {
      try {
        await this.#stream(stopped, () => (failures = 0));
        failures ||= 1; // it ended as it should: at the end of the token, or because the server stops
      } catch (error) {
        if (stopped.aborted) return;
        failures++;
        const failure = error instanceof InboxError ? error : new InboxError("network", "the event stream was interrupted", "it is opened again", 0, error);
        // A stream that breaks once is opened again before a reader could notice.
        if (failures === 2 || failure.kind === "token" || failure.kind === "forbidden") this.dispatchEvent(new CustomEvent("failure", { detail: failure }));
      }
      if (stopped.aborted) return;
      this.#connect("waiting");
      const wait = Math.min(longestWaitMillis, firstWaitMillis * 2 ** (failures - 1)) * (0.5 + Math.random() / 2);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, wait);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
  }

  async #stream(stopped: AbortSignal, works: () => void): Promise<void> {
    const { eventSourceUrl } = await this.#jmap.session();
    const values: Record<string, string> = { types: "Email,Mailbox", closeafter: "no", ping: String(pingSeconds) };
    const url = eventSourceUrl.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? "");
    const silent = new AbortController();
    const signal = AbortSignal.any([stopped, silent.signal]);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const seen = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), silenceMillis);
    };
    try {
      seen();
      const response = await this.#jmap.fetch(url, { headers: { Accept: "text/event-stream" }, signal });
      // Changes while there was no stream are asked for once it is open, so that none is missed.
      await this.#inTurn(() => this.#sync());
      works();
      this.#connect("live");
      for await (const event of events(response.body!, seen)) {
        if (event.type !== "state") continue;
        const states = JSON.parse(event.data).changed?.[this.#account] as Record<string, string> | undefined;
        if (states && states["Email"] !== this.#state) await this.#inTurn(() => this.#sync());
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #connect(to: Connection): void {
    if (this.#connection === to) return;
    this.#connection = to;
    this.#changed();
  }
}

interface Part extends Attachment {
  partId: string;
  disposition: string | null;
}

/** Joins the parts that are the text (RFC 8621, section 4.1.4). */
function contentOf(email: { textBody: Part[]; htmlBody: Part[]; attachments: Part[]; bodyValues: Record<string, { value: string; isTruncated: boolean }> }): Content {
  const value = (part: Part) => email.bodyValues[part.partId]?.value ?? "";
  const isHtml = (part: Part) => part.type === "text/html";
  const text = email.textBody.filter((part) => part.type.startsWith("text/") && !isHtml(part)).map(value).join("\n");
  const escape = (plain: string) => plain.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);
  const html = email.htmlBody.some(isHtml)
    ? email.htmlBody.filter((part) => part.type.startsWith("text/")).map((part) => (isHtml(part) ? value(part) : `<pre>${escape(value(part))}</pre>`)).join("\n")
    : undefined;
  const parts = [...email.attachments, ...email.htmlBody.filter((part) => part.type.startsWith("image/"))].map((part) => ({ ...part, name: part.name || "attachment" }));
  const images = parts.filter((part) => part.cid !== null && part.type.startsWith("image/"));
  return {
    text, html, images,
    attachments: parts.filter((part) => part.disposition !== "inline" || part.cid === null || html === undefined),
    truncated: Object.values(email.bodyValues).some((body) => body.isTruncated),
  };
}
