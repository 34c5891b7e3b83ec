package doctor

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/catalog"
)

func TestMXOfInboundDomainIsChecked(t *testing.T) {
	for _, test := range []struct {
		name, returns, level, says string
		hosts                      []string
		err                        error
	}{
		{"the record names this server", "bounces.example.org", "ok", "mx.example.org, which is 192.0.2.1", []string{"other.example.org.", "MX.example.org."}, nil},
		{"there is no record", "bounces.example.org", "warn", "no MX record", nil, &net.DNSError{Err: "no such host", IsNotFound: true}},
		{"the resolver is away", "bounces.example.org", "warn", "cannot determine whether", nil, errors.New("network is unreachable")},
		{"it names another", "bounces.example.org", "warn", "goes to gateway.example.net", []string{"gateway.example.net."}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := healthy(t)
			o.Config.Inbound, o.Config.InboundDomains, o.Config.InboundName = ":25", []string{"bounces.example.org"}, "mx.example.org"
			o.LookupMX = func(context.Context, string) ([]string, error) { return test.hosts, test.err }
			found := Look(t.Context(), o).of("inbound_domains bounces.example.org")
			if len(found) != 1 || !strings.HasPrefix(string(found[0].Level), test.level) || !strings.Contains(found[0].What, test.says) {
				t.Errorf("%+v", found)
			}
		})
	}
}

func TestChannelWithForeignReturnDomainIsReported(t *testing.T) {
	o := healthy(t)
	o.Channels = func(context.Context) ([]*catalog.Channel, error) {
		return []*catalog.Channel{{Service: "news", Name: "away", ChannelSettings: catalog.ChannelSettings{Driver: "file", Path: t.TempDir(), Returns: "elsewhere.example.org"}}}, nil
	}
	for _, f := range Look(t.Context(), o).of("channel news/away") {
		if strings.Contains(f.What, "bounces go to elsewhere.example.org") {
			return
		}
	}
	t.Error("nothing is said of it")
}
