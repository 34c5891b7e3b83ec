package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"fanfare.dev/fanfare/internal/deliver/smtp"
	"fanfare.dev/fanfare/internal/doctor"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// PeekChannels reads what channels a data directory has, without changing
// anything in it; a server may be at work there. None where there is no store yet.
func PeekChannels(ctx context.Context, dir string) ([]*registry.Channel, error) {
	path := filepath.Join(dir, "control.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	records, err := sqlite.PeekConfig(ctx, path)
	if err != nil {
		return nil, err
	}
	return registry.ChannelsIn(records)
}

// probeTimeout bounds each step of a session that is only looked at.
const probeTimeout = 8 * time.Second

// ProbeRelay opens a connection to the relay of a channel as a delivery would,
// and sends nothing.
func ProbeRelay(ctx context.Context, c *registry.Channel, password string) (doctor.Session, error) {
	config := smtp.Config{Address: c.Relay, Hello: c.Hello, TLS: c.TLS, Username: c.Username, Grouping: c.Grouping,
		ConnectTimeout: probeTimeout, CommandTimeout: probeTimeout}
	if c.Username != "" {
		config.Password = password
	}
	if err := config.Validate(); err != nil {
		return doctor.Session{}, err
	}
	s, err := smtp.New(config).Probe(ctx)
	return doctor.Session{Banner: s.Banner, Extensions: s.Extensions, TLS: s.TLS, Untrusted: s.Untrusted, Authenticated: s.Authenticated}, err
}
