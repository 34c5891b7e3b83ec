/** An instance in a process of its own, which the tests kill. */
import { setTimeout as wait } from "node:timers/promises";

import { Fault, Retry, run } from "fanfare-client/worker";

await run(async (task) => {
  if (task.action === "slow") await wait(2);
  if (task.action === "fault") throw new Fault("no_price", "there is no price");
  if (task.action === "retry" && task.attempt === 1) throw new Retry("not yet");
  if (task.action === "large") return "x".repeat(3000);
  return `${task.text}!`;
});
