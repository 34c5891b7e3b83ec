package config

import (
	"fmt"
	"net/url"
	"strings"

	"fanfare.dev/fanfare"
)

// readSecrets sets or completes fields from their *_file, and refuses secrets that others can
// read.
func (c *Config) readSecrets(readFile func(string) ([]byte, error), origins map[string]origin) error {
	for _, open := range []struct {
		key     string
		secret  bool
		instead string
	}{
		{"nats", hasSecret(c.NATS), "write the URL into a file and set nats_file to its path"},
		{"db", hasPassword(c.DB), "write the password into a file and set db_password_file to its path"},
		{"db_reads", hasPassword(c.DBReads), "write the password into a file and set db_password_file to its path"},
	} {
		if variable := (field{key: open.key}).env(); open.secret && origins[open.key].name != variable {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + open.key, Message: "must not contain a password in the configuration file or on the command line",
				Hint: "set " + variable + ", or " + open.instead}
		}
	}
	firstLine := func(key, path string) (string, error) {
		b, err := readFile(path)
		if err != nil {
			return "", &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + key, Message: err.Error(), Hint: "set it to a file that this user can read"}
		}
		line, _, _ := strings.Cut(string(b), "\n")
		return strings.TrimRight(line, "\r"), nil
	}
	if c.NATSFile != "" {
		if c.NATS != "" {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/nats_file", Message: "nats and nats_file cannot both be set", Hint: "remove one of them"}
		}
		text, err := firstLine("nats_file", c.NATSFile)
		if err != nil {
			return err
		}
		c.NATS = strings.TrimSpace(text)
	}
	if c.ClusterKeyFile != "" {
		var err error
		if c.clusterKey, err = firstLine("cluster_key_file", c.ClusterKeyFile); err != nil {
			return err
		}
	}
	if c.DBPasswordFile == "" {
		return nil
	}
	password, err := firstLine("db_password_file", c.DBPasswordFile)
	if err != nil {
		return err
	}
	if password == "" {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/db_password_file", Message: c.DBPasswordFile + " has no password on its first line", Hint: "write the password on the first line of the file"}
	}
	for _, of := range []struct {
		key   string
		value *string
	}{{"db", &c.DB}, {"db_reads", &c.DBReads}} {
		u, err := url.Parse(*of.value)
		if *of.value == "" || err != nil || u.Host == "" && u.RawQuery == "" {
			continue // Validate refuses it
		}
		if hasPassword(*of.value) {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/db_password_file", Message: fmt.Sprintf("the password is also set in %s", of.key), Hint: "remove one of them"}
		}
		if u.User == nil || u.User.Username() == "" {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/" + of.key, Message: "must contain the user name for the password in db_password_file", Hint: "use postgres://USER@HOST/DATABASE"}
		}
		u.User = url.UserPassword(u.User.Username(), password)
		*of.value = u.String()
	}
	return nil
}

// hasSecret reports whether one of the NATS URLs, separated by commas, has a password, or a token
// in place of a user.
func hasSecret(urls string) bool {
	for server := range strings.SplitSeq(urls, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		if err != nil {
			if strings.Contains(server, "@") {
				return true // the URL is invalid and may contain a secret
			}
			continue
		}
		if u.User != nil {
			return true
		}
	}
	return false
}

// hasPassword reports whether the URL of a database, which may name several hosts, has a password.
func hasPassword(database string) bool {
	u, err := url.Parse(database)
	if err != nil {
		return strings.Contains(database, "@") // the URL is invalid and may contain a password
	}
	_, password := u.User.Password()
	q := u.Query()
	return password || q.Has("password") || q.Has("sslpassword")
}
