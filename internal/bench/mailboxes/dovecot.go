package mailboxes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
)

// A dovecot is a running Dovecot with mailboxes of its own.
type dovecot struct {
	*harness.Process
	imap, lmtp string
	users      []mailUser
	mail       string // folder with a folder for each user
	uid, gid   int
}

// lookDovecot tells why Dovecot cannot run beside the server.
func lookDovecot() error {
	if os.Geteuid() != 0 {
		return errors.New("no comparison with Dovecot, which needs root")
	}
	for _, program := range []string{"/usr/sbin/dovecot", "/usr/lib/dovecot/imap", "/usr/lib/dovecot/lmtp"} {
		if _, err := exec.LookPath(program); err != nil {
			return errors.New("no comparison with Dovecot, which is not installed (packages dovecot-imapd and dovecot-lmtpd)")
		}
	}
	return nil
}

// dovecotConfig has the variables FOLDER, CLIENTS, CONNECTIONS, IMAP and LMTP. Its processes write as the account mail.
const dovecotConfig = `base_dir = FOLDER/run
state_dir = FOLDER/state
log_path = FOLDER/log
protocols = imap lmtp
listen = 127.0.0.2
ssl = no
disable_plaintext_auth = no
auth_mechanisms = plain
auth_cache_size = 64M
mail_location = sdbox:~/mail
mail_home = FOLDER/mail/%u
mail_uid = mail
mail_gid = mail
first_valid_uid = 1
mail_max_userip_connections = 0
mail_plugins = quota
postmaster_address = postmaster@example.org
default_client_limit = CLIENTS
default_process_limit = CLIENTS
default_vsz_limit = 0
passdb {
  driver = passwd-file
  args = scheme=PLAIN username_format=%u FOLDER/users
}
userdb {
  driver = passwd-file
  args = username_format=%u FOLDER/users
}
namespace inbox {
  inbox = yes
  separator = /
  mailbox Drafts {
    auto = create
    special_use = \Drafts
  }
}
plugin {
  quota = count:User quota
  quota_rule = *:storage=100G
  quota_vsizes = yes
}
protocol imap {
  mail_plugins = quota imap_quota
}
service imap-login {
  service_count = 0
  process_min_avail = 2
  inet_listener imap {
    port = IMAP
  }
  inet_listener imaps {
    port = 0
  }
}
service imap {
  process_limit = CLIENTS
}
service auth {
  client_limit = CONNECTIONS
}
service anvil {
  client_limit = CONNECTIONS
}
service lmtp {
  process_min_avail = 10
  inet_listener lmtp {
    port = LMTP
  }
}
`

// startDovecot starts Dovecot with n users.
func startDovecot(l *harness.Env, n int) (*dovecot, error) {
	account, err := user.Lookup("mail")
	if err != nil {
		return nil, err
	}
	d := &dovecot{}
	d.uid, _ = strconv.Atoi(account.Uid) // they are numbers on Linux
	d.gid, _ = strconv.Atoi(account.Gid)
	folder := l.File("dovecot")
	d.mail = filepath.Join(folder, "mail")
	var list strings.Builder
	for i := range n {
		u := mailUser{loadgen.Person(i).Address(), "secret"}
		d.users = append(d.users, u)
		fmt.Fprintf(&list, "%s:%s::::::\n", u.User, u.Password)
	}
	ports := make([]string, 2)
	for i := range ports {
		if ports[i], err = freePort(l.Ctx, "127.0.0.2"); err != nil {
			return nil, err
		}
	}
	d.imap, d.lmtp = "127.0.0.2:"+ports[0], "127.0.0.2:"+ports[1]
	config := strings.NewReplacer("FOLDER", folder, "CLIENTS", strconv.Itoa(n+1000), "CONNECTIONS", strconv.Itoa(3*(n+1000)), "IMAP", ports[0], "LMTP", ports[1]).Replace(dovecotConfig)
	err = errors.Join(os.Chmod(l.Dir, 0o711), os.MkdirAll(d.mail, 0o711), os.Chmod(folder, 0o711), os.Chown(d.mail, d.uid, d.gid), os.Chmod(d.mail, 0o700), //nolint:gosec // processes of the accounts of Dovecot pass through
		os.WriteFile(filepath.Join(folder, "users"), []byte(list.String()), 0o644), os.WriteFile(filepath.Join(folder, "dovecot.conf"), []byte(config), 0o644)) //nolint:gosec // they read them
	if err != nil {
		return nil, err
	}
	if d.Process, err = l.Spawn("dovecot", nil, "/usr/sbin/dovecot", "-F", "-c", filepath.Join(folder, "dovecot.conf")); err != nil {
		return nil, err
	}
	return d, errors.Join(harness.AwaitListener(l.Ctx, d.imap), harness.AwaitListener(l.Ctx, d.lmtp))
}

// freePort returns a port of an address that nobody listens on. No connection to 127.0.0.1 takes a port of another address meanwhile.
func freePort(ctx context.Context, host string) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// fill delivers messages to the first user, and copies its mailbox for the others. The files of the messages, which do not change, are linked.
func (d *dovecot) fill(l *harness.Env, messages int) error {
	if err := seedMailboxes(l, d.lmtp, d.users[:1], messages); err != nil {
		return err
	}
	c, err := dialIMAP(l.Ctx, d.imap, d.users[0])
	if err != nil {
		return err
	}
	for _, command := range []string{"SELECT INBOX", "FETCH 1:* (FLAGS ENVELOPE)"} { // so that the indexes are complete
		if _, err := c.command(command); err != nil {
			return err
		}
	}
	if err := c.close(); err != nil {
		return err
	}
	bar := l.Progress("mailboxes of Dovecot", int64(len(d.users)))
	defer bar.End()
	g, ctx := errgroup.WithContext(l.Ctx)
	g.SetLimit(4)
	for _, u := range d.users[1:] {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return d.copyMailbox(filepath.Join(d.mail, d.users[0].User), filepath.Join(d.mail, u.User))
		})
	}
	return g.Wait()
}

func (d *dovecot) copyMailbox(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		copied := to + strings.TrimPrefix(path, from)
		switch {
		case entry.IsDir():
			if err := os.MkdirAll(copied, 0o700); err != nil { //nolint:gosec // no other program writes into the folder
				return err
			}
		case strings.HasPrefix(entry.Name(), "u."):
			return os.Link(path, copied) //nolint:gosec // as above
		default:
			if err := copyFile(path, copied); err != nil {
				return err
			}
		}
		return os.Chown(copied, d.uid, d.gid) //nolint:gosec // as above
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// counter returns a function that returns the number of messages of all users. Their connections stay open until end is called.
func (d *dovecot) counter(ctx context.Context) (count func() (int64, error), end func(), err error) {
	var clients []*imapClient
	end = func() {
		for _, c := range clients {
			_ = c.close() // what was asked is known
		}
	}
	for _, u := range d.users {
		c, err := dialIMAP(ctx, d.imap, u)
		if err != nil {
			return nil, end, err
		}
		clients = append(clients, c)
	}
	return func() (sum int64, err error) {
		for _, c := range clients {
			n, err := c.messages()
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}, end, nil
}

// A treeUsage is what Dovecot has used in a while.
type treeUsage struct {
	cpu       time.Duration
	memoryMiB float64 // at the end
}

// used returns a function that returns what Dovecot has used since this call.
func (d *dovecot) used() func() treeUsage {
	before, _ := d.UsedByTree()
	return func() treeUsage {
		cpu, memory := d.UsedByTree()
		return treeUsage{cpu - before, memory}
	}
}
