package main

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"fanfare.dev/fanfare/client"
)

// templateFaultText says what went wrong with a template.
func templateFaultText(f *client.TemplateFault) string {
	name := fmt.Sprintf("template %s/%s@%d", f.Service, f.Template, f.Version)
	if f.Absent != "" {
		return name + " uses " + f.Absent + ", but an event did not have this field, and its topic has no schema: the value is empty"
	}
	return fmt.Sprintf("%s failed for %s: %s", name, terminal.Amount(f.Recipients, "recipient", "recipients"), f.At)
}

func (c *cli) printTemplateFaults(faults []client.TemplateFault) {
	if len(faults) == 0 {
		return
	}
	fmt.Fprintln(c.out, "\nTEMPLATE FAILURES AND MISSING VARIABLES")
	for i := range faults {
		replaced := ""
		if faults[i].Replaced {
			replaced = " (another version is published now)"
		}
		fmt.Fprintf(c.out, "%s%s\n  since %s, last %s\n", templateFaultText(&faults[i]), replaced, faults[i].Since.Local().Format(time.DateTime), faults[i].Last.Local().Format(time.DateTime))
	}
}
