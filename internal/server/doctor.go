package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"fanfare.dev/fanfare/internal/admin/doctor"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// WhereIs says where the URL of a database leads, without its password.
func WhereIs(url string) string { return postgres.Describe(url) }

// LookAtDatabase finds out what a URL leads to, without changing anything there.
func LookAtDatabase(ctx context.Context, url string) (*doctor.Database, error) {
	found, err := postgres.Look(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", postgres.Describe(url), err)
	}
	facts := doctor.Database(*found)
	return &facts, nil
}

// PeekChannels reads what channels are kept where a configuration says, without
// changing anything there; a server may be at work. None where there is nothing
// yet.
func PeekChannels(ctx context.Context, c *config.Config) ([]*registry.Channel, error) {
	var records []control.ConfigRecord
	read := func(s store.Session) error {
		records = nil
		return control.Config(s, func(r *control.ConfigRecord) error {
			records = append(records, *r)
			return nil
		})
	}
	if err := peek(ctx, c, read); err != nil {
		return nil, err
	}
	return registry.ChannelsIn(records)
}

// PeekCharge tells why no server may start on what is kept where a configuration
// says, such as that it was moved, without changing anything there.
func PeekCharge(ctx context.Context, c *config.Config) error {
	name := postgres.Describe(c.DB)
	if c.SQLite() {
		if err := unpaired(c.DataDir); err != nil {
			return err
		}
		var err error
		if name, err = filepath.Abs(c.DataDir); err != nil {
			return err
		}
	}
	return peek(ctx, c, func(s store.Session) error { return move.CheckCharge(s, name) })
}

// peek reads the control part of what a configuration names, where there is one.
func peek(ctx context.Context, c *config.Config, read func(store.Session) error) (err error) {
	if c.SQLite() {
		err = sqlite.Peek(ctx, c.DataDir, read)
	} else {
		err = postgres.Peek(ctx, c.DB, read)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
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
