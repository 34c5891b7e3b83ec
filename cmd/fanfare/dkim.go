package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/dkim"
)

func (c *cli) dkimCommand() *cobra.Command {
	command := &cobra.Command{Use: "dkim", Short: "Make, show and rotate the keys that mail is signed with",
		Long: `Make, show and rotate the keys that mail is signed with (DKIM).

A private key is a file on the server, which a channel names in dkim; the public key
is a record in the DNS.`}
	command.AddCommand(c.dkimNewCommand(), c.dkimRecordCommand(), c.dkimRotateCommand())
	return command
}

// A madeKey is a key with all that has to be told of it.
type madeKey struct {
	Domain   string    `json:"domain"`
	Selector string    `json:"selector"`
	Type     string    `json:"type"`
	File     string    `json:"file"`
	From     time.Time `json:"from,omitzero"`
	Name     string    `json:"name"`   // of the record
	Record   string    `json:"record"` // its text
	Zone     string    `json:"zone"`   // as a line of a zone file
}

func told(key *dkim.Key, file string) madeKey {
	return madeKey{Domain: key.Domain, Selector: key.Selector, Type: key.Algorithm(), File: file, From: key.From, Name: key.Name(), Record: key.Record(), Zone: key.ZoneLine()}
}

func (c *cli) dkimNewCommand() *cobra.Command {
	var selector, kind, file string
	command := &cobra.Command{
		Use: "new DOMAIN", Short: "Make a key, and say what to add to the DNS and to the channel",
		Long: `Make a key in a file that only its owner may read, and say what to add to the DNS and
to the channel. Ed25519 is the smaller and faster one (RFC 8463), and some receivers
only know RSA: a channel may have both, and signs with both then.`,
		Example: `  fanfare dkim new example.org
  fanfare dkim new example.org --type rsa --selector s1 --out /etc/fanfare/s1.pem`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			if selector == "" {
				selector = selectorOf(kind, time.Now())
			}
			if file == "" {
				file = args[0] + "." + selector + ".pem"
			}
			key, err := makeKey(args[0], selector, kind, file)
			if err != nil {
				return err
			}
			return c.printKey(told(key, absolute(file)))
		},
	}
	flags := command.Flags()
	flags.StringVar(&kind, "type", dkim.Ed25519, "ed25519 or rsa (of 2048 bits)")
	flags.StringVar(&selector, "selector", "", "name of the key within the domain (default: type and date)")
	flags.StringVar(&file, "out", "", "file to write the private key to (default: DOMAIN.SELECTOR.pem)")
	return command
}

func (c *cli) dkimRecordCommand() *cobra.Command {
	var selector, file string
	command := &cobra.Command{
		Use: "record DOMAIN --selector NAME --key-file FILE", Short: "Show the record in the DNS that belongs to a private key",
		Example: "  fanfare dkim record example.org --selector s1 --key-file /etc/fanfare/s1.pem",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := os.ReadFile(file)
			if err != nil {
				return &fanfare.Error{Code: fanfare.Invalid, Message: err.Error(), Hint: "name a file that has a private key"}
			}
			private, err := dkim.ParsePrivate(text)
			if err != nil {
				return inFile(file, err)
			}
			key := &dkim.Key{Domain: strings.ToLower(args[0]), Selector: strings.ToLower(selector), Private: private}
			if c.json {
				return c.printJSON(told(key, absolute(file)))
			}
			fmt.Fprintln(c.out, key.ZoneLine())
			return nil
		},
	}
	command.Flags().StringVar(&selector, "selector", "", "name of the key within the domain")
	command.Flags().StringVar(&file, "key-file", "", "file with the private key")
	for _, name := range []string{"selector", "key-file"} {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err) // it is one of the flags
		}
	}
	return command
}

// selectorOf names a key that is made now.
func selectorOf(kind string, now time.Time) string { return kind + "-" + now.UTC().Format("20060102") }

// makeKey makes a key and writes it to a file that is not there yet.
func makeKey(domain, selector, kind, file string) (*dkim.Key, error) {
	key := &dkim.Key{Domain: strings.ToLower(domain), Selector: strings.ToLower(selector)}
	if !dkim.ValidName(key.Name()) || !strings.Contains(domain, ".") {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: key.Name() + " is no name of the DNS", Hint: "write the domain as example.org, and a selector of letters, digits and hyphens"}
	}
	private, err := dkim.Generate(kind)
	if err != nil {
		return nil, err
	}
	text, err := private.PEM()
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, &fanfare.Error{Code: fanfare.Conflict, Message: file + " is there already, and may be a key that signs", Hint: "name another selector, or another file with --out"}
	}
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: err.Error(), Hint: "name a file in a folder that you may write to with --out"}
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return nil, err
	}
	key.Private = private
	return key, nil
}

func absolute(file string) string {
	if path, err := filepath.Abs(file); err == nil {
		return path
	}
	return file
}

// printKey says what is to be done with a key that was made.
func (c *cli) printKey(k madeKey) error {
	if c.json {
		return c.printJSON(k)
	}
	fmt.Fprintf(c.err, "%s has the private key: the user of the server has to be able to read it, and nobody else\n", k.File)
	fmt.Fprintf(c.out, "; to the DNS\n%s\n\n# to the channel\ndkim:\n  - {domain: %s, selector: %s, key_file: %q}\n", k.Zone, k.Domain, k.Selector, k.File)
	return nil
}
