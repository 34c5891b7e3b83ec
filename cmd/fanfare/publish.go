package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// publishing is what one publish command does.
type publishing struct {
	cli     *cli
	api     *client.Client
	topic   string
	format  string
	options client.PublishOptions
	wait    bool
	ids     []string // of what was accepted, in order
}

func (c *cli) publishCommand() *cobra.Command {
	p := publishing{cli: c}
	dryRun := false
	command := &cobra.Command{
		Use: "publish TOPIC FILE|-", Short: "Publish events from a file",
		Long: `Publish events from a JSON file (one object or an array) or from an NDJSON file (one
object per line). Each object is the data of an event. An object with the field
specversion is a CloudEvent with its own id. With --id-field, the server detects events
that are published again. For CloudEvents, TOPIC can be -, in which case the type of
each event specifies its topic.

With --wait, the command shows the progress and returns once all messages are settled.

Exit code 2: some events were rejected or, with --wait, some deliveries failed.`,
		Example: `  fanfare publish earthquakes quakes.ndjson --id-field id --time-field time --wait
  echo '{"id":"q1","mag":6.1,"place":"Alaska"}' | fanfare publish earthquakes - --id-field id --lane urgent
  fanfare publish - events.cloudevents.json`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: c.completeFirst("topics"),
		RunE: func(command *cobra.Command, args []string) error {
			var err error
			if p.api, err = c.connect(); err != nil {
				return err
			}
			if p.topic = args[0]; p.topic == "-" {
				p.topic = ""
			}
			p.options.IDPointer, p.options.TimePointer = asPointer(p.options.IDPointer), asPointer(p.options.TimePointer)
			if dryRun {
				return p.try(command, args[1])
			}
			in, size, err := c.open(args[1])
			if err != nil {
				return err
			}
			defer in.Close()
			if p.format == "" && strings.EqualFold(filepath.Ext(args[1]), ".json") {
				p.format = "json"
			}
			return p.run(command, in, size)
		},
	}
	flags := command.Flags()
	flags.StringVar(&p.format, "format", "", "format: json or ndjson (default: json for .json, otherwise ndjson)")
	flags.StringVar(&p.options.IDPointer, "id-field", "", "data field with the event id, for example id or /meta/id")
	flags.StringVar(&p.options.TimePointer, "time-field", "", "data field with the event time")
	flags.StringVar(&p.options.Source, "source", "", "source (a URI reference) for events that have none")
	flags.StringVar(&p.options.AudienceFilter, "audience", "", "audience filter: a CEL condition over subscriber and sub, for example subscriber.locale == 'de'")
	flags.StringVar(&p.options.Lane, "lane", "", "lane: urgent, normal or bulk (default: the lane of the topic)")
	flags.TimeVar(&p.options.NotBefore, "not-before", time.Time{}, []string{time.RFC3339}, "send time, at most 366 days ahead, for example 2026-11-20T08:00:00Z")
	flags.TimeVar(&p.options.Expires, "expires", time.Time{}, []string{time.RFC3339}, "time after which nothing is sent")
	flags.BoolVar(&p.wait, "wait", false, "wait until all messages are settled")
	flags.BoolVar(&dryRun, "dry-run", false, "show who would receive the event in the file, and how long sending would take, without publishing it")
	command.MarkFlagsMutuallyExclusive("wait", "dry-run")
	return command
}

// asPointer lets a field of the top level be named without a slash.
func asPointer(field string) string {
	if field == "" || field[0] == '/' {
		return field
	}
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(field)
}

func (p *publishing) run(command *cobra.Command, in io.Reader, size int64) error {
	switch p.format {
	case "json":
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		lines, err := toLines(text)
		if err != nil {
			return err
		}
		in, size = bytes.NewReader(lines), int64(len(lines))
	case "", "ndjson":
	default:
		return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("unknown format %q", p.format), Hint: "use json or ndjson"}
	}
	buffered := bufio.NewReaderSize(in, 64<<10)
	p.options.CloudEvents = beginsWithCloudEvent(buffered)

	bar := p.cli.newBar("publishing", "events", size)
	sum, err := p.api.PublishLines(command.Context(), p.topic, buffered, p.options, func(a client.Accepted, refused *client.LineError) error {
		if refused == nil {
			p.ids = append(p.ids, a.ID)
		}
		return nil
	}, func(done client.Progress) { bar.Set(done.Bytes, done.Lines) })
	bar.End()
	if err != nil {
		return err
	}
	return p.finish(command, sum)
}

