package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/signin/oidc"
)

func (c *cli) configCommand() *cobra.Command {
	command := &cobra.Command{Use: "config", Short: "Show and check the server configuration"}
	var format string
	reference := &cobra.Command{
		Use: "reference", Short: "List all settings with their descriptions and defaults",
		Example: `  fanfare config reference > fanfare.yaml
  fanfare config reference --format markdown`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text := config.Reference()
			switch format {
			case "yaml":
			case "markdown":
				text = config.Markdown()
			default:
				return &fanfare.Error{Code: fanfare.Invalid, Message: "unknown format " + strconv.Quote(format), Hint: "use yaml or markdown"}
			}
			_, err := fmt.Fprint(c.out, text)
			return err
		},
	}
	reference.Flags().StringVar(&format, "format", "yaml", "output format: yaml (a configuration file to start from) or markdown")
	command.AddCommand(reference)
	check := &cobra.Command{
		Use: "check", Short: "Check the server configuration",
		Example: "  fanfare config check --config fanfare.yaml",
		Args:    cobra.NoArgs,
	}
	config.Flags(check.Flags())
	check.RunE = func(command *cobra.Command, _ []string) error {
		settings, err := config.Load(command.Flags())
		if err == nil && settings.OIDC != "" {
			_, err = oidc.ReadFile(settings.OIDC, oidc.Sources{ReadFile: os.ReadFile, LookupEnv: os.LookupEnv})
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(c.out, "the configuration is valid")
		return nil
	}
	command.AddCommand(check)
	return command
}
