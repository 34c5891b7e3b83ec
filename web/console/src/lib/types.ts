/** The parts of the API that the console uses. The API is described by /openapi.json. */

export type Scope = "admin" | "publish" | "subscribe" | "read" | "secrets" | "approve" | "sessions" | "work";

export type Role = "viewer" | "sender" | "approver" | "admin";

export interface SignInRole {
  service?: string; // absent for all services
  roles: Role[];
  scopes: Scope[];
}

export interface SignIn {
  id: string;
  key_id?: string; // absent for OpenID Connect
  key_name?: string;
  person?: string;
  mail?: string;
  issuer?: string;
  subject?: string;
  service?: string; // the only one
  scopes: Scope[];
  roles?: SignInRole[]; // of a person of OpenID Connect
  began_at: string;
  used_at: string;
  expires_at: string;
  user_agent?: string;
  address?: string;
}

export type Counts = Partial<Record<DeliveryState, number>>;
export const deliveryStates = ["pending", "deferred", "accepted", "delivered", "failed", "expired", "cancelled", "suppressed"] as const;
export type DeliveryState = (typeof deliveryStates)[number];

export interface Waiting {
  for: string;
  until: string;
  last?: string;
  messages?: number;
  destination?: string;
}

export interface Stages {
  received?: string;
  kept?: string;
  matched?: string;
  frozen?: string;
  first?: string;
  last?: string;
  completed?: string;
}

export interface ReasonCount {
  state: DeliveryState;
  reason?: string;
  deliveries: number;
}

export interface Broadcast {
  event: string;
  kind: "event" | "message" | "digest";
  service: string;
  topic: string;
  reference?: string;
  source: string;
  sourceid: string;
  type?: string;
  subject?: string;
  time?: string;
  lane: string;
  state: "queued" | "held" | "running" | "paused" | "cancelled" | "completed";
  reason?: string;
  matched: number;
  audience?: { filter?: string };
  not_before?: string;
  expires?: string;
  messages: number;
  deliveries: Counts;
  reasons?: ReasonCount[];
  rate_per_second?: number;
  estimated_end?: string;
  waits?: Waiting[];
  rate_limit?: string;
  gathered?: { cadence: string; time_zone?: string; due: string; recipients: number; digest?: string }[];
  digest?: { cadence: string; time_zone?: string; due: string };
  inbox?: { stored: number; read: number; recalled: number; expired: number };
  approved_by?: string;
  stages: Stages;
  data?: unknown;
}

export interface Attempt {
  attempt: number;
  state: string;
  code?: number;
  text?: string;
  relay?: string;
  at: string;
  next_at?: string;
}

export interface Delivery {
  id: string;
  event: string;
  kind: string;
  service: string;
  topic: string;
  reference?: string;
  events?: string[];
  channel: string;
  subscriber: string;
  subscriptions: string[];
  template: string;
  address: string;
  state: DeliveryState;
  waits?: Waiting;
  attempts: Attempt[];
  read_at?: string;
}

export interface Relay {
  name: string;
  node?: string;
  state: string;
  weight: number;
  share: number;
  connections: number;
  accepted: number;
  errors: number;
  p50_millis: number;
  p99_millis: number;
  last_error?: string;
}

export interface Channel {
  service: string;
  name: string;
  driver: string;
  state: string;
  connections: number;
  rate_per_second: number;
  rate_limit: string;
  rate_set_by_hand?: boolean;
  last_error?: string;
  daily_quota?: { messages: number; used: number; ends: string };
  relays?: Relay[];
  problems?: { kind: string; domain?: string; file?: string; error: string; hint: string }[];
}

export interface ControlScope {
  kind: "all" | "service" | "channel" | "relay" | "broadcast";
  name?: string;
}

export interface Status {
  version: string;
  durability: string;
  started: string;
  ready: boolean;
  reason?: string;
  bus: { events_pending: number; batches_pending: number };
  deliveries: { pending: number; deferred: number; accepted_per_second: number; failed_per_second: number };
  broadcasts: Broadcast[];
  channels: Channel[];
  paused: { scope: ControlScope; reason?: string; since: string; by?: string }[];
  gathered?: { service: string; cadence: string; time_zone?: string; due: string; recipients: number }[];
  parked: number;
  template_faults?: { service: string; template: string; version: number; at?: string; recipients?: number; absent?: string; last: string; replaced?: boolean }[];
  match_check?: { contradictions: number };
  cluster?: { leader?: string; standbys: number; silent?: string[] };
  database?: { away_since?: string; error?: string };
  capture?: string;
  restored?: object;
  disk_free_bytes: number;
}

