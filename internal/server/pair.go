package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/datadir"
)

// pairFile says which database a data directory belongs to. The bus and the keys
// of the directory are of no use with another one: batches would name what is not
// there, and links in mails that were sent would end subscriptions of others.
const pairFile = "database.json"

// A pair is what is in the file.
type pair struct {
	Identity string `json:"identity"` // of the database, for good
	Database string `json:"database"` // where it was, for people
}

func readPair(dir string) (*pair, error) {
	text, err := os.ReadFile(filepath.Join(dir, pairFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var p pair
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pairFile, err)
	}
	return &p, nil
}

// unpaired refuses to begin with files in a directory that belongs to a database.
func unpaired(dir string) error {
	p, err := readPair(dir)
	if err != nil || p == nil {
		return err
	}
	return &fanfare.Error{Code: fanfare.Conflict, Pointer: "/db", Message: fmt.Sprintf("the data directory %s belongs to the database %s, and db is empty", dir, p.Database),
		Hint: "set db; or move what it has into files with fanfare migrate"}
}

// belong makes sure that a directory and a database belong together: both are
// new, or have been seen together, or the database knows the admin key of the
// directory, as after a move out of its files. A directory that is new, or has
// the keys of a lost one and nothing else, is taken beside any database.
func belong(dir string, now pair, knows func(secret string) bool) error {
	was, err := readPair(dir)
	switch {
	case err != nil:
		return err
	case was != nil && was.Identity == now.Identity:
		return nil
	case was != nil:
		return &fanfare.Error{Code: fanfare.Conflict, Pointer: "/db", Message: fmt.Sprintf("the data directory %s belongs to the database %s, and not to %s", dir, was.Database, now.Database),
			Hint: "name the database that it belongs to, or a data_dir of its own for this one"}
	}
	if datadir.Has(dir, datadir.Bus) || datadir.Has(dir, datadir.AdminKey) || datadir.Has(dir, datadir.Control) { // a server has worked here, or it was restored
		secret, err := os.ReadFile(filepath.Join(dir, datadir.AdminKey))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !knows(datadir.TrimLine(secret)) {
			return &fanfare.Error{Code: fanfare.Conflict, Pointer: "/db", Message: fmt.Sprintf("the data directory %s has what belongs to another database than %s, which does not know its admin.key", dir, now.Database),
				Hint: "move what it has with fanfare migrate, or name a data_dir of its own for this database"}
		}
	}
	return now.write(dir)
}

func (p pair) write(dir string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return datadir.WriteFile(filepath.Join(dir, pairFile), text)
}

// follow has a data directory that belongs to a database belong to the one that
// all of it was moved to.
func follow(dir string, from, to pair) error {
	was, err := readPair(dir)
	if err != nil || was == nil || was.Identity != from.Identity {
		return err
	}
	return to.write(dir)
}
