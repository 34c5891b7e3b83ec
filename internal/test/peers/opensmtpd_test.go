//go:build peers

package peers

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// opensmtpdConfig is the configuration of an OpenSMTPD that takes mail for
// example.org. Refusals for now are a filter's; those for good of recipients are
// a rule's.
const opensmtpdConfig = `
smtp max-message-size 200000

filter softsenders phase mail-from match mail-from regex { "^softsender" } reject "452 sender asked to wait"
filter hardsenders phase mail-from match mail-from regex { "^hardsender" } reject "553 sender not wanted"
filter soft phase rcpt-to match rcpt-to regex { "^soft" } reject "451 mailbox busy"
filter refusals chain { softsenders, hardsenders, soft }

listen on 127.0.0.1 port {relay} hostname peer.example.org filter refusals

action "keep" mda "{dir}/keep" user nobody virtual { "@" = "nobody" }
match from any for rcpt-to regex { "^hard" } reject
match from any for domain "example.org" action "keep"
`

// keep is the delivery agent: it writes a mail to a file of its own.
const keep = `#!/bin/sh
set -e
file=$(mktemp '{dir}/mails/XXXXXXXXXX')
{ printf 'Return-Path: <%s>\nDelivered-To: %s\n' "$SENDER" "$ORIGINAL_RECIPIENT"; cat; } >"$file"
`

var opensmtpdManner = manner{smtp.LockStep, map[string]driver.Outcome{
	soft:       {Verdict: driver.Temporary, Code: 451, Text: "mailbox busy"},
	hard:       {Verdict: driver.Permanent, Code: 550, Text: "Invalid recipient"},
	softSender: {Verdict: driver.Temporary, Code: 452, Text: "asked to wait"},
	hardSender: {Verdict: driver.Permanent, Code: 553, Text: "not wanted"},
}}

// startOpenSMTPD starts an OpenSMTPD and returns it with its address. It offers no
// STARTTLS: as Debian 12 has it (6.8.0p2 with OpenSSL 3), it ends every handshake
// with an internal error, whoever the client is.
func startOpenSMTPD(t *testing.T) (*peer, string) {
	t.Helper()
	p, port := newPeer(t), freePort(t)
	in := strings.NewReplacer("{dir}", p.dir, "{relay}", strconv.Itoa(port))
	conf := p.write("smtpd.conf", in.Replace(opensmtpdConfig))
	p.program("keep", in.Replace(keep))
	spool, run := p.folder("spool"), p.folder("run")
	p.restrict("spool", 0o711)
	p.restrict("run", 0o755)
	p.queue = []string{filepath.Join(spool, "queue"), filepath.Join(spool, "incoming")}
	// The places of its spool, its socket and its delivery agents are compiled in.
	program := program(t, "smtpd")
	libexec := filepath.Join(filepath.Dir(program), "..", "libexec")
	cmd := exec.Command("sh", "-ec", `
		mount --bind "$1" /var/spool/smtpd
		mount --bind "$2" /run
		mount --bind "$3" /usr/libexec
		exec "$4" -d -f "$5"`, "sh", spool, run, libexec, program, conf)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Setpgid: true}
	p.run(cmd, at(port))
	return p, at(port)
}

func TestOpenSMTPD(t *testing.T) {
	t.Parallel()
	p, address := startOpenSMTPD(t)
	keepsPromises(t, p, address, opensmtpdManner)
	keepsItsLimit(t, p, address)
}
