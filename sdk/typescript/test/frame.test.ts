/** The bytes in these tests were written by hand from docs/reference/session-protocol.md. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { exceptionsOf, Frame, FrameError, headerSize, Pack, requestsFrame, requestsOf, SessionResponse, Status, tasksOf, token, Type } from "../src/frame.js";

const hex = (text: string): Buffer => Buffer.from(text.replace(/\s/g, ""), "hex");
const text = (value: string): string => Buffer.from(value).toString("hex");

test("frames without records", () => {
  assert.deepEqual(token(Type.flush, 0, 258), hex("02 000000 00000000 0201000000000000"));
  assert.deepEqual(token(Type.end, 0, "any"), hex("03 000000 00000000 ffffffffffffffff"));
  assert.deepEqual(token(Type.close, 1), hex("04 000000 01000000 0000000000000000"));
  assert.deepEqual(token(Type.received, 0, 2 ** 53 - 1), hex("05 000000 00000000 ffffffffffff1f00"));
  assert.throws(() => token(Type.end, 0, -1), FrameError);
  assert.throws(() => token(Type.end, 0, 1.5), FrameError);
});

const twoRequests = hex(`
  01 000000 02000000 0500000000000000
  03000000 e8030000 0200 0400 0100 0000 ${text("id")} ${text("calc")} ${text("u")} ${text("abc")}
  00000000 00000000 0000 0000 0000 0000`);

test("requests", () => {
  const pack = new Pack(Type.requests);
  pack.request(Buffer.from("id"), Buffer.from("calc"), Buffer.from("u"), Buffer.from("abc"), 1000);
  pack.request(undefined, undefined, undefined, Buffer.alloc(0), 0);
  assert.deepEqual(pack.take(5), twoRequests);
  assert.deepEqual([pack.count, pack.length], [0, headerSize]);
});

test("requests can be read and divided", () => {
  const all = requestsOf(twoRequests);
  assert.deepEqual(all.map((r) => [r.number, r.id]), [[5, "id"], [6, ""]]);
  assert.deepEqual(requestsFrame(5, all), twoRequests);
  assert.deepEqual(requestsFrame(6, all.slice(1)), hex("01 000000 01000000 0600000000000000  00000000 00000000 0000 0000 0000 0000"));
});

test("a pack grows with large bodies, and is the same afterwards", () => {
  const pack = new Pack(Type.requests);
  const large = Buffer.alloc(1 << 20, 7);
  for (let n = 0; n < 3; n++) pack.request(undefined, undefined, undefined, large, 0);
  const frame = pack.take(1);
  assert.equal(frame.length, headerSize + 3 * (16 + large.length));
  assert.deepEqual(requestsOf(frame).map((r) => r.record.subarray(16).equals(large)), [true, true, true]);
  pack.request(undefined, undefined, undefined, Buffer.from("x"), 0);
  assert.deepEqual(pack.take(2 ** 40 + 3), hex("01 000000 01000000 0300000000010000  01000000 00000000 0000 0000 0000 0000 78"));
});

test("results", () => {
  const pack = new Pack(Type.results);
  pack.result(2 ** 33 + 1, Status.ok, 77, Buffer.from("yes"));
  pack.result(2, Status.returned, 2 ** 40, Buffer.alloc(0));
  assert.deepEqual(pack.take(0), hex(`
    80 000000 02000000 0000000000000000
    0100000002000000 03000000 4d000000 00 00000000000000 ${text("yes")}
    0200000000000000 00000000 ffffffff 03 00000000000000`));
});

const answers = hex(`
  42 000000 02000000 0900000000000000
  0700000000000000 02000000 0100 0300 00 00 0100 00000000 ${text("i")} ${text("own")} ${text("ok")}
  0800000000000000 1f000000 0000 0000 01 01 0400 00000000 ${text('{"code":"fault","message":"no"}')}`);

test("responses", () => {
  const [first, second] = SessionResponse.all(new Frame(answers));
  assert.ok(first && second);
  assert.deepEqual(
    [first.number, first.request, first.id, first.userData.toString(), first.text, first.ok, first.fault, first.last, first.attempts, first.size],
    [9, 7, "i", "own", "ok", true, undefined, false, 1, 30],
  );
  assert.deepEqual([second.number, second.request, second.id, second.ok, second.fault, second.last, second.attempts], [10, 8, "", false, { code: "fault", message: "no" }, true, 4]);
});

const tasks = hex(`
  c0 000000 02000000 0000000000000000
  0100000000000000 0200000000000000 0300000000000000 04000000 02000000 10270000 0300 0200 ${text("add")} ${text("hi")}
  0200000000000000 0200000000000000 0400000000000000 04000000 00000000 00000000 0000 0100`);

test("tasks", () => {
  const [first, second] = tasksOf(new Frame(tasks));
  assert.deepEqual(first, { tag: 1, session: 2, request: 3, client: 4, timeout: 10_000, attempt: 2, action: "add", body: Buffer.from("hi") });
  assert.deepEqual(second, { tag: 2, session: 2, request: 4, client: 4, timeout: 0, attempt: 1, action: "", body: Buffer.alloc(0) });
});

const exceptions = hex(`
  41 000000 02000000 0600000000000000
  0500000000000000 00000000 00 000000
  0600000000000000 02000000 01 000000 ${text("{}")}`);

test("exceptions", () => {
  const frame = new Frame(exceptions);
  assert.equal(frame.first, 6);
  assert.deepEqual(exceptionsOf(frame), [
    { number: 5, refused: false, problem: Buffer.alloc(0) },
    { number: 6, refused: true, problem: Buffer.from("{}") },
  ]);
});

test("numbers of 2^53 and above are refused, not rounded", () => {
  const large = (number: string) => new Frame(hex(`44 000000 00000000 ${number}`));
  assert.equal(large("ffffffffffff1f00").first, 2 ** 53 - 1);
  assert.throws(() => large("0000000000002000").first, /9007199254740992.*below 2\^53/);
  assert.throws(() => large("ffffffffffffffff").first, /18446744073709551615/);
});

test("frames that are too short are refused", () => {
  assert.throws(() => new Frame(Buffer.alloc(15)), /15 bytes, but its header alone needs 16/);
  assert.throws(() => new Frame(hex("42 000000 01000100 0000000000000000")), /65537 records/);
  for (const [whole, read] of [[answers, SessionResponse.all], [tasks, tasksOf], [exceptions, exceptionsOf]] as const) {
    for (let size = headerSize; size < whole.length; size++) {
      assert.throws(() => read(new Frame(whole.subarray(0, size))), FrameError, `${size} of ${whole.length} bytes`);
    }
  }
});