// finish prints what came of the events, and waits for their messages.
func (p *publishing) finish(command *cobra.Command, sum client.EventSummary) error {
	c := p.cli
	if len(sum.Errors) > 0 {
		c.printBadLines(sum.Errors, sum.Failed)
	}
	out := struct {
		client.EventSummary
		Deliveries *fanfare.Counts `json:"deliveries,omitempty"`
	}{EventSummary: sum}
	if out.Errors == nil {
		out.Errors = []client.LineError{}
	}
	if !c.json {
		if len(p.ids) == 1 && sum.Failed == 0 {
			state := "accepted"
			if sum.Duplicates == 1 {
				state = "duplicate"
			}
			fmt.Fprintf(c.out, "%s %s\n", p.ids[0], state)
		} else {
			fmt.Fprintf(c.out, "%s accepted, %s, %s failed\n", terminal.Amount(sum.Accepted, "event", "events"), terminal.Amount(sum.Duplicates, "duplicate", "duplicates"), terminal.Grouped(sum.Failed))
		}
	}
	var failed int64
	if p.wait {
		counts, err := c.await(command.Context(), p.api, p.ids)
		if err != nil {
			return err
		}
		out.Deliveries = &counts
		failed = counts.Settled() - counts[fanfare.Accepted] - counts[fanfare.Delivered] - counts[fanfare.Suppressed]
		if !c.json {
			fmt.Fprintf(c.out, "%s: %s\n", terminal.Amount(counts.Total(), "message", "messages"), countsText(counts))
		}
	}
	if c.json {
		if err := c.printJSON(out); err != nil {
			return err
		}
	}
	switch {
	case sum.Failed > 0:
		message := terminal.Amount(sum.Failed, "event was rejected", "events were rejected")
		if p.format != "json" && len(sum.Errors) > 0 && strings.Contains(sum.Errors[0].Error.Detail, "not valid JSON") {
			message += "; write one event per line, or use --format json if an event spans several lines"
		}
		return &someFailed{message}
	case failed > 0:
		return &someFailed{terminal.Amount(failed, "message was not delivered", "messages were not delivered")}
	}
	return nil
}

// toLines makes a JSON object or array into NDJSON.
func toLines(text []byte) ([]byte, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, notJSON(text, err)
	}
	var members []json.RawMessage
	if json.Unmarshal(whole, &members) != nil { // not an array
		members = []json.RawMessage{whole}
	}
	var out bytes.Buffer
	for _, m := range members {
		if err := json.Compact(&out, m); err != nil {
			return nil, notJSON(text, err)
		}
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

func notJSON(text []byte, err error) *fanfare.Error {
	e := &fanfare.Error{Code: fanfare.Invalid, Message: "the file is not valid JSON: " + err.Error(), Hint: "if the file has one object per line, use --format ndjson"}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		e.Line = 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte{'\n'})
	}
	return e
}

// beginsWithCloudEvent looks at the first line, and waits for no more than that: events
// may come as they happen.
func beginsWithCloudEvent(in *bufio.Reader) bool {
	var line []byte
	for {
		head, err := in.Peek(in.Buffered() + 1)
		if err == nil {
			head, _ = in.Peek(in.Buffered()) // all that is there
		}
		first, _, ended := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte{'\n'})
		if line = first; ended || err != nil {
			break
		}
	}
	return saysCloudEvent(line)
}

// saysCloudEvent reports whether JSON says that it is a CloudEvent, and no data.
func saysCloudEvent(text []byte) bool {
	var event struct {
		Version string `json:"specversion"`
	}
	return json.Unmarshal(text, &event) == nil && event.Version != ""
}
