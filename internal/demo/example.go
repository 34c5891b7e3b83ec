package demo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// An example is one of the folders in examples/ with the code that generates its people.
type example struct {
	name    string // name of its folder and its service
	topic   string
	files   fs.FS // fanfare.yaml and the files that it names
	intro   string
	called  string // noun for its events
	heading string // heading of the most important event
	near    string // beginning of the subject of a mail that is worth showing

	events     func() ([]byte, error) // NDJSON, the data of one event per line
	file       string                 // name of the file for the events
	idField    string                 // field of the event data with the id
	timeField  string
	describe   func(data []byte) (notice, error)
	wishes     func(seed uint64) (next func() Line)
	invented   string // a made-up event that the user can publish
	inventedID string
}

// A notice is the displayed part of an event.
type notice struct {
	title  string
	at     time.Time
	weight float64 // the event with the highest weight is shown first; among equals, the one with the most recipients
}

func examples() []*example { return []*example{earthquakesExample(), govukExample(), stocksExample()} }

// Examples lists the valid names of Options.Example.
func Examples() []string {
	var names []string
	for _, x := range examples() {
		names = append(names, x.name)
	}
	return names
}

func findExample(name string) (*example, error) {
	all := examples()
	i := slices.IndexFunc(all, func(x *example) bool { return x.name == name })
	if i < 0 {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("unknown example %q", name),
			Hint: "use " + strings.Join(Examples(), ", ")}
	}
	return all[i], nil
}

// ofFile reads the events unchanged from a file of the example.
func ofFile(files fs.FS, name string) func() ([]byte, error) {
	return func() ([]byte, error) { return fs.ReadFile(files, name) }
}

// period returns the time of the first and the last event.
func (x *example) period(lines []byte) (string, error) {
	var first, last time.Time
	for line := range bytes.Lines(lines) {
		n, err := x.describe(line)
		if err != nil {
			return "", err
		}
		if first.IsZero() || n.at.Before(first) {
			first = n.at
		}
		if n.at.After(last) {
			last = n.at
		}
	}
	day := "2 January 2006"
	if first.Year() == last.Year() {
		day = "2 January"
	}
	return first.Format(day) + " to " + last.Format("2 January 2006"), nil
}

// A noted event is a broadcast with its notice.
type noted struct {
	notice
	broadcast fanfare.Broadcast
}

func (x *example) note(b fanfare.Broadcast) (noted, error) {
	n, err := x.describe(b.Data)
	if err != nil {
		return noted{}, fmt.Errorf("read the data of event %s: %w", b.Event, err)
	}
	return noted{n, b}, nil
}

// outstanding returns the most important event.
func (x *example) outstanding(all []fanfare.Broadcast) (best noted, err error) {
	for i, b := range all {
		n, err := x.note(b)
		if err != nil {
			return best, err
		}
		if i == 0 || cmp.Or(cmp.Compare(n.weight, best.weight), cmp.Compare(b.Messages, best.broadcast.Messages)) > 0 {
			best = n
		}
	}
	return best, nil
}

// decodeInto decodes the data of an event for a notice.
func decodeInto[T any](data []byte) (into T, err error) {
	err = json.Unmarshal(data, &into)
	return into, err
}

// decodeLines decodes all lines of NDJSON.
func decodeLines[T any](lines []byte) (all []T, err error) {
	for line := range bytes.Lines(lines) {
		one, err := decodeInto[T](line)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
