// Package file is the way out into a folder: each message becomes one file, in
// the form that a mail program opens (.eml). It is for trying things out, for
// archives and for tests.
//
// State. A message is written under a temporary name, synced and renamed, so
// that whoever sees a file sees all of it. The name is the delivery's id: a
// second attempt replaces the file of the first.
//
// Failure. A folder that cannot be written is a broken connection: letters wait.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"fanfare.dev/fanfare"
)

// Driver writes letters into a folder.
type Driver struct {
	folder string
}

// New returns a driver for a folder, which is made if it is missing.
func New(folder string) *Driver { return &Driver{folder} }

// Serve writes letters until the desk has no more or ctx ends.
func (d *Driver) Serve(ctx context.Context, desk fanfare.Desk) error {
	if err := os.MkdirAll(d.folder, 0o700); err != nil {
		return fmt.Errorf("folder of the channel: %w", err)
	}
	for {
		letter, err := desk.Next(ctx, true)
		if err != nil || letter == nil {
			return err
		}
		if !desk.Release(letter) {
			continue
		}
		path := filepath.Join(d.folder, letter.Delivery.String()+".eml")
		outcome := fanfare.Outcome{Verdict: fanfare.Taken, Text: "written", Relay: d.folder}
		writeErr := write(path, letter)
		if writeErr != nil {
			outcome.Verdict, outcome.Text = fanfare.Temporary, "could not be written: "+writeErr.Error()
		}
		outcome.At = time.Now().UTC()
		if err := desk.Report(letter, outcome); err != nil {
			return err
		}
		if writeErr != nil {
			return writeErr
		}
	}
}

// write puts a letter under its name, whole or not at all. The envelope stands
// in front, as a delivering mail server would add it (RFC 5321 section 4.4).
func write(path string, letter *fanfare.Letter) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".part-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = io.WriteString(f, "Return-Path: <"+letter.From+">\r\nDelivered-To: "+letter.To+"\r\n")
	if err == nil {
		_, err = f.Write(letter.Body)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
