//go:build peers

package imaporacle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
)

const patience = time.Minute

// A server is one of the two servers.
type server struct {
	name string
	addr string
	// account creates an account with the mailboxes INBOX, Archive, Drafts, Junk, Sent and Trash, which are subscribed.
	account func(ctx context.Context) (user, password string, err error)
}

// start runs a program until the end of the test, and shows its output if the test fails. log is the file of its output.
func start(t *testing.T, cmd *exec.Cmd, log string) {
	t.Helper()
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	must(t, err)
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_ = cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if t.Failed() {
			text, _ := os.ReadFile(log)
			t.Logf("%s:\n%s", filepath.Base(log), text[max(0, len(text)-8000):])
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline, again := time.NewTimer(patience), time.NewTicker(20*time.Millisecond)
	defer deadline.Stop()
	defer again.Stop()
	for !is() {
		select {
		case <-deadline.C:
			t.Fatalf("waited in vain: %s", what)
		case <-again.C:
		}
	}
}

// freePort returns a port below those of outgoing connections.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.IntN(10_000)
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// dovecotSettings has the directory and the port as arguments. Any user name is an account, and its mails belong to nobody.
const dovecotSettings = `base_dir = %[1]s/run
state_dir = %[1]s/run
log_path = %[1]s/dovecot.log
info_log_path = /dev/null
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
auth_failure_delay = 0
first_valid_uid = 1
mail_location = sdbox:%[1]s/mail/%%u
mail_fsync = never
mail_max_userip_connections = 100
default_client_limit = 4000
service imap-login {
  inet_listener imap {
    port = %[2]d
  }
  inet_listener imaps {
    port = 0
  }
  service_count = 0
}
service imap {
  service_count = 0
}
passdb {
  driver = static
  args = password=secret
}
userdb {
  driver = static
  args = uid=nobody gid=nogroup home=%[1]s/mail/%%u
}
namespace inbox {
  inbox = yes
  separator = /
`

// startDovecot starts Dovecot with its own configuration and directories.
func startDovecot(t *testing.T) *server {
	t.Helper()
	path, err := exec.LookPath("dovecot")
	if err != nil {
		t.Fatalf("%v: install the Debian package dovecot-imapd, or run make test-peers", err)
	}
	if os.Getuid() != 0 {
		t.Fatal("Dovecot changes its account: run as root")
	}
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		must(t, os.Chmod(d, 0o755))
	}
	mail := filepath.Join(dir, "mail")
	must(t, os.Mkdir(mail, 0o777))
	must(t, os.Chmod(mail, 0o777))
	port := freePort(t)
	settings := fmt.Sprintf(dovecotSettings, dir, port)
	for _, name := range []string{"Archive", "Drafts", "Junk", "Sent", "Trash"} {
		settings += fmt.Sprintf("  mailbox %s {\n    special_use = \\%[1]s\n  }\n", name)
	}
	settings += "}\n"
	conf := filepath.Join(dir, "dovecot.conf")
	must(t, os.WriteFile(conf, []byte(settings), 0o644))
	cmd := exec.Command(path, "-F", "-c", conf)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	start(t, cmd, filepath.Join(dir, "dovecot.log"))
	s := &server{name: "Dovecot", addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	eventually(t, "Dovecot greets", func() bool {
		conn, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	var made atomic.Int64
	s.account = func(context.Context) (user, password string, err error) {
		user = fmt.Sprintf("user%d", made.Add(1))
		c, err := dial(s, user, "secret")
		if err != nil {
			return "", "", err
		}
		defer c.conn.Close()
		for _, name := range defaults {
			for _, command := range []string{"CREATE " + name, "SUBSCRIBE " + name, "STATUS " + name + " (HIGHESTMODSEQ)"} { // from now on, the mailbox has ModSeqs
				if _, _, err := c.command([]string{command}); err != nil {
					return "", "", err
				}
			}
		}
		_, _, err = c.command([]string{"LOGOUT"})
		return user, "secret", err
	}
	return s
}

// startFanfare builds and starts the program.
func startFanfare(t *testing.T) *server {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "fanfare")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../../cmd/fanfare").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, log := filepath.Join(dir, "data"), filepath.Join(dir, "fanfare.log")
	// The comparison needs no data that survives a power loss.
	start(t, exec.Command(program, "serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--imap-listen", "127.0.0.1:0", "--public-url", "https://news.example.org", "--disk-floor", "0", "--durability", "relaxed"), log)
	var url, addr string
	eventually(t, "Fanfare listens", func() bool {
		text, _ := os.ReadFile(log)
		if found := regexp.MustCompile(`(?m)^fanfare listens on (\S+)$`).FindSubmatch(text); found != nil {
			url = string(found[1])
		}
		if found := regexp.MustCompile(`over IMAP.* listen=(\S+)`).FindSubmatch(text); found != nil {
			addr = string(found[1])
		}
		return url != "" && addr != ""
	})
	key, err := os.ReadFile(filepath.Join(data, "admin.key"))
	must(t, err)
	admin, err := client.New(url, strings.TrimSpace(string(key)))
	must(t, err)
	api := admin.ForService("news")
	_, err = api.Apply(t.Context(), []byte("service: news\n"), false)
	must(t, err)
	var made atomic.Int64
	return &server{name: "Fanfare", addr: addr, account: func(ctx context.Context) (user, password string, err error) {
		id := fmt.Sprintf("user%d", made.Add(1))
		user = id + "@example.org"
		if _, err := api.PutSubscriber(ctx, client.Subscriber{ID: id, Addresses: []client.Address{{Kind: "mail", Address: user}}}); err != nil {
			return "", "", err
		}
		created, err := api.CreateAppPassword(ctx, user, "oracle")
		return user, created.Password, err
	}}
}
