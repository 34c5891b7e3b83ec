package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// previewing is what one preview command does.
type previewing struct {
	cli              *cli
	in               client.PreviewRequest
	file, data, html string
	events           []string
	sendTo           string
	raw              bool
}

func (c *cli) previewCommand() *cobra.Command {
	p := previewing{cli: c}
	command := &cobra.Command{
		Use: "preview TEMPLATE", Short: "Show what a template says",
		Long: `Show what a template says: subject, text and HTML for an event and a person. What
is not given is made up: data that fit the topic's schema, and a person. With -f the
template is taken from a document that is not applied yet, with --draft or --version
another version than what is published. A template of digests
tells of all events that are named. Nothing is kept or sent,
and the unsubscribe link of a preview leads nowhere.

With --send-to what is shown is sent to somebody as a message of its own, over the
channel that --channel names.

A variable that is missing is named with the template's line.`,
		Example: `  fanfare preview quake
  fanfare preview quake --event evt-20261120-1001 --subscriber ada@example.com
  fanfare preview digest --event evt-20261120-1001 --event evt-20261120-1002
  fanfare preview quake --data event.json --html preview.html
  fanfare preview quake -f fanfare.yaml --raw
  fanfare preview quake --draft
  fanfare preview quake --send-to me@example.com --channel mail`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeFirst("templates"),
		RunE: func(command *cobra.Command, args []string) error { return p.run(command, args[0]) },
	}
	flags := command.Flags()
	flags.BoolVar(&p.in.Draft, "draft", false, "show the template's draft, in place of what is published")
	flags.IntVar(&p.in.Version, "version", 0, "show this version")
	flags.StringVarP(&p.file, "file", "f", "", "document whose template to show, in place of the applied one")
	flags.StringVar(&p.data, "data", "", "file with the event's data, - for standard input")
	flags.StringArrayVar(&p.events, "event", nil, "event to take: evt-..., or the id that the sender gave; may be repeated for a digest")
	flags.StringVar(&p.in.Subscriber, "subscriber", "", "person to write for: address or id")
	flags.StringVar(&p.in.Subscription, "subscription", "", "subscription to write for, with its params and data")
	flags.StringVar(&p.in.To, "to", "", "address to show")
	flags.StringVar(&p.in.Locale, "locale", "", "language to write for, such as cy (default: the person's)")
	flags.StringVar(&p.in.TimeZone, "time-zone", "", "time zone to write for (default: the person's)")
	flags.StringVar(&p.in.Device, "device", "", "device to write for (default: the person's)")
	flags.StringVar(&p.in.Topic, "topic", "", "topic whose schema and rules count (default: the first that uses the template)")
	flags.StringVar(&p.in.Channel, "channel", "", "channel whose From counts (default: the first)")
	flags.StringVar(&p.html, "html", "", "write the HTML to this file")
	flags.StringVar(&p.sendTo, "send-to", "", "send what is shown to this address, over the channel that --channel names")
	flags.BoolVar(&p.raw, "raw", false, "print the whole message as it would leave")
	command.MarkFlagsMutuallyExclusive("subscriber", "subscription")
	command.MarkFlagsMutuallyExclusive("send-to", "raw")
	command.MarkFlagsMutuallyExclusive("file", "draft", "version")
	return command
}

func (p *previewing) run(command *cobra.Command, name string) error {
	c := p.cli
	if len(p.events) > 0 {
		p.in.Event, p.in.Events = p.events[0], p.events[1:]
	}
	if p.data != "" {
		text, err := c.readInput(p.data)
		if err == nil {
			p.in.Data, err = oneValue(text)
		}
		if err != nil {
			return inFile(p.data, err)
		}
	}
	if p.file != "" {
		draft, err := c.draft(p.file, name)
		if err != nil {
			return inFile(p.file, err)
		}
		p.in.Template = draft
	}
	api, err := c.connect()
	if err != nil {
		return err
	}
	shown, err := api.Preview(command.Context(), name, p.in)
	if err != nil {
		return err
	}
	if p.html != "" {
		if shown.HTML == "" {
			return &fanfare.Error{Code: fanfare.NotFound, Message: "template " + name + " has no HTML"}
		}
		if err := os.WriteFile(p.html, []byte(shown.HTML), 0o600); err != nil {
			return err
		}
	}
	if p.sendTo != "" {
		return p.send(command.Context(), api, &shown)
	}
	switch {
	case c.json:
		return c.printJSON(shown)
	case p.raw:
		_, err := fmt.Fprint(c.out, shown.Raw)
		return err
	}
	c.printPreview(&shown, p.html)
	return nil
}

// testWait is how long a test send is waited for.
const testWait = 20 * time.Second

// send sends what is shown. It goes as data into a template that repeats it, so
// that it is not taken for a template again.
func (p *previewing) send(ctx context.Context, api *client.Client, shown *client.Preview) error {
	if p.in.Channel == "" {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "it does not say how to send", Hint: "name a channel with --channel"}
	}
	files, err := enclosedIn(shown)
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]string{"subject": shown.Subject, "text": shown.Text, "html": shown.HTML})
	if err != nil {
		return err
	}
	content := &client.MessageContent{Subject: "{{ event.subject }}"}
	if shown.Text != "" {
		content.Text = "{{ event.text }}"
	}
	if shown.HTML != "" {
		content.HTML = "{{ event.html | raw }}"
		if strings.Contains(shown.HTML, "cid:") { // images are named by a template, and by no value
			content.HTML = "{% raw %}" + shown.HTML + "{% endraw %}"
		}
	}
	sending := sending{cli: p.cli, options: client.SendOptions{Wait: testWait}}
	m, err := api.Send(ctx, client.MessageRequest{Channel: p.in.Channel, To: p.sendTo, Content: content, Data: data, Attachments: files, Reference: "preview"}, sending.options)
	if err != nil {
		return err
	}
	return sending.print(m)
}

// draft takes one template out of a document.
func (c *cli) draft(file, name string) (*client.TemplateDraft, error) {
	drafts, err := c.drafts(file)
	if err == nil && drafts[name] == nil {
		err = noTemplate(name, drafts)
	}
	return drafts[name], err
}

func (c *cli) printPreview(p *client.Preview, htmlFile string) {
	s := c.screen()
	about := p.Template
	if p.Topic != "" {
		about += ", topic " + p.Topic
	}
	if p.Sample {
		about += ", with made up data"
	}
	fmt.Fprintf(c.out, "%s\nTo:      %s\nSubject: %s\n", about, p.To, s.paint(bold, p.Subject))
	for _, f := range p.Attachments {
		as := "attached"
		if f.CID != "" {
			as = "shown as cid:" + f.CID
		}
		fmt.Fprintf(c.out, "File:    %s (%s, %s bytes, %s)\n", f.Name, f.Type, grouped(int64(f.Size)), as)
	}
	part := func(name, text string) {
		fmt.Fprintf(c.out, "\n%s\n%s", s.paint(bold, "--- "+name), text)
		if !strings.HasSuffix(text, "\n") {
			fmt.Fprintln(c.out)
		}
	}
	if p.Text != "" {
		part("text", p.Text)
	}
	switch {
	case p.HTML != "" && htmlFile != "":
		fmt.Fprintf(c.out, "\nthe HTML is in %s\n", htmlFile)
	case p.HTML != "":
		part("html", p.HTML)
	}
}