/** The values of a step of some minutes: sums of outcomes, and the maximum of the pending deliveries. */
export interface Rate {
  at: string;
  minutes: number;
  outcomes: Counts;
  pending: number;
  deferred: number;
}

export interface Address {
  kind: "mail" | "url";
  address: string;
  label?: string;
}

export interface Subscriber {
  id: string;
  addresses: Address[];
  locale?: string;
  time_zone?: string;
  attributes?: unknown;
}

export interface Subscription {
  id: string;
  subscriber: string;
  service: string;
  topic: string;
  channel: string;
  to: string;
  filter?: string;
  rule?: string;
  params?: unknown;
  data?: unknown;
  title?: string;
  cadence: string;
  state: "active" | "paused" | "ended";
  created_at: string;
  paused_at?: string;
  ended_at?: string;
  reason?: string;
}

export interface Consent {
  subscription: string;
  address: string;
  how: string;
  topic: string;
  terms?: string;
  source?: string;
  at: string;
}

export interface ConditionPart {
  text: string;
  kind: string;
  result: "true" | "false" | "error" | "value";
  value?: unknown;
  error?: string;
  parts?: ConditionPart[];
}

export interface Explanation {
  subscription: string;
  event?: string;
  service: string;
  topic: string;
  wanted: boolean;
  summary: string;
  filter?: string;
  rule?: string;
  checks: { check: string; holds: boolean; detail: string }[];
  condition?: ConditionPart;
  delivery?: Delivery;
  defect?: string;
}

export interface Suppression {
  address?: string;
  hash?: string;
  reason: string;
  source?: string;
  at: string;
  until?: string;
  all_services?: boolean;
}

export interface Destination {
  name: string;
  state: string;
  suspended_until?: string;
  failures?: number;
  last_reply?: string;
  last_reply_at?: string;
  rate_per_second?: number;
  at_once?: number;
  under_way?: number;
  aside?: number;
  postponed?: number;
  postponed_until?: string;
}

export interface Parked {
  id: string;
  kind: "event" | "batch";
  event: string;
  reason: string;
  failures: number;
  members?: number;
  at: string;
}

export interface Topic {
  name: string;
  title?: string;
  lane?: string;
  template?: string;
  expiry?: string;
  hold_above?: number;
  schema?: unknown;
  rules?: { name: string; when: string; title?: string; template?: string; params?: Record<string, string> }[];
}

export interface Template {
  name: string;
  version: number;
  state: "draft" | "published" | "earlier";
  at?: string;
  key?: string;
  key_name?: string;
  note?: string;
  subject?: string;
  text?: string;
  html?: string;
  markdown?: string;
  json?: string;
  locales?: Record<string, unknown>;
}

export interface AuditEntry {
  at: string;
  key?: string;
  key_name?: string;
  request_id?: string;
  service?: string;
  action: string;
  kind: string;
  name?: string;
  fields?: { field: string; old: string; new: string }[];
  changed?: string[];
  counts?: Record<string, number>;
}

export interface Key {
  id: string;
  name: string;
  service?: string;
  scopes: Scope[];
  owner?: string;
  created_at?: string;
  expires_at?: string;
  disabled: boolean;
  last_used?: string;
}

export interface CapturedMessage {
  id: string;
  service: string;
  channel: string;
  kind: "mail" | "webhook";
  from?: string;
  to?: string;
  subject?: string;
  at: string;
  size_bytes: number;
}

export interface CapturedContent extends CapturedMessage {
  headers: { name: string; value: string }[];
  text?: string;
  text_truncated?: boolean;
  html: boolean;
  links: { url: string; text?: string }[];
  attachments: { number: number; name: string; type: string; content_id?: string; size_bytes: number }[];
}

export interface Mailbox {
  address: string;
  service: string;
  subscriber: string;
  created_at: string;
  disabled: boolean;
  quota: { max_bytes: number; bytes: number; max_messages: number; messages: number };
  folders?: { name: string; role?: string; subscribed: boolean; messages: number; unread: number; bytes: number }[];
}

