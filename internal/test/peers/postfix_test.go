//go:build peers

package peers

import (
	"crypto/tls"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// postfixMain is main.cf: a relay that takes mail for example.org under all the
// checks that a client which groups its commands could stumble over. It hangs up
// after 20 errors, as it does by default; only the pause of a second with which
// it answers each from the tenth on is left out.
const postfixMain = `
compatibility_level = 3.6
config_directory = {dir}/conf
queue_directory = {dir}/queue
data_directory = {dir}/data
maillog_file = {dir}/log
maillog_file_prefixes = {dir}
multi_instance_enable = no
multi_instance_directories =
myhostname = peer.example.org
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
smtputf8_enable = yes
disable_dns_lookups = yes

virtual_mailbox_domains = example.org
virtual_mailbox_base = {dir}/mails
virtual_mailbox_maps = static:all/
virtual_mailbox_limit = 0
virtual_uid_maps = static:{uid}
virtual_gid_maps = static:{gid}

smtpd_delay_reject = no
smtpd_forbid_unauth_pipelining = yes
smtpd_forbid_bare_newline = yes
smtpd_client_restrictions = reject_unauth_pipelining, permit
smtpd_sender_restrictions = reject_unauth_pipelining, check_sender_access regexp:{dir}/senders
smtpd_relay_restrictions = reject_unauth_destination
smtpd_recipient_restrictions = reject_unauth_pipelining, check_recipient_access regexp:{dir}/recipients
smtpd_data_restrictions = reject_unauth_pipelining
smtpd_end_of_data_restrictions = reject_unauth_pipelining
smtpd_tls_cert_file = {cert}
smtpd_tls_key_file = {key}
smtpd_tls_security_level = none
smtpd_tls_received_header = yes
message_size_limit = 200000
smtpd_error_sleep_time = 0
`

// postfixServices is master.cf without its listeners.
const postfixServices = `
cleanup   unix  n - n - 0 cleanup
qmgr      unix  n - n 300 1 qmgr
tlsmgr    unix  - - n 1000? 1 tlsmgr
rewrite   unix  - - n - - trivial-rewrite
bounce    unix  - - n - 0 bounce
defer     unix  - - n - 0 bounce
trace     unix  - - n - 0 bounce
proxymap  unix  - - n - - proxymap
error     unix  - - n - - error
retry     unix  - - n - - error
virtual   unix  - n n - - virtual
smtp      unix  - - n - - smtp
lmtp      unix  - - n - - lmtp
anvil     unix  - - n - 1 anvil
postlog   unix-dgram n - n - 1 postlogd
`

// A postfix is a Postfix with several listeners, which differ in their settings.
type postfix struct {
	*peer
	address map[string]string // by name of the listener
	trust   *tls.Config
}

// rateLimit is how many mails one listener takes in a minute.
const rateLimit = 30

// listeners names what each listener of Postfix has of its own.
var listeners = map[string]string{
	"relay":        "",
	"tls":          "-o smtpd_tls_security_level=may",
	"silent size":  "-o smtpd_discard_ehlo_keywords=size",
	"one by one":   "-o smtpd_discard_ehlo_keywords=pipelining",
	"ascii":        "-o smtpd_discard_ehlo_keywords=smtputf8,8bitmime",
	"ten at once":  "-o smtpd_recipient_limit=10",
	"rate limited": fmt.Sprintf("-o smtpd_client_message_rate_limit=%d -o smtpd_client_event_limit_exceptions=", rateLimit),
}

// startPostfix starts a Postfix; settings follow those that all have.
func startPostfix(t *testing.T, settings ...string) *postfix {
	t.Helper()
	p := &postfix{peer: newPeer(t), address: map[string]string{}}
	conf := p.folder("conf")
	p.folder("queue")
	p.folder("data")
	own(t, filepath.Join(p.dir, "data"), "postfix")
	for _, name := range []string{"conf", "queue", "data"} { // it complains where others may write
		p.restrict(name, 0o755)
	}
	p.write("recipients", "/^soft/ 451 4.2.1 mailbox busy\n/^hard/ 550 5.1.1 no such person\n")
	p.write("senders", "/^softsender/ 452 4.1.8 sender asked to wait\n/^hardsender/ 553 5.1.8 sender not wanted\n")
	cert, key, trust := p.certify()
	p.trust = trust
	uid, gid := account(t, "nobody")
	p.write("conf/main.cf", strings.NewReplacer("{dir}", p.dir, "{uid}", uid, "{gid}", gid, "{cert}", cert, "{key}", key).Replace(postfixMain+strings.Join(settings, "")))
	services := postfixServices
	var all []string
	for name, settings := range listeners {
		address := at(freePort(t))
		services += fmt.Sprintf("%s inet n - n - - smtpd %s\n", address, settings)
		p.address[name] = address
		all = append(all, address)
	}
	p.write("conf/master.cf", services)
	p.queue = []string{
		filepath.Join(p.dir, "queue", "incoming"), filepath.Join(p.dir, "queue", "active"),
		filepath.Join(p.dir, "queue", "deferred"), filepath.Join(p.dir, "queue", "maildrop"),
	}
	if out, err := exec.Command(program(t, "postfix"), "-c", conf, "check").CombinedOutput(); err != nil { // it makes the queue's folders
		t.Fatalf("%v: %s", err, out)
	}
	daemons, err := exec.Command(program(t, "postconf"), "-c", conf, "-h", "daemon_directory").Output()
	if err != nil {
		t.Fatal(err)
	}
	// Not by `postfix start-fg`, which would leave its master behind when it is ended.
	master := exec.Command(filepath.Join(strings.TrimSpace(string(daemons)), "master"), "-c", conf, "-s")
	master.SysProcAttr = &syscall.SysProcAttr{} // it begins a session by itself
	p.run(master, all...)
	return p
}
