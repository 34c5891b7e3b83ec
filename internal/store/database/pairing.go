package database

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/durablefile"
)

// PairingFile names the PostgreSQL that a data directory belongs to. With another database, the batches on the bus of the directory would
// refer to rows that do not exist, and signed links in mails would end the subscriptions of other people.
const PairingFile = "database.json"

// A Pairing is the content of PairingFile.
type Pairing struct {
	Identity string `json:"identity"` // of the database; it never changes
	Database string `json:"database"` // where the database was, for error messages
}

// ReadPairing returns the pairing of a data directory, or nil without one.
func ReadPairing(dir string) (*Pairing, error) {
	text, err := os.ReadFile(filepath.Join(dir, PairingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var p Pairing
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", PairingFile, err)
	}
	return &p, nil
}

// CheckUnpaired refuses to use files in a data directory that belongs to a PostgreSQL.
func CheckUnpaired(dir string) error {
	p, err := ReadPairing(dir)
	if err != nil || p == nil {
		return err
	}
	return &fanfare.Error{Code: fanfare.Conflict, Pointer: "/db", Message: fmt.Sprintf("the data directory %s belongs to the database %s, but db is empty", dir, p.Database),
		Hint: "set db to the URL of that database, or move the data into files with fanfare migrate"}
}

// checkPairing makes sure that a directory and a database belong together: both are new, or they were used together before, or the database
// knows the admin key of the directory, as after a move out of the files of the directory. A directory that is new, or has only the keys of a
// lost directory, may be used with any database.
func checkPairing(dir string, current Pairing, knowsKey func(secret string) bool) error {
	stored, err := ReadPairing(dir)
	switch {
	case err != nil:
		return err
	case stored != nil && stored.Identity == current.Identity:
		return nil
	case stored != nil:
		return &fanfare.Error{Code: fanfare.Conflict, Pointer: "/db", Message: fmt.Sprintf("the data directory %s belongs to the database %s, not to %s", dir, stored.Database, current.Database),
			Hint: "set db to the database of this data directory, or set a different data_dir for this database"}
	}
	if datadir.Has(dir, datadir.Bus) || datadir.Has(dir, datadir.AdminKey) || datadir.Has(dir, datadir.Control) { // a server has used it, or it was restored
		secret, err := os.ReadFile(filepath.Join(dir, datadir.AdminKey))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !knowsKey(datadir.TrimLine(secret)) {
			return &fanfare.Error{Code: fanfare.Conflict, Pointer: "/db", Message: fmt.Sprintf("the data directory %s does not belong to the database %s: the key in the admin.key of the directory is not in the database", dir, current.Database),
				Hint: "move the data with fanfare migrate, or set a different data_dir for this database"}
		}
	}
	return current.write(dir)
}

func (p Pairing) write(dir string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return durablefile.Write(filepath.Join(dir, PairingFile), text)
}

// ChangePairing pairs a data directory with the database that its data were moved to.
func ChangePairing(dir string, from, to Pairing) error {
	stored, err := ReadPairing(dir)
	if err != nil || stored == nil || stored.Identity != from.Identity {
		return err
	}
	return to.write(dir)
}

// RemovePairing removes the pairing of a data directory.
func RemovePairing(dir string) error {
	err := os.Remove(filepath.Join(dir, PairingFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
