package pgtest

import (
	"errors"
	"os"
	"path/filepath"
)

// A Place is where a server runs. The zero value is 127.0.0.1, and the system's directory for temporary files.
type Place struct {
	Namespace   string // path of a network namespace; "" for that of the test
	Host        string // address there
	Dir         string // in which the server creates its directory
	Environment []string
}

func (p *Place) host() string {
	if p.Host == "" {
		return "127.0.0.1"
	}
	return p.Host
}

// admit lets the hosts of the same networks connect. By default, only this host can.
func (p *Place) admit(data string) error {
	if p.Host == "" {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(data, "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("host all all all scram-sha-256\nhost replication all all scram-sha-256\n")
	return errors.Join(err, f.Close())
}

// Fetch downloads the programs, so that a server can be started without a network.
func Fetch() error {
	_, err := programs()
	return err
}
