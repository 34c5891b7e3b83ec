package mailboxes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// postfixMain is main.cf with the variables FOLDER, DOMAIN and LMTP: a Postfix that passes all mail for a domain to an LMTP server.
const postfixMain = `compatibility_level = 3.6
config_directory = FOLDER/conf
queue_directory = FOLDER/queue
data_directory = FOLDER/data
maillog_file = FOLDER/log
maillog_file_prefixes = FOLDER
multi_instance_enable = no
multi_instance_directories =
myhostname = mail.example.net
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
disable_dns_lookups = yes
virtual_mailbox_domains = DOMAIN
virtual_mailbox_maps = static:all/
virtual_transport = lmtp:inet:LMTP
smtpd_relay_restrictions = reject_unauth_destination
smtpd_client_connection_count_limit = 0
default_process_limit = 200
`

// postfixServices is master.cf with the variable ADDRESS.
const postfixServices = `ADDRESS inet n - n - - smtpd
cleanup   unix  n - n - 0 cleanup
qmgr      unix  n - n 300 1 qmgr
rewrite   unix  - - n - - trivial-rewrite
bounce    unix  - - n - 0 bounce
defer     unix  - - n - 0 bounce
trace     unix  - - n - 0 bounce
proxymap  unix  - - n - - proxymap
error     unix  - - n - - error
retry     unix  - - n - - error
smtp      unix  - - n - - smtp
lmtp      unix  - - n - - lmtp
anvil     unix  - - n - 1 anvil
postlog   unix-dgram n - n - 1 postlogd
`

// startPostfix starts a Postfix that passes mail for the domain of a user to an LMTP server.
func startPostfix(l *harness.Env, lmtp string, u mailUser) (p *harness.Process, address string, err error) {
	program, err := harness.LookPostfix("postfix")
	if err != nil {
		return nil, "", err
	}
	config, err := harness.LookPostfix("postconf")
	if err != nil {
		return nil, "", err
	}
	account, err := user.Lookup("postfix")
	if err != nil {
		return nil, "", err
	}
	uid, _ := strconv.Atoi(account.Uid) // it is a number on Linux
	port, err := freePort(l.Ctx, "127.0.0.2")
	if err != nil {
		return nil, "", err
	}
	address = "127.0.0.2:" + port
	folder := l.File("postfix")
	conf := filepath.Join(folder, "conf")
	fill := strings.NewReplacer("FOLDER", folder, "DOMAIN", u.User[strings.IndexByte(u.User, '@')+1:], "LMTP", lmtp, "ADDRESS", address).Replace
	err = os.Chmod(l.Dir, 0o711) //nolint:gosec // processes of the account of Postfix pass through
	for _, name := range []string{"", "conf", "queue", "data"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(folder, name), 0o755)) //nolint:gosec // as above
	}
	err = errors.Join(err, os.Chown(filepath.Join(folder, "data"), uid, -1),
		os.WriteFile(filepath.Join(conf, "main.cf"), []byte(fill(postfixMain)), 0o644), os.WriteFile(filepath.Join(conf, "master.cf"), []byte(fill(postfixServices)), 0o644)) //nolint:gosec // its processes read them
	if err != nil {
		return nil, "", err
	}
	if out, err := exec.CommandContext(l.Ctx, program, "-c", conf, "check").CombinedOutput(); err != nil { //nolint:gosec // it makes the folders of the queue
		return nil, "", fmt.Errorf("postfix check: %w: %s", err, out)
	}
	daemons, err := exec.CommandContext(l.Ctx, config, "-c", conf, "-h", "daemon_directory").Output() //nolint:gosec // a program of Postfix
	if err != nil {
		return nil, "", err
	}
	p, err = l.Spawn("postfix", nil, filepath.Join(strings.TrimSpace(string(daemons)), "master"), "-c", conf, "-s")
	if err != nil {
		return nil, "", err
	}
	return p, address, harness.AwaitListener(l.Ctx, address)
}

// deliverThroughPostfix sends mails to Postfix, which passes them to Dovecot, and waits until all are in their mailboxes.
func deliverThroughPostfix(l *harness.Env, r *report.Record, d *dovecot, count func() (int64, error), sessions, each int, w *report.Checks) error {
	p, address, err := startPostfix(l, d.lmtp, d.users[0])
	if err != nil {
		return err
	}
	before, err := count()
	if err != nil {
		return err
	}
	used := d.used()
	cpuBefore, _ := p.UsedByTree()
	sent := int64(each * len(d.users))
	started := time.Now()
	if _, err := smtpSource(l, address, d.users, sessions, each); err != nil {
		return p.WithLog(err)
	}
	accepted := time.Since(started)
	var stall harness.StallDetector
	found := int64(0)
	for found < sent {
		now, err := count()
		if err != nil {
			return err
		}
		found = now - before
		if err := stall.Check(found); err != nil {
			return p.WithLog(err)
		}
		if err := harness.Pause(l.Ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	took := time.Since(started)
	cpu, _ := p.UsedByTree()
	w.Require(found == sent, "%d of %d mails came through Postfix", found, sent)
	rate := float64(sent) / took.Seconds()
	r.AddPoint(report.Point{At: "Postfix and Dovecot", Value: rate})
	r.Note("Postfix and Dovecot in the same run, with the same senders and sessions over SMTP and %d mails: %.0f mails/s until all are in their mailboxes (Postfix accepted %.0f/s), CPU per mail: Postfix %.0f us, Dovecot %.0f us", sent, rate,
		float64(sent)/accepted.Seconds(), float64((cpu-cpuBefore).Microseconds())/float64(sent), float64(used().cpu.Microseconds())/float64(sent))
	_ = p.Stop() // its master ends by the signal
	return nil
}
