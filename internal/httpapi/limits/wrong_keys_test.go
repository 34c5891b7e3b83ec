package limits

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

func TestANetworkOfIPv6IsOneGuesser(t *testing.T) {
	var g WrongKeys
	r := func(from string) *http.Request { return &http.Request{RemoteAddr: from, Header: http.Header{}} }
	now := time.Unix(1_800_000_000, 0)
	for i := range WrongKeyBurst {
		g.Count(r(fmt.Sprintf("[2001:db8::%x]:1", i)), now)
	}
	if g.Count(r("[2001:db8::ffff]:1"), now) == nil {
		t.Error("a neighbour in the same network may go on")
	}
	if err := g.Count(r("[2001:db8:0:1::1]:1"), now); err != nil {
		t.Errorf("another network: %v", err)
	}
}

func TestGuessersAreBounded(t *testing.T) {
	var g WrongKeys
	now := time.Unix(1_800_000_000, 0)
	at := netip.MustParseAddr("198.18.0.0")
	for range maxAddresses + 500 {
		g.Count(&http.Request{RemoteAddr: at.String() + ":1"}, now)
		at = at.Next()
	}
	if len(g.byAddress) > maxAddresses+1 {
		t.Errorf("%d addresses are remembered", len(g.byAddress))
	}
	later := now.Add(time.Minute)
	g.Count(&http.Request{RemoteAddr: at.String() + ":1"}, later)
	if len(g.byAddress) > 2 {
		t.Errorf("%d are remembered when their time is over", len(g.byAddress))
	}
}
