// Command client sends 100 orders to the worker pricing and adds up the totals.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/client/session"
)

func main() {
	total, err := run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("total", total)
}

func run(ctx context.Context) (total int, err error) {
	c, err := client.New(cmp.Or(os.Getenv("FANFARE_URL"), "http://127.0.0.1:8085"), os.Getenv("FANFARE_KEY"))
	if err != nil {
		return 0, err
	}
	s, err := session.Open(ctx, c.ForService(os.Getenv("FANFARE_SERVICE")), session.Options{Worker: "pricing", Kind: session.Durable})
	if err != nil {
		return 0, err
	}
	cl, err := s.Client(ctx, "orders")
	if err != nil {
		return 0, err
	}
	for n := 1; n <= 100; n++ {
		order := fmt.Appendf(nil, `{"price":%d,"quantity":2}`, n)
		if _, err := cl.SendRequest(ctx, session.Request{ID: fmt.Sprintf("order-%d", n), Body: order}); err != nil {
			return 0, err
		}
	}
	if err := cl.EndCount(ctx, 100); err != nil { // all requests are in the database now
		return 0, err
	}
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			return 0, err
		}
		if fault := r.Err(); fault != nil {
			return 0, fmt.Errorf("%s: %w", r.ID, fault)
		}
		var answer struct{ Total int }
		if err := json.Unmarshal(r.Body, &answer); err != nil {
			return 0, err
		}
		total += answer.Total
	}
	return total, s.Close(ctx, true)
}
