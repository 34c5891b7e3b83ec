package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

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
		Use: "preview TEMPLATE", Short: "Preview a template",
		Long: `Preview the subject, text and HTML that a template renders for an event and a
subscriber. If you pass no event or subscriber, the command generates one: the event
data fits the schema of the topic. Use -f to preview a template of a document that has
not been applied, and --draft or --version to preview an unpublished version. A digest
template renders all the events that you pass. Nothing is stored or sent, and the
unsubscribe link in a preview does not work.

With --send-to, the preview is sent as a message over the channel given by --channel.

If a variable is missing, the command reports its line in the template.`,
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
	flags.BoolVar(&p.in.Draft, "draft", false, "preview the draft instead of the published version")
	flags.IntVar(&p.in.Version, "version", 0, "version to preview")
	flags.StringVarP(&p.file, "file", "f", "", "preview the template in this document")
	flags.StringVar(&p.data, "data", "", "file with the event data, or - for standard input")
	flags.StringArrayVar(&p.events, "event", nil, "event: evt-..., or the id that the sender assigned (repeatable for a digest)")
	flags.StringVar(&p.in.Subscriber, "subscriber", "", "subscriber to render for: address or id")
	flags.StringVar(&p.in.Subscription, "subscription", "", "subscription to render for, with its params and data")
	flags.StringVar(&p.in.To, "to", "", "address to render for")
	flags.StringVar(&p.in.Locale, "locale", "", "language, for example cy (default: the subscriber's)")
	flags.StringVar(&p.in.TimeZone, "time-zone", "", "time zone (default: the subscriber's)")
	flags.StringVar(&p.in.Device, "device", "", "device (default: the subscriber's)")
	flags.StringVar(&p.in.Topic, "topic", "", "topic whose schema and rules apply (default: the first topic that uses the template)")
	flags.StringVar(&p.in.Channel, "channel", "", "channel whose From address applies (default: the first)")
	flags.StringVar(&p.html, "html", "", "file to write the HTML to")
	flags.StringVar(&p.sendTo, "send-to", "", "send the preview to this address over the channel given by --channel")
	flags.BoolVar(&p.raw, "raw", false, "print the complete message as it would be sent")
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
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the channel is missing", Hint: "pass a channel with --channel"}
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
		about += ", with generated data"
	}
	fmt.Fprintf(c.out, "%s\nTo:      %s\nSubject: %s\n", about, p.To, s.Paint(terminal.Bold, p.Subject))
	for _, f := range p.Attachments {
		as := "attached"
		if f.CID != "" {
			as = "shown as cid:" + f.CID
		}
		fmt.Fprintf(c.out, "File:    %s (%s, %s bytes, %s)\n", f.Name, f.Type, terminal.Grouped(int64(f.Size)), as)
	}
	part := func(name, text string) {
		fmt.Fprintf(c.out, "\n%s\n%s", s.Paint(terminal.Bold, "--- "+name), text)
		if !strings.HasSuffix(text, "\n") {
			fmt.Fprintln(c.out)
		}
	}
	if p.Text != "" {
		part("text", p.Text)
	}
	switch {
	case p.HTML != "" && htmlFile != "":
		fmt.Fprintf(c.out, "\nwrote the HTML to %s\n", htmlFile)
	case p.HTML != "":
		part("html", p.HTML)
	}
}
