package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fanfare.dev/fanfare"
)

// sayUsage lets a wrong command line be answered with what was wrong in it and
// how the command is used.
func sayUsage(command *cobra.Command) {
	command.SetFlagErrorFunc(wrongFlag)
	for _, sub := range command.Commands() {
		sayUsage(sub)
	}
	if fits := command.Args; fits != nil {
		command.Args = func(command *cobra.Command, args []string) error {
			if fits(command, args) != nil {
				return wrongArgs(command, fits, args)
			}
			if command.ValidateRequiredFlags() != nil {
				return lacking(command)
			}
			return nil
		}
	}
}

func misused(command *cobra.Command, message string) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: message, Hint: "usage: " + strings.TrimSuffix(command.UseLine(), " [flags]")}
}

// lacking names the flags that a command cannot do without and did not get.
func lacking(command *cobra.Command) error {
	var names []string
	wrong := misused(command, "")
	command.Flags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 && !f.Changed {
			names = append(names, "--"+f.Name)
			if !strings.Contains(wrong.Hint, "--"+f.Name+" ") && !strings.Contains(wrong.Hint, "-"+f.Shorthand+" ") {
				wrong.Hint += " --" + f.Name + " " + strings.ToUpper(f.Name)
			}
		}
	})
	wrong.Message = strings.Join(names, " and ") + " is missing"
	if len(names) > 1 {
		wrong.Message = strings.Join(names, " and ") + " are missing"
	}
	return wrong
}

// maxLacking is how many arguments a command may lack and still be told so.
const maxLacking = 3

// wrongArgs says whether there are too few arguments or too many, and which.
func wrongArgs(command *cobra.Command, fits cobra.PositionalArgs, args []string) error {
	longer := slices.Clone(args)
	for range maxLacking {
		if longer = append(longer, ""); fits(command, longer) == nil {
			return misused(command, "an argument is missing")
		}
	}
	for n := len(args) - 1; n >= 0; n-- {
		if fits(command, args[:n]) == nil {
			return misused(command, fmt.Sprintf("unexpected argument %q", args[n]))
		}
	}
	return misused(command, "the arguments are invalid")
}

// typos is how many characters of a name may be wrong for a suggestion.
func typos(name string) int { return max(1, len(name)/3) }

// flagForms says how the values of flags are written, by what pflag calls their type.
var flagForms = map[string]string{
	"time":     "include the time zone, for example 2026-11-20T08:00:00Z or 2026-11-20T09:00:00+01:00",
	"duration": "use a duration such as 90s, 15m or 720h (30 days)",
}

// wrongFlag names the flag that was probably meant.
func wrongFlag(command *cobra.Command, err error) error {
	wrong := &fanfare.Error{Code: fanfare.Invalid, Message: err.Error(), Hint: command.CommandPath() + " --help lists the flags"}
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		kind := value.GetFlag().Value.Type()
		if form := flagForms[kind]; form != "" {
			wrong.Message, wrong.Hint = fmt.Sprintf("--%s: %q is not a %s", value.GetFlag().Name, value.GetValue(), kind), form
		}
		switch kind {
		case "int":
			wrong.Message = fmt.Sprintf("--%s: %q is not a whole number", value.GetFlag().Name, value.GetValue())
		case "bool":
			wrong.Message, wrong.Hint = fmt.Sprintf("--%s takes no value, but got %q", value.GetFlag().Name, value.GetValue()), "omit =…"
		}
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		// Cobra finds near names among commands only.
		name := unknown.GetSpecifiedName()
		names := &cobra.Command{SuggestionsMinimumDistance: typos(name)}
		command.Flags().VisitAll(func(f *pflag.Flag) {
			names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		})
		if near := names.SuggestionsFor(name); len(near) > 0 {
			wrong.Hint = "did you mean --" + strings.Join(near, " or --") + "?"
		}
	}
	return wrong
}

// unknownVerb finds a command line such as "topic lst": cobra would print the help
// of topic and call it done.
func unknownVerb(root *cobra.Command, args []string) error {
	found, verbs := unrun(root, args)
	if len(verbs) == 0 {
		return nil
	}
	names := make([]string, 0, len(found.Commands()))
	for _, sub := range found.Commands() {
		names = append(names, sub.Name())
	}
	return noCommand(found, verbs[0], "available commands: "+strings.Join(names, ", "))
}

// unrun returns the arguments behind a command that only has subcommands. Cobra
// itself reports names that the root does not have.
func unrun(root *cobra.Command, args []string) (*cobra.Command, []string) {
	found, rest, err := root.Find(args)
	if err != nil || found == root || found.Runnable() || found.ParseFlags(rest) != nil {
		return nil, nil
	}
	return found, found.Flags().Args()
}

// unknownCommand words cobra's error about a command that the root does not have.
func unknownCommand(root *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	rest, unknown := strings.CutPrefix(err.Error(), `unknown command "`)
	if !unknown {
		return err
	}
	name, _, _ := strings.Cut(rest, `"`)
	return noCommand(root, name, root.Name()+" --help lists the commands")
}

// noCommand says which command was probably meant, or else hint.
func noCommand(of *cobra.Command, name, hint string) error {
	of.SuggestionsMinimumDistance = typos(name)
	if near := of.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("%s has no command %q", of.CommandPath(), name), Hint: hint}
}
