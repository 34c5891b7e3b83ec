package webhook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A Driver posts messages to their addresses. It is safe for concurrent use; each call of
// Serve has one request at a time.
type Driver struct {
	config    Config
	transport *http.Transport
}

var _ driver.Driver = (*Driver)(nil)

// New returns a driver for a valid Config. It opens no connection.
func New(config Config) *Driver {
	config = config.withDefaults()
	return &Driver{config, newTransport(&config)}
}

// Serve posts messages until the queue has no more or ctx ends; see driver.Driver.
func (d *Driver) Serve(ctx context.Context, queue driver.Queue) error {
	for {
		message, err := queue.Next(ctx, true)
		if err != nil || message == nil {
			return err
		}
		if err := d.post(ctx, queue, message); err != nil {
			return err
		}
	}
}

// post sends one message and reports it. It returns only errors of the queue.
func (d *Driver) post(ctx context.Context, queue driver.Queue, message *driver.Message) error {
	to, err := d.parseURL(d.receiver(message))
	if err != nil {
		return settle(queue, message, driver.Outcome{Verdict: driver.Permanent, Text: replyText(err.Error()), Relay: "this server", Class: fanfare.ClassInvalid})
	}
	a := begin(ctx, d, queue, message)
	outcome, end := a.run(to)
	outcome.Relay = hostPort(to)
	switch end {
	case notReleased:
		return nil
	case cancelled:
		queue.Return(message)
		return nil
	case unsent:
		return settle(queue, message, outcome)
	}
	return report(queue, message, outcome)
}

// receiver returns the URL to which a message is posted.
func (d *Driver) receiver(message *driver.Message) string {
	if d.config.URL != "" {
		return d.config.URL
	}
	return message.To
}

// parseURL parses the address of a message.
func (d *Driver) parseURL(address string) (*url.URL, error) {
	to, err := url.Parse(address)
	switch {
	case err != nil || to.Host == "" || to.User != nil:
		return nil, fmt.Errorf("the address must be an absolute URL without user information")
	case to.Scheme == "http" && !d.config.AllowHTTP:
		return nil, fmt.Errorf("the address is an http URL; use https, or set allow_http for the channel")
	case to.Scheme != "http" && to.Scheme != "https":
		return nil, fmt.Errorf("the scheme of the address is not https")
	}
	return to, nil
}

// hostPort returns host:port of the receiver.
func hostPort(to *url.URL) string {
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[to.Scheme]
	}
	return net.JoinHostPort(to.Hostname(), port)
}

// settle reports the outcome of a message that was not sent.
func settle(queue driver.Queue, message *driver.Message, outcome driver.Outcome) error {
	if !queue.Release(message) {
		return nil
	}
	return report(queue, message, outcome)
}

func report(queue driver.Queue, message *driver.Message, outcome driver.Outcome) error {
	outcome.At = now()
	if err := queue.Report(message, outcome); err != nil {
		return fmt.Errorf("cannot record the outcome: %w", err)
	}
	return nil
}

// replyText limits text from outside to what an outcome allows.
func replyText(text string) string {
	return string(driver.AppendText(nil, []byte(text), driver.MaxTextBytes))
}
