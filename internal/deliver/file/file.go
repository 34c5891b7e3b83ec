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
		part, err := write(d.folder, letter)
		if err != nil {
			desk.Return(letter)
			return fmt.Errorf("folder of the channel: %w", err)
		}
		if !desk.Release(letter) {
			if err := os.Remove(part); err != nil {
				return fmt.Errorf("folder of the channel: %w", err)
			}
			continue
		}
		outcome := fanfare.Outcome{Verdict: fanfare.Taken, Text: "written", Relay: d.folder}
		placeErr := place(part, filepath.Join(d.folder, letter.Delivery.String()+".eml"))
		if placeErr != nil {
			outcome.Verdict, outcome.Text = fanfare.Temporary, "could not be written: "+placeErr.Error()
		}
		outcome.At = time.Now().UTC()
		if err := desk.Report(letter, outcome); err != nil {
			return err
		}
		if placeErr != nil {
			return placeErr
		}
	}
}

// write puts a letter into a file of its own under a name that nobody looks at.
// The envelope stands in front, as a delivering mail server would add it (RFC
// 5321 section 4.4).
func write(folder string, letter *fanfare.Letter) (part string, err error) {
	f, err := os.CreateTemp(folder, ".part-*")
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(f, "Return-Path: <"+letter.From+">\r\nDelivered-To: "+letter.To+"\r\n")
	if err == nil {
		_, err = f.Write(letter.Body)
	}
	if err == nil {
		_, err = f.Write(letter.Enclosed)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), err
}

// place gives a file its name, and syncs that too.
func place(part, path string) error {
	if err := os.Rename(part, path); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
