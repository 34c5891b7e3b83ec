package delivery

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

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

// A mailSigner is one kind of signature in N1d.
type mailSigner struct {
	name     string
	oneOf    int // the people of N1, as it takes so long
	generate func() (crypto.Signer, error)
	options  crypto.SignerOpts
}

func mailSigners() []mailSigner {
	return []mailSigner{
		{name: "Ed25519", oneOf: 1, options: crypto.Hash(0), generate: func() (crypto.Signer, error) {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			return key, err
		}},
		{name: "RSA-2048", oneOf: 10, options: crypto.SHA256, generate: func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) }},
	}
}

// keyFile makes a key and writes it to a file.
func keyFile(l *harness.Env, s mailSigner) (key crypto.Signer, path string, err error) {
	if key, err = s.generate(); err != nil {
		return nil, "", err
	}
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, "", err
	}
	path = l.File(s.name + ".pem")
	return key, path, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), 0o600)
}

// signatureMicros returns the CPU time of a signature alone, in microseconds.
func signatureMicros(key crypto.Signer, options crypto.SignerOpts) (float64, error) {
	const times = 500
	digest := sha256.Sum256([]byte(loadgen.Service))
	began := harness.OwnCPU()
	for range times {
		if _, err := key.Sign(rand.Reader, digest[:], options); err != nil {
			return 0, err
		}
	}
	return report.MicrosPer(harness.OwnCPU()-began, times), nil
}

// signaturesMetric is the number of signatures that the channel has made.
const signaturesMetric = `fanfare_dkim_signatures_total{channel="email",domain="example.org",selector="bench",service="` + loadgen.Service + `"}`

// RunSigned is N1d.
func RunSigned(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	r.Unit = "mails/s"
	r.Params["subscriptions"], r.Params["connections"], r.Params["sink"] = n, loadgen.Connections, l.Sink
	var w report.Checks
	var used harness.WindowUsage
	broadcast := func(name string, n int, dkim string) (perSecond, serverMicros float64, err error) {
		lines, err := l.NotifyPeople(n)
		if err != nil {
			return 0, 0, err
		}
		var aside report.Record
		p := harness.BroadcastPlan{Data: "N1d-" + name, Lines: lines, Subscriptions: n, Retry: "1s"}
		p.Config = func(relay string) []byte {
			return loadgen.Channel{Retry: p.Retry, Driver: fmt.Sprintf("driver: smtp, relay: %q, %s%s", relay, loadgen.SenderField, dkim)}.Configuration(loadgen.Service)
		}
		p.Inspect = func(s *harness.Server, _ *harness.SentBroadcast) error {
			made, err := s.Metric(signaturesMetric)
			w.Require(dkim == "" || made == float64(n), "%s: the server made %v signatures for %d mails", name, made, n)
			return err
		}
		b, mailSink, sum, err := l.SendBroadcast(p, &aside, &w)
		if err != nil {
			return 0, 0, err
		}
		harness.CheckSink(&aside, mailSink, sum, n, &w)
		used.Add(b.WindowUsage)
		r.Lost, r.Duplicates = r.Lost+aside.Lost, r.Duplicates+aside.Duplicates
		return float64(n) / b.Durable().Seconds(), report.MicrosPer(b.Server, n), nil
	}
	plain, without, err := broadcast("plain", n, "")
	if err != nil {
		return err
	}
	r.AddPoint(report.Point{At: "plain", Value: plain})
	r.Note("unsigned: %.1f us of server CPU for a mail", without)
	for _, s := range mailSigners() {
		key, path, err := keyFile(l, s)
		if err != nil {
			return err
		}
		bare, err := signatureMicros(key, s.options)
		if err != nil {
			return err
		}
		rate, micros, err := broadcast(s.name, n/s.oneOf, fmt.Sprintf(", dkim: [{domain: example.org, selector: bench, key_file: %q}]", path))
		if err != nil {
			return err
		}
		r.AddPoint(report.Point{At: s.name, Value: rate, Limit: plain})
		r.Note("%s: %.1f us of server CPU for a mail, of which signing takes %.1f us (%.0f %%); the signature operation alone takes %.1f us", s.name, micros, micros-without, 100*(micros-without)/micros, bare)
	}
	harness.RecordUsage(r, used)
	r.Note("RSA-2048 has a tenth of the people")
	r.Note("the limit of a signed broadcast is the unsigned one of the same run; signing includes the hash of the mail, the signature, and sending 300 to 600 more bytes")
	return report.FirstError(r.UsePoint("Ed25519"), w)
}
