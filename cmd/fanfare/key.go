package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) keyCommand() *cobra.Command {
	command := &cobra.Command{Use: "key", Short: "Make, list, rotate and revoke keys",
		Long: `Make, list, rotate and revoke the keys that open the API.

A key is for one service, or for all. Its scopes say what it may do there:
publish (send events and messages), subscribe (put and end subscriptions), read
(see configuration, traces and status), admin (all of that, and configure). The
key in admin.key of the data directory is admin of all services.`}
	command.AddCommand(c.keyCreateCommand(), c.keyListCommand(), c.keyRotateCommand(), c.keyRevokeCommand())
	return command
}

func (c *cli) keyCreateCommand() *cobra.Command {
	var what client.KeyRequest
	var expires time.Duration
	command := &cobra.Command{
		Use: "create --service NAME | --all-services", Short: "Make a key and print it",
		Long: `Make a key and print it. It is shown this once: the server keeps only a hash of
it. Without --scope it is an admin key of what it is for.`,
		Example: `  fanfare key create --service earthquakes --scope publish --name "feed reader"
  fanfare key create --service earthquakes --scope subscribe,read --expires-in 2160h
  fanfare key create --all-services --scope read --name "status page"`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !what.AllServices {
				what.Service = c.setting(c.service, "FANFARE_SERVICE", "")
			}
			if what.Service == "" && !what.AllServices {
				return &fanfare.Error{Code: fanfare.Invalid, Message: "a key is for one service", Hint: "name it with --service, or give --all-services"}
			}
			if command.Flags().Changed("scope") && len(what.Scopes) == 0 { // such as --scope "$UNSET"
				return &fanfare.Error{Code: fanfare.Invalid, Message: "--scope names nothing", Hint: "name what the key may do; without --scope it is an admin"}
			}
			if expires != 0 {
				what.ExpiresAt = time.Now().Add(expires).UTC().Truncate(time.Second)
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			key, err := api.ForService("").CreateKey(command.Context(), what)
			if err != nil {
				return err
			}
			return c.printSecret(key)
		},
	}
	flags := command.Flags()
	flags.StringVar(&what.Name, "name", "", "what the key is for, shown in logs")
	flags.StringSliceVar(&what.Scopes, "scope", nil, "what it may do: admin, publish, subscribe, read, secrets, approve; may be repeated (default admin)")
	flags.BoolVar(&what.AllServices, "all-services", false, "for all services")
	flags.DurationVar(&expires, "expires-in", 0, "for how long it opens anything (default: for ever)")
	return command
}

func (c *cli) printSecret(key client.NewKey) error {
	if c.json {
		return c.printJSON(key)
	}
	fmt.Fprintln(c.out, key.Secret)
	fmt.Fprintf(c.err, "the secret of %s; it is shown this once\n", key.ID)
	return nil
}

func (c *cli) keyListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List keys; with --service those of one service", Example: "  fanfare key list --service earthquakes", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			keys, err := api.Keys(command.Context())
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(keys)
			}
			table := c.newTable()
			fmt.Fprintln(table, "ID\tSERVICE\tSCOPES\tEXPIRES\tLAST USED\tOLD SECRET\tNAME")
			for i := range keys {
				k := &keys[i]
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, orElse(k.Service, "(all)"), strings.Join(k.Scopes, ","), expiryOf(k), dateOr(k.LastUsed, "-"), oldSecretOf(k), short(k.Name))
			}
			table.Flush()
			return nil
		},
	}
}

func expiryOf(k *client.Key) string {
	if k.Disabled {
		return "disabled"
	}
	return dateOr(k.ExpiresAt, "never")
}

// oldSecretOf says of a key that was rotated whether the secret before still opens
// anything, and whether somebody still uses it.
func oldSecretOf(k *client.Key) string {
	if k.OldValidUntil.Before(time.Now()) {
		return "-"
	}
	return "until " + dateOr(k.OldValidUntil, "") + ", used " + dateOr(k.OldLastUsed, "not since")
}

func dateOr(t time.Time, otherwise string) string {
	if t.IsZero() {
		return otherwise
	}
	return t.Local().Format("2006-01-02 15:04")
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (c *cli) keyRotateCommand() *cobra.Command {
	var grace time.Duration
	command := &cobra.Command{
		Use: "rotate ID", Short: "Give a key a new secret and print it",
		Long: `Give a key a new secret and print it. It works at once; the old one goes on to
work for --grace, of at most seven days, so that programs can be changed over.`,
		Example: "  fanfare key rotate key-7 --grace 24h", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, ids []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			key, err := api.RotateKey(command.Context(), ids[0], grace)
			if err != nil {
				return err
			}
			return c.printSecret(key)
		},
	}
	command.Flags().DurationVar(&grace, "grace", 0, "how long the old secret goes on to work")
	return command
}

func (c *cli) keyRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID...", Short: "End keys for good", Example: "  fanfare key revoke key-7", Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, ids []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := api.DeleteKey(command.Context(), id); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
