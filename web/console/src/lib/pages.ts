/** The pages: their addresses, the scopes that they need, and the keys that lead to them. */
import type { Component } from "svelte";

import Audit from "../pages/Audit.svelte";
import Broadcasts from "../pages/Broadcasts.svelte";
import Captured from "../pages/Captured.svelte";
import CapturedMessage from "../pages/CapturedMessage.svelte";
import Channel from "../pages/Channel.svelte";
import Channels from "../pages/Channels.svelte";
import DeliveryPage from "../pages/Delivery.svelte";
import EventPage from "../pages/Event.svelte";
import Events from "../pages/Events.svelte";
import Keys from "../pages/Keys.svelte";
import MailboxPage from "../pages/Mailbox.svelte";
import Mailboxes from "../pages/Mailboxes.svelte";
import Nodes from "../pages/Nodes.svelte";
import Now from "../pages/Now.svelte";
import Parked from "../pages/Parked.svelte";
import People from "../pages/People.svelte";
import Person from "../pages/Person.svelte";
import NewSend from "../pages/NewSend.svelte";
import SendPage from "../pages/Send.svelte";
import Sends from "../pages/Sends.svelte";
import SessionPage from "../pages/Session.svelte";
import Sessions from "../pages/Sessions.svelte";
import ServicePage from "../pages/Service.svelte";
import Services from "../pages/Services.svelte";
import Settings from "../pages/Settings.svelte";
import SubscriptionPage from "../pages/Subscription.svelte";
import Subscriptions from "../pages/Subscriptions.svelte";
import Suppressions from "../pages/Suppressions.svelte";
import TaskPage from "../pages/Task.svelte";
import Tasks from "../pages/Tasks.svelte";
import TemplatePage from "../pages/Template.svelte";
import Templates from "../pages/Templates.svelte";
import TopicPage from "../pages/Topic.svelte";
import Topics from "../pages/Topics.svelte";
import type { Key } from "./texts.svelte.ts";
import type { Scope } from "./types.ts";

export interface Page {
  name: string; // address below /console/
  title: Key;
  component: Component;
  scopes: Scope[]; // one of them is enough; none: the scope admin
  key?: string; // after g; pages with a key are in the navigation
  one?: string; // parameter that names the object of the page
  oneService?: boolean; // the page needs a service
  under?: string; // page of the navigation to which the page belongs
  route?: string; // request without whose response the page is not in the navigation
  member?: string; // of the response, which must be true
}

export const pages: Page[] = [
  { name: "now", title: "page.now", component: Now, scopes: ["read"], key: "n" },
  { name: "broadcasts", title: "page.broadcasts", component: Broadcasts, scopes: ["read"], key: "b" },
  { name: "broadcast", title: "page.broadcast", component: EventPage, scopes: ["read"], one: "id", under: "broadcasts" },
  { name: "events", title: "page.events", component: Events, scopes: ["read"], key: "e" },
  { name: "event", title: "page.event", component: EventPage, scopes: ["read"], one: "id", under: "events" },
  { name: "delivery", title: "page.delivery", component: DeliveryPage, scopes: ["read"], one: "id", under: "events" },
  { name: "sends", title: "page.sends", component: Sends, scopes: ["publish", "read", "approve"], key: "l" },
  { name: "send", title: "page.send", component: SendPage, scopes: ["publish", "read", "approve"], one: "id", oneService: true, under: "sends" },
  { name: "new-send", title: "page.newsend", component: NewSend, scopes: ["publish"], oneService: true, under: "sends" },
  { name: "people", title: "page.people", component: People, scopes: ["read", "subscribe"], key: "p", oneService: true },
  { name: "person", title: "page.person", component: Person, scopes: ["read", "subscribe"], one: "id", oneService: true, under: "people" },
  { name: "subscriptions", title: "page.subscriptions", component: Subscriptions, scopes: ["read", "subscribe"], key: "s", oneService: true },
  { name: "subscription", title: "page.subscription", component: SubscriptionPage, scopes: ["read", "subscribe"], one: "id", oneService: true, under: "subscriptions" },
  { name: "suppressions", title: "page.suppressions", component: Suppressions, scopes: ["read", "subscribe"], key: "u", oneService: true },
  { name: "channels", title: "page.channels", component: Channels, scopes: ["read"], key: "c" },
  { name: "channel", title: "page.channel", component: Channel, scopes: ["read"], one: "name", oneService: true, under: "channels" },
  { name: "captured", title: "page.captured", component: Captured, scopes: ["read"], key: "x", route: "/v1/captured?limit=1" },
  { name: "message", title: "page.message", component: CapturedMessage, scopes: ["read"], one: "id", under: "captured" },
  { name: "mailboxes", title: "page.mailboxes", component: Mailboxes, scopes: ["read"], key: "i", route: "/v1/mailboxes?limit=1" },
  { name: "mailbox", title: "page.mailbox", component: MailboxPage, scopes: ["read"], one: "address", oneService: true, under: "mailboxes" },
  { name: "sessions", title: "page.sessions", component: Sessions, scopes: ["read", "sessions"], key: "o", oneService: true, route: "/v1/sessions?limit=1" },
  { name: "session", title: "page.session", component: SessionPage, scopes: ["read", "sessions"], one: "id", oneService: true, under: "sessions" },
  { name: "nodes", title: "page.nodes", component: Nodes, scopes: [], key: "d", route: "/v1/nodes", member: "clustered" },
  { name: "parked", title: "page.parked", component: Parked, scopes: ["read"], key: "k" },
  { name: "tasks", title: "page.tasks", component: Tasks, scopes: ["read", "subscribe", "approve"], key: "w" },
  { name: "task", title: "page.task", component: TaskPage, scopes: ["read", "subscribe", "approve"], one: "id", under: "tasks" },
  { name: "topics", title: "page.topics", component: Topics, scopes: ["read"], key: "t", oneService: true },
  { name: "topic", title: "page.topic", component: TopicPage, scopes: ["read"], one: "name", oneService: true, under: "topics" },
  { name: "templates", title: "page.templates", component: Templates, scopes: ["read"], key: "m", oneService: true },
  { name: "template", title: "page.template", component: TemplatePage, scopes: ["read"], one: "name", oneService: true, under: "templates" },
  { name: "services", title: "page.services", component: Services, scopes: ["read"], key: "v" },
  { name: "service", title: "page.service", component: ServicePage, scopes: ["read"], one: "name", under: "services" },
  { name: "settings", title: "page.settings", component: Settings, scopes: [], key: "f", route: "/v1/settings" },
  { name: "audit", title: "page.audit", component: Audit, scopes: [], key: "a" },
  { name: "keys", title: "page.keys", component: Keys, scopes: [], key: "y" },
];
