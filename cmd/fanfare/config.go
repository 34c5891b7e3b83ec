package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/internal/config"
)

func (c *cli) configCommand() *cobra.Command {
	command := &cobra.Command{Use: "config", Short: "Explain and check the server's configuration"}
	command.AddCommand(&cobra.Command{
		Use: "reference", Short: "Print every key of the configuration, explained, at its default",
		Example: "  fanfare config reference > fanfare.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(c.out, config.Reference())
			return err
		},
	})
	check := &cobra.Command{
		Use: "check", Short: "Read the configuration as serve would, and say what is wrong",
		Example: "  fanfare config check --config fanfare.yaml",
		Args:    cobra.NoArgs,
	}
	config.Flags(check.Flags())
	check.RunE = func(command *cobra.Command, _ []string) error {
		if _, err := config.Load(command.Flags()); err != nil {
			return err
		}
		fmt.Fprintln(c.out, "the configuration is good")
		return nil
	}
	command.AddCommand(check)
	return command
}
