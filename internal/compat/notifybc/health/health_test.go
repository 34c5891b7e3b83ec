package health_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"fanfare.dev/fanfare/internal/compat/notifybc/health"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource/resourcetest"
)

func TestHealthNamesThePartThatFails(t *testing.T) {
	up := func(context.Context) error { return nil }
	down := func(context.Context) error { return errors.New("the password is secret") }
	w := resourcetest.Router{T: t, Routes: []resource.Route{health.Route(up, up, up)}, From: "192.0.2.1"}
	if got := fmt.Sprint(w.Want(200, resourcetest.Anonymous, "GET", "/health", "")); got != "map[details:map[MongoDB:map[status:up] config:map[status:up] redis:map[status:up]] error:map[] info:map[MongoDB:map[status:up] config:map[status:up] redis:map[status:up]] status:ok]" {
		t.Error(got)
	}
	w.Routes = []resource.Route{health.Route(up, down, up)}
	if got := fmt.Sprint(w.Want(503, resourcetest.Anonymous, "GET", "/health", "")); got != "map[details:map[MongoDB:map[status:up] config:map[status:down] redis:map[status:up]] error:map[config:map[status:down]] info:map[MongoDB:map[status:up] redis:map[status:up]] status:error]" {
		t.Error(got)
	}
}
