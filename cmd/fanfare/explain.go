package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
)

func (c *cli) explainCommand() *cobra.Command {
	var topic string
	command := &cobra.Command{
		Use: "explain SUBSCRIPTION EVENT|FILE|-", Short: "Explain why an event did or did not match a subscription",
		Long: `Explain why an event did or did not match a subscription. The command shows the
decisive checks, and each part of the condition with the values of the event. EVENT is
the id that fanfare publish printed, or the id that the sender assigned. If you pass a
file, or - for standard input, the command explains event data that was not published.

The explanation is based on the recorded result of the match. The condition is shown
as it is defined now. It is evaluated twice: by the matching index, and by an
evaluator that shares no code with the index. If the two disagree, this is a bug in
Fanfare, and the command reports it.`,
		Example: `  fanfare explain sub-1c00004e evt-20261120-1001
  fanfare explain ada-alaska event.json
  echo '{"mag":4.2,"place":"Alaska"}' | fanfare explain sub-1c00004e - --topic earthquakes`,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			var e fanfare.Explanation
			if data, isData, err := c.eventData(args[1]); err != nil {
				return err
			} else if isData {
				e, err = api.ExplainData(command.Context(), args[0], topic, data)
				if err != nil {
					return inFile(args[1], err)
				}
			} else if e, err = api.Explain(command.Context(), args[0], args[1]); err != nil {
				return err
			}
			if c.json {
				return c.printJSON(e)
			}
			c.printExplanation(&e)
			return nil
		},
	}
	command.Flags().StringVar(&topic, "topic", "", "topic of the event data; the command fails if the subscription belongs to another topic")
	return command
}

// eventData reads the data of an event where name is a file, or standard input;
// else it is the id of an event.
func (c *cli) eventData(name string) (data json.RawMessage, isData bool, err error) {
	if _, event := fanfare.ParseEventRef(name); event || name != "-" && !isFile(name) && !strings.HasSuffix(name, ".json") {
		return nil, false, nil
	}
	text, err := c.readInput(name)
	if err != nil {
		return nil, true, err
	}
	data, err = oneValue(text)
	return data, true, inFile(name, err)
}

// oneValue checks that text is one JSON value.
func oneValue(text []byte) (json.RawMessage, error) {
	var data json.RawMessage
	if err := json.Unmarshal(text, &data); err != nil {
		wrong := notJSON(text, err)
		wrong.Hint = "pass one JSON value: the data of one event"
		return nil, wrong
	}
	return data, nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func (c *cli) printExplanation(e *fanfare.Explanation) {
	s := c.screen()
	w := terminal.Page{Out: c.out, Screen: s}
	sign, colour := "✗", terminal.Red
	if e.Wanted {
		sign, colour = "✓", terminal.Green
	}
	w.Line(s.Paint(colour, sign)+" ", "  ", e.Summary)
	w.Line("", "", "")
	w.Line("subscription  ", "              ", e.Service+"/"+e.Topic+" "+e.Subscription)
	if e.Event != "" {
		w.Line("event         ", "              ", e.Event)
	}
	switch {
	case e.Filter != "":
		w.Line("filter        ", "              ", e.Filter)
	case e.Rule != "":
		w.Line("rule          ", "              ", strings.TrimSpace(e.Rule+" "+string(e.Params)))
	}
	if e.Cadence != "" {
		w.Line("cadence       ", "              ", e.Cadence)
	}
	if e.FoundBy != "" {
		w.Line("found by      ", "              ", e.FoundBy)
	}
	w.Line("", "", "")
	for _, check := range e.Checks {
		sign := s.Paint(terminal.Red, "✗")
		if check.Holds {
			sign = s.Paint(terminal.Green, "✓")
		}
		w.Line(fmt.Sprintf("%s %-10s ", sign, check.Name), strings.Repeat(" ", 13), check.Detail)
	}
	if e.Defect != "" {
		w.Line("", "", "")
		w.Line(s.Paint(terminal.Red, "DEFECT")+"  ", "        ", e.Defect)
	}
	if p := e.Condition; p != nil && len(p.Parts) > 0 {
		w.Line("", "", "")
		printPart(&w, p, "", "")
	}
}

// joined says how the parts of a condition make it up.
var joined = map[fanfare.PartKind]string{
	fanfare.PartAll: "all of these:", fanfare.PartAny: "one of these:",
	fanfare.PartNot: "not:", fanfare.PartChoice: "if, then, else:",
}

// part prints a part of a condition and what is inside. first stands before its
// first line, rest before all others.
func printPart(w *terminal.Page, p *fanfare.Part, first, rest string) {
	sign := w.Paint(terminal.Red, "✗")
	switch p.Result {
	case fanfare.PartTrue:
		sign = w.Paint(terminal.Green, "✓")
	case fanfare.PartError:
		sign = w.Paint(terminal.Yellow, "!")
	}
	if text, joins := joined[p.Kind]; joins {
		w.Line(first+sign+" ", rest+"  ", text)
		for i := range p.Parts {
			branch, below := "├─ ", "│  "
			if i == len(p.Parts)-1 {
				branch, below = "└─ ", "   "
			}
			printPart(w, &p.Parts[i], rest+"  "+branch, rest+"  "+below)
		}
		return
	}
	w.Line(first+sign+" ", rest+"    ", p.Text)
	if p.Error != "" {
		w.Line(rest+"    ", rest+"    ", w.Paint(terminal.Yellow, p.Error))
	}
	for _, value := range values(p.Parts) {
		w.Line(rest+"    ", rest+"      ", value)
	}
}

// values lists what was looked at, each once: name = value.
func values(parts []fanfare.Part) []string {
	var list []string
	seen := map[string]bool{}
	var visit func([]fanfare.Part)
	visit = func(parts []fanfare.Part) {
		for i := range parts {
			if p := &parts[i]; p.Value != nil && !seen[p.Text] {
				seen[p.Text] = true
				list = append(list, p.Text+" = "+terminal.Short(string(p.Value)))
			}
			visit(parts[i].Parts)
		}
	}
	visit(parts)
	return list
}
