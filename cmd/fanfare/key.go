package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) keyCommand() *cobra.Command {
	command := &cobra.Command{Use: "key", Short: "Manage API keys",
		Long: `Create, list, rotate and revoke API keys.

A key is valid for one service or for all services. Its scopes determine what it can
do: publish (send events and messages), subscribe (create and end subscriptions), read
(view configuration, traces and status), sessions (open and use sessions), work (connect
instances of workers and agents) or admin (all of these, and change the configuration).
The key in the file admin.key of the data directory has the scope admin for all
services. Keys for clients of GOV.UK Notify (create --notify) are valid only for them.`}
	command.AddCommand(c.keyCreateCommand(), c.keyListCommand(), c.keyRotateCommand(), c.keyRevokeCommand(), c.keyResealCommand())
	return command
}

func (c *cli) keyCreateCommand() *cobra.Command {
	var what client.KeyRequest
	var expires time.Duration
	var secretFile string
	command := &cobra.Command{
		Use: "create --service NAME | --all-services", Short: "Create an API key and print it",
		Long: `Create an API key and print it. The key is shown only once, because the server stores
only its hash. Without --scope the key has the scope admin.

With --notify, the key is for clients of GOV.UK Notify: live keys send to anyone, team
keys to the team and the guest list of the service, and test keys to nobody. The server
stores its secret sealed. --secret-file registers an existing key, so that its clients
need no new one; the file contains the whole key or its last 36 characters.`,
		Example: `  fanfare key create --service earthquakes --scope publish --name "feed reader"
  fanfare key create --service earthquakes --scope subscribe,read --expires-in 2160h
  fanfare key create --all-services --scope read --name "status page"
  fanfare key create --service passports --notify live --name "web site"
  fanfare key create --service passports --notify live --secret-file notify-key.txt`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !what.AllServices {
				what.Service = c.setting(c.service, "FANFARE_SERVICE", "")
			}
			if what.Service == "" && !what.AllServices {
				return &fanfare.Error{Code: fanfare.Invalid, Message: "the service of the key is missing", Hint: "pass --service NAME or --all-services"}
			}
			if command.Flags().Changed("scope") && len(what.Scopes) == 0 { // such as --scope "$UNSET"
				return &fanfare.Error{Code: fanfare.Invalid, Message: "--scope is empty", Hint: "pass a scope, or omit --scope to use the default scope, admin"}
			}
			if secretFile != "" {
				if what.Notify == "" {
					return &fanfare.Error{Code: fanfare.Invalid, Message: "--secret-file is only valid with --notify", Hint: "pass --notify live, team or test"}
				}
				text, err := os.ReadFile(secretFile)
				if err != nil {
					return err
				}
				what.Secret = strings.TrimSpace(string(text))
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
	flags.StringVar(&what.Name, "name", "", "name of the key, as shown in logs")
	flags.StringVar(&what.Owner, "owner", "", "person who owns the key, such as a mail address; keys of the same owner are one person when a send is approved")
	flags.StringSliceVar(&what.Scopes, "scope", nil, "scope: admin, publish, subscribe, read, secrets, approve, sessions or work (repeatable; default admin)")
	flags.BoolVar(&what.AllServices, "all-services", false, "valid for all services")
	flags.StringVar(&what.Notify, "notify", "", "for clients of GOV.UK Notify: live, team or test")
	flags.StringVar(&secretFile, "secret-file", "", "with --notify: file with an existing key to register")
	flags.DurationVar(&expires, "expires-in", 0, "lifetime of the key (default: unlimited)")
	return command
}

func (c *cli) printSecret(key client.NewKey) error {
	if c.json {
		return c.printJSON(key)
	}
	fmt.Fprintln(c.out, key.Secret)
	fmt.Fprintf(c.err, "this is the secret of %s; it will not be shown again\n", key.ID)
	return nil
}

func (c *cli) keyListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List API keys", Example: "  fanfare key list --service earthquakes", Args: cobra.NoArgs,
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
			fmt.Fprintln(table, "ID\tSERVICE\tSCOPES\tEXPIRES\tLAST USED\tOLD SECRET\tOWNER\tNAME")
			for i := range keys {
				k := &keys[i]
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, orElse(k.Service, "(all)"), scopesOf(k), expiryOf(k), dateOr(k.LastUsed, "-"), oldSecretOf(k), orElse(terminal.Short(k.Owner), "-"), terminal.Short(k.Name))
			}
			table.Flush()
			return nil
		},
	}
}

// scopesOf returns the scopes of a key, or the type of a key for clients of GOV.UK Notify.
func scopesOf(k *client.Key) string {
	if k.Notify != "" {
		return "notify " + k.Notify
	}
	return strings.Join(k.Scopes, ",")
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
		Use: "rotate ID", Short: "Rotate the secret of a key and print the new one",
		Long: `Create a new secret for a key and print it. The new secret is valid immediately. The
old secret remains valid for the time given by --grace, at most seven days, so that you
can update your programs.`,
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
	command.Flags().DurationVar(&grace, "grace", 0, "time for which the old secret remains valid")
	return command
}

func (c *cli) keyResealCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reseal", Short: "Replace the key that seals stored secrets",
		Long: `Replace the key in the file seal.key of the data directory, and seal the secrets of all
keys for clients of GOV.UK Notify with the new one. The clients notice nothing. Do this
after somebody may have read the file. Earlier backups still contain the previous key.`,
		Example: "  fanfare key reseal", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			n, err := api.ForService("").ResealKeys(command.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "sealed %d secrets with a new key\n", n)
			return nil
		},
	}
}

func (c *cli) keyRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID...", Short: "Revoke keys permanently", Example: "  fanfare key revoke key-7", Args: cobra.MinimumNArgs(1),
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
