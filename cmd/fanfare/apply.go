package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/catalog/document"
)

func (c *cli) applyCommand() *cobra.Command {
	var files []string
	var dryRun bool
	command := &cobra.Command{
		Use: "apply -f FILE", Short: "Apply topics, templates and channels from a file",
		Long: `Apply the topics, templates and channels in a YAML or JSON file to a service. Before
the server changes anything, it validates the whole document and renders each
template. Fields whose names end in _file are paths, relative to the document. The
command prints the changes: + created, ~ changed, - deleted. Applying the same file
again has no effect.`,
		Example: `  fanfare apply -f examples/earthquakes/fanfare.yaml
  fanfare apply -f topics.yaml -f channels.yaml --dry-run
  cat topics.yaml | fanfare apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			all := client.Diff{Changes: []client.Change{}}
			for _, name := range files {
				document, sent, err := c.readDocument(name)
				if err != nil {
					return inFile(name, err)
				}
				diff, err := api.Apply(command.Context(), sent, dryRun)
				if err != nil {
					return inFile(name, relocated(err, document, sent))
				}
				all.Changes = append(all.Changes, diff.Changes...)
				all.Notes = append(all.Notes, diff.Notes...)
			}
			if c.json {
				return c.printJSON(all)
			}
			c.printDiff(all, dryRun)
			return nil
		},
	}
	command.Flags().StringArrayVarP(&files, "file", "f", nil, "file to apply, or - for standard input (repeatable)")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "check the file and print the changes without making them")
	if err := command.MarkFlagRequired("file"); err != nil {
		panic(err) // the flag stands above
	}
	return command
}

// readDocument returns the document, and as JSON with all the files it names
// inside.
func (c *cli) readDocument(name string) (*document.Document, []byte, error) {
	text, err := c.readInput(name)
	if err != nil {
		return nil, nil, err
	}
	document, err := document.ParseDocument(text, filepath.Dir(name))
	if err != nil {
		return nil, nil, err
	}
	sent, err := json.Marshal(document)
	return document, sent, err
}

// relocated gives the server's error, which speaks of what was sent, the lines
// of the file.
func relocated(err error, doc *document.Document, sent []byte) error {
	there, unread := document.ParseDocument(sent, "")
	if unread != nil {
		return err
	}
	return doc.Relocated(err, there)
}

// readInput reads a file, or standard input for "-".
func (c *cli) readInput(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(c.in)
	}
	return os.ReadFile(name)
}

// inFile adds the file's name to what is wrong in it.
func inFile(name string, err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok || e.Code != fanfare.Invalid && e.Code != fanfare.TooLarge && e.Code != fanfare.Conflict {
		return err
	}
	at := *e
	at.File = name
	if name == "-" {
		at.File = "standard input"
	}
	return &at
}

func (c *cli) printDiff(diff client.Diff, dryRun bool) {
	signs := map[string]string{"create": "+", "update": "~", "delete": "-"}
	for _, change := range diff.Changes {
		fmt.Fprintf(c.out, "%s %s %s\n", signs[change.Action], change.Kind, change.Name)
		for _, f := range change.Fields {
			fmt.Fprintf(c.out, "    - %s: %s\n    + %s: %s\n", f.Field, terminal.Short(f.Old), f.Field, terminal.Short(f.New))
		}
	}
	for _, note := range diff.Notes {
		fmt.Fprintln(c.out, "! "+note)
	}
	switch {
	case len(diff.Changes) == 0:
		fmt.Fprintln(c.out, "no changes")
	case dryRun:
		fmt.Fprintln(c.out, "dry run: nothing was changed")
	}
}
