package registry

import (
	"fanfare.dev/fanfare/internal/inputerror"
)

const (
	maxRelays = 16 // of a channel
	maxWeight = 1000
)

// relays reads the next hops of a channel that has several.
func (n node) relays() (all []Relay) {
	n.each(func(v node) { all = append(all, v.relay()) })
	used, names := false, map[string]bool{}
	for i := range all {
		r := &all[i]
		used = used || r.Weight > 0
		if names[r.name()] {
			n.fault("give one of them a name", "two relays are named %s", inputerror.Quote(r.name()))
		}
		names[r.name()] = true
	}
	switch {
	case len(all) == 0:
		n.fault("name one, or use relay", "there are no relays")
	case len(all) > maxRelays:
		n.fault("", "there are %d relays, more than %d", len(all), maxRelays)
	case !used:
		n.fault("pause the channel instead", "all relays have the weight 0")
	}
	return all
}

func (n node) relay() Relay {
	r := Relay{Weight: 1}
	n.fields(fields{
		"name":          func(v node) { r.Name = v.name() },
		"relay":         func(v node) { r.Relay = v.hostPort() },
		"weight":        func(v node) { r.Weight = v.number(0, maxWeight) },
		"tls":           func(v node) { r.TLS = v.tls() },
		"username":      func(v node) { r.Username = v.line() },
		"password_env":  func(v node) { r.PasswordEnv = v.line() },
		"password_file": func(v node) { r.PasswordFile = v.path() },
		"hello":         func(v node) { r.Hello = v.host() },
		"grouping":      func(v node) { r.Grouping = v.grouping() },
	})
	n.needs("relay", "such as 127.0.0.1:25")
	n.login(r.Username, r.PasswordEnv, r.PasswordFile)
	return r
}

// relayed checks what a channel by SMTP says about where its mails go.
func (n node) relayed(c *ChannelSpec) {
	if n.has("relay") == n.has("relays") {
		n.fault("give relay, or relays where there are several", "relay is missing, or stands beside relays")
	}
	if len(c.Relays) == 0 {
		n.login(c.Username, c.PasswordEnv, c.PasswordFile)
		return
	}
	for _, field := range []string{"username", "password_env", "password_file"} {
		if n.has(field) {
			n.fault("write it at each relay that it is for", "%s stands beside relays", field)
		}
	}
	if c.Connections < len(c.Relays) {
		n.fault("raise connections", "%d connections are fewer than the %d relays", c.Connections, len(c.Relays))
	}
}

// login checks that a name has a password, and a password a name.
func (n node) login(username, env, file string) {
	n.oneOf("password_env", "password_file")
	if secret := env + file; (username == "") != (secret == "") {
		n.fault("give username and password_env or password_file, or none", "username and password belong together")
	}
}

func (n node) tls() string { return n.choice("off", "opportunistic", "required", "implicit") }

func (n node) grouping() string { return n.choice("auto", "pipelining", "lockstep") }
