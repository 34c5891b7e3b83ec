//go:build peers

package peers

import (
	"os/exec"
	"path/filepath"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/smtp"
)

// startSink starts Postfix's smtp-sink, which writes what it takes to files.
func startSink(t *testing.T, flags ...string) (*peer, string) {
	t.Helper()
	p := newPeer(t)
	p.extra = "\n"
	address := at(freePort(t))
	args := append(flags, "-u", "nobody", "-d", filepath.Join(p.mails, "mail."), address, "100")
	p.run(exec.Command(program(t, "smtp-sink"), args...), address)
	return p, address
}

func TestSMTPSinkTakesEveryMessageOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags []string
		mode  smtp.Mode
	}{
		"with all it has":    {nil, smtp.Grouped},
		"without PIPELINING": {[]string{"-p"}, smtp.LockStep},
		"without EHLO":       {[]string{"-e"}, smtp.LockStep},
	} {
		t.Run(name, func(t *testing.T) {
			p, address := startSink(t, c.flags...)
			client := smtp.New(smtp.Config{Address: address})
			messages := crowd(200, allGood)
			s := send(t, client, connections, messages...)
			manner{}.judged(t, s)
			if got := client.Status(); got.Mode != c.mode || len(s.broken) > 0 {
				t.Errorf("the driver ended in %+v, connections with %v", got, s.broken)
			}
			arrivedOnce(t, p.delivered(), messages)
		})
	}
}

func TestSMTPSinkThatRefusesIsBelieved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags   []string
		verdict driver.Verdict
		code    int
		broken  bool
	}{
		"RCPT for now":                  {[]string{"-r", "rcpt"}, driver.Temporary, 450, false},
		"RCPT for good":                 {[]string{"-f", "rcpt"}, driver.Permanent, 500, false},
		"MAIL for now":                  {[]string{"-r", "mail"}, driver.Temporary, 450, false},
		"MAIL for good":                 {[]string{"-f", "mail"}, driver.Permanent, 500, false},
		"the body for now":              {[]string{"-r", "."}, driver.Temporary, 450, false},
		"the body for good":             {[]string{"-f", "."}, driver.Permanent, 500, false},
		"hanging up at the final dot":   {[]string{"-q", "."}, driver.Lost, 0, true},
		"leaving with 421 at the dot":   {[]string{"-Q", "."}, driver.Temporary, 421, true},
		"leaving with 421 at each RCPT": {[]string{"-Q", "rcpt"}, driver.Temporary, 421, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := startSink(t, c.flags...)
			messages := crowd(20, allGood)
			s := send(t, smtp.New(smtp.Config{Address: address}), 2, messages...)
			for l, got := range s.outcomes {
				if got.Verdict != c.verdict || got.Code != c.code {
					t.Errorf("%s: %+v, want verdict %d with %d", l.To, got, c.verdict, c.code)
				}
			}
			if broken := len(s.broken) > 0; broken != c.broken {
				t.Errorf("connections ended with %v", s.broken)
			}
		})
	}
}
