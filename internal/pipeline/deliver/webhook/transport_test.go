package webhook

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestOnlyThePublicInternetIsReachable(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.215.14": true, "8.8.8.8": true, "2606:4700:4700::1111": true, "2a00:1450:4001:80b::200e": true,
		"127.0.0.1": false, "127.255.255.254": false, "::1": false, "0.0.0.0": false, "0.1.2.3": false, "::": false,
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "172.32.0.1": true, "192.168.1.1": false, "fc00::1": false, "fd12::1": false,
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "fd00:ec2::254": false, "168.63.129.16": false,
		"100.64.0.1": false, "100.100.100.200": false, "100.127.255.255": false, "100.128.0.1": true,
		"224.0.0.1": false, "239.255.255.250": false, "ff02::1": false, "ff0e::1": false, "240.0.0.1": false, "255.255.255.255": false,
		"192.0.0.192": false, "192.0.2.1": false, "198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false, "203.0.113.1": false,
		"2001:db8::1": false, "3fff::1": false, "100::1": false, "2001::1": false, "2001:20::1": false, "5f00::1": false, "4000::1": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:8.8.8.8": true, "::127.0.0.1": false, "::8.8.8.8": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b::808:808": true, "64:ff9b:1::808:808": false,
		"2002:7f00:1::1": false, "2002:a00:1::": false, "2002:808:808::1": true,
	} {
		if got := (&addressGuard{}).permits(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

func TestAllowedNetworksAreReachable(t *testing.T) {
	g := &addressGuard{[]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}}
	for address, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "64:ff9b::a01:203": true, "10.2.0.1": false, "fd00:1::5": true, "fd00:2::5": false, "127.0.0.1": false,
	} {
		if got := g.permits(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

// TestHostNameIsCheckedByTheDialledAddress has a URL with a name of this machine: only the
// connection shows the address.
func TestHostNameIsCheckedByTheDialledAddress(t *testing.T) {
	r := startReceiver(t, "http")
	config := r.config()
	for networks, want := range map[string]driver.Verdict{"": driver.Permanent, "loopback": driver.Accepted} {
		config.AllowNetworks = nil
		if networks != "" {
			config.AllowNetworks = loopback
		}
		message := r.message("/", "hello")
		message.To = strings.Replace(message.To, "127.0.0.1", "localhost", 1)
		if got := one(t, New(config), message); got.Verdict != want {
			t.Errorf("networks %q: %+v, want verdict %d", networks, got, want)
		}
	}
	if len(r.got) != 1 {
		t.Errorf("%d requests arrived, want the allowed one", len(r.got))
	}
}

func TestProxySettingsOfTheEnvironmentAreIgnored(t *testing.T) {
	proxy, r := startReceiver(t, "http"), startReceiver(t, "http")
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	message := r.message("/", "hello")
	message.To = "http://receiver.invalid/"
	if got := one(t, New(r.config()), message); got.Verdict != driver.Temporary {
		t.Errorf("a name that does not exist: %+v", got)
	}
	if len(proxy.protos) > 0 {
		t.Error("the proxy was asked")
	}
}

func TestURLWithoutTLSIsRefusedUnlessAllowed(t *testing.T) {
	r := startReceiver(t, "http")
	config := r.config()
	config.AllowHTTP = false
	if got := one(t, New(config), r.message("/", "hello")); got.Verdict != driver.Permanent || len(r.got) > 0 {
		t.Errorf("%+v, and %d requests", got, len(r.got))
	}
}

func TestPublicTransportReachesNoPrivateAddress(t *testing.T) {
	for allowed, want := range map[string]bool{"": false, "127.0.0.0/8": true} {
		var networks []netip.Prefix
		if allowed != "" {
			networks = append(networks, netip.MustParsePrefix(allowed))
		}
		here := httptest.NewServer(http.NotFoundHandler())
		response, err := (&http.Client{Transport: PublicTransport(networks)}).Get(here.URL)
		if err == nil {
			err = response.Body.Close()
		}
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "not a public IP address") {
			t.Errorf("with %q: %v", allowed, err)
		}
		here.Close()
	}
}
