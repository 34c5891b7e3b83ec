package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
)

// A target is on which data a command works.
type target int

const (
	onServer    target = iota // those of a running server, with its admin key
	onDirectory               // those in a data directory of this machine, whatever server there is
	onNothing                 // none
)

// targetOf tells on which data a command works, with its flags. A command that is not
// named here works on a server.
func targetOf(command *cobra.Command) target {
	on := func(flag string) bool {
		f := command.Flags().Lookup(flag)
		return f != nil && f.Changed && f.Value.String() == "true"
	}
	switch strings.TrimPrefix(command.CommandPath(), command.Root().Name()+" ") {
	case "config check", "demo", "doctor", "serve":
		return onDirectory
	case "restore":
		if !on("list") {
			return onDirectory
		}
	case "backup":
		if on("stopped") {
			return onDirectory
		}
	case "migrate":
		if on("dry-run") || on("compare") || on("unmark") {
			return onDirectory
		}
	case "backup verify", "bench", "bench list", "bench pairs", "bench part", "bench report", "config reference", "demo files", "dkim new", "dkim record",
		"import notifybc", "openapi", "replies list", "replies test", "sink", "version", "workers":
		return onNothing
	}
	return onServer
}

// guard has every command checked before its arguments are, so that none works on other
// data than those that its flags name.
func (c *cli) guard(command *cobra.Command) {
	for _, sub := range command.Commands() {
		c.guard(sub)
	}
	if !command.Runnable() {
		return
	}
	fits := command.Args
	command.Args = func(command *cobra.Command, args []string) error {
		if err := c.checkTarget(command); err != nil || fits == nil {
			return err
		}
		return fits(command, args)
	}
}

// checkTarget refuses a command whose flags and environment may mean different servers
// or data. A flag is stronger than the variable of the same name; that does not make it
// stronger than a variable that says something else.
func (c *cli) checkTarget(command *cobra.Command) error {
	flag := func(name string) string {
		if f := command.Flags().Lookup(name); f != nil && f.Changed {
			return f.Value.String()
		}
		return ""
	}
	server, dir := flag("server"), flag("data-dir")
	named := "--data-dir " + dir
	if from := flag("from"); dir == "" && command.Name() == "migrate" && isDirectory(from) {
		dir, named = from, "--from "+from
	}
	switch targetOf(command) {
	case onNothing:
		return nil
	case onDirectory:
		return c.checkDirectory(command, server, dir)
	}
	return c.checkServer(server, dir, named)
}

// checkServer refuses flags that name a server or a directory where the environment may
// mean another one. named is the flag that names the directory.
func (c *cli) checkServer(server, dir, named string) error {
	envServer, envDir := c.setting("", "FANFARE_SERVER", ""), c.setting("", "FANFARE_DATA_DIR", "")
	switch {
	case dir != "" && server == "" && envServer != "" && !sameDirectory(dir, envDir):
		return contradiction(named+" names a data directory, but the environment variable FANFARE_SERVER="+envServer+" names a server that may use other data",
			"add --server with the URL of the server that uses "+dir+", or unset FANFARE_SERVER; to use the server in FANFARE_SERVER, omit the flag")
	case server != "" && dir == "" && envDir != "" && server != envServer && c.setting(c.key, "FANFARE_KEY", "") == "":
		return contradiction("--server "+server+" names a server, but the environment variable FANFARE_DATA_DIR="+envDir+" names a data directory whose key may belong to another server",
			"add --data-dir with the data directory of that server, or unset FANFARE_DATA_DIR and set FANFARE_KEY")
	}
	return nil
}

// checkDirectory refuses a server that is named to a command that asks none. dir is the
// directory that a flag names.
func (c *cli) checkDirectory(command *cobra.Command, server, dir string) error {
	if server != "" {
		return contradiction("--server "+server+" names a server, but "+command.CommandPath()+" works on a data directory of this machine",
			"omit --server, and name the directory with --data-dir")
	}
	envServer := c.setting("", "FANFARE_SERVER", "")
	switch command.Name() {
	case "backup", "migrate", "restore": // serve and its like are told by their configuration
		if envServer != "" && c.setting(dir, "FANFARE_DATA_DIR", "") == "" {
			return contradiction("the environment variable FANFARE_SERVER="+envServer+" names a server, but "+command.CommandPath()+" works on a data directory of this machine, and no directory is named",
				"name the directory with --data-dir, or unset FANFARE_SERVER to use "+defaultDataDir)
		}
	}
	return nil
}

func contradiction(message, hint string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: message, Hint: hint}
}

// isDirectory tells a directory from the other places that migrate takes.
func isDirectory(place string) bool {
	return place != "" && place != "sqlite" && place != "db" && !strings.Contains(place, "://")
}

// sameDirectory reports whether two paths name one directory; the empty path names none.
func sameDirectory(a, b string) bool {
	return a != "" && b != "" && realPath(a) == realPath(b)
}

// realPath is a path as the file system has it.
func realPath(path string) string {
	path = absolute(path)
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found
	}
	return path
}
