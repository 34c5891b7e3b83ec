package registry_test

import (
	"context"
	"errors"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// The admin of one service has no access to the machine of the server: neither to files
// or variables as passwords for relays, nor to folders for messages.
func TestTheAdminOfAServiceDoesNotReachTheServersMachine(t *testing.T) {
	const secret = `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org", tls: required, username: u, password_file: /etc/mail.secret}`
	const signs = `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org", dkim: [{domain: example.org, selector: s1, key_file: /etc/s1.pem}]}`
	for name, test := range map[string]struct{ is, put, at string }{
		"a file as a key":                  {"", `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org", dkim: [{domain: example.org, selector: s1, key_file: /data/admin.key}]}`, "dkim"},
		"a variable as a key":              {"", `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org", dkim: [{domain: example.org, selector: s1, key_env: KEY}]}`, "dkim"},
		"a key for another domain":         {signs, `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org", dkim: [{domain: example.com, selector: s1, key_file: /etc/s1.pem}]}`, "dkim"},
		"another relay for signed mail":    {signs, `{driver: smtp, relay: "evil.example:25", from: "a@example.org", dkim: [{domain: example.org, selector: s1, key_file: /etc/s1.pem}]}`, "dkim"},
		"another rate, with the key":       {signs, `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org", dkim: [{domain: example.org, selector: s1, key_file: /etc/s1.pem}], rate: 5/s}`, ""},
		"a file as a secret of receipts":   {"", `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org", receipts: {form: mailgun, secret_file: /data/admin.key}}`, "receipts"},
		"no key":                           {signs, `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org"}`, ""},
		"a file as a password":             {"", `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org", username: u, password_file: /data/admin.key}`, "password_file"},
		"a variable as a password":         {"", `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org", username: u, password_env: FANFARE_KEY}`, "password_env"},
		"a folder to write to":             {"", `{driver: file, path: /data/deliveries, from: "a@example.org"}`, "path"},
		"another relay for the password":   {secret, `{driver: smtp, relay: "evil.example:25", from: "a@example.org", tls: required, username: u, password_file: /etc/mail.secret}`, "password_file"},
		"the password without TLS":         {secret, `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org", tls: "off", username: u, password_file: /etc/mail.secret}`, "password_file"},
		"another rate, with the password":  {secret, `{driver: smtp, relay: "127.0.0.1:25", from: "a@example.org", tls: required, username: u, password_file: /etc/mail.secret, rate: 5/s}`, ""},
		"another relay, and no password":   {secret, `{driver: smtp, relay: "mail.example:25", from: "a@example.org"}`, ""},
		"a relay that asks for nothing":    {"", `{driver: smtp, relay: "mail.example:25", from: "a@example.org"}`, ""},
		"the same folder, another address": {`{driver: file, path: /mails, from: "a@example.org"}`, `{driver: file, path: /mails, from: "b@example.org"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := openAt(t, storetest.Place(t))
			apply(t, r, "service: notify\n")
			member := document.Member{Service: "notify", Kind: "channel", Name: "out"}
			put := func(by audit.Actor, text string) error {
				d, err := document.ParseMember(member, []byte(text), "")
				if err == nil {
					_, err = r.ApplyMember(audit.WithActor(context.Background(), by), d, nil)
				}
				return err
			}
			if test.is != "" {
				if err := put(audit.Actor{KeyID: "key-1"}, test.is); err != nil {
					t.Fatal(err)
				}
			}
			err := put(audit.Actor{KeyID: "key-2", Tenant: "notify"}, test.put)
			if test.at == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Code != fanfare.Forbidden || e.Pointer != "/"+test.at {
				t.Errorf("got %v", err)
			}
			if err := put(audit.Actor{KeyID: "key-1"}, test.put); err != nil {
				t.Errorf("the operator: %v", err)
			}
		})
	}
}
