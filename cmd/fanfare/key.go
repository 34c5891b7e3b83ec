package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
)

func (c *cli) keyCommand() *cobra.Command {
	var name string
	command := &cobra.Command{Use: "key", Short: "Make keys of services"}
	create := &cobra.Command{
		Use: "create --service NAME", Short: "Make a key that may touch only one service",
		Long: `Make a key that may touch only one service, and print it. It is shown this once:
the server keeps only a hash of it. It needs an admin key.`,
		Example: `  fanfare key create --service earthquakes --name "alerts of the website"`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			service := c.setting(c.service, "FANFARE_SERVICE", "")
			if service == "" {
				return &fanfare.Error{Code: fanfare.Invalid, Message: "a key is for one service", Hint: "name it with --service"}
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			secret, err := api.ForService("").CreateKey(command.Context(), service, name)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]string{"key": secret})
			}
			fmt.Fprintln(c.out, secret)
			return nil
		},
	}
	create.Flags().StringVar(&name, "name", "", "what the key is for, shown in logs")
	command.AddCommand(create)
	return command
}
