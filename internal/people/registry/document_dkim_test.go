package registry_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestAChannelNamesItsKeysAndHasThemNowhere(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	t.Setenv("ONE_KEY", "one's secret")
	file := filepath.Join(t.TempDir(), "two.pem")
	if err := os.WriteFile(file, []byte("two's secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apply(t, r, `
service: a
channels:
  e:
    driver: smtp
    relay: 'h:25'
    from: a@news.example.org
    dkim:
      - {domain: Example.ORG, selector: s1, key_env: ONE_KEY}
      - {domain: example.org, selector: 2026.s2, key_file: `+file+`, from: 2026-11-20}
      - {domain: example.org, selector: s3, key_file: /none, from: "2026-12-01T10:00:00+01:00"}
  f: {driver: file, path: /mails, from: a@b.c, dkim: [{domain: b.c, selector: s, key_env: ONE_KEY}]}
`)
	e, _ := r.ChannelNamed("a", "e")
	f, _ := r.ChannelNamed("a", "f")
	if len(e.DKIM) != 3 || len(f.DKIM) != 1 {
		t.Fatalf("%+v, %+v", e.DKIM, f.DKIM)
	}
	if k := e.DKIM[0]; k.Domain != "example.org" || k.Selector != "s1" || !k.From.IsZero() {
		t.Errorf("%+v", k)
	}
	if k := e.DKIM[1]; k.Selector != "2026.s2" || !k.From.Equal(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", k)
	}
	if k := e.DKIM[2]; !k.From.Equal(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", k)
	}
	for i, want := range []string{"one's secret", "two's secret"} {
		if text, err := e.KeyText(&e.DKIM[i]); err != nil || text != want {
			t.Errorf("%q, %v", text, err)
		}
	}
	if _, err := e.KeyText(&e.DKIM[2]); err == nil || !strings.Contains(err.Error(), "cannot read key_file /none") {
		t.Errorf("%v", err)
	}
}

func TestWrongKeysAreRefusedWithTheirPlace(t *testing.T) {
	key := "domain: b.c, selector: s, key_file: /x"
	for name, c := range map[string]struct{ text, at, says string }{
		"no domain":        {"{selector: s, key_file: /x}", "/0", "domain is missing"},
		"no selector":      {"{domain: b.c, key_file: /x}", "/0", "selector is missing"},
		"no key":           {"{domain: b.c, selector: s}", "/0", "the key is missing"},
		"both":             {"{" + key + ", key_env: X}", "/0", "both key_env and key_file"},
		"the key itself":   {"{domain: b.c, selector: s, key: MC4CAQ}", "/0/key", "unknown field"},
		"no dot":           {"{domain: localhost, selector: s, key_file: /x}", "/0/domain", "not a mail domain"},
		"two dots":         {"{domain: b..c, selector: s, key_file: /x}", "/0/domain", "not a mail domain"},
		"another script":   {"{domain: bücher.example, selector: s, key_file: /x}", "/0/domain", "not a mail domain"},
		"an address":       {"{domain: a@b.c, selector: s, key_file: /x}", "/0/domain", "not a mail domain"},
		"the whole record": {"{domain: b.c, selector: 's; t=y', key_file: /x}", "/0/selector", "not a selector"},
		"a long label":     {"{domain: b.c, selector: " + strings.Repeat("s", 64) + ", key_file: /x}", "/0/selector", "not a selector"},
		"a line":           {`{domain: "b.c\n", selector: s, key_file: /x}`, "/0/domain", "one line"},
		"no time":          {"{" + key + ", from: tomorrow}", "/0/from", "not a time"},
		"twice":            {"{" + key + "}, {" + key + "}", "/1", "two keys"},
		"too many":         {strings.Repeat("{"+key+"}, ", 9), "", "at most 8"},
		"not a list":       {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := "service: a\nchannels:\n  e: {driver: smtp, relay: 'h:25', from: a@b.c, dkim: [" + c.text + "]}\n"
			if name == "not a list" {
				text, c.says = strings.NewReplacer("[", "{", "]", "}").Replace(text), "must be a list"
			}
			_, err := document.ParseDocument([]byte(text), "")
			e, ok := errors.AsType[*fanfare.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			for _, one := range append([]*fanfare.Error{e}, e.Details...) {
				if one.Pointer == "/channels/e/dkim"+c.at && strings.Contains(one.Message, c.says) {
					return
				}
			}
			t.Errorf("got %v", err)
		})
	}
	if _, err := document.ParseDocument([]byte("service: a\nchannels:\n  e: {driver: webhook, dkim: []}\n"), ""); err == nil {
		t.Error("a webhook has keys")
	}
}
