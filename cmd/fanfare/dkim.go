package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/dkim"
)

func (c *cli) dkimCommand() *cobra.Command {
	command := &cobra.Command{Use: "dkim", Short: "Manage DKIM keys",
		Long: `Create, show and rotate the DKIM keys that sign mail.

The private key is a file on the server, to which the dkim setting of a channel
refers. The public key is published as a DNS record.`}
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
	var selector, file string
	var kinds []string
	command := &cobra.Command{
		Use: "new DOMAIN", Short: "Create DKIM keys",
		Long: `Create a key in a file that only its owner can read, and print the DNS record and the
channel setting for it. Ed25519 keys (RFC 8463) are smaller and faster, but some
receivers support only RSA. A channel that has both kinds of keys signs with both. If
you pass several types, the command creates one key of each type in the directory
given by --out.`,
		Example: `  fanfare dkim new example.org
  fanfare dkim new example.org --type ed25519,rsa --out /etc/fanfare
  fanfare dkim new example.org --type rsa --selector s1 --out /etc/fanfare/s1.pem`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			made, err := makeKeys(args[0], selector, kinds, file)
			if err != nil {
				return err
			}
			return c.printKeys(made)
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&kinds, "type", []string{dkim.Ed25519}, "key type: ed25519, rsa (2048 bits) or ed25519,rsa")
	flags.StringVar(&selector, "selector", "", "selector of the key (default: type and date)")
	flags.StringVar(&file, "out", "", "file for the private key, or directory for several types (default: DOMAIN.SELECTOR.pem)")
	return command
}

// makeKeys makes a key of each kind, or none where one of them cannot be made.
func makeKeys(domain, selector string, kinds []string, out string) (made []madeKey, err error) {
	kinds = slices.Compact(slices.Sorted(slices.Values(kinds)))
	if len(kinds) > 1 && selector != "" {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "--selector names one key, but several types were requested", Hint: "omit --selector, or create the keys one by one"}
	}
	defer func() {
		if err != nil { // nobody has seen them
			for _, k := range made {
				_ = os.Remove(k.File)
			}
		}
	}()
	for _, kind := range kinds {
		of := cmp.Or(selector, selectorOf(kind, time.Now()))
		file := cmp.Or(out, domain+"."+of+".pem")
		if len(kinds) > 1 {
			file = filepath.Join(out, domain+"."+of+".pem")
		}
		key, err := makeKey(domain, of, kind, file)
		if err != nil {
			return made, err
		}
		made = append(made, told(key, absolute(file)))
	}
	return made, nil
}

func (c *cli) dkimRecordCommand() *cobra.Command {
	var selector, file string
	command := &cobra.Command{
		Use: "record DOMAIN --selector NAME --key-file FILE", Short: "Show the DNS record of a private key",
		Example: "  fanfare dkim record example.org --selector s1 --key-file /etc/fanfare/s1.pem",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := os.ReadFile(file)
			if err != nil {
				return &fanfare.Error{Code: fanfare.Invalid, Message: err.Error(), Hint: "pass the file that contains the private key"}
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
	command.Flags().StringVar(&selector, "selector", "", "selector of the key")
	command.Flags().StringVar(&file, "key-file", "", "file that contains the private key")
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
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: key.Name() + " is not a valid DNS name", Hint: "use a domain such as example.org, and a selector that consists of a-z, 0-9 and hyphens"}
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
		return nil, &fanfare.Error{Code: fanfare.Conflict, Message: file + " already exists and may contain a key that is in use", Hint: "choose another selector, or another file with --out"}
	}
	if err != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: err.Error(), Hint: "use --out to pass a file in a writable directory"}
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

// printKeys says what is to be done with keys that were made: the records of all of
// them, and one list for the channel.
func (c *cli) printKeys(made []madeKey) error {
	if c.json && len(made) == 1 {
		return c.printJSON(made[0])
	}
	if c.json {
		return c.printJSON(made)
	}
	records, entries := "", ""
	for _, k := range made {
		fmt.Fprintf(c.err, "%s contains the private key: only the user that runs the server should be able to read it\n", k.File)
		records += k.Zone + "\n"
		entries += fmt.Sprintf("  - {domain: %s, selector: %s, key_file: %q}\n", k.Domain, k.Selector, k.File)
	}
	fmt.Fprintf(c.out, "; add to the DNS\n%s\n# add to the channel\ndkim:\n%s", records, entries)
	return nil
}
