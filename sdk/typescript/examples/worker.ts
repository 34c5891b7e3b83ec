import { run } from "fanfare-client/worker";

await run((task) => {
  const { price, quantity } = task.json<{ price: number; quantity: number }>();
  return JSON.stringify({ total: price * quantity });
});
