package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/mail/reply"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func (c *cli) repliesCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "replies", Short: "Show how replies of mail servers and webhooks are classified",
		Long: `Show how replies are classified: which rule assigns a class to a reply, and the
consequences of that class. Your own rules (from the setting reply_rules, or from
--rules) come before the built-in rules. The first rule that matches applies. The
command does not need a server.`,
	}
	var file string
	command.PersistentFlags().StringVar(&file, "rules", "", "file with your own rules, instead of the setting reply_rules")
	command.AddCommand(c.repliesListCommand(&file), c.repliesTestCommand(&file))
	return command
}

// rulesFlags lets a command read the setting reply_rules as serve does.
func rulesFlags(command *cobra.Command) {
	command.Flags().String("config", "", "configuration file of the server (YAML)")
}

// rulesOf are the rules that would be in force.
func rulesOf(command *cobra.Command, file string) (*reply.Rules, error) {
	if file == "" {
		settings, err := config.Load(command.Flags())
		if err != nil {
			return nil, err
		}
		file = settings.ReplyRules
	}
	if file == "" {
		return reply.Builtin(), nil
	}
	own, err := reply.ReadFile(file)
	if err != nil {
		if e, ok := errors.AsType[*fanfare.Error](err); ok {
			named := *e
			named.File = file
			return nil, &named
		}
		return nil, err
	}
	return own.Before(reply.Builtin()), nil
}

func countRules(file string) (int, error) {
	own, err := reply.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return len(own.All()), nil
}

func (c *cli) repliesListCommand(file *string) *cobra.Command {
	command := &cobra.Command{
		Use: "list", Short: "List the rules in the order in which they apply",
		Example: "  fanfare replies list\n  fanfare replies list --rules replies.yaml",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			rules, err := rulesOf(command, *file)
			if err != nil {
				return err
			}
			if c.json {
				shown := make([]shownRule, len(rules.All()))
				for i, rule := range rules.All() {
					shown[i] = showRule(rule)
				}
				return c.printJSON(map[string]any{"rules": shown})
			}
			table := c.newTable()
			fmt.Fprintln(table, "RULE\tFROM\tMATCHES\tEFFECT")
			for _, rule := range rules.All() {
				shown := showRule(rule)
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", shown.Name, shown.From, shown.Fits, shown.Means)
			}
			table.Flush()
			return nil
		},
	}
	rulesFlags(command)
	return command
}

// shownRule is a rule in words.
type shownRule struct {
	Name  string `json:"rule"`
	From  string `json:"from"` // built-in, or file
	Fits  string `json:"fits"`
	Means string `json:"means"`
}

func showRule(rule *reply.Rule) shownRule {
	from := "file"
	if rule.Builtin {
		from = "built-in"
	}
	return shownRule{rule.Name, from, rule.Fits(), rule.Means()}
}

// A readAnswer is what fanfare replies test prints.
type readAnswer struct {
	Rule       string        `json:"rule,omitempty"` // "" if none fits
	From       string        `json:"from,omitempty"`
	Class      fanfare.Class `json:"class,omitempty"`
	Verdict    string        `json:"verdict"`
	RetryAfter string        `json:"retry_after,omitempty"`
	Suspend    string        `json:"suspend,omitempty"`
	Slow       bool          `json:"slow,omitempty"`
}

func (c *cli) repliesTestCommand(file *string) *cobra.Command {
	var driver, destination string
	command := &cobra.Command{
		Use: "test ANSWER", Short: "Test which rule matches a reply",
		Long: `Show which rule matches a reply, and the consequences. The reply begins with its code,
as shown in traces and logs.`,
		Example: `  fanfare replies test "452 4.2.2 The mailbox is over quota"
  fanfare replies test "550 5.7.1 no" --destination example.org --rules replies.yaml
  fanfare replies test "429 Too Many Requests" --driver webhook`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			rules, err := rulesOf(command, *file)
			if err != nil {
				return err
			}
			outcome, err := answerOf(driver, args[0])
			if err != nil {
				return err
			}
			return c.printReading(rules.Read(driver, strings.ToLower(destination), outcome))
		},
	}
	rulesFlags(command)
	command.Flags().StringVar(&driver, "driver", "smtp", "driver that received the reply: smtp or webhook")
	command.Flags().StringVar(&destination, "destination", "", "destination that replied: domain of the address, or host:port")
	return command
}

var answerLine = regexp.MustCompile(`^([0-9]{3})(?:[ -](.*))?$`)

// answerOf takes an answer apart, with the verdict that a driver gives its code.
func answerOf(driverName, line string) (*driver.Outcome, error) {
	m := answerLine.FindStringSubmatch(strings.TrimSpace(line))
	if m == nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: strconv.Quote(line) + " is not a reply", Hint: "begin with the code, for example 452 4.2.2 The mailbox is full"}
	}
	code, err := strconv.Atoi(m[1])
	if err != nil {
		return nil, err
	}
	return &driver.Outcome{Code: code, Text: m[2], Verdict: reply.VerdictOf(driverName, code)}, nil
}

var verdictNames = map[driver.Verdict]string{driver.Accepted: "taken", driver.Temporary: "temporary", driver.Permanent: "permanent", driver.Lost: "lost"}

func (c *cli) printReading(r reply.Reading) error {
	read := readAnswer{Class: r.Class, Verdict: verdictNames[r.Verdict], Slow: r.Slow}
	if r.Rule != nil {
		shown := showRule(r.Rule)
		read.Rule, read.From = shown.Name, shown.From
	}
	if r.RetryAfter > 0 {
		read.RetryAfter = r.RetryAfter.String()
	}
	if r.Suspend > 0 {
		read.Suspend = r.Suspend.String()
	}
	if c.json {
		return c.printJSON(read)
	}
	table := c.newTable()
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, value)
		}
	}
	if read.Rule == "" {
		row("rule", "none matches")
	} else {
		row("rule", read.Rule+" ("+read.From+")")
	}
	row("class", string(read.Class))
	row("verdict", read.Verdict)
	row("not before", read.RetryAfter)
	row("destination suspended", read.Suspend)
	if read.Slow {
		row("destination", "slowed down")
	}
	table.Flush()
	return nil
}
