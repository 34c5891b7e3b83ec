// Command worker is an instance of the worker pricing: it answers an order with its total.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"fanfare.dev/fanfare/client/worker"
)

func main() {
	err := worker.Run(context.Background(), worker.Options{}, func(_ context.Context, t *worker.Task) ([]byte, error) {
		var order struct{ Price, Quantity int }
		if err := json.Unmarshal(t.Body, &order); err != nil {
			return nil, &worker.Fault{Code: "invalid_order", Message: err.Error()}
		}
		return json.Marshal(map[string]int{"total": order.Price * order.Quantity})
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
