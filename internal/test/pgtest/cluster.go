package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience bounds every wait for PostgreSQL.
const patience = time.Minute

// The account that tests connect as, and the database that it finds.
const owner = "fanfare"

// A Cluster is a server and its directory. It is used by one goroutine at a time.
type Cluster struct {
	URL string // of an empty database whose owner may create others

	admin         string // URL of the superuser
	programs, dir string
	as            *syscall.Credential
	port          int
	release       func() // of the port
	settings      []string
	place         Place
	janitor       *janitor

	process *process // nil while none runs
}

// Launch starts a server. Settings have the form "fsync=off" and are added to the default settings for tests.
func Launch(settings ...string) (*Cluster, error) {
	c := &Cluster{settings: settings}
	return c, c.launch(c.create)
}

// Address returns an address of 127.0.0.1 at which nothing listens. It is reserved until the end of the test, so the
// caller may listen on it, stop, and listen again.
func Address(t TB) string {
	t.Helper()
	port, release, err := reserve()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(release)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// launch takes a directory and a port, and has them filled and served.
func (c *Cluster) launch(fill func() error) (err error) {
	if c.programs, err = programs(); err != nil {
		return err
	}
	if c.as, err = account(); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp(c.place.Dir, "fanfare-postgres-"); err != nil {
		return err
	}
	if c.as != nil {
		if err := os.Chown(c.dir, int(c.as.Uid), int(c.as.Gid)); err != nil {
			return err
		}
	}
	if c.janitor, err = engage(c.dir, c.as); err != nil {
		return err
	}
	if c.port, c.release, err = reserve(); err != nil {
		return errors.Join(err, c.janitor.dismiss())
	}
	if err := fill(); err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

// create makes the data, and starts the server for the first time.
func (c *Cluster) create() error {
	password := rand.Text()
	secret := filepath.Join(c.dir, "password")
	if err := os.WriteFile(secret, []byte(password), 0o644); err != nil { //nolint:gosec // only the account can enter the directory
		return err
	}
	initdb := exec.CommandContext(context.Background(), filepath.Join(c.programs, "bin", "initdb"), //nolint:gosec // a program that was downloaded
		"--pgdata", c.data(), "--username", "postgres", "--pwfile", secret, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--locale", "C", "--locale-provider", "icu", "--icu-locale", "en", "--no-sync", "--data-checksums")
	initdb.SysProcAttr = attributes(c.as)
	initdb.Dir, initdb.Env = c.dir, environment
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := c.place.admit(c.data()); err != nil {
		return err
	}
	if err := c.Restart(); err != nil {
		return err
	}
	c.URL, c.admin = c.url(owner, password, owner), c.url("postgres", password, "postgres")
	return execute(c.admin,
		fmt.Sprintf("CREATE ROLE %s LOGIN CREATEDB PASSWORD '%s'", owner, password),
		fmt.Sprintf("CREATE DATABASE %[1]s OWNER %[1]s", owner))
}

// Superuser returns the URL at which the superuser connects to a database of the server.
func (c *Cluster) Superuser(database string) string {
	u, err := url.Parse(c.admin)
	if err != nil {
		panic(err) // it was made by url
	}
	u.Path = "/" + database
	return u.String()
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) url(account, password, database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(account, password),
		Host: net.JoinHostPort(c.place.host(), strconv.Itoa(c.port)), Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Kill ends the server as a crash of the machine does, or of its operator: -9 to
// all its processes, so that none tidies up.
func (c *Cluster) Kill() error {
	if !c.running() {
		return nil
	}
	pid := c.process.pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // it must make no more of them
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	if err := await("it does not halt", func() bool { return halted(pid) }); err != nil {
		return err
	}
	children, err := childrenOf(pid)
	if err != nil {
		return err
	}
	for _, one := range append(children, pid) {
		if err := syscall.Kill(one, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill PostgreSQL: %w", err)
		}
	}
	for _, one := range children {
		if err := await("one of its processes lives", func() bool { return !alive(one) }); err != nil {
			return err
		}
	}
	return c.ended()
}

// Freeze stops all processes of the server without ending them: it still accepts
// connections, since the kernel does, and answers nothing until Thaw.
func (c *Cluster) Freeze() error { return c.signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (c *Cluster) Thaw() error { return c.signal(syscall.SIGCONT) }

// signal reaches the first process before the others, so that it makes no more of
// them while they are listed.
func (c *Cluster) signal(s syscall.Signal) error {
	if err := c.signalFirst(s); err != nil {
		return err
	}
	children, err := childrenOf(c.process.pid)
	for _, one := range children {
		if failed := syscall.Kill(one, s); failed != nil && !errors.Is(failed, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("signal PostgreSQL: %w", failed))
		}
	}
	return err
}

// FreezeFirst stops only the first process, which accepts new connections. Existing connections continue to work.
func (c *Cluster) FreezeFirst() error { return c.signalFirst(syscall.SIGSTOP) }

// running reports whether the server was started and has not ended.
func (c *Cluster) running() bool { return c.process != nil && !c.process.ended() }

func (c *Cluster) signalFirst(s syscall.Signal) error {
	if !c.running() {
		return errors.New("PostgreSQL does not run")
	}
	pid := c.process.pid
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("signal PostgreSQL: %w", err)
	}
	if s == syscall.SIGSTOP {
		return await("it does not halt", func() bool { return halted(pid) })
	}
	return nil
}

// Stop shuts the server down cleanly and closes its connections.
func (c *Cluster) Stop() error {
	if !c.running() {
		c.process = nil
		return nil
	}
	if err := c.Thaw(); err != nil { // a frozen one does not end
		return err
	}
	if err := syscall.Kill(c.process.pid, syscall.SIGINT); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	return c.ended()
}

func (c *Cluster) ended() error {
	select {
	case <-c.process.gone:
		c.process = nil
		return nil
	case <-time.After(patience):
		return errors.New("PostgreSQL does not end")
	}
}

// Restart starts the server, after Stop if it runs, and returns when it can be
// connected to.
func (c *Cluster) Restart() error {
	if err := c.Stop(); err != nil {
		return err
	}
	args := []string{"-D", c.data(), "-p", strconv.Itoa(c.port)}
	for _, setting := range append([]string{
		"listen_addresses=" + c.place.host(), "unix_socket_directories=", "max_connections=400", "log_min_messages=log",
	}, c.settings...) {
		args = append(args, "-c", setting)
	}
	log, err := os.OpenFile(c.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // it is PostgreSQL that writes to it
	c.process, err = run(filepath.Join(c.programs, "bin", "postgres"), args, c.dir, log, c.as, c.place)
	if err != nil {
		return err
	}
	ready := func() bool { return c.process.ended() || c.ready() }
	if err := await("it is not ready", ready); err != nil {
		return fmt.Errorf("%w\n%s", err, c.Log())
	}
	if c.process.ended() {
		return fmt.Errorf("PostgreSQL ended as it started:\n%s", c.Log())
	}
	return nil
}

// ready reads the state of the server from the file that pg_ctl reads.
func (c *Cluster) ready() bool {
	file, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(file), "\n")
	const status = 7
	if len(lines) <= status || lines[0] != strconv.Itoa(c.process.pid) {
		return false
	}
	says := strings.TrimSpace(lines[status])
	return says == "ready" || says == "standby"
}

func (c *Cluster) log() string { return filepath.Join(c.dir, "log") }

// Log returns the end of the log of PostgreSQL.
func (c *Cluster) Log() string {
	log, err := os.ReadFile(c.log())
	if err != nil {
		return err.Error()
	}
	const most = 8 << 10
	return string(bytes.ToValidUTF8(log[max(0, len(log)-most):], nil))
}

// Close stops the server and removes all its files.
func (c *Cluster) Close() error {
	stopped := c.Stop()
	c.release()
	return errors.Join(stopped, c.janitor.dismiss(), os.RemoveAll(c.dir))
}

// await looks until cond holds.
func await(what string, cond func() bool) error {
	limit := time.After(patience)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-limit:
			return fmt.Errorf("waited %v for PostgreSQL: %s", patience, what)
		}
	}
	return nil
}
