package pgtest

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// VersionVariable is the environment variable that selects the version: a major version (17), or a release of the binaries
// (17.5.0).
const VersionVariable = "FANFARE_TEST_POSTGRES_VERSION"

// oldest is the lowest version that Fanfare supports.
const oldest = "15"

var releases = map[string]embeddedpostgres.PostgresVersion{
	"15": embeddedpostgres.V15,
	"16": embeddedpostgres.V16,
	"17": embeddedpostgres.V17,
	"18": embeddedpostgres.V18,
}

// version is the chosen one.
func version() embeddedpostgres.PostgresVersion {
	chosen := cmp.Or(os.Getenv(VersionVariable), oldest)
	if release, known := releases[chosen]; known {
		return release
	}
	return embeddedpostgres.PostgresVersion(chosen)
}

// programs returns the directory with bin, lib and share of the version. They
// are fetched by whoever comes first; other processes wait for it.
func programs() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // another account must be able to read it
		return "", err
	}
	release := version()
	dir := filepath.Join(cache, string(release))
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close() //nolint:errcheck // nothing is written to it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	unpacked, err := os.MkdirTemp(cache, "unpack-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(unpacked)                      //nolint:errcheck // it is found again under its name
	if err := os.Chmod(unpacked, 0o755); err != nil { //nolint:gosec // as above
		return "", err
	}
	if err := fetch(release, cache, unpacked); err != nil {
		return "", err
	}
	return dir, os.Rename(filepath.Join(unpacked, "programs"), dir)
}

// fetch has the library put the programs into dir/programs. It does so only on
// the way to a server of its own, which cannot run as root, so it is given a
// directory of data that no server starts with, and its error is looked at only
// if it came before that: the runtime directory is made when all is unpacked.
func fetch(release embeddedpostgres.PostgresVersion, cache, dir string) error {
	decoy, runtime := filepath.Join(dir, "decoy"), filepath.Join(dir, "runtime")
	if err := os.Mkdir(decoy, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(decoy, "PG_VERSION"), []byte(release), 0o600); err != nil {
		return err
	}
	err := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(release).Port(0).Logger(io.Discard).
		CachePath(cache).BinariesPath(filepath.Join(dir, "programs")).
		RuntimePath(runtime).DataPath(decoy)).Start()
	if _, missing := os.Stat(runtime); missing != nil {
		return fmt.Errorf("PostgreSQL %s cannot be fetched (%s may name a server that runs): %w", release, Variable, err)
	}
	return nil
}

func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/fanfare-pgtest", nil // root's own directories are closed to others
	}
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "fanfare-pgtest"), err
}
