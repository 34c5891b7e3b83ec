// Package health answers GET /health of the NotifyBC API.
//
// # State and failure
//
// The package keeps nothing. MongoDB stands for the control database, config for the configurations in it, and redis, which has no
// counterpart, for the bus. A check that fails makes the answer 503, with the same members.
package health

import (
	"context"
	"net/http"
	"time"

	"fanfare.dev/fanfare/internal/compat/notifybc/resource"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
)

const checkTime = 5 * time.Second

// A Check reports whether a part works.
type Check func(ctx context.Context) error

// Route returns the route. The checks are those of the database, the configurations and the bus.
func Route(database, configurations, bus Check) resource.Route {
	checks := []struct {
		name  string
		check Check
	}{{"MongoDB", database}, {"config", configurations}, {"redis", bus}}
	return resource.Route{Method: "GET", Path: "/health", Who: func(*roles.Caller) bool { return true }, Handle: func(r *resource.Request) (resource.Answer, error) {
		ctx, cancel := context.WithTimeout(r.Context(), checkTime)
		defer cancel()
		info, wrong, details := map[string]any{}, map[string]any{}, map[string]any{}
		for _, c := range checks {
			if err := c.check(ctx); err != nil {
				wrong[c.name] = map[string]any{"status": "down"} // the reason is in the log of the server
				details[c.name] = wrong[c.name]
				continue
			}
			info[c.name] = map[string]any{"status": "up"}
			details[c.name] = info[c.name]
		}
		answer := resource.Answer{Status: http.StatusOK, Body: map[string]any{"status": "ok", "info": info, "error": wrong, "details": details}}
		if len(wrong) > 0 {
			answer.Status, answer.Body.(map[string]any)["status"] = http.StatusServiceUnavailable, "error"
		}
		return answer, nil
	}}
}
