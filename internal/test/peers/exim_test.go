//go:build peers

package peers

import (
	"crypto/tls"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// eximConfig is the configuration of an Exim that takes mail for example.org,
// watches over the order of commands (smtp_enforce_sync, which is its default)
// and delivers as the account that it runs under, since an unpacked program has
// no rights to give up.
const eximConfig = `
exim_path = {exim}
exim_user = Debian-exim
exim_group = Debian-exim
deliver_drop_privilege
primary_hostname = peer.example.org
spool_directory = {dir}/spool
log_file_path = {dir}/exim-%slog
pid_file_path = {dir}/pid
keep_environment =
local_interfaces = 127.0.0.1
daemon_smtp_ports = {ports}
domainlist ours = example.org
host_lookup =
rfc1413_hosts =
smtp_enforce_sync = true
smtp_accept_max = 200
smtp_accept_queue_per_connection = 0
smtp_accept_max_per_connection = {per connection}
message_size_limit = 200000
pipelining_advertise_hosts = ${if eq{$received_port}{{one by one}}{}{*}}
tls_advertise_hosts = ${if eq{$received_port}{{tls}}{*}{}}
tls_certificate = {cert}
tls_privatekey = {key}
auth_advertise_hosts = ${if def:tls_in_cipher{*}{}}
acl_smtp_mail = sender
acl_smtp_rcpt = recipient
acl_smtp_data = accept

begin acl
sender:
  defer senders = ^softsender
        message = sender asked to wait
  deny  senders = ^hardsender
        message = sender not wanted
  accept
recipient:
  defer local_parts = ^soft
        message = mailbox busy
  deny  local_parts = ^hard
        message = no such person
  accept domains = +ours
  deny  message = no relay

begin routers
mailbox:
  driver = accept
  domains = +ours
  transport = maildir

begin transports
maildir:
  driver = appendfile
  maildir_format
  directory = {dir}/mails/all
  create_directory
  envelope_to_add
  return_path_add
  user = Debian-exim

begin retry
* * F,1h,1m

begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_condition = ${if and{{eq{$auth2}{fanfare}}{eq{$auth3}{secret}}}}
  server_set_id = $auth2
`

var eximManner = manner{smtp.Grouped, map[string]driver.Outcome{
	soft:       {Verdict: driver.Temporary, Code: 451, Text: "mailbox busy"},
	hard:       {Verdict: driver.Permanent, Code: 550, Text: "no such person"},
	softSender: {Verdict: driver.Temporary, Code: 451, Text: "asked to wait"},
	hardSender: {Verdict: driver.Permanent, Code: 550, Text: "not wanted"},
}}

// An exim is an Exim with several listeners, which differ in what they offer.
type exim struct {
	*peer
	address map[string]string // by name of the listener
	trust   *tls.Config
}

// startExim starts an Exim that closes a connection after so many mails.
func startExim(t *testing.T, perConnection int) *exim {
	t.Helper()
	return startEximWith(t, perConnection, eximConfig)
}

// startEximWith starts one with another configuration.
func startEximWith(t *testing.T, perConnection int, config string) *exim {
	t.Helper()
	p := &exim{peer: newPeer(t), address: map[string]string{}}
	p.folder("spool")
	p.log = p.write("exim-mainlog", "")
	for _, name := range []string{".", "spool", "mails", "exim-mainlog"} {
		own(t, filepath.Join(p.dir, name), "Debian-exim")
	}
	cert, key, trust := p.certify()
	own(t, key, "Debian-exim")
	p.trust = trust
	program := p.copyOf(program(t, "exim4")) // it calls itself as an account that may not see where it was
	placed := []string{"{dir}", p.dir, "{exim}", program, "{cert}", cert, "{key}", key, "{per connection}", strconv.Itoa(perConnection)}
	var ports, all []string
	for _, name := range []string{"relay", "tls", "one by one"} {
		port := freePort(t)
		placed = append(placed, "{"+name+"}", strconv.Itoa(port))
		ports, all = append(ports, strconv.Itoa(port)), append(all, at(port))
		p.address[name] = at(port)
	}
	placed = append(placed, "{ports}", strings.Join(ports, " : "))
	conf := p.write("exim.conf", strings.NewReplacer(placed...).Replace(config))
	p.queue = []string{filepath.Join(p.dir, "spool", "input")}
	p.run(exec.Command(program, "-C", conf, "-bdf", "-q1h"), all...)
	return p
}

func TestExim(t *testing.T) {
	t.Parallel()
	p := startExim(t, 1000)
	keepsPromises(t, p.peer, p.address["relay"], eximManner)
	encrypts(t, p.peer, p.address["tls"], p.address["relay"], p.trust, eximManner)
	keepsItsLimit(t, p.peer, p.address["relay"])
	t.Run("without PIPELINING it is spoken to in lock step", func(t *testing.T) {
		inLockStep(t, p.peer, p.address["one by one"], eximManner)
	})

	t.Run("a password is given inside TLS, and must be right", func(t *testing.T) {
		cfg := smtp.Config{Address: p.address["tls"], TLS: smtp.TLSRequired, TLSConfig: p.trust, Username: "fanfare", Password: "secret"}
		messages := crowd(10, allGood)
		s := send(t, smtp.New(cfg), 2, messages...)
		eximManner.judged(t, s)
		mails := p.delivered()
		arrivedOnce(t, mails, messages)
		for _, mail := range mails {
			if !strings.Contains(mail.text, "with esmtpsa") {
				t.Errorf("%s was sent without a password: %.300s", mail.to, mail.text)
			}
		}
		cfg.Password = "wrong"
		d := &queue{t: t, waiting: crowd(1, allGood)}
		if err := smtp.New(cfg).Serve(t.Context(), d); err == nil || !strings.Contains(err.Error(), "535") {
			t.Errorf("a wrong password: %v", err)
		}
		if d.left() != 1 {
			t.Error("the message is gone")
		}
	})
}
