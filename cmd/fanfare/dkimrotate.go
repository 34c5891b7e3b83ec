package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/mail/dkim"
)

func (c *cli) dkimRotateCommand() *cobra.Command {
	var in time.Duration
	var force bool
	command := &cobra.Command{
		Use: "rotate CHANNEL", Short: "Rotate the DKIM keys of a channel",
		Long: `Create a successor for each key that a channel signs with, next to the file of that
key. After the time given by --in, the server looks up the DNS record of the new key
every 10 seconds, and switches to the new key once it finds the record. Until then,
fanfare status and fanfare doctor show which key is waiting, and why. With --force,
the channel switches at that time even if the record is missing.

Keep the old DNS records for a few days, for mail that is still in transit. Keys that
are older than the current ones are removed from the channel.

Run the command on the server's machine, as a user with write access to the key
directory.`,
		Example: `  fanfare dkim rotate mail
  fanfare dkim rotate mail --in 168h
  fanfare dkim rotate mail --in 0s`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeFirst("channels"),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			keys, all, err := rotate(command.Context(), api, args[0], time.Now().UTC().Truncate(time.Second), in, !force)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(keys)
			}
			fmt.Fprintln(c.out, "; add to the DNS before "+keys[0].From.Format(time.RFC3339))
			for _, k := range keys {
				fmt.Fprintln(c.out, k.Zone)
			}
			fmt.Fprintln(c.out, "\n# add to the channel in your document: otherwise the next apply removes the new keys\ndkim:")
			for _, k := range all {
				from := ""
				if k.From != "" {
					from = fmt.Sprintf(", from: %q", k.From)
				}
				if k.WaitForDNS {
					from += ", wait_for_dns: true"
				}
				fmt.Fprintf(c.out, "  - {domain: %s, selector: %s, key_file: %q%s}\n", k.Domain, k.Selector, k.KeyFile, from)
			}
			once := ", each as soon as its DNS record is visible"
			if force {
				once = ""
			}
			fmt.Fprintf(c.err, "from then on, channel %s signs with the new keys%s\n", args[0], once)
			return nil
		},
	}
	command.Flags().DurationVar(&in, "in", 72*time.Hour, "time until the new keys are used, provided that their DNS records are visible")
	command.Flags().BoolVar(&force, "force", false, "use the new keys at that time even if their DNS records are missing")
	return command
}

// rotate makes the next keys of a channel and has it take them; all are those that it
// has then. wait says whether the next sign only once their records are in the DNS.
func rotate(ctx context.Context, api *client.Client, name string, now time.Time, in time.Duration, wait bool) (made []madeKey, all []client.DKIMKey, err error) {
	if in < 0 {
		return nil, nil, &fanfare.Error{Code: fanfare.Invalid, Message: "--in must not be negative", Hint: "allow a few days for the DNS, for example --in 72h"}
	}
	channel, err := api.Channels().Get(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	old := channel.Value.DKIM
	keys, err := keysOf(old)
	if err != nil {
		return nil, nil, err
	}
	if len(keys) == 0 {
		return nil, nil, &fanfare.Error{Code: fanfare.Invalid, Message: "channel " + name + " has no DKIM keys", Hint: "create one with fanfare dkim new"}
	}
	if err := nothingWaits(ctx, api, name, keys); err != nil {
		return nil, nil, err
	}
	signs := map[*dkim.Key]bool{}
	for _, k := range dkim.At(keys, now) {
		signs[k] = true
	}
	for i, k := range keys {
		if k.From.After(now) {
			return nil, nil, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the channel is already scheduled to sign with key %s from %s", k.Name(), k.From.Format(time.RFC3339)), Hint: "rotate again after that time"}
		}
		if signs[k] {
			all = append(all, old[i])
		}
	}
	defer func() {
		for _, k := range made {
			if err != nil { // nobody has seen them
				_ = os.Remove(k.File)
			}
		}
	}()
	for i, k := range keys {
		if !signs[k] {
			continue
		}
		next, file, err := follow(k, old[i].KeyFile, now)
		if err != nil {
			return made, nil, err
		}
		next.From = now.Add(in)
		made = append(made, told(next, file))
		all = append(all, client.DKIMKey{Domain: next.Domain, Selector: next.Selector, KeyFile: file, From: next.From.Format(time.RFC3339), WaitForDNS: wait})
	}
	channel.Value.DKIM = all
	_, err = api.Channels().Put(ctx, name, channel)
	return made, all, err
}

// nothingWaits refuses to make keys after some that do not sign yet: the present ones would
// leave the channel, which signs with them.
func nothingWaits(ctx context.Context, api *client.Client, name string, keys []*dkim.Key) error {
	status, err := api.Status(ctx)
	if err != nil {
		return err
	}
	for _, channel := range status.Channels {
		for _, p := range channel.Problems {
			for _, k := range keys {
				if channel.Name == name && p.Kind == "dkim_record" && k.Domain == p.Domain && k.Selector == p.Selector {
					return &fanfare.Error{Code: fanfare.Conflict, Message: "the channel is already waiting for the DNS record of " + k.Name(),
						Hint: "add to the DNS: " + k.ZoneLine() + "; to use the key immediately, apply the channel without wait_for_dns"}
				}
			}
		}
	}
	return nil
}

// keysOf reads the keys of a channel, whose files are on this machine.
func keysOf(all []client.DKIMKey) (keys []*dkim.Key, err error) {
	for _, one := range all {
		if one.KeyFile == "" {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("the key of %s is in the environment variable %s of the server", one.Selector, one.KeyEnv), Hint: "create the next key with fanfare dkim new, and add it to the channel with its start time in the field from"}
		}
		text, err := os.ReadFile(one.KeyFile)
		if err != nil {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Message: err.Error(), Hint: "run the command on the server's machine, as the user that runs the server"}
		}
		private, err := dkim.ParsePrivate(text)
		if err != nil {
			return nil, inFile(one.KeyFile, err)
		}
		key := &dkim.Key{Domain: one.Domain, Selector: one.Selector, Private: private}
		if one.From != "" {
			if key.From, err = time.Parse(time.RFC3339, one.From); err != nil {
				return nil, err
			}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// follow makes the key after another, beside it.
func follow(k *dkim.Key, file string, now time.Time) (*dkim.Key, string, error) {
	day := selectorOf(k.Algorithm(), now)
	selector, path := day, ""
	for next := 'b'; ; next++ { // the first key of a day has no suffix
		path = filepath.Join(filepath.Dir(file), k.Domain+"."+selector+".pem")
		if _, err := os.Stat(path); selector != k.Selector && err != nil || next > 'z' {
			break
		}
		selector = day + string(next)
	}
	next, err := makeKey(k.Domain, selector, k.Algorithm(), path)
	return next, path, err
}
