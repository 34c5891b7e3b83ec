package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
)

// templateDraft is fanfare template draft.
func (c *cli) templateDraft() *cobra.Command {
	var file, note string
	command := &cobra.Command{
		Use: "draft NAME [-f FILE]", Short: "Keep a draft of a template beside what is published, or show it",
		Long: `Keep a draft of a template beside what is published. It is checked, and tried
against each topic that uses the template, as an apply does; nobody is written to
with it until it is published. The file is a document, of which the template with that
name is taken, or the template alone, as fanfare template get prints it. Without -f the
draft is printed as JSON.`,
		Example: `  fanfare template draft quake -f fanfare.yaml --note "shorter subject"
  fanfare template draft quake
  fanfare preview quake --draft
  fanfare template diff quake
  fanfare template publish quake`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeFirst("templates"),
		RunE: func(command *cobra.Command, args []string) error {
			if file == "" {
				if note != "" {
					return &fanfare.Error{Code: fanfare.Invalid, Message: "a note comes with a draft", Hint: "give the draft with -f"}
				}
				return c.showDraft(command.Context(), args[0])
			}
			given, err := c.readTemplate(file, args[0])
			if err != nil {
				return inFile(file, err)
			}
			if note != "" {
				given.Note = note
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			kept, err := api.PutDraft(command.Context(), args[0], client.Kept[client.Template]{Value: given})
			if err != nil {
				return inFile(file, err)
			}
			if c.json {
				return c.printJSON(kept.Value)
			}
			over := "nothing of it is published"
			if kept.Value.Base != 0 {
				over = fmt.Sprintf("version %d stays published", kept.Value.Base)
			}
			fmt.Fprintf(c.out, "template %s: version %d is kept as a draft, %s\n", args[0], kept.Value.Version, over)
			return nil
		},
	}
	command.Flags().StringVarP(&file, "file", "f", "", "document with the template, or the template alone; - for standard input")
	command.Flags().StringVar(&note, "note", "", "why, in a line")
	return command
}

func (c *cli) showDraft(ctx context.Context, name string) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	draft, err := api.Draft(ctx, name)
	if err != nil {
		return err
	}
	return c.printJSON(draft.Value)
}

// readTemplate reads a template: out of a document, or alone.
func (c *cli) readTemplate(file, name string) (t client.Template, err error) {
	text, err := c.readInput(file)
	if err != nil {
		return t, err
	}
	var form struct {
		Templates any `yaml:"templates"`
	}
	if yaml.Unmarshal(text, &form) == nil && form.Templates != nil {
		drafts, err := draftsOf(text, filepath.Dir(file))
		if err != nil {
			return t, err
		}
		if drafts[name] == nil {
			return t, noTemplate(name, drafts)
		}
		t.TemplateParts = drafts[name].TemplateParts
		return t, nil
	}
	document, err := document.ParseMember(document.Member{Kind: "draft", Name: name}, text, filepath.Dir(file))
	if err != nil {
		return t, err
	}
	t.Note = document.Templates[name].Note
	parts, err := json.Marshal(document.Templates[name].TemplateParts)
	if err == nil {
		err = json.Unmarshal(parts, &t.TemplateParts)
	}
	return t, err
}

// templatePublish is fanfare template publish.
func (c *cli) templatePublish() *cobra.Command {
	var what client.Publication
	command := &cobra.Command{
		Use: "publish NAME", Short: "Publish the draft of a template, or an earlier version again",
		Long: `Publish the draft of a template, or go back to an earlier version with --version. It
is tried first against each topic that uses the template. What is accepted after the
command is done is written with that version; what is under way keeps its own.

A draft that was kept before something else was published is refused: look at the
difference and keep it again.`,
		Example: `  fanfare template publish quake
  fanfare template publish quake --version 3 --note "the new one has a wrong link"`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeFirst("templates"),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			now, err := api.PublishTemplate(command.Context(), args[0], what, "")
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(now.Value)
			}
			fmt.Fprintf(c.out, "template %s: version %d is published\n", args[0], now.Value.Version)
			return nil
		},
	}
	command.Flags().IntVar(&what.Version, "version", 0, "the version to publish (default: the draft)")
	command.Flags().StringVar(&what.Note, "note", "", "why, in a line (default: the draft's)")
	return command
}

// templateVersions is fanfare template versions.
func (c *cli) templateVersions() *cobra.Command {
	return &cobra.Command{
		Use: "versions NAME", Short: "List the versions of a template, and its draft", Example: "  fanfare template versions quake",
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeFirst("templates"),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			var all []client.Template
			for t, err := range api.TemplateVersions(command.Context(), args[0]) {
				if err != nil {
					return err
				}
				all = append(all, t)
			}
			if c.json {
				return c.printJSON(all)
			}
			t := c.newTable()
			fmt.Fprintln(t, "VERSION\tSTATE\tWHEN\tKEY\tNOTE")
			for i := range all {
				fmt.Fprintln(t, strings.Join(versionRow(&all[i]), "\t"))
			}
			t.Flush()
			return nil
		},
	}
}

func versionRow(t *client.Template) []string {
	when, key := "", t.Key
	if !t.At.IsZero() {
		when = t.At.Local().Format(time.DateTime)
	}
	if t.KeyName != "" {
		key += " (" + t.KeyName + ")"
	}
	return []string{strconv.Itoa(t.Version), t.State, when, key, short(t.Note)}
}

// templateDiff is fanfare template diff.
func (c *cli) templateDiff() *cobra.Command {
	return &cobra.Command{
		Use: "diff NAME [FROM [TO]]", Short: "Show what differs between two versions of a template",
		Long: `Show what differs between two versions of a template, as unified diffs of its parts:
subject, text, HTML, and what it says in other languages and on devices. A version is a
number, draft or published. Without versions it is what the draft would change, or,
where there is none, what the last publication has changed.`,
		Example: `  fanfare template diff quake
  fanfare template diff quake 3
  fanfare template diff quake 2 draft`,
		Args: cobra.RangeArgs(1, 3), ValidArgsFunction: c.completeFirst("templates"),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			versions := append(args[1:len(args):len(args)], "", "")
			diff, err := api.DiffTemplate(command.Context(), args[0], versions[0], versions[1])
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(diff)
			}
			c.printVersionDiff(&diff)
			return nil
		},
	}
}

func (c *cli) printVersionDiff(diff *client.TemplateDiff) {
	s := c.screen()
	for _, part := range diff.Parts {
		for line := range strings.Lines(part.Diff) {
			switch {
			case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
				line = s.paint(bold, strings.TrimSuffix(line, "\n")) + "\n"
			case strings.HasPrefix(line, "-"):
				line = s.paint(red, strings.TrimSuffix(line, "\n")) + "\n"
			case strings.HasPrefix(line, "+"):
				line = s.paint(green, strings.TrimSuffix(line, "\n")) + "\n"
			}
			fmt.Fprint(c.out, line)
		}
	}
	if len(diff.Parts) == 0 {
		fmt.Fprintf(c.out, "%s and %s of template %s say the same\n", versionName(diff.From), versionName(diff.To), diff.Template)
	}
}

func versionName(v client.VersionRef) string {
	if v.State == catalog.VersionDraft {
		return "the draft"
	}
	return "version " + strconv.Itoa(v.Version)
}

// templateDiscard is fanfare template discard.
func (c *cli) templateDiscard() *cobra.Command {
	return &cobra.Command{
		Use: "discard NAME", Short: "Take the draft of a template away; one that is not there is no error", Example: "  fanfare template discard quake",
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeFirst("templates"),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			return api.DiscardDraft(command.Context(), args[0], "")
		},
	}
}
