package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// lineWidth fits a terminal with 80 columns.
const lineWidth = 78

// print writes the report: the numbers, the most important event, one mail and one person.
func (r *result) print(w io.Writer) {
	r.printNumbers(w)
	r.printBest(w)
	r.printSample(w)
	r.printHistory(w)
}

func heading(w io.Writer, text string) {
	fmt.Fprintf(w, "\n%s\n%s\n", text, strings.Repeat("-", len(text)))
}

func (r *result) printNumbers(w io.Writer) {
	t := r.totals()
	heading(w, "Results")
	row := func(name, value, note string) {
		lines := wrap(note, lineWidth-24)
		for i, l := range lines {
			if i > 0 {
				name, value = "", ""
			}
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-13s %8s  %s", name, value, l), " "))
		}
	}
	row("Events", count(len(r.broadcasts)), fmt.Sprintf("%s, of which %s matched a subscription", r.example.called, count(t.reached)))
	equal := ""
	if n := int64(r.crowd.lines) - r.crowd.subscriptions; n > 0 {
		equal = fmt.Sprintf(" (%s of the %s lines were duplicates)", count(n), count(r.crowd.lines))
	}
	row("Subscriptions", count(r.crowd.subscriptions), fmt.Sprintf("of %s people%s", count(r.crowd.people), equal))
	row("Conditions", count(r.crowd.conditions), "different conditions in the subscriptions")
	row("Matches", count(t.matched), "pairs of an event and a matching subscription")
	row("Messages", count(t.messages), "one per event and person, even if two of their subscriptions matched")
	row("Accepted", count(t.deliveries[fanfare.Accepted]), "accepted by the next hop, in this case the capture server"+others(t.deliveries))
	verdict := "the numbers agree"
	if r.check() != nil {
		verdict = "THE NUMBERS DO NOT AGREE"
	}
	row("Counted", count(r.counted.Unique), fmt.Sprintf("messages at the capture server, %s duplicates: %s", count(r.counted.Duplicates), verdict))
	row("Rate", rate(t.messages, t.took), fmt.Sprintf("messages per second, from the first 202 response to the last stored outcome (%s)", seconds(t.took)))
	row("Latency p50", seconds(t.quantile(0.5)), "from the intake of an event until the outcome of its last message was stored")
	row("        p99", seconds(t.quantile(0.99)), "all events were published at the same time, so this includes waiting behind other messages")
	row("Durability", r.status.Durability, durabilities[r.status.Durability])
	if r.memoryMiB > 0 {
		row("Memory", count(r.memoryMiB), "MiB peak, for the server, the capture server and this demo in one process")
	}
}

var durabilities = map[string]string{
	"fsync":   "accepted events survive a power loss",
	"relaxed": "accepted events survive the sudden end of the process",
}

// others returns the deliveries that were not accepted, as text.
func others(counts fanfare.Counts) string {
	var b strings.Builder
	for s, n := range counts {
		if state := fanfare.State(s); n != 0 && state != fanfare.Accepted {
			fmt.Fprintf(&b, "; %s %s", count(n), state)
		}
	}
	return b.String()
}

func (r *result) printBest(w io.Writer) {
	heading(w, r.example.heading)
	for _, line := range wrap(r.best.title, lineWidth-2) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	fmt.Fprintf(w, "  %s UTC\n", r.best.at.UTC().Format("2 January 2006, 15:04:05"))
	fmt.Fprintf(w, "  %s people were notified about event %s.\n", count(r.best.broadcast.Messages), r.best.broadcast.Event)
}

func (r *result) printSample(w io.Writer) {
	heading(w, "A sample message")
	for _, field := range r.sample.header {
		for i, line := range wrap(field[1], lineWidth-11) {
			if i == 0 {
				line = fmt.Sprintf("%-9s%s", field[0]+":", line)
			} else {
				line = strings.Repeat(" ", 9) + line
			}
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	fmt.Fprintln(w)
	for paragraph := range strings.SplitSeq(r.sample.text, "\n") {
		for _, line := range wrap(paragraph, lineWidth-2) {
			fmt.Fprintln(w, strings.TrimRight("  "+line, " "))
		}
	}
}

func (r *result) printHistory(w io.Writer) {
	if len(r.history) == 0 {
		return
	}
	heading(w, "Messages to one person")
	fmt.Fprintf(w, "  %s, newest first:\n", r.history[0].mail.Address)
	for _, h := range r.history {
		fmt.Fprintln(w)
		for _, line := range wrap(h.of.title, lineWidth-2) {
			fmt.Fprintf(w, "  %s\n", line)
		}
		fmt.Fprintf(w, "    %s, template %s\n", h.mail.ID, h.mail.Template)
		for _, a := range h.mail.Attempts {
			fmt.Fprintf(w, "    attempt %d at %s UTC: %s by %s\n", a.Number, a.At.UTC().Format("15:04:05.000"), a.Status, a.Relay)
			fmt.Fprintf(w, "    reply: %d %s\n", a.Code, a.Text)
		}
	}
}

// seconds returns a duration as text.
func seconds(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// wrap breaks text between words into lines of at most width characters. A longer word, such as a
// link, stays whole. wrap returns at least one line, and keeps the spaces of a text that fits one
// line.
func wrap(text string, width int) []string {
	if len([]rune(text)) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
