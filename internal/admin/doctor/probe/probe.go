// Package probe examines the database and the relays of a server without changing anything. `fanfare doctor` calls it and passes the results
// to package doctor.
package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/admin/doctor"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// Describe returns the URL of a database without its password.
func Describe(url string) string { return postgres.Describe(url) }

// Database examines the PostgreSQL database at a URL.
func Database(ctx context.Context, url string) (*doctor.Database, error) {
	found, err := postgres.Look(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", postgres.Describe(url), err)
	}
	facts := doctor.Database(*found)
	return &facts, nil
}

// Files examines the database files of a data directory.
func Files(ctx context.Context, dir string) ([]doctor.File, error) {
	found, err := sqlite.Look(ctx, dir)
	files := make([]doctor.File, len(found))
	for i := range found {
		files[i] = doctor.File(found[i])
	}
	return files, err
}

// Channels reads the channels from the database of a configuration. A server may use the database at the same time. A new database has no
// channels.
func Channels(ctx context.Context, c *config.Config) ([]*catalog.Channel, error) {
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
	return catalog.ChannelsIn(records)
}

// StartAllowed returns why a server may not start on the database of a configuration, for example because the data was moved.
func StartAllowed(ctx context.Context, c *config.Config) error {
	name := postgres.Describe(c.DB)
	if c.SQLite() {
		if err := database.CheckUnpaired(c.DataDir); err != nil {
			return err
		}
		var err error
		if name, err = filepath.Abs(c.DataDir); err != nil {
			return err
		}
	}
	return peek(ctx, c, func(s store.Session) error { return move.CheckCharge(s, name) })
}

// peek reads the control tables of the database of a configuration if they exist.
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

// Alive asks the node of a configuration whether it is alive.
func Alive(ctx context.Context, c *config.Config) error {
	roots, err := c.NodeRoots()
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URLOfNode(), "/")+"/healthz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /healthz returned %s", response.Status)
	}
	return nil
}

// timeout limits each step of a session with a relay.
const timeout = 8 * time.Second

// Relay opens a session with the relay of a channel as a delivery would, and sends nothing.
func Relay(ctx context.Context, c *catalog.Channel, password string) (doctor.Session, error) {
	config := smtp.Config{Address: c.Relay, Hello: c.Hello, TLS: c.TLS, Username: c.Username, Grouping: c.Grouping,
		ConnectTimeout: timeout, CommandTimeout: timeout}
	if c.Username != "" {
		config.Password = password
	}
	if err := config.Validate(); err != nil {
		return doctor.Session{}, err
	}
	s, err := smtp.New(config).Probe(ctx)
	return doctor.Session{Banner: s.Banner, Extensions: s.Extensions, TLS: s.TLS, Untrusted: s.Untrusted, Authenticated: s.Authenticated}, err
}
