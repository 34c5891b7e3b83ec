package main

import (
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// cadenceText says when digests are due.
func cadenceText(cadence, zone string) string {
	if zone == "" || strings.Contains(cadence, " in ") || strings.HasPrefix(cadence, "window") || cadence == "immediate" {
		return cadence
	}
	return cadence + " " + zone
}

// gatheredText says in which digest a part of an event is told.
func gatheredText(g *fanfare.Gathering) string {
	what := cadenceText(g.Cadence, g.Zone)
	if g.Digest != "" {
		return "went into the digest " + g.Digest + " (" + what + ")"
	}
	return "wait for " + what + ", due " + g.Due.Local().Format(time.DateTime)
}

// printGathered lists what waits for digests.
func (c *cli) printGathered(list []client.Gathered) {
	table := c.newTable()
	fmt.Fprintln(table, "\nDIGESTS OF\tCADENCE\tGATHERED\tDUE")
	for i := range list {
		g := &list[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", g.Service, cadenceText(g.Cadence, g.Zone), terminal.Grouped(g.Recipients), g.Due.Local().Format(time.DateTime))
	}
	table.Flush()
}
