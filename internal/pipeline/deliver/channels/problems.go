package channels

import (
	"errors"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
)

// Problems returns the keys, passwords and secrets of a channel that cannot be used now.
func (c *Channels) Problems(conf *catalog.Channel) (all []wire.ChannelProblem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.open[conf.Number]
	if ch == nil {
		return nil
	}
	now := c.clock.Now()
	signers := dkim.At(ch.keys.All(), now)
	names := make([]string, len(signers))
	for i, key := range signers {
		names[i] = key.Name()
	}
	signing := "mail is not signed"
	if len(names) > 0 {
		signing = "mail is signed with " + strings.Join(names, " and ")
	}
	held := dkimkeys.Unsigned(ch.keys.All(), ch.keys.Broken(), now) != nil
	for _, b := range ch.keys.Broken() {
		all = append(all, keyProblem(&b, signing, held))
	}
	for _, key := range ch.keys.All() {
		if key.Waits && !key.From.After(now) {
			all = append(all, wire.ChannelProblem{
				Kind: "dkim_record", Domain: key.Domain, Selector: key.Selector,
				Error: "the DKIM key " + key.Name() + " waits: " + c.options.Records.WhyMissing(key) + "; until the record is found, " + signing,
				Hint:  "add to the DNS: " + key.ZoneLine(),
			})
		}
	}
	return append(all, ch.problems...)
}

func keyProblem(b *dkimkeys.Broken, signing string, held bool) wire.ChannelProblem {
	key := dkim.Key{Domain: b.Domain, Selector: b.Selector}
	p := wire.ChannelProblem{Kind: "dkim_key", Domain: b.Domain, Selector: b.Selector, File: b.KeyFile}
	from := "the environment variable " + b.KeyEnv
	if b.KeyFile != "" {
		from = "the file " + b.KeyFile
	}
	p.Error = "the DKIM key " + key.Name() + " in " + from + " cannot be used: " + messageOf(b.Err) + "; "
	switch {
	case held:
		p.Error += "no other key can sign, so mail waits"
	case b.Kept:
		p.Error += "the server uses the previously loaded key until the next start"
	default:
		p.Error += signing
	}
	p.Hint = "restore the key, and make it readable for the user that runs the server (the server detects it within seconds); or create another key with fanfare dkim new " + b.Domain + " and configure it in the channel"
	return p
}

// messageOf returns the message of an error without its position in a document and without its hint.
func messageOf(err error) string {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err.Error()
	}
	return e.Message
}

// checkSecrets tries to read the passwords and secrets of all channels, as the next start will.
func (c *Channels) checkSecrets() {
	if c.options.Capture.all() {
		return
	}
	for _, conf := range c.parts.Registry.Channels() {
		found := secretProblems(conf)
		c.mu.Lock()
		if ch := c.open[conf.Number]; ch != nil {
			for _, p := range found {
				if !slices.Contains(ch.problems, p) {
					c.logger.Error("cannot read a secret of a channel", "channel", conf.Service+"/"+conf.Name, "kind", p.Kind, "file", p.File, "error", p.Error)
				}
			}
			ch.problems = found
		}
		c.mu.Unlock()
	}
}

// secretProblems returns the passwords and secrets of a channel that cannot be read.
func secretProblems(conf *catalog.Channel) (all []wire.ChannelProblem) {
	check := func(kind, file, effect string, read func() (string, error)) {
		_, err := read()
		if err == nil {
			return
		}
		p := wire.ChannelProblem{Kind: kind, File: file, Error: messageOf(err) + "; " + effect, Hint: "make it readable for the user that runs the server"}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	const atStart = "the server uses the previously loaded value, but the channel cannot send after the next start"
	switch conf.Driver {
	case "smtp":
		for _, hop := range conf.Hops() {
			check("password", hop.Channel.PasswordFile, atStart, hop.Channel.Password)
		}
	case "webhook":
		check("secret", conf.SecretFile, atStart, conf.Secrets)
		check("authorization", conf.AuthorizationFile, atStart, conf.Authorization)
	}
	if conf.Receipts.SecretEnv+conf.Receipts.SecretFile != "" {
		check("receipts", conf.Receipts.SecretFile, "receipts of the provider are refused", conf.ReceiptSecrets)
	}
	return all
}
