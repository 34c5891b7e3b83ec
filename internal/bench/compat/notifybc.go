package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

// atOnce is the number of requests under way of NotifyBC's load script.
const atOnce = 100

// A notifyBC is a server with the NotifyBC API.
type notifyBC struct {
	*harness.Server
	address string // host:port of the API
}

// startNotifyBC starts a server whose service has a relay.
func startNotifyBC(l *harness.Env, data, relay string) (*notifyBC, error) {
	address, err := freeAddress(l.Ctx)
	if err != nil {
		return nil, err
	}
	file := l.File(data + "-notifybc.yaml")
	text := fmt.Sprintf("service: %s\nlisten: %s\nadminIps: [127.0.0.1]\n", loadgen.Service, address)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s, err := l.StartServer(data, "--notifybc", file)
	if err != nil {
		return nil, err
	}
	document := append([]byte("matching_budget: 100ms\n"), loadgen.Configuration(relay, "1s")...)
	if _, err := s.API.Apply(l.Ctx, document, false); err != nil {
		return nil, err
	}
	return &notifyBC{s, address}, nil
}

// freeAddress returns an address at which nothing listens.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// script appends the body of a subscription as NotifyBC's load script posts it, for an address of its own.
func script(dst []byte, service string, i int, filter string) []byte {
	dst = append(dst, `{"serviceName":"`...)
	dst = append(dst, service...)
	dst = append(dst, `","channel":"email","state":"confirmed","index":`...)
	dst = strconv.AppendInt(dst, int64(i), 10)
	dst = append(dst, `,"confirmationRequest":{"sendRequest":false},"userChannelId":"`...)
	dst = loadgen.Person(i).AppendAddress(dst)
	dst = append(dst, `","broadcastPushNotificationFilter":`...)
	dst = strconv.AppendQuote(dst, filter)
	return append(dst, '}')
}

// load returns requests of the load script.
func (s *notifyBC) load(service string, filter func(i int) string) loadgen.HTTPLoad {
	return loadgen.HTTPLoad{URL: "http://" + s.address, Path: "/api/subscriptions", Connections: atOnce,
		Body: func(dst []byte, i int) []byte { return script(dst, service, i, filter(i)) }}
}

// fill creates subscriptions as the load script does.
func (s *notifyBC) fill(n int, service string, filter func(i int) string) (loadgen.HTTPResult, error) {
	bar := s.Env.Progress("subscriptions", int64(n))
	defer bar.End()
	return s.load(service, filter).Run(s.Env.Ctx, n, bar.Set)
}

