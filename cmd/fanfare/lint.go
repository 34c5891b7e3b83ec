package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/catalog/document"
)

// templateLint is fanfare template lint.
func (c *cli) templateLint() *cobra.Command {
	var file string
	var draft bool
	command := &cobra.Command{
		Use: "lint [NAME...]", Short: "Check templates for problems that recipients would notice",
		Long: `Check templates for problems with email clients, screen readers and spam filters, for
example images without a description, empty links, and HTML that email clients cut off.
Each finding has the part, line, column and fix. Without a name, the command checks all
published templates; with --draft, all drafts; and with -f, the templates of a document
that has not been applied. It checks the syntax of links but does not open them.

Exit code 1: problems were found.`,
		Example: `  fanfare template lint
  fanfare template lint quake
  fanfare template lint quake --draft
  fanfare template lint -f examples/earthquakes/fanfare.yaml`,
		ValidArgsFunction: c.completeFirst("templates"),
		RunE: func(command *cobra.Command, names []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			drafts := map[string]*client.TemplateDraft{}
			if file != "" {
				if drafts, err = c.drafts(file); err != nil {
					return inFile(file, err)
				}
			}
			switch {
			case len(names) > 0:
			case file != "":
				names = slices.Sorted(maps.Keys(drafts))
			default:
				all := api.Templates().All(command.Context())
				if draft {
					all = api.Drafts(command.Context())
				}
				for t, err := range all {
					if err != nil {
						return err
					}
					names = append(names, t.Name)
				}
			}
			looked := make([]client.Lint, 0, len(names))
			for _, name := range names {
				sent := drafts[name]
				if file != "" && sent == nil {
					return inFile(file, noTemplate(name, drafts))
				}
				found, err := api.Lint(command.Context(), name, client.LintRequest{Template: sent, Draft: draft})
				if err != nil {
					return err
				}
				looked = append(looked, found)
			}
			return c.printLint(looked)
		},
	}
	command.Flags().StringVarP(&file, "file", "f", "", "check the templates in this document")
	command.Flags().BoolVar(&draft, "draft", false, "check drafts instead of published versions")
	command.MarkFlagsMutuallyExclusive("file", "draft")
	return command
}

// drafts takes the templates out of a document.
func (c *cli) drafts(file string) (map[string]*client.TemplateDraft, error) {
	text, err := c.readInput(file)
	if err != nil {
		return nil, err
	}
	return draftsOf(text, filepath.Dir(file))
}

// draftsOf takes the templates out of the text of a document.
func draftsOf(text []byte, dir string) (map[string]*client.TemplateDraft, error) {
	document, err := document.ParseDocument(text, dir)
	if err != nil {
		return nil, err
	}
	drafts := map[string]*client.TemplateDraft{}
	for name, t := range document.Templates {
		if t.Delete {
			continue
		}
		drafts[name] = &client.TemplateDraft{}
		parts, err := json.Marshal(t.TemplateParts)
		if err == nil {
			err = json.Unmarshal(parts, &drafts[name].TemplateParts)
		}
		if err != nil {
			return nil, err
		}
	}
	return drafts, nil
}

// noTemplate says which templates a document has in place of one.
func noTemplate(name string, drafts map[string]*client.TemplateDraft) error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/templates", Message: "the document has no template " + name,
		Hint: "use one of the templates " + strings.Join(slices.Sorted(maps.Keys(drafts)), ", ")}
}

// printLint prints what was found, and fails where anything was.
func (c *cli) printLint(looked []client.Lint) error {
	if c.json {
		if err := c.printJSON(looked); err != nil {
			return err
		}
	}
	found, s := 0, c.screen()
	for i := range looked {
		l := &looked[i]
		found += len(l.Findings) + l.More
		for _, f := range l.Findings {
			if !c.json {
				fmt.Fprintf(c.out, "%s:%d:%d %s: %s\n    %s\n", strings.TrimPrefix(f.Pointer, "/templates/"), f.Line, f.Column, s.Paint(terminal.Yellow, f.Rule), f.Message, f.Hint)
			}
		}
		if l.More > 0 && !c.json {
			fmt.Fprintf(c.out, "%s: and %d more\n", l.Template, l.More)
		}
	}
	switch {
	case found == 1:
		return &fanfare.Error{Code: fanfare.Conflict, Message: "1 problem found"}
	case found > 1:
		return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("%d problems found", found)}
	case !c.json:
		fmt.Fprintf(c.out, "no problems found in %s\n", templatesOf(len(looked)))
	}
	return nil
}

func templatesOf(n int) string {
	if n == 1 {
		return "1 template"
	}
	return fmt.Sprintf("%d templates", n)
}
