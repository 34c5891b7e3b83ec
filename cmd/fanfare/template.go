package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

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
		Use: "draft NAME [-f FILE]", Short: "Save or show the draft of a template",
		Long: `Save a draft of a template without changing the published version. Like fanfare apply,
the server checks the draft and renders it for each topic that uses the template. The
draft is not used for messages until you publish it. The file is a document that
contains the template, or only the template, as printed by fanfare template get.
Without -f, the command prints the draft as JSON.`,
		Example: `  fanfare template draft quake -f fanfare.yaml --note "shorter subject"
  fanfare template draft quake
  fanfare preview quake --draft
  fanfare template diff quake
  fanfare template publish quake`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeFirst("templates"),
		RunE: func(command *cobra.Command, args []string) error {
			if file == "" {
				if note != "" {
					return &fanfare.Error{Code: fanfare.Invalid, Message: "--note needs a draft", Hint: "pass the draft with -f"}
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
			over := "no version is published"
			if kept.Value.Base != 0 {
				over = fmt.Sprintf("version %d is still published", kept.Value.Base)
			}
			fmt.Fprintf(c.out, "template %s: saved version %d as a draft, %s\n", args[0], kept.Value.Version, over)
			return nil
		},
	}
	command.Flags().StringVarP(&file, "file", "f", "", "document that contains the template, or only the template, or - for standard input")
	command.Flags().StringVar(&note, "note", "", "reason for the change, on one line")
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
		Use: "publish NAME", Short: "Publish the draft or an earlier version of a template",
		Long: `Publish the draft of a template or, with --version, go back to an earlier version. The
server first renders the template for each topic that uses it. Events that are accepted
after the command returns use the new version. Broadcasts in progress keep their
version.

If another version was published after the draft was saved, the server refuses the
draft. Compare the two, and save the draft again.`,
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
			fmt.Fprintf(c.out, "template %s: published version %d\n", args[0], now.Value.Version)
			return nil
		},
	}
	command.Flags().IntVar(&what.Version, "version", 0, "version to publish (default: the draft)")
	command.Flags().StringVar(&what.Note, "note", "", "reason for the change, on one line (default: the note of the draft)")
	return command
}

// templateVersions is fanfare template versions.
func (c *cli) templateVersions() *cobra.Command {
	return &cobra.Command{
		Use: "versions NAME", Short: "List the versions and the draft of a template", Example: "  fanfare template versions quake",
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
	return []string{strconv.Itoa(t.Version), t.State, when, key, terminal.Short(t.Note)}
}

// templateDiff is fanfare template diff.
func (c *cli) templateDiff() *cobra.Command {
	return &cobra.Command{
		Use: "diff NAME [FROM [TO]]", Short: "Compare two versions of a template",
		Long: `Compare two versions of a template. The command prints a unified diff for each part:
subject, text, HTML, and the variants for languages and devices. A version is a number,
draft or published. If you pass no versions, the command compares the draft with the
published version or, if there is no draft, the last two published versions.`,
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
				line = s.Paint(terminal.Bold, strings.TrimSuffix(line, "\n")) + "\n"
			case strings.HasPrefix(line, "-"):
				line = s.Paint(terminal.Red, strings.TrimSuffix(line, "\n")) + "\n"
			case strings.HasPrefix(line, "+"):
				line = s.Paint(terminal.Green, strings.TrimSuffix(line, "\n")) + "\n"
			}
			fmt.Fprint(c.out, line)
		}
	}
	if len(diff.Parts) == 0 {
		fmt.Fprintf(c.out, "%s and %s of template %s are identical\n", versionName(diff.From), versionName(diff.To), diff.Template)
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
		Use: "discard NAME", Short: "Discard the draft of a template (a missing draft is ignored)", Example: "  fanfare template discard quake",
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
