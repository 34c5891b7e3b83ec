package registry_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestAChannelNamesTheSecretOfItsReceiptsAndHasItNowhere(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	file := filepath.Join(t.TempDir(), "receipts.secret")
	if err := os.WriteFile(file, []byte("the secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	channel := func(receipts string) string {
		return "service: a\nchannels:\n  e: {driver: smtp, relay: 'h:25', from: a@example.org" + receipts + "}\n"
	}
	text := channel(", receipts: {form: mailgun, secret_file: " + file + "}")
	apply(t, r, text)
	r.Close()
	r, _ = openAt(t, place)
	e, _ := r.ChannelNamed("a", "e")
	if secret, err := e.ReceiptSecrets(); err != nil || secret != "the secret" || e.Receipts.Form != "mailgun" {
		t.Errorf("after a restart: %+v, %q, %v", e.Receipts, secret, err)
	}
	if shown, err := json.Marshal(e.ChannelSettings); err != nil || strings.Contains(string(shown), "the secret") {
		t.Errorf("%s, %v", shown, err)
	}
	if diff := apply(t, r, text); len(diff.Changes) != 0 {
		t.Errorf("the same once more is a difference: %+v", diff)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := e.ReceiptSecrets(); fanfare.CodeOf(err) != fanfare.Unavailable {
		t.Errorf("without the file: %v", err)
	}
	apply(t, r, channel(""))
	if e, _ = r.ChannelNamed("a", "e"); e.Receipts != (catalog.Receipts{}) {
		t.Errorf("taken away it is %+v", e.Receipts)
	}
	for _, wrong := range []string{"mailgun", "{}", "{form: mailgun}", "{form: odd, secret_env: A}", "{form: standard, secret_env: A, secret_file: /b}", "{form: standard, secret: A}"} {
		if _, err := document.ParseDocument([]byte(channel(", receipts: "+wrong)), ""); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
	if _, err := document.ParseDocument([]byte("service: a\nchannels:\n  e: {driver: file, path: /mails, from: a@example.org, receipts: {form: standard, secret_env: A}}\n"), ""); err == nil {
		t.Error("a folder has receipts")
	}
}
