package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Standby runs a server that follows this one until the test ends. It begins with a copy and streams later changes.
func (s *Server) Standby(settings ...string) *Server {
	s.t.Helper()
	return s.StandbyIn(Place{}, settings...)
}

// StandbyIn is Standby at another place.
func (s *Server) StandbyIn(at Place, settings ...string) *Server {
	s.t.Helper()
	c := &Cluster{settings: settings, place: at}
	return serve(s.t, c, c.launch(func() error { return c.follow(s.cluster) }))
}

// Administer runs statements as the superuser, in the database postgres.
func (s *Server) Administer(statements ...string) {
	s.t.Helper()
	s.must(execute(s.cluster.admin, statements...))
}

// follow copies the directory of a running server (PostgreSQL, 26.3.3 "Making a Base Backup Using the Low Level API"), and
// configures the copy to stream later changes.
func (c *Cluster) follow(primary *Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, primary.admin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // all was answered
	if _, err := conn.Exec(ctx, "SELECT pg_backup_start('standby', true)"); err != nil {
		return err
	}
	if err := copyTree(primary.data(), c.data()); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label); err != nil {
		return err
	}
	leads, err := pgconn.ParseConfig(primary.admin)
	if err != nil {
		return err
	}
	c.settings = append(c.settings, fmt.Sprintf("primary_conninfo=host=%s port=%d user=%s password=%s", leads.Host, leads.Port, leads.User, leads.Password))
	for name, text := range map[string]string{"backup_label": label, "standby.signal": ""} {
		if err := os.WriteFile(filepath.Join(c.data(), name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := c.own(c.data()); err != nil {
		return err
	}
	for to, from := range map[*string]string{&c.URL: primary.URL, &c.admin: primary.admin} {
		*to = strings.Replace(from, fmt.Sprintf("%s:%d/", primary.place.host(), primary.port), fmt.Sprintf("%s:%d/", c.place.host(), c.port), 1)
	}
	return c.Restart()
}

// copyTree copies files that may change and disappear meanwhile. It leaves out the files of the running process.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case strings.HasPrefix(name, "postmaster."):
			return nil
		}
		return copyFile(path, filepath.Join(to, name))
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// own changes the owner of files to the account that runs PostgreSQL.
func (c *Cluster) own(root string) error {
	if c.as == nil {
		return nil
	}
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, syscall.Chown(path, int(c.as.Uid), int(c.as.Gid)))
	})
}
