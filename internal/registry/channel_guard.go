package registry

import (
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
)

// serverSide is what of a channel is about the machine of the server: the folder
// that it writes to, and the secrets that it reads, with all that says to whom
// they are told.
type serverSide struct {
	driver, path, passwordEnv, passwordFile, username, relay, tls, secretEnv, secretFile, relays, dkim, receipts string
}

func (c *ChannelSettings) serverSide() serverSide {
	relays := slices.Clone(c.Relays)
	for i := range relays {
		relays[i].Weight = 0 // which is not about the machine
	}
	return serverSide{c.Driver, c.Path, c.PasswordEnv, c.PasswordFile, c.Username, c.Relay, c.TLS, c.SecretEnv, c.SecretFile, fmt.Sprintf("%+v", relays), fmt.Sprintf("%+v", c.DKIM), fmt.Sprintf("%+v", c.Receipts)}
}

// onlyTheOperators refuses a channel by which the admin of one service would
// reach what is the whole server's: a relay of theirs would be told any file as a
// password, admin.key too. What the operator has set they may keep; old is nil
// for a new channel.
func (c *Channel) onlyTheOperators(old *Channel) error {
	field := ""
	switch {
	case c.Path != "":
		field = "path"
	case c.PasswordFile != "":
		field = "password_file"
	case c.PasswordEnv != "":
		field = "password_env"
	case c.SecretFile != "":
		field = "secret_file"
	case c.SecretEnv != "":
		field = "secret_env"
	case len(c.DKIM) > 0:
		field = "dkim"
	case c.Receipts != Receipts{}:
		field = "receipts"
	case slices.ContainsFunc(c.Relays, func(r Relay) bool { return r.PasswordFile != "" || r.PasswordEnv != "" }):
		field = "relays"
	}
	if field == "" || old != nil && old.serverSide() == c.serverSide() {
		return nil
	}
	return &fanfare.Error{Code: fanfare.Forbidden, Pointer: "/" + field, Message: field + " is about the server's own machine: a key of one service may not set it, nor the relay of a channel that has it",
		Hint: "have it set with a key for all services; everything else of the channel can be changed with this one"}
}
