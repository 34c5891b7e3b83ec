package server_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/server"
)

func TestTheAdminKeyIsThereBeforeTheBusIsOpen(t *testing.T) {
	dir := t.TempDir()
	settings := config.Config{DataDir: dir, Listen: "127.0.0.1:0", Durability: "relaxed", Lease: 10 * time.Minute, Retention: 30, AuditDays: 365, DrainTimeout: time.Second,
		NATS: "nats://127.0.0.1:1"} // nobody listens there
	path := filepath.Join(dir, "admin.key")
	var first string
	for range 2 {
		if _, err := server.Start(t.Context(), settings, server.Options{Version: "test", Logger: slog.New(slog.DiscardHandler)}); err == nil {
			t.Fatal("the server has started without a bus")
		}
		key, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if first != "" && string(key) != first {
			t.Error("the second start made another key")
		}
		first = string(key)
	}
	if _, err := os.Stat(path + ".new"); !os.IsNotExist(err) {
		t.Errorf("a partial file is left: %v", err)
	}
}
