/** The real program: a server and a capture server for each file of tests. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { connect, type Fanfare } from "fanfare-client";

const binary = process.env["FANFARE_BINARY"] ?? resolve("../../../bin/fanfare");
const patience = 30_000; // milliseconds; it decides only how long a failure takes

export async function eventually(what: string, condition: () => boolean | Promise<boolean>, wait = patience): Promise<void> {
  const deadline = Date.now() + wait;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `did not come about: ${what}`);
    await new Promise((again) => setTimeout(again, 20));
  }
}

export interface Server {
  url: string;
  key: string;
  relay: string;
  client(service: string): Fanfare;
  /** Kills the server without a warning, and starts it again with the same data and address. */
  restart(): Promise<void>;
  /** The recipients of the mails at the capture server, in order of arrival. */
  arrived(): string[];
  /** The mails of the capture server, in order of arrival: recipient, and the mail as text. It shows as many as startServer was told. */
  mails(): [to: string, mail: string][];
  stop(): Promise<void>;
}

/** Starts both, until they are stopped. The capture server prints the first show mails. */
export async function startServer(show = 0): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), "fanfare-sdk-"));
  const record = join(folder, "record");
  const processes: ChildProcess[] = [];
  let serving: ChildProcess | undefined;

  const start = async (name: string, pattern: RegExp, ...args: string[]): Promise<string> => {
    const log = join(folder, `${name}.log`);
    const out = openSync(log, "w");
    const child = spawn(binary, args, { cwd: folder, stdio: ["ignore", out, out] });
    processes.push(child);
    if (name === "serve") serving = child;
    closeSync(out);
    let found: string | undefined;
    await eventually(`${name} listens`, () => {
      const text = readFileSync(log, "utf8");
      assert.equal(child.exitCode, null, text);
      found = pattern.exec(text)?.[1];
      return found !== undefined;
    });
    return found!;
  };
  const relay = await start("sink", /takes mail at (\S+)/, "sink", "--smtp", "127.0.0.1:0", "--record", record, "--record-sync", "--show", String(show));
  const serve = (address: string) => start("serve", /listens on (\S+)/, "serve", "--listen", address, "--data-dir", join(folder, "data"), "--durability", "relaxed", "--disk-floor", "0");
  const url = await serve("127.0.0.1:0");
  const key = readFileSync(join(folder, "data", "admin.key"), "utf8").trim();
  return {
    url,
    key,
    relay,
    client: (service) => connect({ url, key, service }),
    restart: async () => {
      const killed = serving!;
      killed.kill("SIGKILL");
      await once(killed, "exit");
      await serve(new URL(url).host);
    },
    arrived: () => readFileSync(record, "utf8").split("\n").slice(0, -1).map((line) => line.split("\t")[2]!),
    mails: () => {
      const [, ...parts] = readFileSync(join(folder, "sink.log"), "utf8").split(/^---- from \S+ to (\S+)$/m);
      return Array.from({ length: parts.length / 2 }, (_, n) => [parts[2 * n]!, parts[2 * n + 1]!]);
    },
    stop: async () => {
      for (const child of processes.reverse()) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        child.kill();
        await once(child, "exit");
      }
      rmSync(folder, { recursive: true });
    },
  };
}
