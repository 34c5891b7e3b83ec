package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/cli/terminal"
	notifybc "fanfare.dev/fanfare/internal/compat/notifybc/settings"
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
		if err == nil && settings.NotifyBC != "" {
			_, err = notifybc.ReadFile(settings.NotifyBC)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(c.out, "the configuration is valid")
		return nil
	}
	command.AddCommand(check, c.configShow())
	return command
}

func (c *cli) configShow() *cobra.Command {
	var changed bool
	command := &cobra.Command{
		Use: "show", Short: "Show the settings of the running server",
		Long: `Show the settings of the running server, and where each value comes from. A secret is
shown as "(set)". The command needs an operator key, such as the one in admin.key.`,
		Example: `  fanfare config show
  fanfare config show --changed`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			all, err := api.Settings(command.Context())
			if err != nil {
				return err
			}
			if changed {
				all = slices.DeleteFunc(all, func(s client.Setting) bool { return s.From == "default" })
			}
			if c.json {
				return c.printJSON(append([]client.Setting{}, all...))
			}
			table := c.newTable()
			fmt.Fprintln(table, "KEY\tVALUE\tFROM")
			for _, s := range all {
				value := s.Value
				if s.Secret {
					value = "(set)"
				}
				fmt.Fprintf(table, "%s\t%s\t%s\n", s.Key, terminal.Short(value), orElse(s.Where, s.From))
			}
			table.Flush()
			return nil
		},
	}
	command.Flags().BoolVar(&changed, "changed", false, "only settings that are not at their defaults")
	return command
}
