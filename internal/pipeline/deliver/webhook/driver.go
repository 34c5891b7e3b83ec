package webhook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
)

// A Driver posts letters to their addresses. It is safe for concurrent use; each
// call of Serve has one request under way at a time.
type Driver struct {
	config    Config
	transport *http.Transport
}

var _ fanfare.Driver = (*Driver)(nil)

// New returns a driver for a valid Config. It opens nothing.
func New(config Config) *Driver {
	config = config.withDefaults()
	return &Driver{config, newTransport(&config)}
}

// Serve posts letters until the desk has no more or ctx ends; see fanfare.Driver.
func (d *Driver) Serve(ctx context.Context, desk fanfare.Desk) error {
	for {
		letter, err := desk.Next(ctx, true)
		if err != nil || letter == nil {
			return err
		}
		if err := d.post(ctx, desk, letter); err != nil {
			return err
		}
	}
}

// post brings one letter to its end. An error is one of the desk.
func (d *Driver) post(ctx context.Context, desk fanfare.Desk, letter *fanfare.Letter) error {
	to, err := d.target(letter.To)
	if err != nil {
		return settle(desk, letter, fanfare.Outcome{Verdict: fanfare.Permanent, Text: line(err.Error()), Relay: "this server", Class: fanfare.ClassInvalid})
	}
	a := begin(ctx, d, desk, letter)
	outcome, end := a.run(to)
	outcome.Relay = hostPort(to)
	switch end {
	case withdrawn:
		return nil
	case cut:
		desk.Return(letter)
		return nil
	case unsent:
		return settle(desk, letter, outcome)
	}
	return report(desk, letter, outcome)
}

// target reads the address of a letter.
func (d *Driver) target(address string) (*url.URL, error) {
	to, err := url.Parse(address)
	switch {
	case err != nil || to.Host == "" || to.User != nil:
		return nil, fmt.Errorf("the address is not a URL that can be posted to")
	case to.Scheme == "http" && !d.config.AllowHTTP:
		return nil, fmt.Errorf("the address has no TLS, and allow_http of the channel is not set")
	case to.Scheme != "http" && to.Scheme != "https":
		return nil, fmt.Errorf("the address is a URL of another kind than https")
	}
	return to, nil
}

// hostPort is who answers.
func hostPort(to *url.URL) string {
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[to.Scheme]
	}
	return net.JoinHostPort(to.Hostname(), port)
}

// settle reports the outcome of a letter that was not put on the wire.
func settle(desk fanfare.Desk, letter *fanfare.Letter, outcome fanfare.Outcome) error {
	if !desk.Release(letter) {
		return nil
	}
	return report(desk, letter, outcome)
}

func report(desk fanfare.Desk, letter *fanfare.Letter, outcome fanfare.Outcome) error {
	outcome.At = now()
	if err := desk.Report(letter, outcome); err != nil {
		return fmt.Errorf("the outcome could not be kept: %w", err)
	}
	return nil
}

// line is text from outside as an outcome may have it.
func line(text string) string {
	return string(deliver.AppendLine(nil, []byte(text), deliver.MaxLine))
}
