package main

import (
	"net/url"
	"os"

	"fanfare.dev/fanfare"
)

// usageDB explains --db where a program uses a database for a while. A password
// on a command line can be read by others, so the URL may come by the environment.
const usageDB = "URL of a PostgreSQL database to use, in a schema that is dropped afterwards, or env for the URL in FANFARE_DB (default: SQLite)"

// databaseOf is the URL that --db means.
func databaseOf(flag string) (string, error) {
	if flag == "env" {
		return os.Getenv("FANFARE_DB"), nil
	}
	return flag, unseen(flag, "put the URL into FANFARE_DB and pass --db env, or use PGPASSFILE")
}

// unseen refuses a URL on the command line that has a password. One that cannot
// be read is refused by who uses it.
func unseen(flag, hint string) error {
	if u, err := url.Parse(flag); err == nil {
		if _, secret := u.User.Password(); secret || u.Query().Has("password") {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "a password on the command line is visible to every user of this machine", Hint: hint}
		}
	}
	return nil
}
