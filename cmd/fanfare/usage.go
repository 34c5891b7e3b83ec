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
			if err := command.ValidateRequiredFlags(); err != nil {
				return misused(command, err.Error())
			}
			return nil
		}
	}
}

func misused(command *cobra.Command, message string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: message, Hint: "use it as: " + strings.TrimSuffix(command.UseLine(), " [flags]")}
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
			return misused(command, fmt.Sprintf("%q is one argument too many", args[n]))
		}
	}
	return misused(command, "the arguments are wrong")
}

// typos is how many letters of a name may be wrong for another to be probably meant.
func typos(name string) int { return max(1, len(name)/3) }

// wrongFlag names the flag that was probably meant.
func wrongFlag(command *cobra.Command, err error) error {
	wrong := &fanfare.Error{Code: fanfare.Invalid, Message: err.Error(), Hint: command.CommandPath() + " --help lists its flags"}
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
	wrong := &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("%s has no command %q", found.CommandPath(), verbs[0])}
	found.SuggestionsMinimumDistance = typos(verbs[0])
	if near := found.SuggestionsFor(verbs[0]); len(near) > 0 {
		wrong.Hint = "did you mean " + strings.Join(near, " or ") + "?"
	} else {
		names := make([]string, 0, len(found.Commands()))
		for _, sub := range found.Commands() {
			names = append(names, sub.Name())
		}
		wrong.Hint = "it has " + strings.Join(names, ", ")
	}
	return wrong
}

// unrun returns what a command line says behind a command that does nothing by
// itself. Cobra words its own mistakes, and what it does not find at the root.
func unrun(root *cobra.Command, args []string) (*cobra.Command, []string) {
	found, rest, err := root.Find(args)
	if err != nil || found == root || found.Runnable() || found.ParseFlags(rest) != nil {
		return nil, nil
	}
	return found, found.Flags().Args()
}
