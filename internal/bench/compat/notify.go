package compat

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

const (
	notifyService  = "c5d4bd0c-8e5f-4d1f-a8d6-1b0f4f0d1a11"
	notifyTemplate = "0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9c01"
)

// notifyDocument opens the service for clients of GOV.UK Notify, without the limits of Notify.
const notifyDocument = `service: %s
notify: {id: %s, email: email, rate: 6000000/min, daily: {email: 100000000, sms: 1}}
channels:
  email: {driver: smtp, relay: %q, from: "Alerts <alerts@example.org>", rate: unlimited, connections: %d, retry: [1s]}
templates:
  code: {id: %s, syntax: notify, subject: "Hello ((name))", markdown: "Hello ((name)), your code is ((code))."}
`

// RunSends is X2.
func RunSends(l *harness.Env, r *report.Record) error {
	n := l.Size(5000, 300)
	r.Unit = "messages/s"
	r.Params["messages"], r.Params["at_once"] = n, atOnce
	mailSink, err := l.OpenSink(harness.SinkOptions{})
	if err != nil {
		return err
	}
	address, err := freeAddress(l.Ctx)
	if err != nil {
		return err
	}
	s, err := l.StartServer("X2", "--notify-listen", address)
	if err != nil {
		return err
	}
	if _, err := s.API.Apply(l.Ctx, fmt.Appendf(nil, notifyDocument, loadgen.Service, notifyService, mailSink.Addr, loadgen.Connections, notifyTemplate), false); err != nil {
		return err
	}
	var key struct {
		Key string `json:"key"`
	}
	if _, err := s.API.Call(l.Ctx, http.MethodPost, "/v1/keys", nil, map[string]string{"name": "bench", "notify": "live"}, &key); err != nil {
		return err
	}
	body := func(dst []byte, form string, i int) []byte {
		return fmt.Appendf(dst, form, loadgen.Person(i).Address(), i)
	}
	own := loadgen.HTTPLoad{URL: s.URL, Key: s.Key, Path: "/v1/messages", Connections: atOnce, Body: func(dst []byte, i int) []byte {
		return body(dst, `{"channel":"email","template":"code","to":%q,"data":{"name":"Ada","code":%d}}`, i)
	}}
	theirs := loadgen.HTTPLoad{URL: "http://" + address, Path: "/v2/notifications/email", Connections: atOnce, Body: func(dst []byte, i int) []byte {
		return body(dst, `{"email_address":%q,"template_id":"`+notifyTemplate+`","personalisation":{"name":"Ada","code":%d}}`, i)
	}}
	err = alternate(s, r, mailSink, "Notify", func(int) (loadgen.HTTPResult, error) { return whole(s, own, n) }, func(int) (loadgen.HTTPResult, error) {
		if theirs.Key, err = token(key.Key); err != nil {
			return loadgen.HTTPResult{}, err
		}
		return whole(s, theirs, n)
	})
	if err != nil {
		return err
	}
	r.Note("the limit is the rate of our own API in the same run, POST /v1/messages with the same template; Notify's answers contain the text")
	if err := s.Stop(); err != nil {
		return err
	}
	sum, err := mailSink.Finish()
	if err != nil {
		return err
	}
	var w report.Checks
	harness.CheckSink(r, mailSink, sum, 2*rounds*n, &w)
	return w.Err()
}

// whole sends messages, and waits until all are settled. The result is about the requests alone.
func whole(s *harness.Server, h loadgen.HTTPLoad, n int) (loadgen.HTTPResult, error) {
	result, err := h.Run(s.Env.Ctx, n, func(int64) {})
	if err == nil {
		_, err = s.WaitIdle(func(int64) {})
	}
	return result, err
}

// token returns the token of a request that a key of Notify signs: name-SERVICE-SECRET.
func token(key string) (string, error) {
	const uuid = 36
	if len(key) < 2*uuid+1 {
		return "", fmt.Errorf("the key has %d characters", len(key))
	}
	claims, err := json.Marshal(map[string]any{"iss": key[len(key)-2*uuid-1 : len(key)-uuid-1], "iat": time.Now().Unix()})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + encode(claims)
	mac := hmac.New(sha256.New, []byte(key[len(key)-uuid:]))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil)), nil
}
