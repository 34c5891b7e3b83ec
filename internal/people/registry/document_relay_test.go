package registry_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestRelaysTakeFromTheirChannelAllButNameAndPassword(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	t.Setenv("ONE_PASSWORD", "one's")
	apply(t, r, `
service: a
channels:
  alone: {driver: smtp, relay: 'h:25', from: a@b.c, tls: implicit}
  several:
    driver: smtp
    from: a@b.c
    tls: required
    hello: mail.b.c
    relays:
      - {relay: 'one:587', weight: 70, username: u, password_env: ONE_PASSWORD}
      - {relay: 'two:25', tls: "off", hello: other.b.c, grouping: lockstep, name: second}
      - {relay: 'three:25', weight: 0}
`)
	alone, _ := r.ChannelNamed("a", "alone")
	if hops := alone.Hops(); len(hops) != 1 || hops[0].Name != "h:25" || hops[0].Weight != 1 || hops[0].Channel.TLS != "implicit" {
		t.Errorf("of one relay: %+v", hops)
	}
	several, _ := r.ChannelNamed("a", "several")
	var got []string
	for _, h := range several.Hops() {
		c := h.Channel
		password, err := c.Password()
		if err != nil || c.Relays != nil {
			t.Errorf("%s: %v, %+v", h.Name, err, c.Relays)
		}
		got = append(got, strings.Join([]string{h.Name, c.Relay, c.TLS, c.Hello, c.Grouping, c.Username, password}, " "))
		if want := map[string]int{"one:587": 70, "second": 1, "three:25": 0}[h.Name]; h.Weight != want {
			t.Errorf("%s has the weight %d, want %d", h.Name, h.Weight, want)
		}
	}
	want := "one:587 one:587 required mail.b.c auto u one's\nsecond two:25 off other.b.c lockstep  \nthree:25 three:25 required mail.b.c auto  "
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func TestWrongRelaysAreRefusedWithTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ text, at, says string }{
		"none":                    {"{}", "", "exactly one of relay and relays"},
		"both":                    {"{relay: 'h:25', relays: [{relay: 'i:25'}]}", "", "exactly one of relay and relays"},
		"empty":                   {"{relays: []}", "/relays", "list of relays is empty"},
		"no host":                 {"{relays: [{weight: 1}]}", "/relays/0", "relay is missing"},
		"not a host":              {"{relays: [{relay: h}]}", "/relays/0/relay", "host and port"},
		"twice":                   {"{relays: [{relay: 'h:25'}, {relay: 'h:25'}]}", "/relays", "two relays"},
		"a weight that is none":   {"{relays: [{relay: 'h:25', weight: -1}]}", "/relays/0/weight", "whole number"},
		"nothing leaves":          {"{relays: [{relay: 'h:25', weight: 0}]}", "/relays", "weight 0"},
		"a password for nobody":   {"{relays: [{relay: 'h:25', password_env: X}]}", "/relays/0", "must be set together"},
		"a name of the channel":   {"{username: u, password_env: X, relays: [{relay: 'h:25'}]}", "", "username cannot be combined with relays"},
		"an unknown field":        {"{relays: [{relay: 'h:25', wait: 1}]}", "/relays/0/wait", "unknown field"},
		"more than connections":   {"{connections: 1, relays: [{relay: 'h:25'}, {relay: 'i:25'}]}", "", "fewer than its 2 relays"},
		"more than a channel has": {"{connections: 50, relays: [" + strings.Repeat("{relay: 'h:25'},", 17) + "]}", "/relays", "at most 16"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, " + strings.TrimPrefix(c.text, "{")
			_, err := document.ParseDocument([]byte(text), "")
			e, ok := errors.AsType[*fanfare.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			all := append([]*fanfare.Error{e}, e.Details...)
			for _, one := range all {
				if one.Pointer == "/channels/e"+c.at && strings.Contains(one.Message, c.says) {
					return
				}
			}
			t.Errorf("got %v", err)
		})
	}
}

func TestTheAdminOfAServiceMovesWeightsAndNoPasswords(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relays: [{relay: 'h:25', username: u, password_file: /x}, {relay: 'i:25'}]}\n")
	tenant := audit.WithActor(context.Background(), audit.Actor{KeyID: "key-2", Tenant: "a"})
	for text, allowed := range map[string]bool{
		"{relay: 'h:25', username: u, password_file: /x, weight: 5}, {relay: 'i:25'}": true,
		"{relay: 'evil:25', username: u, password_file: /x}, {relay: 'i:25'}":         false,
		"{relay: 'h:25', username: u, password_file: /y}, {relay: 'i:25'}":            false,
	} {
		d, err := document.ParseDocument([]byte("service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relays: ["+text+"]}\n"), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(tenant, d); (err == nil) != allowed || err != nil && fanfare.CodeOf(err) != fanfare.Forbidden {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestADrainedRelayStaysDrainedOverARestart(t *testing.T) {
	ctx, place := audit.WithActor(context.Background(), tester), storetest.Place(t)
	r, _ := openAt(t, place)
	apply(t, r, "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relays: [{relay: 'h:25'}, {relay: 'i:25', name: second}]}\n")
	for _, wrong := range []string{"a/e/j:25", "a/x/h:25", "x/e/h:25", "a/e", "a", "", "a/e/i:25"} {
		if err := r.SetPaused(ctx, fanfare.Scope{Kind: fanfare.ScopeRelay, Name: wrong}, true, ""); err == nil {
			t.Errorf("%q was drained", wrong)
		}
	}
	for _, name := range []string{"a/e/h:25", "a/e/second"} {
		if err := r.SetPaused(ctx, fanfare.Scope{Kind: fanfare.ScopeRelay, Name: name}, true, "maintenance"); err != nil {
			t.Error(err)
		}
	}
	if err := r.SetPaused(ctx, fanfare.Scope{Kind: fanfare.ScopeRelay, Name: "a/e/second"}, false, ""); err != nil {
		t.Error(err)
	}
	r.Close()
	r, _ = openAt(t, place)
	e, _ := r.ChannelNamed("a", "e")
	if !r.RelayDrained(e, "h:25") || r.RelayDrained(e, "second") {
		t.Error("what is drained is not what was")
	}
	if paused := r.Paused(); len(paused) != 1 || paused[0].Scope.Name != "a/e/h:25" || paused[0].Reason != "maintenance" {
		t.Errorf("paused: %+v", paused)
	}
	var deeds []string
	for _, line := range audited(t, r) {
		if strings.Contains(line, " relay ") {
			deeds = append(deeds, line)
		}
	}
	if want := "a: drain relay a/e/h:25, a: drain relay a/e/second, a: restore relay a/e/second"; strings.Join(deeds, ", ") != want {
		t.Errorf("the audit has %q, want %q", deeds, want)
	}
}
