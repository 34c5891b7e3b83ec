import { Session } from "fanfare-client/session";

const session = await Session.open({ worker: "pricing", kind: "durable" });
const client = await session.client("orders");

for (let n = 1; n <= 100; n++) await client.send(JSON.stringify({ price: n, quantity: 2 }), { id: `order-${n}` });
await client.end(100); // all requests are in the database now

let total = 0;
for await (const response of client.responses()) {
  if (response.ok) total += response.json<{ total: number }>().total;
  else console.error(response.id, response.fault);
}
console.log("total", total);
await session.close({ purge: true });
