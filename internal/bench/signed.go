package bench

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

// A signer is how the mails of N1d are signed.
type signer struct {
	name     string
	oneOf    int // the people of N1, as it takes so long
	generate func() (crypto.Signer, error)
	options  crypto.SignerOpts
}

func signers() []signer {
	return []signer{
		{name: "Ed25519", oneOf: 1, options: crypto.Hash(0), generate: func() (crypto.Signer, error) {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			return key, err
		}},
		{name: "RSA-2048", oneOf: 10, options: crypto.SHA256, generate: func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) }},
	}
}

// keyFile makes a key and its file.
func (l *lab) keyFile(s signer) (key crypto.Signer, path string, err error) {
	if key, err = s.generate(); err != nil {
		return nil, "", err
	}
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, "", err
	}
	path = l.file(s.name + ".pem")
	return key, path, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), 0o600)
}

// bareMicros is what a signature alone takes of a CPU, in microseconds.
func bareMicros(key crypto.Signer, options crypto.SignerOpts) (float64, error) {
	const times = 500
	digest := sha256.Sum256([]byte(service))
	began := ownCPU()
	for range times {
		if _, err := key.Sign(rand.Reader, digest[:], options); err != nil {
			return 0, err
		}
	}
	return micro(ownCPU()-began, times), nil
}

// signaturesMetric counts what the channel signed.
const signaturesMetric = `fanfare_dkim_signatures_total{channel="email",domain="example.org",selector="bench",service="` + service + `"}`

// runSigned is N1d.
func runSigned(l *lab, r *Record) error {
	n := l.size(1_000_000, 1000)
	r.Unit = "mails/s"
	r.Params["subscriptions"], r.Params["connections"], r.Params["sink"] = n, connections, l.Sink
	var w wrong
	var used toll
	broadcast := func(name string, n int, dkim string) (perSecond, serverMicros float64, err error) {
		lines, err := l.notifyPeople(n)
		if err != nil {
			return 0, 0, err
		}
		var aside Record
		p := plan{data: "N1d-" + name, lines: lines, subs: n, retry: "1s"}
		p.config = func(relay string) []byte {
			return way{retry: p.retry, driver: fmt.Sprintf("driver: smtp, relay: %q, %s%s", relay, senderField, dkim)}.configuration(service)
		}
		p.inspect = func(s *server, _ *sending) error {
			made, err := s.metric(signaturesMetric)
			w.unless(dkim == "" || made == float64(n), "%s: %v signatures were made of %d mails", name, made, n)
			return err
		}
		b, box, sum, err := l.send(p, &aside, &w)
		if err != nil {
			return 0, 0, err
		}
		aside.account(box, sum, n, &w)
		used.add(b.toll)
		r.Lost, r.Duplicates = r.Lost+aside.Lost, r.Duplicates+aside.Duplicates
		return float64(n) / b.durable().Seconds(), micro(b.server, n), nil
	}
	plain, without, err := broadcast("plain", n, "")
	if err != nil {
		return err
	}
	r.point(Point{At: "plain", Value: plain})
	r.note("plain: CPU a mail %.1f us of the server", without)
	for _, s := range signers() {
		key, path, err := l.keyFile(s)
		if err != nil {
			return err
		}
		bare, err := bareMicros(key, s.options)
		if err != nil {
			return err
		}
		rate, micros, err := broadcast(s.name, n/s.oneOf, fmt.Sprintf(", dkim: [{domain: example.org, selector: bench, key_file: %q}]", path))
		if err != nil {
			return err
		}
		r.point(Point{At: s.name, Value: rate, Limit: plain})
		r.note("%s: CPU a mail %.1f us of the server, of which signing %.1f us (%.0f %%); the signature alone takes %.1f us", s.name, micros, micros-without, 100*(micros-without)/micros, bare)
	}
	r.take(used)
	r.note("RSA-2048 has a tenth of the people")
	r.note("the limit of a signed broadcast is the plain one of the same run; signing is what a mail takes more than there: the hash of the mail, the signature, and its 300 to 600 bytes on the way")
	return errorsOf(r.stand("Ed25519"), w)
}