// broadcast sends a synchronous broadcast and returns the time until its answer.
func (s *notifyBC) broadcast(service string) (time.Duration, error) {
	body, err := json.Marshal(map[string]any{
		"serviceName": service, "channel": "email", "isBroadcast": true, "data": loadgen.NewsOfTheDay(),
		"message": map[string]string{"from": "alerts@example.org", "subject": "{title}",
			"textBody": "{title}\n\n{description}\n\nRead on: {link}\n\nLeave this list: {unsubscription_url}\n",
			"htmlBody": "<h1>{title}</h1>\n<p>{description}</p>\n<p><a href=\"{link}\">Read on</a></p>\n<p><a href=\"{unsubscription_url}\">Leave this list</a></p>\n"},
	})
	if err != nil {
		return 0, err
	}
	started := time.Now()
	request, err := http.NewRequestWithContext(s.Env.Ctx, http.MethodPost, "http://"+s.address+"/api/notifications", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := (&http.Client{}).Do(request)
	if err != nil {
		return 0, s.WithLog(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	took := time.Since(started)
	if err != nil {
		return 0, err
	}
	var sent struct {
		State    string `json:"state"`
		Dispatch struct {
			Failed []json.RawMessage `json:"failed"`
		} `json:"dispatch"`
	}
	if err := json.Unmarshal(text, &sent); err != nil || answer.StatusCode != http.StatusOK || sent.State != "sent" || len(sent.Dispatch.Failed) > 0 {
		return 0, fmt.Errorf("the broadcast was answered with %s: %.300s", answer.Status, text)
	}
	return took, nil
}

// RunSubscriptions is X1.
func RunSubscriptions(l *harness.Env, r *report.Record) error {
	n := l.Size(20_000, 400)
	r.Unit = "subscriptions/s"
	r.Params["subscriptions"], r.Params["at_once"] = n, atOnce
	s, err := startNotifyBC(l, "X1", loadgen.Nowhere)
	if err != nil {
		return err
	}
	own := loadgen.HTTPLoad{URL: s.URL, Key: s.Key, Path: "/v1/subscriptions", Connections: atOnce, Body: func(dst []byte, i int) []byte {
		dst = append(dst, `{"topic":"news","channel":"email","to":"`...)
		dst = loadgen.Person(i).AppendAddress(dst)
		return append(dst, `","filter":"`+loadgen.NotifyFilter+`"}`...)
	}}
	err = alternate(s.Server, r, nil, "NotifyBC", func(round int) (loadgen.HTTPResult, error) {
		shifted := own
		shifted.Body = func(dst []byte, i int) []byte { return own.Body(dst, i+round*n) }
		return shifted.Run(l.Ctx, n, func(int64) {})
	}, func(round int) (loadgen.HTTPResult, error) {
		return s.fill(n, fmt.Sprint("load", round), func(int) string { return loadgen.NotifyFilter })
	})
	if err != nil {
		return err
	}
	r.Note("the limit is the rate of our own API in the same run, POST /v1/subscriptions with the same filter in CEL")
	return s.Stop()
}

// distinct returns one of a thousand filters, each of which matches the news of the day.
func distinct(i int) string {
	return fmt.Sprintf("contains_ci(title,'vancouver') || contains_ci(title,'place %03d')", i%1000)
}

// RunDistinct is X3.
func RunDistinct(l *harness.Env, r *report.Record) error {
	n := l.Size(100_000, 1000)
	r.Unit = "mails/s"
	r.Params["subscriptions"], r.Params["filters"] = n, min(n, 1000)
	return compare(l, r, "X3", n, distinct)
}

// RunBroadcast is X4.
func RunBroadcast(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	r.Unit = "mails/s"
	r.Params["subscriptions"] = n
	return compare(l, r, "X4", n, func(int) string { return loadgen.NotifyFilter })
}

// compare sends a broadcast over our own API and one over the NotifyBC API, each to n subscriptions.
func compare(l *harness.Env, r *report.Record, data string, n int, filter func(i int) string) error {
	lines := l.File(data + ".ndjson")
	if _, err := loadgen.WriteLines(lines, n, func(dst []byte, i int) []byte {
		return loadgen.AppendSubscription(dst, loadgen.Person(i), l.Seed, filter(i))
	}); err != nil {
		return err
	}
	mailSink, err := l.OpenSink(harness.SinkOptions{})
	if err != nil {
		return err
	}
	s, err := startNotifyBC(l, data, mailSink.Addr)
	if err != nil {
		return err
	}
	if put, _, err := s.ImportFile(lines); err != nil || put.Failed > 0 {
		return fmt.Errorf("import: %+v: %w", put, err)
	}
	const service = "load"
	created, err := s.fill(n, service, filter)
	if err != nil {
		return s.WithLog(err)
	}
	r.Note("%s subscriptions/s were created over the NotifyBC API", report.Figure(created.PerSecond))
	var w report.Checks
	own, err := s.Broadcast(mailSink, nil)
	if err != nil {
		return err
	}
	w.Require(own.Counts[fanfare.Accepted] == int64(n), "%d of %d deliveries of our own broadcast are accepted", own.Counts[fanfare.Accepted], n)
	window := s.OpenWindow(mailSink)
	took, err := s.broadcast(service)
	if err != nil {
		return err
	}
	usage := window.Close()
	harness.RecordUsage(r, usage)
	r.CPUMicros = report.MicrosPer(usage.Server, n)
	r.Note("CPU of the server for a mail: own %.1f us, NotifyBC %.1f us", report.MicrosPer(own.Server, n), r.CPUMicros)
	r.Value = float64(n) / took.Seconds()
	r.SetLimit(float64(n) / own.Durable().Seconds())
	r.Note("the limit is our own broadcast in the same run, until the last outcome was durable; the NotifyBC API was measured until its answer")
	if err := s.Stop(); err != nil {
		return err
	}
	sum, err := mailSink.Finish()
	if err != nil {
		return err
	}
	harness.CheckSink(r, mailSink, sum, 2*n, &w)
	return w.Err()
}
