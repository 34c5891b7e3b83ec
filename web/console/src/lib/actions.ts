/** Actions with their questions, which name what will happen. */
import { ask, path } from "./api.ts";
import { dialog } from "./confirm.svelte.ts";
import { number } from "./format.ts";
import { nameOf, session } from "./session.svelte.ts";
import { t, term } from "./texts.svelte.ts";
import type { Broadcast, CapturedMessage, ControlScope, Parked, SignIn, Subscriber } from "./types.ts";

type Verb = "pause" | "resume" | "cancel";

// The names of scopes include their service, so these requests are for no service in particular.
const control = (verb: Verb, scope: ControlScope, reason: string): Promise<void> =>
  ask(`/v1/${verb}`, { method: "POST", body: { scope, ...(reason && { reason }) } });

/** Asks whether to pause, resume or cancel a scope. */
export function confirmControl(verb: Verb, scope: ControlScope, after: () => void, open?: number): void {
  const name = `${term("scope", scope.kind)}${scope.name ? " " + scope.name : ""}`;
  const waiting = open === undefined ? "" : " " + t("confirm.open", { n: open });
  dialog.confirm({
    title: t(`confirm.${verb}.title`, { name }), text: t(`confirm.${verb}.text`, { name }) + waiting, action: t(`action.${verb}`), isDangerous: verb === "cancel",
    reason: verb !== "resume", done: t(`done.${verb}`, { name }),
    run: async (reason) => {
      await control(verb, scope, reason);
      after();
    },
  });
}

export function confirmApproval(b: Broadcast, after: () => void): void {
  dialog.confirm({
    title: t("confirm.approve.title", { name: b.event }), text: t("confirm.approve.text", { n: b.messages }), action: t("action.approve"), done: t("done.approve", { name: b.event }),
    run: async () => {
      await ask("/v1/approve", { method: "POST", body: { event: b.event } });
      after();
    },
  });
}

/** The number of deliveries of a broadcast that are not settled. */
export const openOf = (b: Broadcast): number => (b.deliveries.pending ?? 0) + (b.deliveries.deferred ?? 0);

export const settledOf = (b: Broadcast): number => Object.values(b.deliveries).reduce((sum, n) => sum + n, 0) - openOf(b);

export function confirmParked(verb: "retry" | "drop", work: Parked, after: () => void): void {
  const members = work.members ? number(work.members) : t("parked.some");
  dialog.confirm({
    title: t(`confirm.${verb}.title`, { name: work.id }), text: t(`confirm.${verb}.text`, { event: work.event, members }), action: t(`action.${verb}`), isDangerous: verb === "drop",
    done: t(`done.${verb}`, { name: work.id }),
    run: async () => {
      await (verb === "retry" ? ask(path`/v1/parked/${work.id}/retry`, { method: "POST" }) : ask(path`/v1/parked/${work.id}`, { method: "DELETE" }));
      after();
    },
  });
}

export function confirmLift(address: string, isForAll: boolean, after: () => void): void {
  dialog.confirm({
    title: t("confirm.lift.title", { name: address }), text: t(isForAll ? "confirm.lift.all" : "confirm.lift.text"), action: t("action.lift"), done: t("done.lift", { name: address }),
    run: async () => {
      await ask("/v1/suppressions", { method: "DELETE", query: { address, ...(isForAll && { all_services: true }) }, service: isForAll ? "" : session.service });
      after();
    },
  });
}

export function confirmDestination(channel: string, name: string, after: () => void): void {
  dialog.confirm({
    title: t("confirm.destination.title", { name }), text: t("confirm.destination.text"), action: t("action.resume"), done: t("done.destination", { name }),
    run: async () => {
      await ask(path`/v1/channels/${channel}/destinations/${name}/resume`, { method: "POST", service: session.service });
      after();
    },
  });
}

export function confirmDeleteCaptured(message: CapturedMessage, after: () => void): void {
  const name = message.subject || message.id;
  dialog.confirm({
    title: t("confirm.captured.title", { name }), text: t("confirm.captured.text", { to: message.to ?? "" }), action: t("action.delete"), isDangerous: true, done: t("done.captured"),
    run: async () => {
      await ask(path`/v1/captured/${message.id}`, { method: "DELETE", service: message.service });
      after();
    },
  });
}

export function confirmClearCaptured(service: string, after: () => void): void {
  dialog.confirm({
    title: t("captured.clear.title"), text: t("captured.clear.text", { service: service || t("service.all") }), action: t("captured.clear"), isDangerous: true, done: t("captured.cleared"),
    run: async () => {
      await ask("/v1/captured", { method: "DELETE", service });
      after();
    },
  });
}

export function confirmErase(person: Subscriber, after: () => void): void {
  const name = person.addresses[0]?.address ?? person.id;
  dialog.confirm({
    title: t("confirm.erase.title", { name }), text: t("confirm.erase.text"), action: t("action.erase"), isDangerous: true, typed: name, option: t("confirm.erase.suppress"), done: t("done.erase"),
    run: async (_, suppress) => {
      await ask(path`/v1/subscribers/${person.id}/erase`, { method: "POST", body: { suppress }, service: session.service });
      after();
    },
  });
}

export function confirmEndSignIn(signIn: SignIn, after: () => void): void {
  dialog.confirm({
    title: t("confirm.signin.title", { name: nameOf(signIn) }), text: t(signIn.issuer ? "oidc.end" : "confirm.signin.text"), action: t("action.end"), isDangerous: true, done: t("done.signin"),
    run: async () => {
      await ask(path`/v1/sign-ins/${signIn.id}`, { method: "DELETE", service: session.service });
      after();
    },
  });
}
