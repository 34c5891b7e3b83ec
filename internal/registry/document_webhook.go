package registry

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// Defaults of channels whose driver is webhook. Receivers are many and each has few
// connections, so that a slow one is given up sooner than a relay.
const (
	defaultAnswerTimeout  = Duration(30 * time.Second)
	defaultConnectTimeout = Duration(10 * time.Second)
)

// webhookFields adds what a channel to programs can say.
func webhookFields(c *ChannelSpec, all fields) {
	all["secret_env"] = func(v node) { c.SecretEnv = v.line() }
	all["secret_file"] = func(v node) { c.SecretFile = v.path() }
	all["allow_http"] = func(v node) { c.AllowHTTP = v.yes() }
	all["connect_timeout"] = func(v node) { c.ConnectTimeout = v.duration() }
}

// Secrets reads what a channel signs with from where its settings say; "" if they
// name no place. It is never stored and never shown.
func (c *Channel) Secrets() (string, error) { return c.secret("secret", c.SecretEnv, c.SecretFile) }

// secret reads a secret from an environment variable, or else a file.
func (c *Channel) secret(what, env, path string) (string, error) {
	switch {
	case env != "":
		secret, ok := os.LookupEnv(env)
		if !ok {
			return "", &fanfare.Error{Code: fanfare.Unavailable,
				Message: "channel " + c.Service + "/" + c.Name + ": environment variable " + env + " is not set",
				Hint:    "set it for the server and start it again"}
		}
		return secret, nil
	case path != "":
		b, err := os.ReadFile(path)
		if err != nil {
			return "", &fanfare.Error{Code: fanfare.Unavailable,
				Message: "channel " + c.Service + "/" + c.Name + ": cannot read " + what + "_file " + path + ": " + reasonOf(err),
				Hint:    "the file must exist on the server and be readable by it"}
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	}
	return "", nil
}

// reasonOf is why a file cannot be read, without its path.
func reasonOf(err error) string {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	}
	return err.Error()
}

// takes refuses an address that the channel would not send to.
func (c *Channel) takes(address string) error {
	if c.Driver == "webhook" && !c.AllowHTTP && strings.HasPrefix(address, "http://") {
		return inputerror.Invalid("/to", "give the https address of the receiver, or set allow_http for channel "+c.Name, "the URL has no TLS")
	}
	return nil
}
