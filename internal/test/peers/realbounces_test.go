//go:build peers

package peers

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"fanfare.dev/fanfare/client"
)

// A real mail server that cannot deliver a message returns its own bounce, and the delivery
// fails.
func TestBouncesOfRealServersAreApplied(t *testing.T) {
	t.Parallel()
	for name, startRelay := range map[string]func(*testing.T, string) (*peer, string){"Postfix": startBouncingPostfix, "Exim": startBouncingExim} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, inbound := startReturning(t)
			relay, address := startRelay(t, inbound)
			event := s.publish(address, "good1@example.org", "nobody1@example.org", "good2@example.org", "nobody2@example.org")
			states := func() (got []string) {
				page, err := s.client.ForService("news").Deliveries(t.Context(), event, client.DeliveryQuery{Limit: 10})
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range page.Deliveries {
					got = append(got, d.Address+" "+d.State)
				}
				return got
			}
			relay.eventually("both bounces are applied", func() bool {
				return strings.Count(strings.Join(states(), "\n"), " failed") == 2
			})
			for _, state := range states() {
				if strings.HasPrefix(state, "nobody") != strings.HasSuffix(state, " failed") {
					t.Error(state)
				}
			}
		})
	}
}

// startBouncingPostfix takes mail for anybody at example.org and knows only some.
func startBouncingPostfix(t *testing.T, inbound string) (*peer, string) {
	p := startPostfix(t, fmt.Sprintf(`
smtpd_reject_unlisted_recipient = no
virtual_mailbox_maps = inline:{ good1@example.org=all/, good2@example.org=all/ }
default_transport = smtp:[%s
`, strings.Replace(inbound, ":", "]:", 1)))
	return p.peer, p.address["relay"]
}

// startBouncingExim does the same.
func startBouncingExim(t *testing.T, inbound string) (*peer, string) {
	t.Helper()
	_, port, err := net.SplitHostPort(inbound)
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer(
		"begin routers\n", "begin routers\nback:\n  driver = manualroute\n  domains = bounces.example.org\n  transport = back\n  route_list = * 127.0.0.1\n  self = send\n",
		"  domains = +ours\n  transport", "  domains = +ours\n  local_parts = ^good\n  transport",
		"begin transports\n", "begin transports\nback:\n  driver = smtp\n  allow_localhost\n  port = "+port+"\n",
	).Replace(eximConfig)
	p := startEximWith(t, 1000, config)
	return p.peer, p.address["relay"]
}
