package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare/internal/cli/terminal"
	notifybc "fanfare.dev/fanfare/internal/compat/notifybc/importer"
	"fanfare.dev/fanfare/internal/compat/notifybc/mongoexport"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
)

const (
	// notifybcRequests is how many requests are sent at a time.
	notifybcRequests = 4
	// notifybcBatchBytes limits a request; a single document may be larger.
	notifybcBatchBytes = 4 << 20
	notifybcTimeout    = 2 * time.Minute
)

func (c *cli) importNotifyBC() *cobra.Command {
	i := notifybcImport{cli: c}
	command := &cobra.Command{
		Use: "notifybc [COLLECTION=]FILE...", Short: "Import a MongoDB export of NotifyBC",
		Long: `Import the records of a NotifyBC installation from files of mongoexport: one document
per line, or a JSON array. The name of a file names its collection: subscription,
notification, administrator, accessToken, userCredential, configuration or bounce, in
upper or lower case, in the singular or plural. For other names, write COLLECTION=FILE.

The records keep their ids, codes, states and unknown fields, so links, addresses and
tokens that people hold remain valid. A record whose id exists is left alone: it is safe
to import the same file again. The server must offer the NotifyBC API (the setting
notifybc), and the address of this machine must be in adminIps.

Exit code 2: some documents were rejected.`,
		Example: `  fanfare import notifybc subscription.json notification.json
  fanfare import notifybc --url https://notify.example.org/api subscription=part1.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return i.run(command.Context(), args) },
	}
	command.Flags().StringVar(&i.url, "url", "http://127.0.0.1:3000/api", "address of the NotifyBC API with its root")
	return command
}

// A notifybcImport imports the files of an installation.
type notifybcImport struct {
	*cli
	url    string
	client http.Client

	mu     sync.Mutex
	sum    notifybc.Result
	wrong  []notifybcLine // the first ones
	failed int64
	notes  int64
	sent   int64
}

// A notifybcLine is a document that was rejected or skipped.
type notifybcLine struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Message string `json:"message"`
	Skipped bool   `json:"skipped,omitempty"`
}

// A notifybcFile is a file with its collection.
type notifybcFile struct{ collection, name string }

// notifybcFiles returns the files in the order in which they are imported.
func notifybcFiles(args []string) (files []notifybcFile, err error) {
	for _, arg := range args {
		collection, name, given := strings.Cut(arg, "=")
		if !given {
			name = arg
			collection, _, _ = strings.Cut(filepath.Base(arg), ".")
		}
		normal := strings.TrimSuffix(strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(collection)), "s")
		if !slices.Contains(notifybc.Collections, normal) {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("%q is not a collection of NotifyBC", collection),
				Hint: "write COLLECTION=FILE with one of the collections " + strings.Join(notifybc.Collections, ", ")}
		}
		files = append(files, notifybcFile{normal, name})
	}
	slices.SortStableFunc(files, func(a, b notifybcFile) int {
		return cmp.Compare(slices.Index(notifybc.Collections, a.collection), slices.Index(notifybc.Collections, b.collection))
	})
	return files, nil
}

func (i *notifybcImport) run(ctx context.Context, args []string) error {
	files, err := notifybcFiles(args)
	if err != nil {
		return err
	}
	if u, err := url.Parse(i.url); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("%q is not an http or https address", i.url), Hint: "set --url to the address of the NotifyBC API, such as http://127.0.0.1:3000/api"}
	}
	i.client = http.Client{Timeout: notifybcTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	begun := time.Now()
	for _, f := range files {
		if err := i.file(ctx, f); err != nil {
			i.print()
			return err
		}
	}
	i.print()
	took := time.Since(begun)
	if i.json {
		if err := i.printJSON(map[string]any{"stored": i.sum.Stored, "unchanged": i.sum.Unchanged, "skipped": i.notes, "failed": i.failed, "documents": i.wrong}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(i.out, "%s stored, %s unchanged, %s skipped, %s failed, in %s (%s/s)\n", terminal.Grouped(int64(i.sum.Stored)), terminal.Grouped(int64(i.sum.Unchanged)), terminal.Grouped(i.notes),
			terminal.Grouped(i.failed), took.Round(time.Millisecond), terminal.Grouped(int64(float64(i.sent)/max(took.Seconds(), 1e-3))))
	}
	if i.failed > 0 {
		return &someFailed{terminal.Amount(i.failed, "document was rejected", "documents were rejected")}
	}
	return nil
}

// print prints the documents that were not stored.
func (i *notifybcImport) print() {
	slices.SortFunc(i.wrong, func(a, b notifybcLine) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	for _, w := range i.wrong {
		fmt.Fprintf(i.err, "%s:%d: %s\n", w.File, w.Line, w.Message)
	}
	if more := i.failed + i.notes - int64(len(i.wrong)); more > 0 {
		fmt.Fprintf(i.err, "and %s more\n", terminal.Grouped(more))
	}
}

// A notifybcBatch is the documents of one request.
type notifybcBatch struct {
	body  bytes.Buffer
	lines []int
	end   int64 // offset in the file
}

// file imports one file.
func (i *notifybcImport) file(ctx context.Context, f notifybcFile) error {
	in, size, err := i.open(f.name)
	if err != nil {
		return &fanfare.Error{Code: fanfare.Invalid, Message: err.Error()}
	}
	defer func() { _ = in.Close() }() // it was only read
	bar := i.newBar("importing", f.collection+" documents", size)
	defer bar.End()
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan *notifybcBatch)
	for range notifybcRequests {
		group.Go(func() error {
			for b := range batches {
				if err := i.send(ctx, f, b); err != nil {
					return err
				}
				i.mu.Lock()
				bar.Set(b.end, i.sent)
				i.mu.Unlock()
			}
			return nil
		})
	}
	group.Go(func() error {
		defer close(batches)
		return i.read(ctx, f, mongoexport.NewReader(in), batches)
	})
	return group.Wait()
}

// read reads the documents of a file into batches.
func (i *notifybcImport) read(ctx context.Context, f notifybcFile, from *mongoexport.Reader, batches chan<- *notifybcBatch) error {
	b := &notifybcBatch{}
	flush := func() error {
		if len(b.lines) == 0 {
			return nil
		}
		b.end = from.Offset()
		select {
		case batches <- b:
			b = &notifybcBatch{}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		document, line, err := from.Next()
		switch {
		case errors.Is(err, io.EOF):
			return flush()
		case errors.Is(err, mongoexport.ErrTooLarge):
			i.note(f, line, err.Error(), false)
			continue
		case err != nil:
			return &fanfare.Error{Code: fanfare.Invalid, File: f.name, Line: line, Message: err.Error()}
		}
		if bytes.IndexByte(document, '\n') >= 0 { // an element of an array may have several lines
			var compact bytes.Buffer
			if json.Compact(&compact, document) == nil {
				document = compact.Bytes()
			} else {
				document = bytes.ReplaceAll(document, []byte("\n"), []byte(" ")) // the server refuses it
			}
		}
		if len(b.lines) > 0 && b.body.Len()+len(document) > notifybcBatchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		b.body.Write(document)
		b.body.WriteByte('\n')
		if b.lines = append(b.lines, line); len(b.lines) == notifybc.MaxDocuments {
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

// note counts a document that was not stored.
func (i *notifybcImport) note(f notifybcFile, line int, message string, skipped bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if skipped {
		i.notes++
	} else {
		i.failed++
	}
	if len(i.wrong) < maxShown {
		i.wrong = append(i.wrong, notifybcLine{f.name, line, message, skipped})
	}
}

// send sends a batch.
func (i *notifybcImport) send(ctx context.Context, f notifybcFile, b *notifybcBatch) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(i.url, "/")+"/import/"+f.collection, bytes.NewReader(b.body.Bytes()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	response, err := i.client.Do(r)
	if err != nil {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the NotifyBC API cannot be reached: " + err.Error(), Hint: "check --url and the setting notifybc of the server, and run the same command again"}
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, notifybc.MaxBodyBytes))
	if err != nil {
		return err
	}
	switch {
	case response.StatusCode == http.StatusForbidden:
		return &fanfare.Error{Code: fanfare.Forbidden, Message: "the NotifyBC API refuses the import", Hint: "run the command on a machine whose address is in adminIps"}
	case response.StatusCode != http.StatusOK:
		var refusal struct{ Message string }
		_ = json.Unmarshal(body, &refusal) // the status says enough
		return &fanfare.Error{Code: fanfare.Unavailable, File: f.name, Line: b.lines[0], Message: fmt.Sprintf("the NotifyBC API answers %s to the documents from this line on: %s", response.Status, refusal.Message), Hint: "run the same command again"}
	}
	result, err := notifybc.Decode(body)
	if err != nil {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the answer is not that of the NotifyBC API of Fanfare", Hint: "check --url"}
	}
	for _, one := range result.Errors {
		if one.Index >= 0 && one.Index < len(b.lines) {
			i.note(f, b.lines[one.Index], one.Message, false)
		}
	}
	for _, one := range result.Skipped {
		if one.Index >= 0 && one.Index < len(b.lines) {
			i.note(f, b.lines[one.Index], "skipped: "+one.Message, true)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sum.Stored += result.Stored
	i.sum.Unchanged += result.Unchanged
	i.sent += int64(len(b.lines))
	return nil
}
