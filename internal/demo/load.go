package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/catalog/document"
)

// apply applies the configuration of the example, with the capture server as its relay.
func (h *host) apply(ctx context.Context, show *screen) error {
	s := show.begin(ctx, "apply", "", 0)
	document, err := h.example.readDocument()
	if err != nil {
		s.drop()
		return err
	}
	document.Channels["email"].Relay = h.relay
	text, err := json.Marshal(document)
	if err != nil {
		s.drop()
		return err
	}
	diff, err := h.api.Apply(ctx, text, false)
	if err != nil {
		s.drop()
		return fmt.Errorf("apply: %w", err)
	}
	kinds := map[string]int{}
	for _, c := range diff.Changes {
		kinds[c.Kind]++
	}
	s.end("%d topic with %d rules, %d templates, %d channel", kinds["topic"], len(document.Topics[h.example.topic].Rules), kinds["template"], kinds["channel"])
	return nil
}

// readDocument reads the configuration from real files, as `fanfare apply -f` does, because it
// refers to other files beside it.
func (x *example) readDocument() (*document.Document, error) {
	dir, err := os.MkdirTemp("", "fanfare-example-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // leaves a few kilobytes in the temporary folder
	if err := os.CopyFS(dir, x.files); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "fanfare.yaml"))
	if err != nil {
		return nil, err
	}
	return document.ParseDocument(text, dir)
}

// A crowd describes the imported subscriptions.
type crowd struct {
	lines         int
	subscriptions int64 // fewer than lines if a person has two equal ones
	people        int
	conditions    int // number of different conditions
}

// importCrowd imports n subscriptions with one request.
func (h *host) importCrowd(ctx context.Context, n int, show *screen) (c crowd, err error) {
	lines, c, err := h.example.encode(n)
	if err != nil {
		return c, err
	}
	s := show.begin(ctx, "import", "subscriptions", n)
	began := time.Now()
	sum, err := h.api.ImportSubscriptions(ctx, bytes.NewReader(lines), func(p client.Progress) { s.set(p.Lines) })
	if err != nil {
		s.drop()
		return c, fmt.Errorf("import: %w", err)
	}
	took := time.Since(began)
	c.subscriptions = sum.Created
	if sum.Failed > 0 {
		s.drop()
		return c, fmt.Errorf("import: %d of %d lines were rejected, the first on line %d: %w", sum.Failed, n, sum.Errors[0].Line, sum.Errors[0].Error.Err())
	}
	s.end("%s subscriptions, %s per second", count(n), rate(n, took))
	return c, nil
}

// encode returns the subscriptions as NDJSON, and counts the people.
func (x *example) encode(n int) ([]byte, crowd, error) {
	var lines bytes.Buffer
	people, conditions := map[string]struct{}{}, map[string]struct{}{}
	err := x.writeLines(&lines, n, seed, func(l Line) {
		people[l.To], conditions[l.condition()] = struct{}{}, struct{}{}
	})
	return lines.Bytes(), crowd{lines: n, people: len(people), conditions: len(conditions)}, err
}

// publish publishes the events as one NDJSON body and returns their public ids.
func (h *host) publish(ctx context.Context, show *screen) ([]string, error) {
	lines, err := h.example.events()
	if err != nil {
		return nil, err
	}
	period, err := h.example.period(lines)
	if err != nil {
		return nil, err
	}
	total := bytes.Count(lines, []byte{'\n'})
	s := show.begin(ctx, "publish", "events", total)
	var ids []string
	sum, err := h.api.PublishLines(ctx, h.example.topic, bytes.NewReader(lines), client.PublishOptions{IDPointer: "/" + h.example.idField, TimePointer: "/" + h.example.timeField},
		func(a client.Accepted, refused *client.LineError) error {
			if refused != nil {
				return fmt.Errorf("line %d: %w", refused.Line, refused.Error.Err())
			}
			ids = append(ids, a.ID)
			s.set(int64(len(ids)))
			return nil
		}, nil)
	if err != nil {
		s.drop()
		return nil, fmt.Errorf("publish: %w", err)
	}
	if sum.Accepted != int64(total) {
		s.drop()
		return nil, fmt.Errorf("publish: %d of %d events were accepted", sum.Accepted, total)
	}
	s.end("%s events of %s", count(total), period)
	return ids, nil
}