export interface WorkerSession {
  id: string;
  service: string;
  worker: string;
  kind: "interactive" | "durable";
  name?: string;
  state: "open" | "closed" | "lost" | "purged";
  reason?: string;
  opened_at: string;
  closed_at?: string;
  opened_by?: string;
  min_instances: number;
  max_instances: number;
  priority: number;
  resends: number;
  idle_timeout: string;
  total_timeout: string;
  clients: { name: string; connected: boolean; requests: number; responses: number; received: number; queued: number; ended: boolean }[];
  instances: number;
  queued: number;
  running: number;
  requests: number;
  responses: number;
  faults: number;
  resent: number;
  late_results: number;
  problem?: { detail: string; hint?: string };
}

export interface ClusterNode {
  name: string;
  url: string;
  version: string;
  roles: string[];
  started_at: string;
  last_seen_at: string;
  silent_seconds: number;
  responding: boolean;
  clock_skew_ms: number;
  leader: boolean;
  delivers: boolean;
  matches: boolean;
  connections: number;
  lease_epoch?: number;
}

export interface ClusterNodes {
  clustered: boolean;
  nodes: ClusterNode[];
  bus?: { embedded: boolean; replicas: number; current: number; sync: string };
}

export type TaskAction = "retry-parked" | "drop-parked" | "approve-broadcasts" | "cancel-broadcasts" | "remove-suppressions" | "end-subscriptions";

export interface Task {
  id: string;
  service?: string;
  action: TaskAction;
  filter: { topic?: string; channel?: string; subscriber?: string; state?: string; reason?: string; all_services?: boolean };
  reason?: string;
  state: "running" | "completed" | "failed" | "cancelled";
  found: number;
  done: number;
  failed: number;
  last_error?: string;
  key_id?: string;
  key_name?: string;
  started_at: string;
  ended_at?: string;
}

export interface ConditionResult {
  matches: boolean;
  condition: ConditionPart;
  found_by?: string;
}

export interface DryRun {
  matched: number;
  messages: number;
  hold?: string;
  channels: { channel: string; messages: number; rate?: string; seconds?: number }[];
  sample: { subscription: string; subscriber: string; to: string; channel: string; rule?: string }[];
}

export const sendStates = ["draft", "submitted", "scheduled", "sending", "paused", "completed", "cancelled"] as const;

export interface SendList {
  uploaded_at: string;
  address: string;
  columns: string[];
  rows: number;
  valid: number;
  invalid: number;
  suppressed: number;
}

/** A message to an uploaded list. */
export interface Send {
  id: string;
  service: string;
  name?: string;
  channel: string;
  template: string;
  data?: unknown;
  send_at?: string;
  lane: string;
  reference?: string;
  skip_invalid: boolean;
  state: (typeof sendStates)[number];
  reason?: string;
  recipients?: SendList;
  refused?: SendList;
  digest?: string;
  cannot_approve?: string;
  created_at: string;
  created_by: string;
  authors: string[];
  submitted_at?: string;
  submitted_by?: string;
  approved_at?: string;
  approved_by?: string;
  started_at?: string;
  ended_at?: string;
  deletes_at?: string;
  estimate?: { channel: string; messages: number; rate?: string; seconds?: number };
  progress?: { recipients: number; started: number; settled: number; refused: number; deliveries: Counts; rate_per_second?: number; estimated_end?: string; broadcasts: number; latest_broadcasts?: string[] };
}

export interface SendError {
  row?: number;
  column?: string;
  detail: string;
  hint?: string;
}

export interface SendRow {
  row: number;
  to?: string;
  subscriber?: string;
  data?: Record<string, string>;
  suppressed?: string;
  errors?: SendError[];
  erased?: boolean;
}

export interface Preview {
  template: string;
  to?: string;
  subject: string;
  text?: string;
  html?: string;
  raw: string;
  attachments?: { name: string; type: string; cid?: string; sha256: string }[];
  data?: unknown;
}

export interface TemplateDiff {
  parts: { part: string; diff: string }[];
}

export interface Lint {
  findings: { rule: string; pointer: string; line: number; column: number; message: string; hint: string }[];
  more?: number;
}

export interface Setting {
  key: string;
  value: string;
  default?: string;
  from: "default" | "file" | "environment" | "flag" | "program";
  where?: string;
  kind: string;
  documentation: string;
  secret?: boolean;
  set: boolean;
}

export interface Service {
  name: string;
  title?: string;
  rate?: string;
  hold_above?: number;
}
