package main

import (
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"fanfare.dev/fanfare"
)

// gaugeCells is how wide a gauge is.
const gaugeCells = 10

// gauge draws how much is done: [####------] 41 %. It is full, and says 100 %, when
// all is and not before.
func gauge(done, all int64) string {
	if all <= 0 {
		return ""
	}
	cells := int(done * gaugeCells / all)
	return fmt.Sprintf("[%s%s] %d %%", strings.Repeat("#", cells), strings.Repeat("-", gaugeCells-cells), done*100/all)
}

// speed says how fast a broadcast comes on.
func speed(b *fanfare.Broadcast) string {
	text := ""
	switch {
	case b.PerSecond >= 10:
		text = terminal.Grouped(int64(b.PerSecond)) + "/s"
	case b.PerSecond > 0:
		text = fmt.Sprintf("%.1f/s", b.PerSecond)
	}
	if b.RateLimit != "" {
		text = strings.TrimSpace(text + " of " + b.RateLimit)
	}
	return text
}

// ends says how long a broadcast will still take.
func ends(b *fanfare.Broadcast, now time.Time) string {
	if b.End.IsZero() {
		return ""
	}
	left := max(b.End.Sub(now), time.Second)
	switch {
	case left >= 48*time.Hour:
		return fmt.Sprintf("in %d days", left/(24*time.Hour))
	case left >= time.Hour:
		return fmt.Sprintf("in %dh %02dm", left/time.Hour, left%time.Hour/time.Minute)
	case left >= time.Minute:
		return fmt.Sprintf("in %dm %02ds", left/time.Minute, left%time.Minute/time.Second)
	}
	return fmt.Sprintf("in %ds", left/time.Second)
}

// endText is ends as a sentence.
func endText(b *fanfare.Broadcast, now time.Time) string {
	if when := ends(b, now); when != "" {
		return "ends about " + when
	}
	return ""
}

// printUnderway lists the broadcasts that are not completed.
func (c *cli) printUnderway(list []fanfare.Broadcast, now time.Time) {
	table := c.newTable()
	fmt.Fprintln(table, "\nBROADCAST\tTOPIC\tLANE\tSTATE\tDONE\tSETTLED\tOF\tRATE\tENDS")
	for i := range list {
		b := &list[i]
		fmt.Fprintf(table, "%s\t%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.Event, b.Service, b.Topic, b.Lane, b.State,
			gauge(b.Counts.Settled(), b.Messages), terminal.Grouped(b.Counts.Settled()), terminal.Grouped(b.Messages), speed(b), ends(b, now))
	}
	table.Flush()
	for i := range list {
		if b := &list[i]; b.State == fanfare.BroadcastHeld {
			fmt.Fprintf(c.out, "%s %s: fanfare approve %s\n", b.Event, b.Reason, b.Event)
		}
	}
}
